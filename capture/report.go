package capture

import (
	"time"
)

// reportEvery is how many repetitions of the same failure make one line of
// the log: at the longest wait that is one in ten minutes.
const reportEvery = 20

// Status gives a snapshot. It may be called at any time, from anywhere.
func (s *Supervisor) Status() Status {
	s.mu.Lock()
	st := s.status
	s.mu.Unlock()
	st.FPS = s.rate.fps(time.Now())
	st.Attempts = s.attempts.Load()
	st.Frames = s.frames.Load()
	st.Dropped = s.drops.counts()
	return st
}

// enter changes the state, and tells the log and the owner.
func (s *Supervisor) enter(state State, reason string, err error, retryAt time.Time) {
	s.mu.Lock()
	from := s.status.State
	s.status.State, s.status.Reason, s.status.RetryAt = state, reason, retryAt
	s.status.Since = time.Now()
	s.mu.Unlock()
	s.report(from, state, reason, err, retryAt)
	if s.o.OnChange != nil {
		s.o.OnChange(s.Status())
	}
}

// report writes one line at each change of state, but keeps a camera that
// stays away from filling the log: the same failure is told once, and then
// summed up.
func (s *Supervisor) report(from, state State, reason string, err error, retryAt time.Time) {
	switch {
	case state == Live:
		st := s.Status()
		s.clearReported()
		s.log.Info("camera live", "codec", string(st.Codec), "width", st.Width, "height", st.Height,
			"decoder", st.Decoder.Name, "transport", st.Transport, "track", st.Track.String())
	case err != nil:
		wait := time.Until(retryAt).Round(time.Millisecond)
		if repeats, tell := s.repeated(err.Error()); tell {
			s.log.Warn("camera "+string(state), "err", err, "reason", reason, "retry_in", wait, "repeated", repeats)
		} else {
			s.log.Debug("camera "+string(state), "err", err, "retry_in", wait)
		}
	case state == Connecting && from == Connecting, state == Disabled:
		s.log.Info("camera " + string(state))
	default:
		s.log.Debug("camera "+string(state), "reason", reason)
	}
}

// repeated counts failures that are the same as the one before.
func (s *Supervisor) repeated(text string) (repeats int, tell bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if text != s.reported {
		s.reported, s.repeats = text, 0
		return 0, true
	}
	s.repeats++
	return s.repeats, s.repeats%reportEvery == 0
}

func (s *Supervisor) clearReported() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reported = ""
}

// described notes what the source said of the stream.
func (s *Supervisor) described(info StreamInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Codec, s.status.Transport, s.status.Track = info.Codec, info.Transport, info.Track
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
