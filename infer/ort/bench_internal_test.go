package ort

import (
	"fmt"
	"testing"

	"edgecam/infer"
	"edgecam/internal/testkit"
	"edgecam/platform/onnxruntime"
)

func BenchmarkRun(b *testing.B) {
	for _, precision := range []string{"fp32", "int8"} {
		for _, batch := range []int{1, 4} {
			b.Run(fmt.Sprintf("%s/batch=%d", precision, batch), func(b *testing.B) {
				e := engine(b, Options{Precision: precision, Concurrency: 1, MaxBatch: batch, batchCap: batch})
				s := acquire(b, e)
				defer s.Release()
				pictures := referenceInputs(b, e.Info().Input)
				out := make([][]infer.Detection, batch)
				for i := range batch {
					copy(s.Input(i), pictures[0])
					out[i] = make([]infer.Detection, 0, 100)
				}
				threshold := func(int) float32 { return 0.45 }
				b.ReportAllocs()
				for b.Loop() {
					for i := range out {
						out[i] = out[i][:0]
					}
					if err := s.Run(batch, threshold, out); err != nil {
						b.Fatal(err)
					}
				}
				stats := e.Stats()
				b.ReportMetric(ms(stats.Infer)/float64(stats.Images), "infer-ms/image")
				b.ReportMetric(ms(stats.Decode)/float64(stats.Images)*1000, "decode-µs/image")
			})
		}
	}
}

func BenchmarkNew(b *testing.B) {
	library := testkit.ONNXRuntime(b)
	for _, precision := range []string{"fp32", "int8", "auto"} {
		b.Run(precision, func(b *testing.B) {
			for b.Loop() {
				e, err := New(Options{Library: library, Precision: precision})
				if err != nil {
					b.Fatal(err)
				}
				if err := e.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkStage brings a picture of 640x640 into other forms of input.
func BenchmarkStage(b *testing.B) {
	for _, p := range []inputPort{
		{element: onnxruntime.Float16}, {element: onnxruntime.Uint8}, {element: onnxruntime.Float32, nhwc: true}, {element: onnxruntime.Uint8, nhwc: true},
	} {
		p.width, p.height = 640, 640
		b.Run(fmt.Sprintf("%v nhwc=%v", p.element, p.nhwc), func(b *testing.B) {
			from := make([]float32, p.values())
			for i := range from {
				from[i] = float32(i%1000) / 1000
			}
			to := make([]byte, p.values()*p.element.Size())
			for b.Loop() {
				p.convert(to, from)
			}
		})
	}
}
