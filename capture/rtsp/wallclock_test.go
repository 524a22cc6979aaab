package rtsp_test

import (
	"testing"
	"time"

	"github.com/pion/rtcp"

	"edgecam/capture"
	"edgecam/capture/rtsp"
)

// ntp writes a time as sender reports do (RFC 3550 4).
func ntp(at time.Time) uint64 {
	d := at.Sub(time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC))
	whole := d / time.Second
	return uint64(whole)<<32 | uint64(d-whole*time.Second)<<32/uint64(time.Second)
}

func TestCameraClock(t *testing.T) {
	const hour, year = time.Hour, 365 * 24 * time.Hour
	none := time.Duration(-1 << 62) // no report
	// A report comes each second, of a camera whose clock is off; want is how far
	// the time of the picture after it is from its arrival.
	tests := []struct {
		name string
		off  []time.Duration
		want []time.Duration
	}{
		{"no reports", []time.Duration{none, none}, []time.Duration{0, 0}},
		{"in time", []time.Duration{-80 * time.Millisecond, -80 * time.Millisecond}, []time.Duration{-80 * time.Millisecond, -80 * time.Millisecond}},
		{"two seconds late", []time.Duration{-2 * time.Second, none}, []time.Duration{-2 * time.Second, -2 * time.Second}},
		{"ten years ahead", []time.Duration{10 * year, 10 * year, 10 * year}, []time.Duration{0, 0, 0}},
		{"in 1970", []time.Duration{-56 * year, -56 * year}, []time.Duration{0, 0}},
		{"steps back by an hour", []time.Duration{-time.Second, -hour, -hour, -hour}, []time.Duration{-time.Second, -time.Second, 0, 0}},
		{"one report of another hour", []time.Duration{-time.Second, -hour, -time.Second}, []time.Duration{-time.Second, -time.Second, -time.Second}},
		{"set right by eight seconds", []time.Duration{-8 * time.Second, 0, 0}, []time.Duration{-8 * time.Second, -8 * time.Second, 0}},
		{"becomes sane", []time.Duration{-hour, -time.Second, none}, []time.Duration{0, -time.Second, -time.Second}},
		{"a little ahead", []time.Duration{500 * time.Millisecond, none}, []time.Duration{500 * time.Millisecond, 500 * time.Millisecond}},
		{"two seconds ahead", []time.Duration{2 * time.Second, 2 * time.Second}, []time.Duration{0, 0}},
	}
	start := time.Date(2026, 11, 29, 12, 0, 0, 123456789, time.UTC)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var c rtsp.Clock
			for i, off := range tt.off {
				now := start.Add(time.Duration(i) * time.Second)
				at := uint32(i) * 90000
				if off != none {
					c.Report(ntp(now.Add(off)), at, at, now)
				}
				now = now.Add(100 * time.Millisecond)
				if got := c.At(at+9000, now).Sub(now); (got - tt.want[i]).Abs() > time.Millisecond {
					t.Errorf("after report %d pictures are %v from their arrival, want %v", i, got, tt.want[i])
				}
			}
		})
	}
	t.Run("NTP time 0", func(t *testing.T) {
		var c rtsp.Clock
		c.Report(0, 0, 0, start)
		if got := c.At(0, start); !got.Equal(start) {
			t.Errorf("a picture of %v", got)
		}
	})
	t.Run("RTP times that jump", func(t *testing.T) {
		var c rtsp.Clock
		c.Report(ntp(start.Add(-time.Second)), 0, 0, start)
		for _, jump := range []int64{-9800, 17777, 5, -5, 0} {
			got := c.At(uint32(jump*90000), start).Sub(start)
			if (got + time.Second).Abs() > time.Millisecond {
				t.Errorf("at a jump of %d s the picture is %v from its arrival", jump, got)
			}
		}
	})
	t.Run("our own clock is set", func(t *testing.T) {
		var c rtsp.Clock
		c.Report(ntp(start), 0, 0, start)
		for _, step := range []time.Duration{-72 * hour, 72 * hour} {
			now := start.Add(step)
			if got := c.At(9000, now).Sub(now); got.Abs() > time.Millisecond {
				t.Errorf("%v later a picture is %v from its arrival", step, got)
			}
		}
	})
	t.Run("nanoseconds for a fraction", func(t *testing.T) {
		var c rtsp.Clock
		at := start.Sub(time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC))
		c.Report(uint64(at/time.Second)<<32|uint64(at%time.Second), 0, 0, start)
		if got := c.At(0, start).Sub(start); got.Abs() > time.Millisecond {
			t.Errorf("the picture is %v from its arrival", got)
		}
	})
}

// The reports of a camera over the wire, and what pictures are said to be of.
func TestSenderReports(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		off      time.Duration
		from, to time.Duration
	}{
		{"sane", -3 * time.Second, -3500 * time.Millisecond, -2500 * time.Millisecond},
		{"ten years ahead", 87600 * time.Hour, -time.Millisecond, time.Millisecond},
		{"1900", -1 << 62, -time.Millisecond, time.Millisecond},
	}
	for _, tt := range tests {
		for _, transport := range transports {
			t.Run(tt.name+"/"+string(transport), func(t *testing.T) {
				t.Parallel()
				r := watchWire(t, capture.H264, transport, 30, func(w *wire) {
					s := newStream(capture.H264)
					for n := range uint32(30) {
						if n%5 == 0 {
							r := &rtcp.SenderReport{SSRC: s.ssrc, RTPTime: s.rtp}
							if tt.off != -1<<62 {
								r.NTPTime = ntp(time.Now().Add(tt.off))
							}
							w.report(r)
						}
						s.step = 90
						w.send(s.simple(n)...)
					}
				})
				wantUnits(t, r, 0, 30)
				for i, au := range r.units[8:] {
					if d := au.CapturedAt.Sub(au.Received.Round(0)); d < tt.from || d > tt.to {
						t.Errorf("unit %d was captured %v from its arrival", i+8, d)
					}
				}
			})
		}
	}
}
