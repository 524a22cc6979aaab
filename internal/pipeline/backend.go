package pipeline

import (
	"context"
	"fmt"
	"strings"
	"time"

	"edgecam/capture"
	"edgecam/infer"
	"edgecam/platform"
	"edgecam/web"
)

var _ web.Backend = (*Pipeline)(nil)

// snapshotWait bounds how long a snapshot waits for the camera's next picture:
// one at the slowest rate in use, plus drawing.
const snapshotWait = 3 * time.Second

// System answers what the box is and does.
func (p *Pipeline) System() web.System {
	s := p.system
	s.StartedAt = p.startedAt
	s.Ready, s.Reason = p.Ready()
	s.Memory = p.memory()
	s.Inference = p.inference()
	s.Governor = p.governors()
	s.Platform.GPUs = p.gpus()
	s.Platform.Jetson = boardNow(s.Platform.Jetson)
	s.Capacity = p.Capacity(nil)
	return s
}

// boardNow is a board with the power mode that holds now: an operator may have
// changed it. It costs the reading of two small files.
func boardNow(board *web.Jetson) *web.Jetson {
	if board == nil {
		return nil
	}
	now := *board
	if mode := platform.PowerModeNow(); mode != "" {
		now.PowerMode = mode
	}
	return &now
}

// Cameras gives all cameras in the order of their ids.
func (p *Pipeline) Cameras() []web.Camera {
	all := p.sorted()
	out := make([]web.Camera, 0, len(all))
	for _, c := range all {
		out = append(out, c.status())
	}
	return out
}

// Camera gives one camera.
func (p *Pipeline) Camera(id string) (web.Camera, bool) {
	c, ok := p.camera(id)
	if !ok {
		return web.Camera{}, false
	}
	return c.status(), true
}

// Ready says whether detections are being made, and if not, why not. A camera
// that is away does not make the box unready.
func (p *Pipeline) Ready() (bool, string) {
	if len(p.bays) == 0 {
		return false, "no inference: " + p.engineProblem
	}
	if err := p.LostErr(); err != nil {
		return false, err.Error()
	}
	for _, s := range p.stations() {
		if reason := s.sick(); reason != "" {
			if len(p.stations()) > 1 {
				reason = s.model.Info().Model + ": " + reason
			}
			return false, reason
		}
	}
	if !p.Alive() {
		return false, fmt.Sprintf("inference has not answered for %s", stuckAfter)
	}
	return true, ""
}

// zerosAreSick is how many pictures without any score make a model unhealthy:
// half a minute of one camera at 10 a second.
const zerosAreSick = 300

// Detections subscribes to the results of the cameras named, or of all.
func (p *Pipeline) Detections(cameras []string) web.Subscription {
	return p.broker.Subscribe(cameras)
}

// Pictures starts a view of the cameras named, or of all.
func (p *Pipeline) Pictures(cameras []string, annotated bool) (web.PictureStream, error) {
	var feeds []*feed
	if len(cameras) == 0 {
		for _, c := range p.sorted() {
			feeds = append(feeds, c.feed(annotated))
		}
		return newPictureStream(feeds), nil
	}
	for _, id := range cameras {
		c, ok := p.camera(id)
		if !ok {
			return nil, fmt.Errorf("camera %s: %w", id, web.ErrUnknownCamera)
		}
		feeds = append(feeds, c.feed(annotated))
	}
	return newPictureStream(feeds), nil
}

// Snapshot waits for the camera's next picture, so that what it gives is a
// picture of now and never an old one.
func (p *Pipeline) Snapshot(ctx context.Context, id string, annotated bool) (web.Picture, error) {
	c, ok := p.camera(id)
	if !ok {
		return web.Picture{}, fmt.Errorf("camera %s: %w", id, web.ErrUnknownCamera)
	}
	s := newPictureStream([]*feed{c.feed(annotated)})
	defer s.Close()
	wait, cancel := context.WithTimeout(ctx, snapshotWait)
	defer cancel()
	pic, err := s.Next(wait)
	if err != nil && ctx.Err() == nil {
		st := c.status()
		return web.Picture{}, fmt.Errorf("%w: camera %s is %s: %s", web.ErrNoPicture, id, st.State, st.Reason)
	}
	return pic, err
}

func (c *camera) feed(annotated bool) *feed {
	if annotated {
		return c.annotated
	}
	return c.raw
}

func (p *Pipeline) inference() web.Inference {
	if len(p.bays) == 0 {
		return web.Inference{Model: p.cfg.Inference.Model.File, Notes: []string{p.engineProblem}}
	}
	info := p.stations()[0].model.Info()
	in := web.Inference{
		Model: info.Model, Provider: info.Provider, Precision: info.Precision,
		Library: info.Library, LibraryVersion: info.Version,
		Batch: info.MaxBatch, Threads: info.Threads,
		InputWidth: info.Input.Width, InputHeight: info.Input.Height,
		ScoreThreshold: p.cfg.Inference.ScoreThreshold, ProbeMS: info.ProbeMS, Notes: info.ProbeNotes,
		RunMS: percentiles(p.engineStats.recent), BatchMean: p.engineStats.images.Snapshot().Mean(),
		CUDAGraphs: graphsInWords(info),
	}
	now := p.now()
	for _, c := range p.sorted() {
		in.FPS += c.inferred.perSecond(now)
	}
	return in
}

// graphsInWords says which batches a card replays as CUDA graphs, or why none; ""
// without a card.
func graphsInWords(i infer.Info) string {
	switch {
	case len(i.Graphs) > 0:
		return fmt.Sprintf("batches of %s", strings.Trim(fmt.Sprint(i.Graphs), "[]"))
	case i.NoGraphs != "":
		return "none: " + i.NoGraphs
	}
	return ""
}

func (p *Pipeline) memory() web.Memory {
	m := p.system.Memory
	m.PoolBytes, m.LimitBytes = p.budget.Used(), p.budget.Limit()
	for _, c := range p.sorted() {
		s, ok := c.pool()
		if !ok {
			continue
		}
		m.Slots += s.Slots
		m.InUse += s.InUse
		m.HighWater += s.HighWater
		m.HugePages = m.HugePages || s.HugePages
		if s.Pinned {
			m.PinnedBytes += s.Bytes
		}
	}
	return m
}

// Summary is one line for `systemctl status`.
func (p *Pipeline) Summary() string {
	live, all := 0, 0
	for _, c := range p.sorted() {
		all++
		if c.captureStatus().State == capture.Live {
			live++
		}
	}
	line := fmt.Sprintf("%d of %d cameras live", live, all)
	if ok, why := p.Ready(); !ok {
		line += "; " + why
	}
	return line
}
