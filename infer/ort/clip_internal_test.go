package ort

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/infer/builtin"
	spec "edgecam/infer/model"
	"edgecam/internal/testkit"
)

// clipFrames are frames 0 and 100 of the clip as a decoder gives them.
func clipFrames(t *testing.T) map[int]*framepool.Frame {
	t.Helper()
	const w, h, size = testkit.ClipWidth, testkit.ClipHeight, testkit.ClipWidth * testkit.ClipHeight
	raw := testkit.FFmpeg(t, "clip.yuv", "-i", filepath.Join(testkit.Root(t), "internal/sim/pets-s2l1-20s.mp4"),
		"-vf", "select='eq(n,0)+eq(n,100)'", "-fps_mode", "passthrough", "-pix_fmt", "yuv420p", "-f", "rawvideo")
	if len(raw) != 2*size*3/2 {
		t.Fatalf("%d bytes", len(raw))
	}
	frames := map[int]*framepool.Frame{}
	for i := range 2 {
		p := raw[i*size*3/2:]
		m := framepool.Meta{Camera: "clip", Width: w, Height: h, Format: framepool.I420, Matrix: framepool.MatrixBT601}
		m.Stride[0], m.Stride[1], m.Stride[2] = w, w/2, w/2
		f := framepool.NewHeapFrame(m, [][]byte{p[:size], p[size : size*5/4], p[size*5/4 : size*3/2]})
		t.Cleanup(f.Release)
		frames[100*i] = f
	}
	return frames
}

// familyFiles are real models of other people's, which are not shipped.
func familyFiles(t *testing.T) []string {
	t.Helper()
	dir := os.Getenv("EDGECAM_TEST_FAMILIES")
	if dir == "" {
		t.Skip("EDGECAM_TEST_FAMILIES names no directory of models")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.onnx"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no models in %s: %v", dir, err)
	}
	return files
}

// TestRealModels wants every model that knows people to find those of the clip: where
// the built-in model is sure of one, so must most of them be.
func TestRealModels(t *testing.T) {
	files := familyFiles(t)
	reference, err := builtin.ReadReference("fp32")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			r, err := spec.Inspect(file, spec.Overrides{})
			var refused *infer.ModelError
			if errors.As(err, &refused) {
				t.Logf("asks: %v (%s)", err, refused.Hint)
				r, err = spec.Inspect(file, answers(t, r))
			}
			if err != nil {
				t.Fatal(err)
			}
			person := slices.Index(r.Spec.Labels, "person")
			e := engine(t, Options{Model: file, Spec: &r.Spec, Concurrency: 1})
			found, sure := 0, 0
			for n, f := range clipFrames(t) {
				got := throughAt(t, e, f, 0.3)
				for _, w := range reference.Frames[n] {
					if w.Class != 0 || w.Score < 0.5 {
						continue
					}
					sure++
					if slices.ContainsFunc(got, func(g infer.Detection) bool { return g.Class == person && infer.IoU(&g, &w) > 0.5 }) {
						found++
					}
				}
				t.Logf("frame %d: %d detections", n, len(got))
			}
			t.Logf("%s: %d of %d people, %.0f ms an image", r.Spec.Family, found, sure, e.Info().ProbeMS)
			if person >= 0 && 10*found < 6*sure {
				t.Errorf("%d of %d people", found, sure)
			}
		})
	}
}

// answers is what an operator would tell of a file that asks.
func answers(t *testing.T, r *spec.Report) (o spec.Overrides) {
	t.Helper()
	if r == nil {
		return o
	}
	for _, q := range r.Ask {
		switch {
		case strings.HasSuffix(q.Key, "family") && len(q.Alternatives) > 0:
			o.Family = q.Alternatives[0]
		case strings.HasSuffix(q.Key, "labels"):
			o.Labels = builtinLabels(t)
		}
	}
	return o
}

func builtinLabels(t *testing.T) []string {
	t.Helper()
	return engine(t, Options{Precision: "fp32", Concurrency: 1}).Info().Labels
}
