//go:build !race

package pipeline_test

import (
	"runtime"
	"testing"

	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/infer/track"
)

// No pixel is copied between decoder and preprocessing, and a frame costs a
// handful of small Go allocations from access unit to tracked objects.
func TestPathCopiesAndAllocatesNothing(t *testing.T) {
	p, tracker := newPath(t, "int8"), track.New(track.Options{})
	out := make([][]infer.Detection, 1)
	var objects []track.Object
	threshold := func(int) float32 { return 0.45 }
	step := func(_ int, f *framepool.Frame) {
		out[0] = out[0][:0]
		tr := p.infer(t, f, threshold, out)
		for i, d := range out[0] {
			out[0][i] = tr.Inverse(d)
		}
		objects = tracker.Update(objects[:0], f.Meta().Received, out[0])
	}
	p.play(t, 60, step) // tables, scratch and tracks are made
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const frames = 100
	p.play(t, frames-1, step)
	runtime.ReadMemStats(&after)
	st := p.decoder.Stats()
	if st.CopiedBytes != 0 || len(st.Pools) != 1 {
		t.Errorf("%d bytes of pixels were copied, %d pools", st.CopiedBytes, len(st.Pools))
	}
	if got := float64(after.Mallocs-before.Mallocs) / frames; got > 10 {
		t.Errorf("%.1f Go allocations a frame, want at most 10", got)
	} else {
		t.Logf("%.1f Go allocations a frame", got)
	}
}
