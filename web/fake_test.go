package web_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"edgecam/internal/event"
	"edgecam/web"
)

// backend is a pipeline that does what the test says.
type backend struct {
	*event.Broker
	snapshot func(ctx context.Context, camera string, annotated bool) (web.Picture, error)

	mu       sync.Mutex
	system   web.System
	cameras  []web.Camera
	models   []web.Model
	preview  func(ctx context.Context, model, camera string, score, iou float32) (web.Preview, error)
	notReady string
	streams  []*pictureStream
	opened   chan *pictureStream // every stream that is opened
	closed   chan *pictureStream // every stream that is closed
}

var (
	began  = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	taken  = time.Date(2026, 3, 1, 8, 30, 15, 123456789, time.UTC)
	noJPEG = []byte("\xff\xd8 not a picture, but it begins like one \xff\xd9")
)

func newBackend() *backend {
	retry := began.Add(time.Minute)
	b := &backend{
		Broker: event.NewBroker(),
		opened: make(chan *pictureStream, 256),
		closed: make(chan *pictureStream, 256),
		system: web.System{
			Version: "1.2.3", StartedAt: began, Ready: true,
			Platform:  web.Platform{Kind: "cpu", Why: "no NVIDIA device", CPU: "Cortex-A78", Cores: 2, OS: "linux", Arch: "arm64", GPUs: []web.GPU{{Index: 1, UUID: "GPU-1", Name: "L4", Cameras: 2, Utilisation: 0.5, State: "lost", Reason: "gpu lost"}}},
			Governor:  web.Governor{Reducing: true, Reason: "the engine cannot keep up", Since: &began, AskedFPS: 20, AllowedFPS: 12, Cameras: 1},
			Memory:    web.Memory{Strategy: "heap", PinnedBytes: 4096, PoolBytes: 8192, Slots: 24, InUse: 7, HighWater: 11},
			Inference: web.Inference{Model: "builtin:nanodet-g", Provider: "cpu", Precision: "int8", Batch: 1, Threads: 2, RunMS: &web.Percentiles{P50: 17, P95: 19, P99: 25}},
		},
		cameras: []web.Camera{
			{
				ID: "gate", Name: "Küche / <b>Tor</b>", State: "live", Since: began, Codec: "h264", Width: 768, Height: 576, FPS: 10, Decoder: "h264",
				PixelFormat: "yuv420p", Memory: "pinned", Transport: "tcp", TLS: "verified",
				Track: &web.Track{Index: 1, Of: 2, Codec: "h264", Control: "trackID=0"}, Attempts: 1, Damaged: 3,
				LastError: &web.LastError{At: began, Reason: "The camera closed the session"}, Detecting: true, InferredFPS: 9.5,
				Analysed: &web.Analysed{FPS: 9.5, AskedFPS: 10, Weight: 2, ReducedBecause: "the engine cannot keep up"},
				Frames:   120, Inferred: 100, Dropped: map[string]uint64{"replaced": 20}, AgeMS: &web.Percentiles{P50: 41, P95: 80, P99: 120},
				StagesMS: web.Stages{Decoded: &web.Percentiles{P50: 3, P95: 4, P99: 5}}, Pool: &web.Pool{Slots: 12, InUse: 5, HighWater: 7, Bytes: 4096, Pinned: true},
			},
			{ID: "yard", Name: "yard", State: "backoff", Reason: "the camera refused the connection", Since: began, Attempts: 3, NextAttemptAt: &retry},
		},
	}
	b.snapshot = func(_ context.Context, camera string, annotated bool) (web.Picture, error) {
		p := picture(camera, 9)
		if annotated {
			p.JPEG = append(slices.Clone(p.JPEG), "with boxes"...)
		}
		return p, nil
	}
	b.models = []web.Model{
		{
			ID: "default", File: "/srv/yard.onnx", Family: "yolov8", State: "ready", Provider: "cpu", Precision: "as in the file", MSPerImage: 12.5,
			ScoreThreshold: 0.45, NMSIoU: 0.6, Labels: []string{"person"}, Cameras: []string{"gate"},
			Rejected: &web.RejectedModel{File: "/srv/new.onnx", Reason: "scores are not finite", At: began},
		},
		{ID: "plates", File: "/srv/plates.onnx", State: "refused", Reason: "no such operation"},
	}
	b.preview = func(_ context.Context, _, camera string, _, _ float32) (web.Preview, error) {
		return web.Preview{Picture: picture(camera, 7), Objects: 3}, nil
	}
	return b
}

func (b *backend) Models() []web.Model { return b.models }

func (b *backend) ModelReport(id string) (any, bool) {
	return map[string]any{"file": "/srv/yard.onnx", "bytes": 12, "sha256": "ab", "spec": map[string]any{}, "findings": []any{}}, id == "default"
}

func (b *backend) Preview(ctx context.Context, model, camera string, score, iou float32) (web.Preview, error) {
	return b.preview(ctx, model, camera, score, iou)
}

func picture(camera string, seq uint64) web.Picture {
	return web.Picture{Camera: camera, Seq: seq, CapturedAt: taken, Width: 768, Height: 576, JPEG: noJPEG}
}

func (b *backend) System() web.System {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.system
}

func (b *backend) Cameras() []web.Camera {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.cameras)
}

func (b *backend) Camera(id string) (web.Camera, bool) {
	for _, c := range b.Cameras() {
		if c.ID == id {
			return c, true
		}
	}
	return web.Camera{}, false
}

func (b *backend) Ready() (bool, string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.notReady == "", b.notReady
}

func (b *backend) Detections(cameras []string) web.Subscription { return b.Subscribe(cameras) }

func (b *backend) Snapshot(ctx context.Context, camera string, annotated bool) (web.Picture, error) {
	return b.snapshot(ctx, camera, annotated)
}

func (b *backend) Pictures(cameras []string, annotated bool) (web.PictureStream, error) {
	s := &pictureStream{b: b, cameras: cameras, annotated: annotated, wake: make(chan struct{}, 1)}
	b.mu.Lock()
	b.streams = append(b.streams, s)
	b.mu.Unlock()
	b.opened <- s
	return s, nil
}

// show makes p the newest picture of its camera.
func (b *backend) show(p web.Picture) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.streams {
		if len(s.cameras) == 0 || slices.Contains(s.cameras, p.Camera) {
			s.put(p)
		}
	}
}

// pictureStream gives the newest picture of each camera.
type pictureStream struct {
	b         *backend
	cameras   []string
	annotated bool
	wake      chan struct{}

	mu      sync.Mutex
	pending []web.Picture
	once    sync.Once
}

func (s *pictureStream) put(p web.Picture) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.pending, func(o web.Picture) bool { return o.Camera == p.Camera }); i >= 0 {
		s.pending[i] = p
	} else {
		s.pending = append(s.pending, p)
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *pictureStream) take() (web.Picture, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) == 0 {
		return web.Picture{}, false
	}
	p := s.pending[0]
	s.pending = s.pending[1:]
	return p, true
}

// waiting returns how many pictures are waiting to be taken.
func (s *pictureStream) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pending)
}

func (s *pictureStream) Next(ctx context.Context) (web.Picture, error) {
	for {
		if p, ok := s.take(); ok {
			return p, nil
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return web.Picture{}, ctx.Err()
		}
	}
}

func (s *pictureStream) Close() {
	s.once.Do(func() {
		s.b.mu.Lock()
		s.b.streams = slices.DeleteFunc(s.b.streams, func(o *pictureStream) bool { return o == s })
		s.b.mu.Unlock()
		s.b.closed <- s
	})
}
