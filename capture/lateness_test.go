package capture_test

import (
	"testing"
	"time"

	"edgecam/capture"
)

// How late units are, by how they arrive and what their timestamps say.
func TestLateness(t *testing.T) {
	const ms = time.Millisecond
	type stream struct{ arrivals, pts []time.Duration }
	steady := func(n int, gap, step time.Duration) (s stream) {
		for i := range n {
			s.arrivals, s.pts = append(s.arrivals, time.Duration(i)*gap), append(s.pts, time.Duration(i)*step)
		}
		return s
	}
	// then goes on behind the last unit of s.
	then := func(s stream, pause, jump time.Duration, n int, gap, step time.Duration) stream {
		a, p := s.arrivals[len(s.arrivals)-1]+pause, s.pts[len(s.pts)-1]+jump
		for i := range n {
			s.arrivals, s.pts = append(s.arrivals, a+time.Duration(i)*gap), append(s.pts, p+time.Duration(i)*step)
		}
		return s
	}
	second := steady(25, 40*ms, 40*ms)
	reordered := steady(300, 40*ms, 40*ms)
	for i := 1; i+3 < len(reordered.pts); i += 3 { // I B B P: the P comes first
		reordered.pts[i], reordered.pts[i+1], reordered.pts[i+2] = reordered.pts[i]+80*ms, reordered.pts[i], reordered.pts[i+1]
	}
	for _, tt := range []struct {
		name  string
		s     stream
		first time.Duration // the lateness of unit 25, the first after what happens
		at50  time.Duration // of unit 50
		end   time.Duration // of the last
	}{
		{"steady", steady(100, 40*ms, 40*ms), 0, 0, 0},
		{"clock 0.5% fast for an hour", steady(90000, 39800*time.Microsecond, 40*ms), 0, 0, 0},
		{"clock 0.5% slow for an hour", steady(90000, 40200*time.Microsecond, 40*ms), 0, 0, 0},
		{"clock at half speed", steady(3000, 40*ms, 20*ms), 0, 0, 0},
		{"B-frames", reordered, 0, 0, 0},
		{"frozen for 5 s, then all at once", then(second, 5*time.Second, 40*ms, 200, 0, 40*ms), 4960 * ms, 3960 * ms, 0},
		{"frozen for 5 s, then twice as fast", then(second, 5*time.Second, 40*ms, 400, 20*ms, 40*ms), 4960 * ms, 4460 * ms, 0},
		{"frozen for 5 s, and what was in it is lost", then(second, 5*time.Second, 5*time.Second, 100, 40*ms, 40*ms), 0, 0, 0},
		{"frozen for 5 s, and never caught up", then(second, 5*time.Second, 40*ms, 200, 40*ms, 40*ms), 4960 * ms, 4960 * ms, 0},
		{"frozen for 300 ms", then(second, 300*ms, 40*ms, 100, 0, 40*ms), 0, 0, 0},
		{"timestamps that stand still", steady(100, 40*ms, 0), 0, 0, 0},
		{"timestamps that stand still, frozen", then(steady(25, 40*ms, 0), 2*time.Second, 0, 200, 40*ms, 0), 2 * time.Second, 2 * time.Second, 0},
		{"timestamps jump ahead by hours", then(second, 40*ms, 5*time.Hour, 100, 40*ms, 40*ms), 0, 0, 0},
		{"timestamps jump back by hours", then(second, 40*ms, -5*time.Hour, 100, 40*ms, 40*ms), 0, 0, 0},
		{"frozen, and timestamps begin anew", then(second, 5*time.Second, -time.Hour, 100, 40*ms, 40*ms), 0, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			late := capture.Late(time.Now(), tt.s.arrivals, tt.s.pts)
			for i, want := range map[int]time.Duration{10: 0, 25: tt.first, 50: tt.at50, len(late) - 1: tt.end} {
				if late[i] != want {
					t.Errorf("unit %d is %v late, want %v", i, late[i], want)
				}
			}
		})
	}
}
