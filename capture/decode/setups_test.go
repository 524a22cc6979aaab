//go:build cgo

package decode_test

import (
	"testing"
	"testing/synctest"
	"time"

	"edgecam/capture/decode"
)

func setUp(ms int) decode.Turn { return decode.Turn{Received: received(ms).Received, SetUp: true} }

// Set-ups go one by one as they came, with a rest after each, and keep nobody's place:
// those of all cards that share them.
func TestSetUps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes, every = 50 * time.Millisecond, 70 * time.Millisecond
		s := decode.NewSetUps()
		l := &line{q: decode.NewQueue(1, s)}
		other := &line{q: decode.NewQueue(1, s)}
		l.come("first", setUp(30), takes)
		other.come("second", setUp(20), takes)
		l.come("third", setUp(10), takes)
		l.come("picture", received(90), takes)
		l.want(t, "first", "picture")
		other.want(t)
		time.Sleep(60 * time.Millisecond)
		synctest.Wait()
		other.want(t)
		if got := s.Every(); got != every {
			t.Errorf("a set-up every %v, want %v", got, every)
		}
		time.Sleep(20 * time.Millisecond)
		synctest.Wait()
		other.want(t, "second")
		l.want(t, "first", "picture")
		time.Sleep(every)
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
		const takes, rest = time.Second, 400 * time.Millisecond
		l := &line{q: decode.NewQueue(2, nil), lost: make(chan struct{})}
		later := func(name string) {
			l.q.SetUps().Later(func() {
				l.note(name)
				time.Sleep(takes) // bubble time
			})
			synctest.Wait()
		}
		later("close 1")
		later("close 2")
		l.come("set up 1", setUp(0), takes)
		later("close 3")
		l.come("set up 2", setUp(0), takes)
		l.come("decode", received(1), takes)
		l.want(t, "close 1", "decode")
		time.Sleep(2*(takes+rest) + takes/2)
		synctest.Wait()
		l.want(t, "close 1", "decode", "close 2", "set up 1")
		if n := l.q.SetUps().Waiting(); n != 2 {
			t.Errorf("%d wait", n)
		}
		close(l.lost)
		synctest.Wait()
		l.want(t, "close 1", "decode", "close 2", "set up 1", "set up 2 gave up")
		time.Sleep(takes + rest)
		synctest.Wait()
		l.want(t, "close 1", "decode", "close 2", "set up 1", "set up 2 gave up", "close 3")
		if got := l.q.SetUps().Every(); got != takes+rest {
			t.Errorf("a set-up every %v", got)
		}
		time.Sleep(takes + rest)
	})
}
