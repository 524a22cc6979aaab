package pipeline

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/internal/pipeline/schedule"
)

// model is what the pipeline asks of an engine, wherever it runs.
type model interface{ Info() infer.Info }

// stationKey names a station: a model on a device.
type stationKey struct {
	device string // "cpu", or the GPU's UUID
	model  string // modelKey
}

// station is one model on one device, with everything that belongs to that pair:
// whose frame is next, who works on it, how the answers are, and how much is asked
// of it.
type station struct {
	key    stationKey
	loaded Loaded
	own    bool // the pipeline opened the model, and closes it
	gpu    *GPU // nil on the processor
	model  model
	open   func(ctx context.Context) (runner, error)
	zeros  func() uint64 // pictures in a row without any score
	logger *slog.Logger
	now    func() time.Time
	start  time.Time // zero of the pulses

	sched    *scheduler
	health   *health
	stats    *engineStats // of all stations
	times    *schedule.Times
	most     int // pictures in a batch
	workers  []*worker
	beside   int // of these may be busy at once while the engine chooses
	load     load
	runs     atomic.Uint64 // batches with an answer
	pictures atomic.Uint64 // of these
	late     atomic.Uint64 // pictures that grew too old on the way
	governor governing

	done chan struct{} // closed when run has returned
}

// newStation makes the station of a model on a card, or of the processor's engine.
// own says that the pipeline has opened it. It starts nothing.
func (p *Pipeline) newStation(key string, l Loaded, own bool) *station {
	gpu, engine := l.GPU, l.Engine
	s := &station{
		loaded: l, own: own, gpu: gpu, zeros: l.ZeroStreak, logger: p.logger, now: p.now, start: p.start,
		sched:  newScheduler(p.now, p.cfg.Inference.LatencyBudget),
		health: newHealth(p.logger, p.now), stats: p.engineStats, done: make(chan struct{}),
	}
	device := "cpu"
	if gpu != nil {
		device = gpu.card.UUID
		s.load.apart = true
		s.model, s.zeros = gpu, gpu.zeros.n.Load
		s.open = func(ctx context.Context) (runner, error) { return newGPURunner(ctx, gpu), nil }
		s.logger = p.logger.With("gpu", gpu.card.Index)
	} else {
		s.model = engine
		s.open = func(ctx context.Context) (runner, error) { return newCPURunner(ctx, engine, p.software) }
	}
	info := s.model.Info()
	s.health.logger = s.logger.With("file", info.Model)
	s.key = stationKey{device: device, model: key}
	s.most = max(1, info.MaxBatch)
	s.times = schedule.NewTimes(s.most)
	s.times.Observe(1, time.Duration(info.ProbeMS*float64(time.Millisecond)))
	n := max(1, info.Threads)
	for range n {
		s.workers = append(s.workers, s.newWorker(n == 1))
	}
	if s.beside = n; gpu == nil {
		s.beside = schedule.LeaveCores(n, runtime.GOMAXPROCS(0))
	}
	s.governor.init(s.now())
	return s
}

// run works until stop, and governs the cameras that it is given.
func (s *station) run(ctx context.Context, cameras func() []*camera) error {
	defer close(s.done)
	workers, wctx := errgroup.WithContext(ctx)
	gctx, end := context.WithCancel(ctx)
	var governing sync.WaitGroup
	governing.Go(func() { s.govern(gctx, cameras) })
	for _, w := range s.workers {
		workers.Go(func() error { return w.run(wctx) })
	}
	err := workers.Wait()
	end()
	governing.Wait()
	return err
}

// crowded says whether the engine has enough to do for now.
func (s *station) crowded() bool { return s.sched.crowded(len(s.workers), s.most) }

// stop ends the workers; run then returns.
func (s *station) stop() { s.sched.stop() }

// lost is why the card does not answer any more, nil while it does.
func (s *station) lost() error {
	if s.gpu == nil {
		return nil
	}
	return s.gpu.Err()
}

// stuck says whether a worker has not moved for too long.
func (s *station) stuck(now time.Time) bool {
	for _, w := range s.workers {
		if w.pulse.stuck(now, stuckAfter) {
			return true
		}
	}
	return false
}

// sick is why the model's answers cannot be used, "" when they can.
func (s *station) sick() string {
	if reason, _ := s.health.state(); reason != "" {
		return "the model is unhealthy: " + reason
	}
	if s.zeros == nil {
		return ""
	}
	if n := s.zeros(); n >= zerosAreSick {
		return fmt.Sprintf("the model is unhealthy: all of its scores were exactly 0 in the last %d pictures", n)
	}
	return ""
}

// load counts what a station is asked and what it does, from one look at it to
// the next.
type load struct {
	sent, due, lost, analysed atomic.Int64
	busy                      atomic.Int64 // nanoseconds of engine time

	apart bool // the decoders are no part of what the engine works with, see published

	mu      sync.Mutex
	ages    schedule.Tail // guarded by mu; of what was published
	decoded schedule.Tail // guarded by mu; of the same, as it left the decoder
}

// ran notes a batch of n that took that long.
func (l *load) ran(n int, took time.Duration) {
	l.analysed.Add(int64(n))
	l.busy.Add(int64(took))
}

// offered notes a frame that came: whether it is one more to be analysed, and
// whether the one before was missed.
func (l *load) offered(due, missed bool) {
	if due {
		l.due.Add(1)
	}
	if missed {
		l.lost.Add(1)
	}
}

// grewOld notes a frame that is too old at a moment. One that was old when it left
// its decoder is not the engine's fault.
func (l *load) grewOld(m *framepool.Meta, now time.Time) {
	if now.Sub(m.Decoded) > waitedLong {
		l.lost.Add(1)
	}
}

// published notes the age of a frame. Decoders that work beside the engine, on a
// card, are no faster where less is analysed: what counts there is the time from the
// decoder on. On the processor they work with the same cores.
func (l *load) published(m *framepool.Meta, at time.Time) {
	age, decoded := at.Sub(m.Received), m.Decoded.Sub(m.Received)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.decoded.Add(decoded)
	if l.apart {
		age -= decoded
	}
	l.ages.Add(age)
}

// take gives what was counted since it was called before, over a time of length.
func (l *load) take(length, perPicture time.Duration, workers int) (w schedule.Window, utilisation float64) {
	w = schedule.Window{
		Length: length, Sent: int(l.sent.Swap(0)), Due: int(l.due.Swap(0)), Lost: int(l.lost.Swap(0)), Analysed: int(l.analysed.Swap(0)),
	}
	capacity := float64(length) * float64(workers)
	// The load is told from what the pictures would cost in the best batches: an
	// engine that takes every frame at once is busy all the time and has room still.
	w.Use = float64(w.Analysed) * float64(perPicture) / capacity
	utilisation = min(float64(l.busy.Swap(0))/capacity, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	w.Age, w.Ages, w.Decoded, w.Apart = l.ages.Quantile(0.95), l.ages.Len(), l.decoded.Quantile(0.95), l.apart
	l.ages.Reset()
	l.decoded.Reset()
	return w, utilisation
}
