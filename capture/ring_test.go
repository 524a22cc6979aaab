package capture_test

import (
	"testing"
	"testing/synctest"
	"time"

	"edgecam/capture"
)

// A machine that was busy for a moment loses no picture: the decoder catches up
// sooner than the next key frame comes. One that is too slow skips, and is never
// far behind.
func TestHiccupAndOverload(t *testing.T) {
	for _, tt := range []struct {
		name    string
		each    time.Duration // that decoding takes
		hiccup  time.Duration // once, at the 50th picture
		gop     int
		dropped bool
		oldest  time.Duration // age at the decoder's beginning, at most, once the hiccup is over
	}{
		{"none", 5 * time.Millisecond, 0, 250, false, 50 * time.Millisecond},
		{"hiccup of 1.5 s", 5 * time.Millisecond, 1500 * time.Millisecond, 250, false, 50 * time.Millisecond},
		{"hiccup of 5 s", 5 * time.Millisecond, 5 * time.Second, 250, true, 50 * time.Millisecond},
		{"hiccup of 1.5 s, many key frames", 5 * time.Millisecond, 1500 * time.Millisecond, 25, false, 50 * time.Millisecond},
		{"a little too slow", 41 * time.Millisecond, 0, 25, true, 160 * time.Millisecond},
		{"nearly too slow, hiccup", 39 * time.Millisecond, 400 * time.Millisecond, 25, true, 100 * time.Millisecond},
		{"too slow", 60 * time.Millisecond, 0, 250, true, 600*time.Millisecond + 2*60*time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var begun []time.Time
				r := start(t, func(int) scriptSource { return playing(frame, tt.gop, 0, nil) }, func(r *rig) {
					r.decoder = func(d *pictureDecoder) {
						d.fail = func(n int) error {
							begun = append(begun, time.Now())
							wait := tt.each
							if n == 50 {
								wait += tt.hiccup
							}
							<-time.After(wait)
							return nil
						}
					}
				})
				time.Sleep(40 * time.Second)
				r.stop(t)
				if n := r.Status().Dropped[capture.DropOverflow]; (n > 0) != tt.dropped {
					t.Errorf("%d dropped", n)
				}
				for i := 200; i < len(begun); i++ {
					if age := begun[i].Sub(r.decoded[i].Received); age > tt.oldest {
						t.Fatalf("unit %d was %v old when its decoding began, want %v at most", i, age, tt.oldest)
					}
				}
			})
		})
	}
}
