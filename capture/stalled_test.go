package capture_test

import (
	"testing"
	"time"

	"edgecam/capture"
)

// A limit that was derived from frame rate and key frames is rounded for people.
func TestStalledErrorRoundsItsLimit(t *testing.T) {
	e := &capture.StalledError{Phase: capture.PhaseLive, Limit: 5*time.Second + 187918*time.Nanosecond, Units: 150}
	if got, want := e.Reason(), "Video arrives and no picture could be decoded for 5s"; got != want {
		t.Errorf("reason %q, want %q", got, want)
	}
	if got, want := e.Error(), "no decoded picture for 5s (150 access units came)"; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
}
