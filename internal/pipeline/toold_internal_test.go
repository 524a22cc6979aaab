package pipeline

import (
	"testing"
	"time"
)

// What is published is under a second old, unless the engine is slow by itself.
func TestOldest(t *testing.T) {
	for _, tt := range []struct{ usual, want time.Duration }{
		{0, time.Second},
		{30 * time.Millisecond, time.Second},
		{600 * time.Millisecond, time.Second},
		{2 * time.Second, 2750 * time.Millisecond},
	} {
		if got := (stamps{usual: tt.usual}).oldest(); got != tt.want {
			t.Errorf("usual run of %v: %v, want %v", tt.usual, got, tt.want)
		}
	}
}

func TestBeyond(t *testing.T) {
	for _, tt := range []struct {
		age, run time.Duration
		want     bool
	}{
		{20 * time.Millisecond, 30 * time.Millisecond, false},
		{900 * time.Millisecond, 30 * time.Millisecond, false},
		{980 * time.Millisecond, 30 * time.Millisecond, true}, // would be published too old
		{1001 * time.Millisecond, 0, true},
		{500 * time.Millisecond, 600 * time.Millisecond, true},
		{100 * time.Millisecond, 1500 * time.Millisecond, false}, // fresh, for a slow engine
	} {
		if got := beyond(tt.age, tt.run); got != tt.want {
			t.Errorf("age %v, run %v: %v", tt.age, tt.run, got)
		}
	}
}
