package pipeline_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"edgecam/capture"
	"edgecam/capture/decode"
	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/infer/builtin"
	"edgecam/infer/ort"
	"edgecam/internal/sim"
	"edgecam/internal/testkit"
	"edgecam/platform/avcodec"
	"edgecam/preprocess"
)

// path is one frame's way without network and scheduler: decoder, pool,
// preprocessing, engine.
type path struct {
	clip    *sim.ClipData
	decoder *decode.Decoder
	prep    *preprocess.CPU
	slot    infer.Slot
}

func newPath(t *testing.T, precision string) *path {
	t.Helper()
	engine, err := ort.New(ort.Options{Library: testkit.ONNXRuntime(t), Precision: precision, Concurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, engine.Close()) })
	slot, err := engine.Acquire(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(slot.Release)
	codecs, err := avcodec.Open()
	if err != nil {
		t.Fatal(err)
	}
	p := &path{prep: preprocess.NewCPU(engine.Info().Input), slot: slot}
	if p.clip, err = sim.BuiltinClip(); err != nil {
		t.Fatal(err)
	}
	p.decoder, err = decode.New(decode.Options{
		Camera: "clip", Info: capture.StreamInfo{Codec: p.clip.Codec, ParameterSets: p.clip.ParameterSets(), ClockRate: 90000},
		Library: codecs, Node: -1, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.decoder.Close)
	return p
}

// play decodes the clip's pictures up to the one numbered last, from 0.
func (p *path) play(t *testing.T, last int, each func(n int, f *framepool.Frame)) {
	t.Helper()
	n := 0
	for i := 0; n <= last; i = (i + 1) % len(p.clip.Samples) {
		s := p.clip.Samples[i]
		now := time.Now()
		au := capture.AccessUnit{NALUs: s.NALUs, PTS: s.PTS, Received: now, CapturedAt: now, RandomAccess: s.RandomAccess}
		err := p.decoder.Decode(&au, func(f *framepool.Frame) {
			defer f.Release()
			if n <= last {
				each(n, f)
			}
			n++
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func (p *path) infer(t *testing.T, f *framepool.Frame, threshold func(int) float32, out [][]infer.Detection) preprocess.Transform {
	tr, err := p.prep.Run(f, p.slot.Input(0))
	if err == nil {
		err = p.slot.Run(1, threshold, out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// The built-in model finds what its reference says, through the whole path.
func TestReferenceThroughTheWholePath(t *testing.T) {
	for _, precision := range []string{"fp32", "int8"} {
		t.Run(precision, func(t *testing.T) {
			ref, err := builtin.ReadReference(precision)
			if err != nil {
				t.Fatal(err)
			}
			p := newPath(t, precision)
			seen := 0
			p.play(t, 100, func(n int, f *framepool.Frame) {
				want, ok := ref.Frames[n]
				if !ok {
					return
				}
				seen++
				out := make([][]infer.Detection, 1)
				tr := p.infer(t, f, func(int) float32 { return ref.ScoreThreshold - scoreSlack }, out)
				m := f.Meta()
				for i, d := range out[0] {
					d = tr.Inverse(d)
					d.X1, d.X2 = d.X1*float32(m.Width), d.X2*float32(m.Width)
					d.Y1, d.Y2 = d.Y1*float32(m.Height), d.Y2*float32(m.Height)
					out[0][i] = d
				}
				matchBoxes(t, fmt.Sprintf("frame %d: expected", n), want, out[0], ref.ScoreThreshold)
				matchBoxes(t, fmt.Sprintf("frame %d: found", n), out[0], want, ref.ScoreThreshold)
			})
			if seen != len(ref.Frames) || seen < 2 {
				t.Errorf("%d frames were compared, want %d", seen, len(ref.Frames))
			}
		})
	}
}

// scoreSlack is by how much a score may differ: boxes that score within it of
// the threshold may come or go.
const scoreSlack = 0.1

// matchBoxes asks for every box of a, but those near the threshold, a box of the
// same class in b with an overlap of 0.9 and a like score.
func matchBoxes(t *testing.T, what string, a, b []infer.Detection, threshold float32) {
	t.Helper()
	for i := range a {
		if a[i].Score < threshold+scoreSlack {
			continue
		}
		ok := false
		for k := range b {
			d := a[i].Score - b[k].Score
			ok = ok || a[i].Class == b[k].Class && infer.IoU(&a[i], &b[k]) >= 0.9 && d <= scoreSlack && d >= -scoreSlack
		}
		if !ok {
			t.Errorf("%s box without a partner: %+v", what, a[i])
		}
	}
}
