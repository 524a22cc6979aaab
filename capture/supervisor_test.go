package capture_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"edgecam/capture"
	"edgecam/framepool"
)

// The tests run in synctest bubbles: time is the bubble's, and an hour of
// waiting takes no time.

func TestLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(int) scriptSource {
			return func(ctx context.Context, sink capture.Sink) error {
				if err := rest(ctx, time.Second); err != nil {
					return err
				}
				if err := sink.Stream(info); err != nil {
					return err
				}
				if err := rest(ctx, time.Second); err != nil {
					return err
				}
				return video(ctx, sink, frame, 25, 0)
			}
		}, nil)
		synctest.Wait()
		if st := r.Status(); st.State != capture.Connecting || st.Reason != "Connecting" {
			t.Errorf("at the start: %s %q", st.State, st.Reason)
		}
		time.Sleep(1500 * time.Millisecond)
		if st := r.Status(); st.State != capture.Connecting || st.Reason != "Connected, waiting for a picture that decoding can start at" {
			t.Errorf("after PLAY: %s %q", st.State, st.Reason)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		st := r.Status()
		if st.State != capture.Live || st.Reason != "Receiving video" || st.Codec != capture.H264 || st.Width != 4 || st.Height != 2 ||
			st.Decoder.Name != "fake" || st.Transport != "tcp" || st.Track != info.Track || st.Attempts != 1 {
			t.Errorf("status is %+v", st)
		}
		if st.FPS < 24.9 || st.FPS > 25.1 {
			t.Errorf("%v frames a second, want 25", st.FPS)
		}
		if st.Frames < 110 || st.Frames > 115 {
			t.Errorf("%d frames after 4.5s of 25 a second", st.Frames)
		}
		for reason, n := range st.Dropped {
			if n != 0 {
				t.Errorf("%d dropped for %s", n, reason)
			}
		}
		r.stop(t)
		if h := r.history(); !slices.Equal(h, []capture.State{capture.Connecting, capture.Live, capture.Disabled}) {
			t.Errorf("states %v", h)
		}
		if n := strings.Count(r.log.String(), "\n"); n != 3 {
			t.Errorf("%d lines in the log, want one for each state:\n%s", n, &r.log)
		}
	})
}

// Each failure has its state, its reason and its own waits.
func TestFailuresAndTheirWaits(t *testing.T) {
	const s, m = time.Second, time.Minute
	tests := []struct {
		name   string
		err    error
		state  capture.State
		reason string
		waits  []time.Duration
	}{
		{
			"refused", &capture.RefusedError{Addr: "192.0.2.1:554"}, capture.Backoff,
			"Connection to 192.0.2.1:554 refused: check the port, and that RTSP is switched on in the camera",
			[]time.Duration{1 * s, 2 * s, 4 * s, 8 * s, 16 * s, 30 * s, 30 * s},
		},
		{
			"wrong password", &capture.AuthError{User: "admin", Method: "DESCRIBE"}, capture.AuthFailed,
			`The camera did not accept the login of user "admin": check username and password`,
			[]time.Duration{2 * m, 4 * m, 8 * m, 15 * m, 15 * m},
		},
		{
			"codec", &capture.UnsupportedError{What: "codec VP8", Hint: "set the camera to H.264"}, capture.Unsupported,
			"Unsupported codec VP8: set the camera to H.264",
			[]time.Duration{1 * m, 2 * m, 4 * m, 8 * m, 10 * m},
		},
		{
			"no video", &capture.NoVideoError{Tracks: []string{"audio (PCMU)"}}, capture.Backoff,
			"No video track: the camera offers audio (PCMU); check the path of the URL and the camera's stream settings",
			[]time.Duration{1 * s, 2 * s},
		},
		{
			"too many sessions", &capture.StatusError{Method: "SETUP", Code: 453}, capture.Backoff,
			"The camera serves no more sessions (453): close other viewers, or wait until it forgets old ones",
			[]time.Duration{61 * s, 62 * s},
		},
		{
			"something else", errors.New("surprise"), capture.Backoff, "The session ended: surprise",
			[]time.Duration{1 * s, 2 * s},
		},
		{"end without a reason", nil, capture.Backoff, "The camera closed the session", []time.Duration{1 * s, 2 * s}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, func(int) scriptSource { return failing(tt.err) }, nil)
				var sum time.Duration
				for i, wait := range tt.waits {
					synctest.Wait()
					st := r.Status()
					if st.State != tt.state || st.Reason != tt.reason {
						t.Fatalf("state %s %q, want %s %q", st.State, st.Reason, tt.state, tt.reason)
					}
					if got := time.Until(st.RetryAt); got != wait {
						t.Fatalf("wait %d is %v, want %v", i+1, got, wait)
					}
					sum += wait
					time.Sleep(wait)
				}
				synctest.Wait()
				if len(r.starts) != len(tt.waits)+1 || r.starts[len(tt.waits)] != sum {
					t.Errorf("sessions began at %v", r.starts)
				}
				if want := fmt.Sprintf("Connecting again (attempt %d). Before: %s", len(tt.waits)+1, tt.reason); !slices.ContainsFunc(r.states, func(st capture.Status) bool {
					return st.State == capture.Connecting && st.Reason == want
				}) {
					t.Errorf("no state connecting with reason %q", want)
				}
				r.stop(t)
			})
		})
	}
}

