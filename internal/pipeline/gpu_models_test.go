package pipeline_test

import (
	"testing"

	"edgecam/infer"
	"edgecam/infer/builtin"
	"edgecam/infer/model/fixture"
	"edgecam/internal/config"
	"edgecam/internal/event"
	"edgecam/internal/pipeline"
)

// A card serves two models at once, and takes another in the place of the one that
// it was opened with, while streams and viewers go on.
func TestGPUSwapModel(t *testing.T) {
	dir, f := t.TempDir(), &files{t: t}
	d := fixture.Detector{Family: "yolov8", Batch: -1, Classes: 1, Objects: []infer.Detection{{Score: 0.9, X1: 100, Y1: 100, X2: 180, Y2: 180}}}
	b, card, _ := startGPU(t, 2, builtin.NanoDetG, func(o *pipeline.Options) {
		o.Models = f
		o.Config.Inference.Models = map[string]config.Model{"cats": detector(t, dir, "cat.onnx", "cat", d)}
		two := o.Config.Cameras["cam2"]
		two.Model = "cats"
		o.Config.Cameras["cam2"] = two
		if err := o.OpenModels(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	b.detection(t, "cam1", sees("person"))
	b.detection(t, "cam2", sees("cat"))
	before, _ := b.Camera("cam1")
	pictures, err := b.Pictures([]string{"cam1"}, true)
	if err != nil {
		t.Fatal(err)
	}
	defer pictures.Close()

	next := copyOf(b.cfg)
	next.Inference.Model = detector(t, dir, "dog.onnx", "dog", d)
	if _, err := b.Reload(next); err != nil {
		t.Fatal(err)
	}
	if got := b.detection(t, "cam1", func(*event.Detection) bool { return true }); !sees("dog")(got) {
		t.Errorf("after the swap camera 1 sees %+v", got.Objects)
	}
	b.detection(t, "cam2", sees("cat"))
	if _, err := pictures.Next(t.Context()); err != nil {
		t.Errorf("its viewer: %v", err)
	}
	after, _ := b.Camera("cam1")
	if after.Attempts != before.Attempts || !after.Since.Equal(before.Since) {
		t.Errorf("camera 1 was torn down: %+v, then %+v", before, after)
	}
	if n := f.made.Load(); n != 2 {
		t.Errorf("%d models loaded beside the first, want 2", n)
	}
	if p, err := b.Preview(t.Context(), "cats", "cam1", 0.5, 0.6); err != nil || p.Objects != 1 {
		t.Errorf("preview: %d objects, error %v", p.Objects, err)
	}
	if all := b.System().Platform.GPUs; len(all) != 1 || all[0].State != "ok" || all[0].Cameras != 2 {
		t.Errorf("cards %+v", all)
	}

	// A card that was lost comes back with the models of now, and what it had is closed.
	live := card.Live()
	if err := b.TakeAway(b.System().Platform.GPUs[0].UUID); err == nil {
		t.Error("it is not lost")
	}
	waitFor(t, "the card to come back", func() bool { return b.System().Platform.GPUs[0].State == "ok" })
	if got := b.detection(t, "cam1", func(*event.Detection) bool { return true }); !sees("dog")(got) {
		t.Errorf("after the return camera 1 sees %+v", got.Objects)
	}
	b.detection(t, "cam2", sees("cat"))
	if n := card.Live(); n > live {
		t.Errorf("%d objects of the driver after the return, %d before the loss", n, live)
	}
	b.stop()
	if n := card.Live(); n != 0 {
		t.Errorf("%d objects of the driver are left", n)
	}
}
