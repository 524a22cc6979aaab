package pipeline

import (
	"testing"
	"time"

	"edgecam/framepool"
)

// What decoders on a card are late with is no age of the engine beside them, nor is what
// is dropped for it its loss. Decoders in software have the engine's cores.
func TestLoadOfLateDecoders(t *testing.T) {
	start := time.Now()
	at := start.Add(640 * time.Millisecond)
	m := &framepool.Meta{Received: start, Decoded: start.Add(600 * time.Millisecond)}
	for _, tt := range []struct {
		apart bool
		age   time.Duration
	}{{true, 40 * time.Millisecond}, {false, 640 * time.Millisecond}} {
		l := load{apart: tt.apart}
		for range 30 {
			l.published(m, at)
		}
		l.grewOld(m, at)
		w, _ := l.take(time.Second, time.Millisecond, 1)
		near := func(got, want time.Duration) bool { return got > want*9/10 && got < want*11/10 }
		if !near(w.Age, tt.age) || !near(w.Decoded, 600*time.Millisecond) || w.Apart != tt.apart || w.Lost != 0 {
			t.Errorf("apart %v: %+v", tt.apart, w)
		}
		l.grewOld(m, at.Add(time.Second))
		if w, _ := l.take(time.Second, time.Millisecond, 1); w.Lost != 1 || w.Ages != 0 || w.Decoded != 0 {
			t.Errorf("a second later: %+v", w)
		}
	}
}

// Decoders that are late are told of once, and when they are in time again; those that
// start and catch up are not.
func TestLateness(t *testing.T) {
	var l lateness
	told := 0
	look := func(late bool, n int) {
		for range n {
			if l.look(late) {
				told++
			}
		}
	}
	for range 4 {
		look(true, lateFor-1)
		look(false, 1)
	}
	if told != 0 {
		t.Fatalf("told %d times of decoders that catch up", told)
	}
	look(true, 3*lateFor)
	if told != 1 || !l.late {
		t.Errorf("late: told %d times", told)
	}
	look(false, 3*lateFor)
	if told != 2 || l.late {
		t.Errorf("in time again: told %d times", told)
	}
}
