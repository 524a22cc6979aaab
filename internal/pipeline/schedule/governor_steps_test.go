package schedule_test

import (
	"testing"
	"time"

	"edgecam/internal/pipeline/schedule"
)

// steps is a governor that is told of windows of an engine by hand: of cameras that ask
// for so many pictures a second, each of which costs a part of the engine.
type steps struct {
	*schedule.Governor

	at      time.Time
	cameras int
	asked   float64
	cost    float64
}

func newSteps(cameras int, asked, cost float64) *steps {
	return &steps{
		Governor: schedule.NewGovernor(), at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		cameras: cameras, asked: asked, cost: cost,
	}
}

// step is a window in which a part was lost and frames had an age.
func (s *steps) step(lost float64, age time.Duration) schedule.GovernorState {
	s.at = s.at.Add(time.Second)
	due := s.asked
	if state := s.State(); state.Reducing {
		due = state.Allowed
	}
	claims := make([]schedule.Claim, s.cameras)
	for i := range claims {
		claims[i] = schedule.Claim{Wish: s.asked / float64(s.cameras), Weight: 1}
	}
	done := due * (1 - lost)
	s.Step(s.at, schedule.Window{
		Length: time.Second, Due: int(due), Lost: int(due * lost), Analysed: int(done), Use: done * s.cost, Age: age, Ages: int(done),
	}, claims)
	return s.State()
}

const young = 13 * time.Millisecond

// Frames that are lost now and then, at three quarters of what the engine can do, while
// the last decoders are set up, are no overload: it would end by itself.
func TestSetUpsAtThreeQuartersAreNoOverload(t *testing.T) {
	s := newSteps(280, 8400, 0.75/8400)
	for range 10 {
		s.step(0, young)
	}
	for range 4 {
		for _, lost := range []float64{0.05, 0.05, 0.05, 0} {
			if state := s.step(lost, young); state.Reducing {
				t.Fatalf("state %+v", state)
			}
		}
	}
	// What lasts is not a set-up.
	for range 5 {
		s.step(0.05, young)
	}
	if !s.State().Reducing {
		t.Error("frames are lost all the time, and it does nothing")
	}
}

// What is asked for fits by its load: it goes back to that although the load is no lower
// than what it steers to.
func TestBackToAllAtAGoodLoad(t *testing.T) {
	s := newSteps(100, 1000, 0.78/1000)
	for range 10 {
		s.step(0, young)
	}
	for range 10 {
		s.step(0.05, young)
	}
	if !s.State().Reducing {
		t.Fatal("frames are lost for ten seconds, and it does nothing")
	}
	for n := range 30 {
		if !s.step(0, young).Reducing {
			t.Logf("back after %d windows", n+1)
			return
		}
	}
	t.Errorf("30 s later: %+v", s.State())
}

// A load that is good already may be that of batches that are dearer than they need be: a
// little more is tried. Where that is too much it is tried less and less often.
func TestMoreIsTriedAtAGoodLoad(t *testing.T) {
	s := newSteps(100, 2000, 0.77/1000)
	s.step(0.4, young)
	for range 30 {
		s.step(0, young)
	}
	settled := s.State().Allowed
	if settled < 1040 { // 0.8 of the engine
		t.Errorf("it allows %.0f pictures a second", settled)
	}
	const can = 1090 // in truth
	over, last := []int{}, 0.0
	for n := range 300 {
		lost := 0.0
		if last = s.State().Allowed; last > can {
			lost = 0.05
		}
		if a := s.step(lost, young).Allowed; a > last && a > can {
			over = append(over, n)
		}
	}
	if n := len(over); n < 2 || n > 8 {
		t.Errorf("too much is tried at %v", over)
	}
	if last < 0.85*can {
		t.Errorf("it settles at %.0f of %d", last, can)
	}
}

// What was too much for these cameras may not be for others, even if they ask for as much.
func TestOtherCamerasAreTriedAnew(t *testing.T) {
	back := func(others int) (windows int) {
		s := newSteps(100, 1000, 0.5/1000)
		for range 5 {
			s.step(0, young)
		}
		for range 5 { // each time it waits longer
			for !s.State().Reducing {
				s.step(0.1, young)
			}
			s.cameras += others
			for windows = 0; s.State().Reducing && windows < 300; windows++ {
				s.step(0, young)
			}
		}
		return windows
	}
	if same, others := back(0), back(1); others > 4 || same < 3*others {
		t.Errorf("back after %d windows with the same cameras, and %d with others", same, others)
	}
}

// Of few frames one that is lost says nothing.
func TestOneLostFrameIsChance(t *testing.T) {
	s := newSteps(8, 30, 0.85/30)
	for range 20 {
		if state := s.step(0.04, young); state.Reducing {
			t.Fatalf("state %+v", state)
		}
	}
	for range 3 {
		s.step(0.1, young)
	}
	if !s.State().Reducing {
		t.Error("three are, each time, and it does nothing")
	}
}

// settledLow is a governor that reduces, for long, to a rate at which few frames are due.
func settledLow() *steps {
	s := newSteps(8, 60, 0.75/30)
	for range 4 {
		s.step(0.3, young)
	}
	for range 300 {
		s.step(0, young)
	}
	return s
}

// While few frames are allowed, one that is lost in each window is chance in none: its
// cameras miss their shares.
func TestALostFrameInEachWindow(t *testing.T) {
	settled := func(lost float64) float64 {
		s := settledLow()
		for range 20 {
			s.step(lost, young)
		}
		return s.State().Allowed
	}
	if none, one := settled(0), settled(0.05); none < 27 || one > 0.85*none {
		t.Errorf("it allows %.1f pictures a second where one is lost each second, %.1f where none is", one, none)
	}
}

// One burst that is lost is held against its own window only.
func TestABurstIsOneWindow(t *testing.T) {
	s := settledLow()
	before := s.State().Allowed
	s.step(0.12, young)
	for range 5 {
		s.step(0, young)
	}
	if after := s.State().Allowed; after < before {
		t.Errorf("it allows %.1f pictures a second, %.1f before", after, before)
	}
}

// Runs take longer beside others and beside more decoders. That is no engine that has got
// slower, and no reason for older frames.
func TestRunsBesideEachOtherAreNoSlowEngine(t *testing.T) {
	for _, c := range []struct {
		slower float64
		more   bool // older frames are let pass
	}{{1.2, false}, {2, true}} {
		s := newSteps(30, 40, 1.0/120)
		for range 10 {
			s.step(0, 30*time.Millisecond)
		}
		s.asked, s.cost = 150, c.slower/120
		s.step(0.6, 300*time.Millisecond)
		for range 4 {
			s.step(0, 30*time.Millisecond)
		}
		before := s.State().Allowed
		for range 6 {
			s.step(0, 40*time.Millisecond)
		}
		if less := s.State().Allowed < before; less == c.more {
			t.Errorf("%.1f times as slow: it allows %.1f, and %.1f before", c.slower, s.State().Allowed, before)
		}
	}
}
