package pipeline

import (
	"fmt"

	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/infer/track"
	"edgecam/internal/config"
	"edgecam/preprocess"
)

// analysis is a camera's place on a station: what is looked for in its pictures
// there and what was found. A camera that moves to another model gets a new one,
// while its stream goes on.
type analysis struct {
	cam        *camera // nil for a probe
	st         *station
	lane       *lane  // nil when the camera is not analysed
	model      string // its name in the configuration
	labels     []string
	thresholds []float32
	tracker    *track.Tracker
	tracked    []track.Object // owned, like tracker, by the worker that has the camera's frame in hand
	probe      *probe         // nil for a camera
}

// newAnalysis is a camera's on a station, not yet in its scheduler. e is nil where
// nothing is looked for.
func newAnalysis(c *camera, s *station, detect config.Detect, e *modelEntry) (*analysis, error) {
	a := &analysis{cam: c, st: s}
	if e == nil {
		return a, nil
	}
	a.model = e.name
	a.labels = s.model.Info().Labels
	var err error
	if a.thresholds, err = thresholds(a.labels, detect, e.cfg.ScoreThreshold); err != nil {
		return nil, fmt.Errorf("camera %s: %w", c.id, err)
	}
	a.tracker = track.New(track.Options{})
	return a, nil
}

// join takes a place in the station's scheduler, where there is anything to look
// for.
func (a *analysis) join() {
	if a.thresholds != nil {
		a.lane = a.st.sched.add(a)
	}
}

// leave gives the place up.
func (a *analysis) leave() {
	if a.lane != nil {
		a.st.sched.remove(a.lane)
	}
}

// begun shows a picture that goes into the engine. It borrows f.
func (a *analysis) begun(f *framepool.Frame) {
	if a.cam != nil {
		a.cam.raw.offer(picture{frame: f, gpu: a.cam.gpu()})
	}
}

// drop notes a picture that is not analysed.
func (a *analysis) drop(reason drop, why error) {
	if a.probe != nil {
		a.probe.answer(probed{err: why})
		return
	}
	a.cam.drops.add(reason)
}

// publish turns the engine's answer for a frame into tracked objects in
// fractions of the picture and tells the world. It borrows f.
func (a *analysis) publish(f *framepool.Frame, t preprocess.Transform, found []infer.Detection, at stamps) {
	kept := found[:0]
	for _, d := range found {
		if d.Score >= a.thresholds[d.Class] {
			kept = append(kept, t.Inverse(d))
		}
	}
	if a.probe != nil {
		a.probe.answer(probed{found: append([]infer.Detection(nil), kept...)})
		return
	}
	a.tracked = a.tracker.Update(a.tracked[:0], f.Meta().Received, kept)
	a.cam.activity.note(f, len(a.tracked) > 0)
	a.cam.report(f, a, at)
}

// station is where the camera is decoded and analysed; nil when it is disabled and
// without inference.
func (c *camera) station() *station {
	if a := c.at.Load(); a != nil {
		return a.st
	}
	return nil
}

// lane is the camera's place in a scheduler, nil when it is not analysed.
func (c *camera) lane() *lane {
	if a := c.at.Load(); a != nil {
		return a.lane
	}
	return nil
}

// move has the camera's next picture analysed elsewhere. What is still in an engine
// where it was is not published any more.
func (c *camera) move(to *analysis) {
	to.join()
	c.publishing.Lock()
	from := c.at.Swap(to)
	c.publishing.Unlock()
	if from != nil {
		from.leave()
	}
}
