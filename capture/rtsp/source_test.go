package rtsp_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"edgecam/capture"
	"edgecam/capture/rtsp"
	"edgecam/internal/sim"
)

// patience bounds what a test waits for; nothing is measured by it.
const patience = 20 * time.Second

// startSim runs simulated cameras until the test ends.
func startSim(t *testing.T, o sim.Options) *sim.Server {
	t.Helper()
	s, err := sim.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

// recorder is a sink that keeps what comes and ends the session after enough.
type recorder struct {
	want int
	end  func()

	mu    sync.Mutex
	infos []capture.StreamInfo
	units []*capture.AccessUnit
}

func (r *recorder) Stream(info capture.StreamInfo) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.infos = append(r.infos, info)
	return nil
}

func (r *recorder) AccessUnit(au *capture.AccessUnit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.infos) == 0 {
		panic("an access unit came before the stream")
	}
	if r.want > 0 && len(r.units) == r.want {
		return // the session is ending, and on a busy machine that takes a while
	}
	if r.units = append(r.units, au); len(r.units) == r.want {
		r.end()
	}
}

// errEnough ends a session that has given what was wanted.
var errEnough = errors.New("enough")

// receive runs a source until it has given n access units.
func receive(t *testing.T, o rtsp.Options, n int) *recorder {
	t.Helper()
	r, err := attempt(t, o, n)
	if !errors.Is(err, errEnough) {
		t.Fatalf("session ended with %v after %d access units, want %d", err, len(r.units), n)
	}
	return r
}

// attempt runs a source until it has given n access units, or ended.
func attempt(t *testing.T, o rtsp.Options, n int) (*recorder, error) {
	t.Helper()
	src, err := rtsp.New(o)
	if err != nil {
		t.Fatal(err)
	}
	limit, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	ctx, cancel := context.WithCancelCause(limit)
	defer cancel(nil)
	r := &recorder{want: n, end: func() { cancel(errEnough) }}
	err = src.Run(ctx, r)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return r, err
}

// startOf finds the clip's sample that a session begins with. The camera plays
// from the moment that it accepts PLAY, and the server that it is built on sends
// a little later, which on a busy machine costs the first samples.
func startOf(t *testing.T, clip *sim.ClipData, first *capture.AccessUnit) int {
	t.Helper()
	last := string(first.NALUs[len(first.NALUs)-1])
	for i, sample := range clip.Samples[:len(clip.Samples)/2] {
		if string(sample.NALUs[len(sample.NALUs)-1]) == last {
			return i
		}
	}
	t.Fatal("the first access unit is none of the clip's samples")
	return 0
}

func TestSourcePlays(t *testing.T) {
	t.Parallel()
	for _, transport := range []rtsp.Transport{rtsp.TCP, rtsp.UDP, rtsp.Auto} {
		t.Run(string(transport), func(t *testing.T) {
			s := startSim(t, sim.Options{})
			r := receive(t, rtsp.Options{URL: s.URL(0), Transport: transport}, 8)
			want := capture.StreamInfo{Codec: capture.H264, ClockRate: 90000, Transport: string(transport), Track: capture.TrackInfo{Index: 1, Of: 1, Codec: capture.H264}}
			if transport == rtsp.Auto {
				want.Transport = "tcp"
			}
			got := r.infos[0]
			clip, err := sim.BuiltinClip()
			if err != nil {
				t.Fatal(err)
			}
			if len(got.ParameterSets) != 2 || string(got.ParameterSets[0]) != string(clip.SPS) || string(got.ParameterSets[1]) != string(clip.PPS) {
				t.Errorf("parameter sets are not the clip's: %x", got.ParameterSets)
			}
			got.ParameterSets, got.Track.Control = nil, ""
			if len(r.infos) != 1 || got.Codec != want.Codec || got.ClockRate != want.ClockRate || got.Transport != want.Transport || got.Track != want.Track {
				t.Errorf("stream is %+v, want %+v", r.infos, want)
			}
			start := startOf(t, clip, r.units[0])
			for i, au := range r.units {
				if i > 0 && au.PTS-r.units[i-1].PTS != 100*time.Millisecond {
					t.Errorf("unit %d comes %v after the one before, the clip has 10 frames a second", i, au.PTS-r.units[i-1].PTS)
				}
				if au.LossBefore {
					t.Errorf("unit %d: loss on loopback", i)
				}
				sample := clip.Samples[start+i]
				nalus := au.NALUs
				if au.RandomAccess != sample.RandomAccess {
					t.Fatalf("unit %d is a random access point: %v, the clip's sample: %v", i, au.RandomAccess, sample.RandomAccess)
				}
				if sample.RandomAccess || i == 0 {
					nalus = nalus[2:] // parameter sets: the camera sends them along, and a session begins with those of the description
				}
				if len(nalus) != len(sample.NALUs) {
					t.Fatalf("unit %d has %d NAL units, the clip's sample %d", i, len(nalus), len(sample.NALUs))
				}
				for k := range nalus {
					if string(nalus[k]) != string(sample.NALUs[k]) {
						t.Errorf("unit %d NAL unit %d is not the clip's", i, k)
					}
				}
			}
		})
	}
}
