package pipeline_test

import (
	"context"
	"testing"
	"time"

	"edgecam/internal/config"
	"edgecam/internal/pipeline"
	"edgecam/internal/sim"
	"edgecam/internal/testkit"
)

// Whatever the cameras do, what is published and shown is less than a second
// old, and what is not is counted.
func TestNothingOldIsPublished(t *testing.T) {
	clip := testkit.MP4(t, "libx264", "160x120", 30, 4, "-g", "30")
	b := startOn(t, sim.Options{
		Cameras: []sim.Camera{{Clip: clip}, {Clip: clip}, {Clip: clip}, {Clip: clip}},
		// cam1 freezes for two seconds and then sends all of them at once
		Faults: []string{"cam1:burst=2s", "cam2:drift=0.5%", "cam3:drift=20%"},
	}, func(cfg *config.Config) {
		for id, c := range cfg.Cameras {
			c.Detect.FPS = 0 // every picture: more than the engine takes
			cfg.Cameras[id] = c
		}
	}, small(t), func(o *pipeline.Options) {
		engine := &slowEngine{Engine: o.Engine}
		engine.more.Store(int64(30 * time.Millisecond)) // two at once: 66 a second of 120
		o.Engine = engine
	})
	view, err := b.Pictures(nil, false)
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	sub := b.Detections(nil)
	defer sub.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 12*time.Second)
	defer cancel()
	go func() {
		for {
			if _, err := view.Next(ctx); err != nil {
				return
			}
		}
	}()
	published := map[string]int{}
	for {
		found, err := sub.Next(ctx)
		if err != nil {
			break
		}
		for _, d := range found {
			published[d.Camera]++
			if d.AgeMS > 1000 {
				t.Errorf("%s: a picture that is %v ms old", d.Camera, d.AgeMS)
			}
		}
	}
	for _, c := range b.Cameras() {
		if c.ID != "broken" && published[c.ID] == 0 {
			t.Errorf("%s published nothing: %s %q, dropped %v", c.ID, c.State, c.Reason, c.Dropped)
		}
	}
	if c, _ := b.Camera("cam1"); c.Dropped["too_old"]+c.Dropped["decode_overflow"] == 0 {
		t.Errorf("the pictures of the freeze were not counted: %v", c.Dropped)
	}
}
