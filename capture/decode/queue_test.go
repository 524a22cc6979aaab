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
		leave := l.q.Enter(t, l.lost)
		if leave == nil {
			l.note(name + " gave up")
			return
		}
		l.note(name)
		time.Sleep(work) // bubble time
		leave()
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
		l := &line{q: decode.NewQueue(2, nil)}
		l.come("a", received(50), time.Second)
		l.come("b", received(60), time.Second)
		l.come("late", received(40), time.Second)
		l.come("oldest", received(10), time.Second)
		l.come("old", received(20), time.Second)
		l.come("old too", received(20), time.Second)
		l.want(t, "a", "b")
		if n := l.q.Waiting(); n != 4 {
			t.Errorf("%d wait", n)
		}
		time.Sleep(10 * time.Second)
		l.mu.Lock()
		slices.Sort(l.in[2:4]) // two get in at the same moment
		slices.Sort(l.in[4:])
		l.mu.Unlock()
		l.want(t, "a", "b", "old", "oldest", "late", "old too")
	})
}

// Who takes places has fewer inside, never none, and throws nobody out.
func TestQueueTakePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &line{q: decode.NewQueue(2, nil)}
		l.come("a", received(0), 2*time.Second)
		l.come("b", received(10), time.Second)
		first, second, third := l.q.TakePlace(), l.q.TakePlace(), l.q.TakePlace()
		l.come("c", received(20), time.Minute)
		l.want(t, "a", "b")
		time.Sleep(1500 * time.Millisecond)
		l.want(t, "a", "b") // a is inside still
		time.Sleep(time.Second)
		l.want(t, "a", "b", "c")
		l.come("d", received(30), 0)
		first()
		second()
		synctest.Wait()
		l.want(t, "a", "b", "c")
		third()
		synctest.Wait()
		l.want(t, "a", "b", "c", "d")
		if n := l.q.Waiting(); n != 0 {
			t.Errorf("%d wait", n)
		}
		time.Sleep(time.Hour) // bubble time, in which c leaves
	})
}

// A GPU that hangs for good keeps nobody waiting once it is given up.
func TestQueueLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &line{q: decode.NewQueue(1, nil), lost: make(chan struct{})}
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
		if n := l.q.Waiting(); n != 0 {
			t.Errorf("%d still wait", n)
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
		q := decode.NewQueue(places, nil)
		var mu sync.Mutex
		inside, most := 0, 0
		done := make([]int, cameras)
		end := time.Now().Add(10 * time.Second)
		var wg sync.WaitGroup
		for i := range cameras {
			wg.Go(func() {
				// Half of them are greedy: they come back at once.
				for time.Now().Before(end) {
					leave := q.Enter(decode.Turn{Received: time.Now()}, nil)
					mu.Lock()
					inside++
					most = max(most, inside)
					done[i]++
					mu.Unlock()
					time.Sleep(3 * time.Millisecond)
					mu.Lock()
					inside--
					mu.Unlock()
					leave()
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
