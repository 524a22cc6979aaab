package capture_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"edgecam/capture"
)

// An hour of trouble leaves a bounded log, whatever the trouble.
func TestLogOfAnHourOfTrouble(t *testing.T) {
	refused := &capture.RefusedError{Addr: addr}
	for _, tt := range []struct {
		name   string
		source func(n int) scriptSource
		rigs   int
		lines  int    // at most, in an hour, without the first and the last
		want   string // one line has it
	}{
		{"refused", func(int) scriptSource { return failing(refused) }, 16, 8, `msg="camera still backoff" camera=gate attempts=`},
		{"silent", func(int) scriptSource {
			return failing(&capture.UnreachableError{Addr: addr, Obstacle: capture.ObstacleTimeout})
		}, 1, 8, "in_the_last=10m"},
		{"two failures in turn", func(n int) scriptSource {
			if n%2 == 0 {
				return failing(refused)
			}
			return failing(&capture.ClosedError{})
		}, 2, 9, "failures="},
		{"wrong password", func(int) scriptSource { return failing(&capture.AuthError{User: "admin"}) }, 1, 8, `msg="camera still auth_failed"`},
		{"another text each time", func(n int) scriptSource {
			return failing(&capture.ProtocolError{Op: "read", Detail: strings.Repeat("x", n)})
		}, 1, 10 + 8, "other failures"},
		{"numbers that differ", func(n int) scriptSource {
			return failing(&capture.ProtocolError{Op: "read", Detail: fmt.Sprint(n, " bytes")})
		}, 1, 8, "read: # bytes"},
		{"a picture, and gone", func(int) scriptSource { return playing(frame, 25, 1, refused) }, 1, 7 * 10, "changes_not_told="},
		{"a stall now and then", func(int) scriptSource {
			return func(ctx context.Context, sink capture.Sink) error {
				if err := playing(frame, 25, 500, nil)(ctx, sink); err != nil {
					return err
				}
				return hanging(ctx, sink)
			}
		}, 1, 7 * 11, `msg="camera stalled"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var rigs []*rig
				prober := capture.NewProber()
				capture.SetProberDial(prober, func(context.Context, string) error { return refused })
				for range tt.rigs {
					rigs = append(rigs, start(t, tt.source, func(r *rig) { r.o.Prober = prober }))
				}
				time.Sleep(time.Hour)
				for _, r := range rigs {
					r.stop(t)
					if n := strings.Count(r.log.String(), "\n") - 2; n > tt.lines {
						t.Errorf("%d lines in an hour, want %d at most:\n%s", n, tt.lines, &r.log)
					}
					if !strings.Contains(r.log.String(), tt.want) {
						t.Errorf("no line has %q:\n%s", tt.want, &r.log)
					}
				}
			})
		})
	}
}