// Limits of each phase, and who broke them.
func TestWatchdog(t *testing.T) {
	tests := []struct {
		name   string
		camera scriptSource
		change func(*rig)
		at     time.Duration // when the state comes
		state  capture.State
		reason string
	}{
		{
			name: "no description", camera: hanging, at: 15 * time.Second, state: capture.Backoff,
			reason: "The camera did not describe its stream within 15s",
		},
		{
			name: "no description, other limit", camera: hanging, at: 3 * time.Second, state: capture.Backoff,
			change: func(r *rig) { r.o.ConnectTimeout = 3 * time.Second },
			reason: "The camera did not describe its stream within 3s",
		},
		{
			name: "no video", at: 30 * time.Second, state: capture.Stalled,
			camera: func(ctx context.Context, sink capture.Sink) error {
				if err := sink.Stream(info); err != nil {
					return err
				}
				return hanging(ctx, sink)
			},
			reason: "The camera plays and sent no video within 30s",
		},
		{
			name: "video that cannot be decoded", at: 30 * time.Second, state: capture.Stalled,
			camera: playing(frame, 25, 0, nil),
			change: func(r *rig) { r.decoder = func(d *pictureDecoder) { d.mute = true } },
			reason: "Video arrives and no picture could be decoded within 30s: no key frame, or a damaged stream",
		},
		{
			name: "video stops, limit given", at: 40*25*time.Millisecond - frame + 2*time.Second, state: capture.Stalled,
			camera: func(ctx context.Context, sink capture.Sink) error {
				if err := playing(frame, 25, 25, nil)(ctx, sink); err != nil {
					return err
				}
				return hanging(ctx, sink)
			},
			change: func(r *rig) { r.o.StallTimeout = 2 * time.Second },
			reason: "No video for 2s although the session is open",
		},
		{
			name: "video stops, limit from key frames every four seconds", at: 10*time.Second - frame + 9*time.Second, state: capture.Stalled,
			camera: func(ctx context.Context, sink capture.Sink) error {
				if err := playing(frame, 100, 250, nil)(ctx, sink); err != nil {
					return err
				}
				return hanging(ctx, sink)
			},
			reason: "No video for 9s although the session is open",
		},
		{
			name: "pictures stop and packets go on", at: 10*time.Second - 2*frame + 5*time.Second, state: capture.Stalled,
			camera: playing(frame, 25, 0, nil),
			change: func(r *rig) {
				r.decoder = func(d *pictureDecoder) {
					d.fail = func(n int) error {
						d.mute = n >= 250
						return nil
					}
				}
			},
			reason: "Video arrives and no picture could be decoded for 5s",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, func(n int) scriptSource {
					if n == 1 {
						return tt.camera
					}
					return hanging
				}, tt.change)
				time.Sleep(tt.at - time.Millisecond)
				synctest.Wait()
				if st := r.Status(); st.State == tt.state {
					t.Errorf("too early: %s %q", st.State, st.Reason)
				}
				time.Sleep(2 * time.Millisecond)
				synctest.Wait()
				if st := r.Status(); st.State != tt.state || st.Reason != tt.reason {
					t.Errorf("state %s %q, want %s %q", st.State, st.Reason, tt.state, tt.reason)
				}
				time.Sleep(1100 * time.Millisecond)
				synctest.Wait()
				if len(r.starts) != 2 {
					t.Errorf("%d sessions, want a second one", len(r.starts))
				}
				r.stop(t)
			})
		})
	}
}

// Only stable video makes the waits start small again: a camera that sends one
// frame and hangs up is not to be hammered.
func TestBackoffResetsAfterStableVideo(t *testing.T) {
	hangUp := &capture.ClosedError{}
	for _, tt := range []struct {
		name   string
		frames int
		want   []time.Duration // waits after sessions 1 to 4
	}{
		{"one frame", 1, []time.Duration{1 * time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}},
		{"nine seconds", 9 * 25, []time.Duration{1 * time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}},
		{"eleven seconds", 11 * 25, []time.Duration{1 * time.Second, 1 * time.Second, 1 * time.Second, 1 * time.Second}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, func(int) scriptSource { return playing(frame, 25, tt.frames, hangUp) }, nil)
				time.Sleep(3 * time.Minute)
				synctest.Wait()
				r.stop(t)
				var waits []time.Duration
				for _, st := range r.states {
					if st.State == capture.Backoff && len(waits) < len(tt.want) {
						waits = append(waits, st.RetryAt.Sub(st.Since).Round(time.Second))
					}
				}
				if !slices.Equal(waits, tt.want) {
					t.Errorf("waits %v, want %v", waits, tt.want)
				}
			})
		})
	}
}

