package pipeline

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestStartsAreSpread(t *testing.T) {
	for _, c := range []struct {
		name  string
		setUp time.Duration // 0 = decoders in software
		want  time.Duration // between two starts
	}{
		{"software", 0, startsApart},
		{"a card", 55 * time.Millisecond, 55 * time.Millisecond},
		{"an odd set-up", 3 * time.Second, startsFarthest},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStarts(func() time.Duration { return c.setUp })
				began := time.Now()
				var wg sync.WaitGroup
				for range 300 {
					wg.Go(func() {
						if err := s.admit(t.Context()); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				if took := time.Since(began); took != 299*c.want {
					t.Errorf("300 starts took %v, want %v", took, 299*c.want)
				}
				time.Sleep(time.Minute)
				if wait := s.book(time.Now()); wait != 0 {
					t.Errorf("a camera that comes later waits %v", wait)
				}
			})
		})
	}
}

func TestStartsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStarts(func() time.Duration { return 0 })
		s.next = time.Now().Add(time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.admit(ctx); err == nil {
			t.Error("a camera that was stopped was let in")
		}
	})
}
