package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"edgecam/capture"
	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/internal/config"
	"edgecam/internal/event"
	"edgecam/web"
)

// The states of a model; their words are part of the HTTP contract.
const (
	modelReady     = "ready"
	modelLoading   = "loading"
	modelUnhealthy = "unhealthy"
	modelRefused   = "refused"
)

// mostPreviews bounds the previews at once: each takes a turn of an engine, and a
// picture is drawn for it alone. mostWaiting bounds those that wait for a place, as
// one does whose slider moves while its last request still ends.
const mostPreviews, mostWaiting = 2, 8

// Models gives all models, that of inference.model first.
func (p *Pipeline) Models() []web.Model {
	cameras := map[string][]string{}
	for _, c := range p.sorted() {
		if a := c.at.Load(); a != nil && a.lane != nil {
			cameras[a.model] = append(cameras[a.model], c.id)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	names := slices.Sorted(maps.Keys(p.models))
	for name := range p.loading {
		if p.models[name] == nil {
			names = append(names, name)
		}
	}
	out := make([]web.Model, 0, len(names))
	for _, name := range names {
		m := p.modelLocked(name)
		m.Cameras = cameras[name]
		if name == config.DefaultModel {
			out = slices.Insert(out, 0, m)
			continue
		}
		out = append(out, m)
	}
	return out
}

func (p *Pipeline) modelLocked(name string) web.Model {
	m := web.Model{ID: name, State: modelReady}
	next, loading := p.loading[name]
	if r, ok := p.rejected[name]; ok {
		m.Rejected = &web.RejectedModel{File: r.cfg.File, Reason: r.reason, At: r.at}
	}
	e := p.models[name]
	if e == nil {
		m.State, m.File = modelLoading, next.File
		return m
	}
	m.File, m.ScoreThreshold, m.Reason = e.cfg.File, e.cfg.ScoreThreshold, e.refused
	if e.report != nil {
		m.Family, m.Labels = e.report.Spec.Family, e.report.Spec.Labels
	}
	s := p.stationLocked(e.key)
	switch {
	case e.refused != "" || s == nil:
		m.State = modelRefused
		return m
	case loading:
		m.State, m.Reason = modelLoading, next.File+" is being loaded; the model in use goes on"
	case s.lost() != nil:
		m.State, m.Reason = modelUnhealthy, s.lost().Error()
	default:
		if m.Reason = s.sick(); m.Reason != "" {
			m.State = modelUnhealthy
		}
	}
	info := s.model.Info()
	m.Provider, m.Precision, m.MSPerImage, m.Labels = info.Provider, info.Precision, info.ProbeMS, info.Labels
	m.NMSIoU = p.overlapOf(e)
	return m
}

// overlapOf is the overlap above which boxes are dropped, 0 where the model
// suppresses by itself.
func (p *Pipeline) overlapOf(e *modelEntry) float64 {
	switch {
	case e.report != nil && e.report.Spec.NMS.Inside:
		return 0
	case e.cfg.NMS.IoU != 0:
		return e.cfg.NMS.IoU
	case e.report != nil && e.report.Spec.NMS.IoU != 0:
		return float64(e.report.Spec.NMS.IoU)
	}
	return p.cfg.Inference.NMSIoU
}

// stationLocked gives a model's station on the first device that works.
func (p *Pipeline) stationLocked(key string) (found *station) {
	for _, b := range p.bays {
		s := b.stations[key]
		if s != nil && (found == nil || b.usableLocked() && found.lost() != nil) {
			found = s
		}
	}
	return found
}

// ModelReport is what the model's file was found to be.
func (p *Pipeline) ModelReport(id string) (any, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.models[id]
	if e == nil || e.report == nil {
		return nil, false
	}
	report := *e.report
	if s := p.stationLocked(e.key); s != nil {
		info := s.model.Info()
		report.Providers, report.MSPerImage = []string{info.Provider}, info.ProbeMS
	}
	return report, true
}

// Preview draws what a model finds in a camera's next picture at thresholds of the
// caller's, on the way that all pictures take.
func (p *Pipeline) Preview(ctx context.Context, id, camera string, score, iou float32) (web.Preview, error) {
	defer p.waiting.Add(-1)
	if p.waiting.Add(1) > mostPreviews+mostWaiting {
		return web.Preview{}, fmt.Errorf("%w: %d previews are asked for", web.ErrBusy, mostPreviews+mostWaiting)
	}
	select {
	case p.previews <- struct{}{}:
		defer func() { <-p.previews }()
	case <-ctx.Done():
		return web.Preview{}, ctx.Err()
	}
	c, ok := p.camera(camera)
	if !ok {
		return web.Preview{}, fmt.Errorf("camera %s: %w", camera, web.ErrUnknownCamera)
	}
	s, e, err := p.previewStation(c, id)
	if err != nil {
		return web.Preview{}, err
	}
	if st := c.captureStatus(); st.State != capture.Live {
		return web.Preview{}, fmt.Errorf("%w: camera %s is %s: %s", web.ErrNoPicture, camera, st.State, st.Reason)
	}
	p.watchedNow(camera)
	f, found, err := s.tryLive(ctx, c, score)
	if err != nil {
		return web.Preview{}, previewError(ctx, err)
	}
	defer f.Release()
	if iou > 0 && iou < float32(p.overlapOf(e)) {
		suppress := infer.Suppressor{IoU: iou, AnyClass: e.cfg.NMS.ClassAgnostic, Limit: len(found)}
		found = suppress.Run(found)
	}
	pic, err := p.drawFound(ctx, c, f, s.model.Info().Labels, found)
	return web.Preview{Picture: pic, Objects: len(found)}, err
}

// NextPicture waits for a camera's next picture, which the caller releases. When none
// comes the error says how the camera is.
func (p *Pipeline) NextPicture(ctx context.Context, id string) (*framepool.Frame, error) {
	c, ok := p.camera(id)
	if !ok {
		return nil, fmt.Errorf("camera %s: %w", id, web.ErrUnknownCamera)
	}
	p.watchedNow(id)
	f, err := c.lending.next(ctx)
	if err != nil {
		st := c.captureStatus()
		return nil, fmt.Errorf("%w: camera %s is %s: %s", web.ErrNoPicture, id, st.State, st.Reason)
	}
	return f, nil
}

func (p *Pipeline) drawFound(ctx context.Context, c *camera, f *framepool.Frame, labels []string, found []infer.Detection) (web.Picture, error) {
	objects := make([]event.Object, 0, len(found))
	for _, d := range found {
		objects = append(objects, event.Object{Label: labels[d.Class], Score: d.Score, Box: [4]float32{d.X1, d.Y1, d.X2, d.Y2}})
	}
	d := drawer{ctx: ctx, codecs: p.codecs}
	defer d.close()
	return d.draw(picture{frame: f, gpu: c.gpu(), objects: objects}, true)
}

// previewStation is the one of a model on the camera's device.
func (p *Pipeline) previewStation(c *camera, id string) (s *station, e *modelEntry, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e = p.models[id]
	at := c.station()
	if e == nil {
		return nil, nil, fmt.Errorf("model %s: %w", id, web.ErrUnknownModel)
	}
	if at != nil {
		for _, b := range p.bays {
			if s = b.stations[e.key]; s != nil && s.gpu.host() == at.gpu.host() {
				return s, e, nil
			}
		}
	}
	return nil, nil, fmt.Errorf("%w: model %s does not work for camera %s: %s", web.ErrNoPicture, id, c.id, e.refused)
}

// previewError keeps what went wrong in the model or with the camera from looking
// like a fault of the server.
func previewError(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, web.ErrNoPicture) {
		return err
	}
	return fmt.Errorf("%w: %w", web.ErrNoPicture, err)
}
