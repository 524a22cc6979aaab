package pipeline_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"edgecam/infer"
	"edgecam/internal/config"
	"edgecam/internal/event"
	"edgecam/internal/pipeline"
	"edgecam/internal/sim"
)

// slowEngine is an engine on a processor that is hot, or busy with other things.
type slowEngine struct {
	infer.Engine

	more atomic.Int64 // nanoseconds that a run takes on top
}

func (e *slowEngine) Acquire(ctx context.Context) (infer.Slot, error) {
	s, err := e.Engine.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return &slowSlot{Slot: s, e: e}, nil
}

type slowSlot struct {
	infer.Slot

	e *slowEngine
}

func (s *slowSlot) Run(n int, threshold func(int) float32, out [][]infer.Detection) error {
	if more := time.Duration(s.e.more.Load()); more > 0 {
		<-time.After(more) // the work of a slow processor
	}
	return s.Slot.Run(n, threshold, out)
}

// A box that is asked for far more than it can do lowers the rates by weight, says
// so, and has them as asked again when it can.
func TestOverloadedBox(t *testing.T) {
	const asked = 4 // little, for the machine may be small and busy
	var engine *slowEngine
	b := startOn(t, sim.Options{Cameras: make([]sim.Camera, 3)}, func(c *config.Config) {
		for id, cam := range c.Cameras {
			cam.Detect.FPS = asked
			if id == "cam1" {
				cam.Detect.Priority = 3
			}
			c.Cameras[id] = cam
		}
	}, small(t), func(o *pipeline.Options) {
		engine = &slowEngine{Engine: o.Engine}
		o.Engine = engine
	})
	for _, id := range []string{"cam1", "cam2", "cam3"} {
		b.detection(t, id, func(*event.Detection) bool { return true })
	}
	engine.more.Store(int64(400 * time.Millisecond)) // two at once: 5 a second of the 12 that are asked for
	waitFor(t, "the rates to be lowered", func() bool {
		g := b.System().Governor
		return g.Reducing && g.Reason != "" && g.Since != nil && g.Cameras == 3 && g.AllowedFPS < g.AskedFPS/2
	})
	waitFor(t, "the shares to follow the weights", func() bool {
		var fps []float64
		for _, c := range b.Cameras() {
			if a := c.Analysed; a != nil && a.ReducedBecause != "" {
				fps = append(fps, a.FPS)
			}
		}
		return len(fps) == 3 && fps[1] > 0 && fps[2] > 0 && fps[0] > 2*fps[1] && fps[0] > 2*fps[2] && fps[0] < 4.5*fps[1]
	})
	c, _ := b.Camera("cam1")
	if c.Analysed.Weight != 3 || c.Analysed.AskedFPS != asked {
		t.Errorf("analysed %+v", c.Analysed)
	}
	if m := b.Metrics(); m.AllowedFPS >= m.AskedFPS || m.AllowedFPS == 0 {
		t.Errorf("metrics: %v of %v fps allowed", m.AllowedFPS, m.AskedFPS)
	}
	engine.more.Store(0)
	waitFor(t, "the rates to be as asked", func() bool {
		g := b.System().Governor
		c, _ := b.Camera("cam2")
		return !g.Reducing && g.Reason == "" && g.Since == nil && g.Cameras == 0 && c.Analysed.ReducedBecause == ""
	})
}

// A camera that is analysed less often than it sends key pictures, and that nobody
// watches, has the others left undecoded; whoever watches gets them all.
func TestUnwatchedPicturesAreNotDecoded(t *testing.T) {
	b := start(t, 1, "", func(c *config.Config) {
		cam := c.Cameras["cam1"]
		cam.Detect.FPS = 0.5
		c.Cameras["cam1"] = cam
	})
	decoded := b.decoded("cam1")
	waitFor(t, "pictures to be left out", func() bool { r := decoded(); return r > 0 && r < 2 })
	b.detection(t, "cam1", func(*event.Detection) bool { return true })
	if c, _ := b.Camera("cam1"); c.FPS < 8 || c.FPS > 12 {
		t.Errorf("the camera sends 10 pictures a second, not %v", c.FPS)
	}
	view, err := b.Pictures([]string{"cam1"}, false)
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "all pictures for a viewer", func() bool { return decoded() > 7 })
	view.Close()
	waitFor(t, "pictures to be left out again", func() bool { r := decoded(); return r > 0 && r < 2 })
	if c, _ := b.Camera("cam1"); c.State != "live" || c.Attempts != 1 {
		t.Errorf("camera %+v", c)
	}
}

// decoded gives the pictures of a camera that are decoded a second, over the last
// four seconds or more; 0 before.
func (b *box) decoded(id string) func() float64 {
	since, last, rate := time.Now(), uint64(0), 0.0
	return func() float64 {
		if took := time.Since(since); took > 4*time.Second {
			c, _ := b.Camera(id)
			rate = float64(c.Frames-last) / took.Seconds()
			since, last = time.Now(), c.Frames
		}
		return rate
	}
}