// An outage of hours leaves a few lines in the log.
func TestLogOfALongOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(int) scriptSource { return failing(&capture.RefusedError{Addr: "192.0.2.1:554"}) }, nil)
		time.Sleep(4 * time.Hour)
		r.stop(t)
		lines := strings.Count(r.log.String(), "\n")
		if lines < 12 || lines > 30 {
			t.Errorf("%d lines in four hours of outage, want a summary now and then", lines)
		}
		if !strings.Contains(r.log.String(), "camera still backoff") {
			t.Error("no line tells how often the failure came")
		}
	})
}

// The decoder refuses what it cannot take, at once or in mid-stream.
func TestUnsupported(t *testing.T) {
	refusal := &capture.UnsupportedError{What: "pixel format gbrp", Hint: "set the camera to 4:2:0"}
	for _, tt := range []struct {
		name   string
		change func(*rig)
	}{
		{"by its description", func(r *rig) {
			r.o.NewDecoder = func(capture.StreamInfo) (capture.Decoder, error) { return nil, refusal }
		}},
		{"by a picture", func(r *rig) {
			r.decoder = func(d *pictureDecoder) {
				d.fail = func(n int) error {
					if n == 30 {
						return fmt.Errorf("decode: %w", refusal)
					}
					return nil
				}
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, func(int) scriptSource { return playing(frame, 25, 0, nil) }, tt.change)
				time.Sleep(5 * time.Second)
				synctest.Wait()
				if st := r.Status(); st.State != capture.Unsupported || st.Reason != "Unsupported pixel format gbrp: set the camera to 4:2:0" {
					t.Errorf("state %s %q", st.State, st.Reason)
				}
				r.stop(t)
			})
		})
	}
}

// Damage is counted and no reason to end the session.
func TestDecodeErrorsAreDamage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(int) scriptSource { return playing(frame, 25, 0, nil) }, func(r *rig) {
			r.decoder = func(d *pictureDecoder) {
				d.fail = func(n int) error {
					if n%2 == 0 {
						return errors.New("bad slice")
					}
					return nil
				}
			}
		})
		time.Sleep(4*time.Second - time.Millisecond)
		synctest.Wait()
		st := r.Status()
		if st.State != capture.Live || st.Dropped[capture.DropDamaged] != 50 || st.Frames != 50 || st.Attempts != 1 {
			t.Errorf("status is %+v", st)
		}
		if strings.Contains(r.log.String(), "bad slice") {
			t.Error("decode errors are logged one by one")
		}
		r.stop(t)
	})
}

// A decoder that is too slow costs pictures, in whole runs up to a key frame,
// and never holds the source up.
func TestSlowDecoder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var worst time.Duration
		r := start(t, func(int) scriptSource {
			return func(ctx context.Context, sink capture.Sink) error {
				if err := sink.Stream(info); err != nil {
					return err
				}
				for i := 0; ; i++ {
					au := unit(i%50 == 0)
					au.RTPTime = uint32(i)
					before := time.Now()
					sink.AccessUnit(au)
					worst = max(worst, time.Since(before))
					if err := rest(ctx, frame); err != nil {
						return err
					}
				}
			}
		}, func(r *rig) { r.decoder = func(d *pictureDecoder) { d.delay = 3 * frame } })
		time.Sleep(time.Minute)
		synctest.Wait()
		st := r.Status()
		r.stop(t)
		if worst != 0 {
			t.Errorf("the source was held up for %v", worst)
		}
		if st.Dropped[capture.DropOverflow] == 0 || st.State != capture.Live {
			t.Errorf("status is %+v", st)
		}
		var oldest time.Duration
		at := r.begin
		for i, au := range r.decoded {
			if i > 0 && au.RTPTime != r.decoded[i-1].RTPTime+1 && (!au.RandomAccess || !au.LossBefore) {
				t.Fatalf("after unit %d comes %d, which decoding cannot go on at", r.decoded[i-1].RTPTime, au.RTPTime)
			}
			at = at.Add(3 * frame)
			oldest = max(oldest, at.Sub(au.Received))
		}
		// what the queue may be behind, and one under way
		if limit := capture.RingAge + 2*3*frame; oldest > limit {
			t.Errorf("a picture was decoded %v after it came, want %v at most", oldest, limit)
		}
	})
}

