package ort

import (
	"fmt"
	"testing"

	"edgecam/infer"
	"edgecam/internal/testkit"
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
