package capture

import (
	"context"
	"errors"
	"sync"
	"time"
)

// The limits that Options default to.
const (
	DefaultConnectTimeout    = 15 * time.Second
	DefaultFirstFrameTimeout = 30 * time.Second
)

// The bounds of a stall limit that is derived.
const (
	stallUnknown = 10 * time.Second // before rate and key frames are known, at first
	stallMin     = 5 * time.Second
	stallMax     = time.Minute

	watchPeriod = time.Second // how often the limits are looked at, at least
)

// watchdog ends a session in which no picture is decoded in time. It looks at
// pictures and nothing else: cameras keep sessions, reports, metadata and even
// packets alive while their video is dead.
type watchdog struct {
	connect, first, stall time.Duration // stall 0 = derived

	patience time.Duration // in place of stallUnknown, where that has proved short

	mu        sync.Mutex
	phase     Phase
	transport string
	since     time.Time // start of the phase, or the last picture
	units     uint64    // access units since then
	lastUnit  time.Time
	lastKey   time.Time
	interval  time.Duration // between access units, smoothed
	keyPeriod time.Duration // between random access points, the longest of late
	patient   Patient       // the decoder, where it may wait for its turn
	sparing   Sparing       // the decoder, where it may leave pictures out
}

func (w *watchdog) start(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.phase, w.since = PhaseConnect, now
}

// described notes that the camera said what comes.
func (w *watchdog) described(now time.Time, transport string, decoder Decoder) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.transport = transport
	w.patient, _ = decoder.(Patient)
	w.sparing, _ = decoder.(Sparing)
	if w.phase == PhaseConnect {
		w.phase, w.since, w.units = PhaseFirstFrame, now, 0
	}
}

// unit notes an access unit, and learns the stream's rhythm.
func (w *watchdog) unit(au *AccessUnit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.units++
	if !w.lastUnit.IsZero() {
		gap := au.Received.Sub(w.lastUnit)
		if w.interval == 0 {
			w.interval = gap
		}
		w.interval += (gap - w.interval) / 8
	}
	w.lastUnit = au.Received
	if !au.RandomAccess {
		return
	}
	if !w.lastKey.IsZero() {
		// rises at once and forgets slowly: scene cuts add key frames
		w.keyPeriod = max(au.Received.Sub(w.lastKey), w.keyPeriod*7/8)
	}
	w.lastKey = au.Received
}

// picture notes a decoded picture; true for the first of the session.
func (w *watchdog) picture(now time.Time) (first bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	first = w.phase != PhaseLive
	w.phase, w.since, w.units = PhaseLive, now, 0
	return first
}

// limitLocked is how long the phase may go on without a picture.
func (w *watchdog) limitLocked() time.Duration {
	switch {
	case w.phase == PhaseConnect:
		return w.connect
	case w.phase == PhaseFirstFrame && w.patient != nil:
		// When hundreds of cameras come up at once, their decoders are set up one
		// after another.
		return w.first + w.patient.Queued()
	case w.phase == PhaseFirstFrame:
		return w.first
	case w.stall > 0 && w.sparing != nil && w.sparing.Sparse():
		return max(w.stall, w.derivedLocked())
	case w.stall > 0:
		return w.stall
	default:
		return w.derivedLocked()
	}
}

// derivedLocked is the limit that the stream's rhythm gives.
func (w *watchdog) derivedLocked() time.Duration {
	if w.keyPeriod == 0 {
		return min(max(stallUnknown, w.patience, 20*w.interval), stallMax)
	}
	// After a loss, or where only key frames are decoded, the next picture may come
	// with the next key frame: that long is no stall.
	return min(max(stallMin, 2*w.keyPeriod+time.Second, 20*w.interval), stallMax)
}

// longer is the patience for the session that follows one which ended with err.
// A camera may have a picture in half a minute: where a session ended before it
// told its rhythm, the next one is given twice the time.
func (w *watchdog) longer(err error) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	var stalled *StalledError
	if w.interval > 0 && w.interval < time.Second {
		return 0
	}
	if w.keyPeriod > 0 || w.stall > 0 || !errors.As(err, &stalled) || stalled.Phase != PhaseLive {
		return w.patience
	}
	return min(2*max(w.patience, stallUnknown), stallMax)
}

// check gives the time left, and an error once there is none.
func (w *watchdog) check(now time.Time) (left time.Duration, err *StalledError) {
	w.mu.Lock()
	defer w.mu.Unlock()
	limit := w.limitLocked()
	if left = limit - now.Sub(w.since); left > 0 {
		return left, nil
	}
	return 0, &StalledError{Phase: w.phase, Limit: limit, Units: w.units, Transport: w.transport}
}

// run calls expired once, when a limit has passed.
func (w *watchdog) run(ctx context.Context, expired func(error)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		left, err := w.check(time.Now())
		if err != nil {
			expired(err)
			return
		}
		timer.Reset(min(left, watchPeriod))
	}
}
