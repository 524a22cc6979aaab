//go:build cgo

package decode_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"edgecam/capture/decode"
)

func setUp(ms int) decode.Turn { return decode.Turn{Received: received(ms).Received, SetUp: true} }

// Set-ups go one by one as they came, and keep nobody's place: those of all cards that
// share them.
func TestSetUps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes = 50 * time.Millisecond
		s := decode.NewSetUps()
		l := &line{q: decode.NewQueue(1, s)}
		other := &line{q: decode.NewQueue(1, s)}
		l.come("first", setUp(30), takes)
		other.come("second", setUp(20), takes)
		l.come("third", setUp(10), takes)
		l.come("picture", received(90), takes)
		l.want(t, "first", "picture")
		other.want(t)
		time.Sleep(takes + takes/2)
		synctest.Wait()
		other.want(t, "second")
		l.want(t, "first", "picture")
		if got := s.Takes(); got != takes {
			t.Errorf("a set-up takes %v, want %v", got, takes)
		}
		time.Sleep(takes)
		synctest.Wait()
		l.want(t, "first", "picture", "third")
		time.Sleep(time.Second)
		l.come("fourth", setUp(0), 0)
		l.want(t, "first", "picture", "third", "fourth")
		time.Sleep(time.Second)
	})
}

// Decoders are closed where others are set up, one at a time and in the order in which
// they come; those who wait when the card is lost go away, and closing goes on.
func TestSetUpsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes = time.Second
		l := &line{q: decode.NewQueue(2, nil), lost: make(chan struct{})}
		later := func(name string) {
			l.q.SetUps().Later(func() {
				l.note(name)
				time.Sleep(takes) // bubble time
			}, nil)
			synctest.Wait()
		}
		later("close 1")
		later("close 2")
		l.come("set up 1", setUp(0), takes)
		later("close 3")
		l.come("set up 2", setUp(0), takes)
		l.come("decode", received(1), takes)
		l.want(t, "close 1", "decode")
		time.Sleep(2*takes + takes/2)
		synctest.Wait()
		l.want(t, "close 1", "decode", "close 2", "set up 1")
		if setUps, closings := l.q.SetUps().Waiting(); setUps != 1 || closings != 1 {
			t.Errorf("%d set-ups and %d closings wait", setUps, closings)
		}
		close(l.lost)
		synctest.Wait()
		l.mu.Lock()
		slices.Sort(l.in[4:]) // the place of the one inside is free too
		l.mu.Unlock()
		l.want(t, "close 1", "decode", "close 2", "set up 1", "close 3", "set up 2 gave up")
		time.Sleep(takes)
		if got := l.q.SetUps().Takes(); got != 0 {
			t.Errorf("a set-up takes %v, by one of a lost card", got)
		}
		time.Sleep(takes)
	})
}

// What hangs on a lost card keeps the place from nobody: neither a set-up nor a closing.
// When it returns after all, it takes nothing from who has the place then.
func TestSetUpsOfALostCard(t *testing.T) {
	for _, closing := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := decode.NewSetUps()
			hung := &line{q: decode.NewQueue(1, s), lost: make(chan struct{})}
			other := &line{q: decode.NewQueue(1, s)}
			if closing {
				s.Later(func() { time.Sleep(time.Hour) }, hung.lost)
			} else {
				hung.come("hangs", setUp(0), time.Hour)
			}
			hung.come("waits", setUp(0), time.Second)
			other.come("first", setUp(0), time.Second)
			other.come("second", setUp(0), 2*time.Hour)
			other.come("third", setUp(0), time.Second)
			other.want(t)
			close(hung.lost)
			synctest.Wait()
			other.want(t, "first")
			time.Sleep(2 * time.Second)
			other.want(t, "first", "second")
			time.Sleep(time.Hour + time.Minute) // what hung returns
			other.want(t, "first", "second")
			time.Sleep(time.Hour)
			other.want(t, "first", "second", "third")
			hung.mu.Lock()
			in := slices.Clone(hung.in)
			hung.mu.Unlock()
			if !slices.Contains(in, "waits gave up") {
				t.Errorf("of the lost card: %v", in)
			}
			time.Sleep(time.Second)
		})
	}
}
