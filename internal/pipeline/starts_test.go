package pipeline

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// startUp has n cameras start; first is what one does from its call to its first picture.
// It gives how long all took.
func startUp(t *testing.T, n int, s *starts, first func()) time.Duration {
	t.Helper()
	began := time.Now()
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			started, err := s.admit(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			first()
			started()
			started() // its attempt is over
		})
	}
	wg.Wait()
	return time.Since(began)
}

// Without cards only the opening of sessions is spread.
func TestStartsWithoutCards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStarts(func() (int, bool) { return 0, false })
		if took := startUp(t, 300, s, func() {}); took != 299*startsApart {
			t.Errorf("300 starts took %v", took)
		}
	})
}

// Cards set one decoder up after the other: that place is never idle for long, and few
// wait for it, however many cameras there are and whenever their key frames come.
func TestStartsFollowTheSetUps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const cameras, takes = 300, 90 * time.Millisecond
		place := make(chan struct{}, 1) // a mutex would not let the bubble's time go on
		var waiting, most, n atomic.Int64
		s := newStarts(func() (int, bool) { return int(waiting.Load()), true })
		took := startUp(t, cameras, s, func() {
			time.Sleep(time.Duration(n.Add(1)*37%100) * 10 * time.Millisecond) // to the key frame
			most.Store(max(most.Load(), waiting.Add(1)))
			place <- struct{}{}
			waiting.Add(-1)
			time.Sleep(takes)
			<-place
		})
		if ideal := cameras * takes; took > ideal*5/4 {
			t.Errorf("%d cameras took %v, the set-ups alone %v", cameras, took, ideal)
		}
		if n := most.Load(); n > mostStarting {
			t.Errorf("%d waited for their decoder at once", n)
		}
		time.Sleep(startPatience) // the timers of starts end
	})
}

// Cameras that are away hold up the others for a moment, not for good.
func TestStartsForgetWhoIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStarts(func() (int, bool) { return 0, true })
		for range 3 * mostStarting {
			go func() {
				started, err := s.admit(t.Context())
				if err == nil {
					<-t.Context().Done()
					started()
				}
			}()
		}
		synctest.Wait()
		took := startUp(t, 1, s, func() {})
		if took < startPatience || took > 4*startPatience {
			t.Errorf("behind %d that are away it took %v", 3*mostStarting, took)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if n := s.line.Len(); n > 0 {
			t.Errorf("%d still wait", n)
		}
	})
}

// Set-ups that hang hold cameras up for a while, not for good.
func TestStartsBesideSetUpsThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStarts(func() (int, bool) { return mostSetUps, true })
		if took := startUp(t, 3, s, func() {}); took < mostHeld || took > 3*(mostHeld+startPatience) {
			t.Errorf("3 starts took %v", took)
		}
	})
}

// A start that waits ends with its camera, and the next ones go on.
func TestStartsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := atomic.Bool{}
		busy.Store(true)
		s := newStarts(func() (int, bool) {
			if busy.Load() {
				return mostSetUps, true
			}
			return 0, true
		})
		ctx, cancel := context.WithTimeout(t.Context(), mostHeld/2)
		defer cancel()
		behind := make(chan time.Time, 1)
		go func() {
			time.Sleep(time.Second)
			started, err := s.admit(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			behind <- time.Now()
			started()
		}()
		if _, err := s.admit(ctx); err == nil {
			t.Error("a camera that was stopped was let in")
		}
		ended := time.Now()
		busy.Store(false) // and nobody says so
		if got := (<-behind).Sub(ended); got > startPatience {
			t.Errorf("the next one was let in after %v", got)
		}
	})
}