// Before the first key frame nothing is decoded; a stream that never has one
// is tried after a while.
func TestStartWithoutKeyFrame(t *testing.T) {
	for _, tt := range []struct {
		name    string
		first   int // number of the first key frame; -1 = none
		decoded uint32
		dropped uint64
	}{
		{"key frame after two seconds", 50, 50, 50},
		{"rolling refresh", -1, 125, 125},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, func(int) scriptSource {
					return func(ctx context.Context, sink capture.Sink) error {
						if err := sink.Stream(info); err != nil {
							return err
						}
						for i := 0; ; i++ {
							au := unit(i == tt.first)
							au.RTPTime = uint32(i)
							sink.AccessUnit(au)
							if err := rest(ctx, frame); err != nil {
								return err
							}
						}
					}
				}, nil)
				time.Sleep(8 * time.Second)
				synctest.Wait()
				st := r.Status()
				r.stop(t)
				if r.decoded[0].RTPTime != tt.decoded || st.Dropped[capture.DropNoKeyFrame] != tt.dropped || st.State != capture.Live {
					t.Errorf("first decoded is %d, status %+v", r.decoded[0].RTPTime, st)
				}
			})
		})
	}
}

// Run ends at once in every state.
func TestStopInEveryState(t *testing.T) {
	for _, tt := range []struct {
		name   string
		camera scriptSource
		after  time.Duration
		state  capture.State
	}{
		{"connecting", hanging, time.Second, capture.Connecting},
		{"live", playing(frame, 25, 0, nil), time.Second, capture.Live},
		{"backoff", failing(&capture.RefusedError{Addr: "a:1"}), 500 * time.Millisecond, capture.Backoff},
		{"auth failed", failing(&capture.AuthError{}), time.Second, capture.AuthFailed},
		{"unsupported", failing(&capture.UnsupportedError{What: "codec"}), time.Second, capture.Unsupported},
		{"stalled", func(ctx context.Context, sink capture.Sink) error {
			if err := playing(frame, 25, 1, nil)(ctx, sink); err != nil {
				return err
			}
			return hanging(ctx, sink)
		}, 10*time.Second + 500*time.Millisecond, capture.Stalled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, func(int) scriptSource { return tt.camera }, nil)
				time.Sleep(tt.after)
				synctest.Wait()
				if st := r.Status(); st.State != tt.state {
					t.Errorf("state is %s %q", st.State, st.Reason)
				}
				r.stop(t)
			})
		})
	}
}

// A stream that is described anew in a session gets a new decoder, and the old
// one is closed.
func TestStreamChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(int) scriptSource {
			return func(ctx context.Context, sink capture.Sink) error {
				for range 3 {
					if err := playing(frame, 25, 25, nil)(ctx, sink); err != nil {
						return err
					}
				}
				return hanging(ctx, sink)
			}
		}, nil)
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if st := r.Status(); st.Frames != 75 || r.open != 1 {
			t.Errorf("%d frames, %d decoders open", st.Frames, r.open)
		}
		r.stop(t)
	})
}

func TestBackoffSpreads(t *testing.T) {
	const s = time.Second
	if got, want := capture.Waits(s, 30*s, 0, 3), []time.Duration{750 * time.Millisecond, 1500 * time.Millisecond, 3 * s}; !slices.Equal(got, want) {
		t.Errorf("shortest waits %v, want %v", got, want)
	}
	if got, want := capture.Waits(s, 30*s, 1, 3), []time.Duration{1250 * time.Millisecond, 2500 * time.Millisecond, 5 * s}; !slices.Equal(got, want) {
		t.Errorf("longest waits %v, want %v", got, want)
	}
	if got := capture.Waits(s, 30*s, 0.5, 100)[99]; got != 30*s {
		t.Errorf("wait 100 is %v", got)
	}
}

func TestNewSupervisorChecksItsOptions(t *testing.T) {
	good := capture.Options{
		Open:       func(int) (capture.Source, error) { return nil, nil },
		NewDecoder: func(capture.StreamInfo) (capture.Decoder, error) { return nil, nil },
		Emit:       func(*framepool.Frame) {},
	}
	for _, tt := range []struct {
		name   string
		change func(*capture.Options)
		want   string
	}{
		{"no Open", func(o *capture.Options) { o.Open = nil }, "new supervisor: Open is not set"},
		{"no NewDecoder", func(o *capture.Options) { o.NewDecoder = nil }, "new supervisor: NewDecoder is not set"},
		{"no Emit", func(o *capture.Options) { o.Emit = nil }, "new supervisor: Emit is not set"},
		{"negative limit", func(o *capture.Options) { o.StallTimeout = -1 }, "new supervisor: a timeout is negative"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := good
			tt.change(&o)
			if _, err := capture.NewSupervisor(o); err == nil || err.Error() != tt.want {
				t.Errorf("error is %v, want %q", err, tt.want)
			}
		})
	}
}
