package cameras

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"edgecam/platform/cuda"
)

// shown writes a trial: what is published, by whom, when.
type shown struct {
	began time.Time
	homes map[string]string
	all   []publication
}

func (s *shown) at(ms int) time.Time { return s.began.Add(time.Duration(ms) * time.Millisecond) }

func (s *shown) add(ms int, camera, gpu string, seq uint64, life int) {
	s.all = append(s.all, publication{camera: camera, gpu: gpu, seq: seq, life: life, at: s.at(ms)})
}

func near(got, want float64) bool { return math.Abs(got-want) < 1e-6 }

// Two cameras, one on each card; card a is lost after 2 s and serves again after 6.
func lossOf(change func(*shown)) *Loss {
	s := &shown{began: time.Now(), homes: map[string]string{"one": "a", "two": "b"}}
	seqs := map[string]uint64{}
	show := func(ms int, camera, gpu string, life int) {
		seqs[camera]++
		s.add(ms, camera, gpu, seqs[camera], life)
	}
	for ms := 0; ms < 10000; ms += 500 {
		switch {
		case ms < 2000:
			show(ms, "one", "a", 3)
		case ms >= 3000 && ms < 6000:
			show(ms, "one", "b", 0)
		case ms >= 8000:
			show(ms, "one", "a", 4)
		}
		show(ms+100, "two", "b", 0)
	}
	if change != nil {
		change(s)
	}
	return sumUp(s.all, s.homes, "a", s.began, s.at(2000), s.at(2010))
}

func TestLossSummedUp(t *testing.T) {
	l := lossOf(nil)
	if l.fails() != "" || l.Moved != 1 || l.Twice+l.Backwards+l.OfDead != 0 || l.CamerasBack != 1 {
		t.Fatalf("%q: %+v", l.fails(), l)
	}
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"after", l.AfterSeconds, 2},
		{"again p50", l.AgainP50, 1},
		{"again", l.AgainMost, 1},
		{"others' gap", l.OthersGap, 0.5},
		{"before", l.BeforeFPS, 4},
		{"without", l.WithoutFPS, 15. / 5}, // 5 of camera one and 10 of two, in the 5 s from 3 to 8
		{"served", l.ServedAfter, 6},
		{"back", l.BackMost, 6},
		{"back gap", l.BackGap, 2.5},
	} {
		if !near(c.got, c.want) {
			t.Errorf("%s: got %v, want %v", c.what, c.got, c.want)
		}
	}
	if n := len(l.EverySeconds); n != 10 || fmt.Sprint(l.EverySeconds[2].Analysed) != "map[b:2]" || fmt.Sprint(l.EverySeconds[9].Analysed) != "map[a:2 b:2]" {
		t.Errorf("%d seconds: %v", n, l.EverySeconds)
	}
}

// A card that is left to the next process is not waited for.
func TestLossStays(t *testing.T) {
	l := lossOf(func(s *shown) {
		for i := range s.all {
			if s.all[i].life == 4 {
				s.all[i].gpu, s.all[i].life = "b", 0
			}
		}
	})
	l.Stays = true
	if got := l.fails(); got != "" {
		t.Errorf("fails: %q", got)
	}
	var text strings.Builder
	l.table(&text)
	if !strings.Contains(text.String(), "the card serves again in the next process") {
		t.Error(text.String())
	}
}

func TestLossFails(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(*shown)
	}{
		{"the card that was lost had no cameras", func(s *shown) { s.homes["one"] = "b" }},
		{"1 cameras were not analysed again, such as gone", func(s *shown) {
			s.homes["gone"] = "a"
		}},
		{"the last camera was analysed again after 5.5 s", func(s *shown) {
			s.homes["late"] = "a"
			s.add(7500, "late", "b", 2, 0)
		}},
		{"1 pictures were published twice, 1 behind newer ones", func(s *shown) {
			s.add(9900, "two", "b", 20, 0)
			s.add(9901, "two", "b", 30, 0)
			s.add(9902, "two", "b", 29, 0)
		}},
		{"1 pictures of the lost card were published after the loss", func(s *shown) { s.add(2011, "three", "a", 1, 3) }},
		{"the lost card did not serve again", func(s *shown) {
			for i := range s.all {
				if s.all[i].life == 4 {
					s.all[i].gpu, s.all[i].life = "b", 0
				}
			}
		}},
	} {
		if got := lossOf(c.change).fails(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// failing has a card that answers as it is told to.
type failing struct {
	box

	err error
}

func (f *failing) TakeAway(string) error { return f.err }

func (f *failing) OnGPU(context.Context, string, string, func(*cuda.Context) error) error {
	return f.err
}

// A card that does not fail as it is meant to makes no report.
func TestNoLoss(t *testing.T) {
	for want, c := range map[string]struct {
		err   error
		after time.Duration
		trap  bool
	}{
		"lose a card: it did not fail: it refuses":                {errors.New("it refuses"), time.Second, false},
		"lose a card: the trial ended before its moment came":     {nil, time.Hour, false},
		"lose a card: it did not fail: gpu device closed":         {cuda.ErrDeviceClosed, time.Second, true},
		"lose a card: it did not fail: the kernel ran to its end": {errNoFault, time.Second, true},
		"": {&cuda.LostError{Cause: errors.New("719")}, time.Second, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			x := &failing{box: box{takes: 9}, err: c.err}
			x.b = New()
			_, err := x.b.Run(t.Context(), Options{
				Pipeline: x, Config: configOf, Cameras: 2, P95: time.Second, Duration: 5 * time.Second, SourceFPS: 30,
				Lose: &Lose{UUID: "GPU-0", After: c.after, Trap: c.trap, Back: time.Minute},
			})
			if err == nil && want != "" || err != nil && err.Error() != want {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}
