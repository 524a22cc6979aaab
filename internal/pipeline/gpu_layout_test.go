package pipeline

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"edgecam/infer"
	spec "edgecam/infer/model"
	"edgecam/infer/model/fixture"
)

// The card serves models of other layouts: of those that a filter knows only
// candidates come back, of the others all outputs.
func TestGPUReadsOtherLayouts(t *testing.T) {
	objects := []infer.Detection{
		{Class: 0, Score: 0.9, X1: 32, Y1: 40, X2: 80, Y2: 160},
		{Class: 2, Score: 0.75, X1: 150, Y1: 100, X2: 290, Y2: 180},
	}
	for family, filtered := range map[string]bool{
		"yolov8": true, "yolov5": true, "rt-detr/logits": true, "fastestdet": true, "yolov10": false, "nanodet": false, "d-fine": false,
	} {
		t.Run(family, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "model.onnx")
			d := fixture.Detector{Family: family, Width: 320, Height: 256, Batch: -1, Objects: objects}
			if err := os.WriteFile(path, d.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			labels := make([]string, 80)
			for i := range labels {
				labels[i] = fmt.Sprintf("class %d", i)
			}
			report, err := spec.Inspect(path, spec.Overrides{Labels: labels})
			if err != nil {
				t.Fatal(err)
			}
			b := newStand(t, 3)
			b.options.Engine.Model, b.options.Engine.Spec, b.options.Engine.Precision = path, &report.Spec, ""
			g := b.open(t)
			if (g.sides[0].filter != nil) != filtered {
				t.Errorf("a filter: %v, want %v", g.sides[0].filter != nil, filtered)
			}
			frames := clip(t, g, 3, 15)
			defer release(frames)
			r := newGPURunner(context.WithoutCancel(t.Context()), g)
			defer r.close()
			for range 2 {
				got, err := runBatch(r, frames, gpuThreshold)
				if err != nil {
					t.Fatal(err)
				}
				for i, found := range got.found {
					for _, want := range objects {
						if !slices.ContainsFunc(found, func(d infer.Detection) bool { return d.Class == want.Class && infer.IoU(&d, &want) > 0.97 }) {
							t.Errorf("picture %d: no %+v in %+v", i, want, found)
						}
					}
					if len(found) != len(objects) {
						t.Errorf("picture %d: %+v", i, found)
					}
				}
			}
		})
	}
}
