//go:build cgo

package decode_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"edgecam/capture/decode"
)

// line lets callers come one after the other and notes who gets in.
type line struct {
	q    *decode.Queue
	mu   sync.Mutex
	in   []string
	lost chan struct{}
}

func (l *line) come(name string, t decode.Turn, work time.Duration) {
	go func() {
		if !l.q.Enter(t, l.lost) {
			l.note(name + " gave up")
			return
		}
		l.note(name)
		time.Sleep(work) // bubble time
		l.q.Leave(t)
	}()
	synctest.Wait()
}

func (l *line) note(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.in = append(l.in, name)
}

func (l *line) want(t *testing.T, names ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(l.in, names) {
		t.Errorf("went in: %v, want %v", l.in, names)
	}
}

func received(ms int) decode.Turn {
	return decode.Turn{Received: start.Add(time.Duration(ms) * time.Millisecond)}
}

// Who has the oldest unit goes first, whenever he came.
func TestQueueOldestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &line{q: decode.NewQueue(2)}
		l.come("a", received(50), time.Second)
		l.come("b", received(60), time.Second)
		l.come("late", received(40), time.Second)
		l.come("oldest", received(10), time.Second)
		l.come("old", received(20), time.Second)
		l.come("old too", received(20), time.Second)
		l.want(t, "a", "b")
		if places, setUps := l.q.Waiting(); places != 4 || setUps != 0 {
			t.Errorf("%d and %d wait", places, setUps)
		}
		time.Sleep(10 * time.Second)
		l.mu.Lock()
		slices.Sort(l.in[2:4]) // two get in at the same moment
		slices.Sort(l.in[4:])
		l.mu.Unlock()
		l.want(t, "a", "b", "old", "oldest", "late", "old too")
	})
}

// Set-ups go one by one as they came, and keep nobody's place.
func TestQueueSetUps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes = 50 * time.Millisecond
		l := &line{q: decode.NewQueue(1)}
		setUp := func(ms int) decode.Turn { return decode.Turn{Received: received(ms).Received, SetUp: true} }
		l.come("first", setUp(30), takes)
		l.come("second", setUp(20), takes)
		l.come("third", setUp(10), takes)
		l.come("picture", received(90), takes)
		l.want(t, "first", "picture")
		time.Sleep(60 * time.Millisecond)
		synctest.Wait()
		l.want(t, "first", "picture", "second")
		time.Sleep(time.Second)
		l.want(t, "first", "picture", "second", "third")
		if got := l.q.SetUpTime(); got != takes {
			t.Errorf("a set-up takes %v, want %v", got, takes)
		}
	})
}

// A GPU that hangs for good keeps nobody waiting once it is given up.
func TestQueueLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &line{q: decode.NewQueue(1), lost: make(chan struct{})}
		l.come("hangs", received(0), time.Hour)
		l.come("waits", received(10), 0)
		l.come("waits too", received(20), 0)
		l.want(t, "hangs")
		close(l.lost)
		synctest.Wait()
		l.mu.Lock()
		slices.Sort(l.in[1:])
		l.mu.Unlock()
		l.want(t, "hangs", "waits gave up", "waits too gave up")
		if places, _ := l.q.Waiting(); places != 0 {
			t.Errorf("%d still wait", places)
		}
		time.Sleep(2 * time.Hour)
		l.lost = nil
		l.come("later", received(30), 0)
		l.want(t, "hangs", "waits gave up", "waits too gave up", "later")
	})
}

// Many decoders at a queue of a few places: never more inside, and all get
// through equally often.
func TestQueueIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const cameras, places = 40, 4
		q := decode.NewQueue(places)
		var mu sync.Mutex
		inside, most := 0, 0
		done := make([]int, cameras)
		end := time.Now().Add(10 * time.Second)
		var wg sync.WaitGroup
		for i := range cameras {
			wg.Go(func() {
				// Half of them are greedy: they come back at once.
				for time.Now().Before(end) {
					turn := decode.Turn{Received: time.Now()}
					q.Enter(turn, nil)
					mu.Lock()
					inside++
					most = max(most, inside)
					done[i]++
					mu.Unlock()
					time.Sleep(3 * time.Millisecond)
					mu.Lock()
					inside--
					mu.Unlock()
					q.Leave(turn)
					if i%2 == 0 {
						time.Sleep(time.Millisecond)
					}
				}
			})
		}
		wg.Wait()
		if most != places {
			t.Errorf("%d were inside at once, want %d", most, places)
		}
		if least, top := slices.Min(done), slices.Max(done); float64(top) > 1.1*float64(least) {
			t.Errorf("one got in %d times, another %d", top, least)
		}
	})
}

// Decoders are closed where others are set up, one at a time and in the order in which
// they come; those who wait when the card is lost go away, and closing goes on.
func TestQueueLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &line{q: decode.NewQueue(2), lost: make(chan struct{})}
		setUp := decode.Turn{Received: start, SetUp: true}
		later := func(name string) {
			l.q.Later(func() {
				l.note(name)
				time.Sleep(time.Second) // bubble time
			})
			synctest.Wait()
		}
		later("close 1")
		later("close 2")
		l.come("set up 1", setUp, time.Second)
		later("close 3")
		l.come("set up 2", setUp, time.Second)
		l.come("decode", received(1), time.Second)
		l.want(t, "close 1", "decode")
		time.Sleep(2500 * time.Millisecond)
		l.want(t, "close 1", "decode", "close 2", "set up 1")
		if _, n := l.q.Waiting(); n != 2 {
			t.Errorf("%d wait", n)
		}
		close(l.lost)
		synctest.Wait()
		time.Sleep(time.Second)
		l.want(t, "close 1", "decode", "close 2", "set up 1", "set up 2 gave up", "close 3")
		time.Sleep(time.Second)
		if got := l.q.SetUpTime(); got != time.Second {
			t.Errorf("a set-up takes %v", got)
		}
	})
}
