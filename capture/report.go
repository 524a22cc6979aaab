package capture

import (
	"context"
	"time"
)

// Status gives a snapshot. It may be called at any time, from anywhere.
func (s *Supervisor) Status() Status {
	now := time.Now()
	s.mu.Lock()
	st := s.status
	s.mu.Unlock()
	// Times are kept on the monotonic clock and told on the wall's, as that is
	// now: it may have been set in between.
	wall := s.o.wall()
	st.Since = onWall(wall, st.Since, now)
	st.RetryAt = onWall(wall, st.RetryAt, now)
	st.LastError.At = onWall(wall, st.LastError.At, now)
	st.FPS = s.rate.fps(now)
	st.Attempts = s.attempts.Load()
	st.Frames = s.frames.Load()
	st.Damaged = s.drops.damaged.Load()
	st.Dropped = s.drops.counts()
	return st
}

// onWall gives the time of a moment by the wall clock as it is now; none stays
// none. What is less than a second is the clock's drift, and left out: the time
// of a moment does not waver.
func onWall(wall, moment, now time.Time) time.Time {
	if moment.IsZero() {
		return moment
	}
	if step := wall.Add(moment.Sub(now)).Round(0).Sub(moment.Round(0)); step.Abs() >= time.Second {
		return moment.Add(step)
	}
	return moment
}

// enter changes the state, and tells the log and the owner.
func (s *Supervisor) enter(state State, reason string, err error, retryAt time.Time) {
	now := time.Now()
	s.mu.Lock()
	from := s.status.State
	s.status.State, s.status.Reason, s.status.RetryAt, s.status.Since = state, reason, retryAt, now
	if err != nil {
		s.status.LastError = LastError{At: now, Reason: reason}
	}
	s.mu.Unlock()
	s.report(now, from, state, reason, err, retryAt)
	if s.o.OnChange != nil {
		s.o.OnChange(s.Status())
	}
}

// report tells the log of a change of state.
func (s *Supervisor) report(now time.Time, from, state State, reason string, err error, retryAt time.Time) {
	switch {
	case state == Live:
		st := s.Status()
		s.mu.Lock()
		summary, line := s.journal.live(now, st.Attempts)
		s.mu.Unlock()
		s.write(summary)
		s.write(line, "codec", string(st.Codec), "width", st.Width, "height", st.Height,
			"decoder", st.Decoder.Name, "transport", st.Transport, "track", st.Track.String())
	case err != nil:
		wait := retryAt.Sub(now).Round(time.Millisecond)
		s.mu.Lock()
		summary, line := s.journal.failure(now, state, err, s.attempts.Load())
		s.mu.Unlock()
		s.write(summary, "err", err, "retry_in", wait)
		s.write(line, "reason", reason, "retry_in", wait)
		if line.text == "" {
			s.log.Debug("camera "+string(state), "err", err, "retry_in", wait)
		}
	case state == Connecting && from == Connecting, state == Disabled:
		s.log.Info("camera " + string(state))
	default:
		s.log.Debug("camera "+string(state), "reason", reason)
	}
}

func (s *Supervisor) write(e entry, args ...any) {
	if e.text != "" {
		s.log.Log(context.Background(), e.level, e.text, append(e.args, args...)...)
	}
}

// say changes the reason within a state.
func (s *Supervisor) say(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Reason = reason
}

// described notes what the source said of the stream.
func (s *Supervisor) described(info StreamInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Codec, s.status.Transport, s.status.TLS, s.status.Track = info.Codec, info.Transport, info.TLS, info.Track
	if s.status.State == Connecting {
		s.status.Reason = "Connected, waiting for a picture that decoding can start at"
	}
}

// decoding notes what the decoder makes of the stream.
func (s *Supervisor) decoding(info DecoderInfo, width, height int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Decoder, s.status.Width, s.status.Height = info, width, height
}
