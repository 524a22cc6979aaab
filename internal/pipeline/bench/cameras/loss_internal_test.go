package cameras

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// shown writes a trial: what is published, by whom, when.
type shown struct {
	began time.Time
	all   []publication
}

func (s *shown) at(ms int) time.Time { return s.began.Add(time.Duration(ms) * time.Millisecond) }

func (s *shown) add(ms int, camera, gpu string, seq uint64, life int) {
	s.all = append(s.all, publication{camera: camera, gpu: gpu, seq: seq, life: life, at: s.at(ms)})
}

func near(got, want float64) bool { return math.Abs(got-want) < 1e-6 }

// Two cameras, one on each card; card a is lost after 2 s and serves again after 6.
func lossOf(change func(*shown)) *Loss {
	s := &shown{began: time.Now()}
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
	return sumUp(s.all, "a", s.began, s.at(2000), s.at(2010))
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

func TestLossFails(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(*shown)
	}{
		{"the card that was lost had no cameras", func(s *shown) { s.all = s.all[1:2] }},
		{"1 cameras were not analysed again, such as gone", func(s *shown) {
			s.all = append([]publication{{camera: "gone", gpu: "a", seq: 1, life: 3, at: s.at(0)}}, s.all...)
		}},
		{"the last camera was analysed again after 5.5 s", func(s *shown) {
			s.all = append([]publication{{camera: "late", gpu: "a", seq: 1, life: 3, at: s.at(0)}}, s.all...)
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
