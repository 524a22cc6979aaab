package schedule

import (
	"fmt"
	"math"
	"time"
)

// The governor's rules. Loads are parts of what the engine can do.
const (
	// goodUse is the load that it steers to. What is above keeps waits short when
	// cameras happen to come at the same time.
	goodUse = 0.8
	// highUse is too much, and below lowUse more is allowed again. In between it
	// leaves things as they are.
	highUse, lowUse = 0.92, 0.72
	// ageUse is the load from which it takes old frames for a sign of overload. Once
	// it reduces it holds the age at any load above ageHeld.
	ageUse, ageHeld = goodUse, 0.4
	// calmUse is the load below which the age is that of a box at ease.
	calmUse = 0.6

	// fewLost is the part of the due frames that may give way to newer ones
	// unnoticed; manyLost makes it act at once.
	fewLost, manyLost = 0.02, 0.15
	// oldAge is how much older than at ease the oldest frames may be; the promise
	// is 1.2, and a measured age is exact to 5 %.
	oldAge = 1.15
	// fewSamples are needed to tell an age.
	fewSamples = 20

	// patient is how many windows must be bad, or good, before it acts.
	badWindows, goodWindows = 2, 3
	// The steps of one window; idleStep where the load is below idleUse, where more
	// costs nothing to try.
	lowestStep, mildStep, highestStep = 0.6, 0.93, 1.25
	idleUse, idleStep                 = 0.25, 2

	// firstWait is how long it stays below a rate that turned out to be too much
	// for a reason that the load does not show; each time again it waits twice as
	// long, up to longestWait.
	firstWait, longestWait = 15 * time.Second, 4 * time.Minute
	// cheaper is a cost of a picture that shows that the engine has got faster.
	cheaper = 0.85
)

// Window is what happened on one engine since the window before.
type Window struct {
	Length   time.Duration
	Due      int           // frames that their cameras' rates picked
	Lost     int           // of those: gave way to newer ones, or got too old
	Analysed int           // frames that were inferred
	Use      float64       // load of the engine; 1 = it cannot do more
	Age      time.Duration // that 95 of 100 published frames do not exceed
	Ages     int           // how many frames that was told from
}

func (w *Window) lost() float64 {
	if w.Due == 0 {
		return 0
	}
	return min(float64(w.Lost)/float64(w.Due), 1) // some were due in the window before
}

// cost is the load of a picture a second.
func (w *Window) cost() float64 {
	if w.Analysed == 0 {
		return 0
	}
	return w.Use / w.rate()
}

func (w *Window) rate() float64 { return float64(w.Analysed) / w.Length.Seconds() }

// Governor lowers the rates of cameras when their engine cannot do what they ask
// for, and raises them again when it can. What it allows in all is found by
// measuring: it steers to a load that leaves the frames as young as they are at
// ease. It is told of one window after the other, about a second each, and belongs
// to one goroutine.
type Governor struct {
	allowed float64 // pictures a second in all, 0 = no limit
	level   float64 // what each unit of weight gets, while allowed is set
	reason  string
	since   time.Time

	bad, good int
	ease      time.Duration // age at ease, 0 = not known
	easeCost  float64       // and the cost of a picture then

	usual   float64 // load of a picture a second; one window says little where others use the processor too
	ceiling float64 // that it does not go back to before probeAt; 0 = none
	cost    float64 // what was usual when that was found
	probeAt time.Time
	wait    time.Duration
	asked   float64
}

// GovernorState is what a governor does now.
type GovernorState struct {
	Reducing bool
	Reason   string    // why, in words; "" when it is not
	Since    time.Time // when it began to reduce
	Asked    float64   // pictures a second that the cameras ask for in all
	Allowed  float64   // that they may have; Asked when not reducing
}

// NewGovernor makes one that allows everything.
func NewGovernor() *Governor { return &Governor{level: math.Inf(1)} }

// State says what it does.
func (g *Governor) State() GovernorState {
	s := GovernorState{Asked: g.asked, Allowed: g.asked}
	if g.allowed > 0 {
		s.Reducing, s.Reason, s.Since, s.Allowed = true, g.reason, g.since, g.allowed
	}
	return s
}

// Level is what each unit of weight may have, see Claim.Limit.
func (g *Governor) Level() float64 { return g.level }

// Step takes a window in and shares out anew among claims. It reports whether
// what is allowed in all has changed.
func (g *Governor) Step(now time.Time, w Window, claims []Claim) (changed bool) {
	before, reducing := g.allowed, g.allowed > 0
	g.ask(claims)
	g.follow(&w)
	why := g.overload(&w)
	switch {
	case reducing && g.fits(&w):
		g.bad = 0
		if g.good++; g.good >= goodWindows {
			g.allowed = g.asked
		}
	case why != "":
		g.bad, g.good = g.bad+1, 0
		// An engine with room that loses frames was held up: that may pass by itself.
		if g.bad >= badWindows || w.lost() > manyLost && w.Use > ageHeld {
			g.lower(now, &w, why)
		}
	default:
		g.bad = 0
		g.learn(&w)
		if reducing && w.Use < lowUse {
			if g.good++; g.good >= goodWindows || w.Use < idleUse {
				g.raise(now, &w)
			}
		} else {
			g.good = 0
		}
	}
	if g.allowed >= g.asked {
		g.allowed, g.ceiling = 0, 0
	}
	g.level = math.Inf(1)
	if g.allowed > 0 {
		g.level = Level(claims, g.allowed)
	}
	return g.allowed != before
}

// ask sums up what is asked for. When that changes, what was found out about
// too much is of the past.
func (g *Governor) ask(claims []Claim) {
	sum := 0.0
	for i := range claims {
		sum += claims[i].Wish
	}
	if math.Abs(sum-g.asked) > 0.1*g.asked {
		g.ceiling, g.wait = 0, 0
	}
	g.asked = sum
}

// follow notes what pictures cost.
func (g *Governor) follow(w *Window) {
	cost := w.cost()
	switch {
	case cost == 0:
	case g.usual == 0:
		g.usual = cost
	default:
		g.usual += smooth * (cost - g.usual)
	}
}

// fits says whether all that is asked for would be no overload. How old the frames
// get with it is what was asked for, then.
func (g *Governor) fits(w *Window) bool {
	return w.lost() <= fewLost && w.Use > 0 && w.Use*g.asked/g.allowed < lowUse && !(g.ceiling > 0 && g.asked > g.ceiling)
}

// overload says what of the window is too much, "" if nothing.
func (g *Governor) overload(w *Window) string {
	from := ageUse
	if g.allowed > 0 {
		from = ageHeld
	}
	old := g.ease > 0 && w.Ages >= fewSamples && w.Use > from && float64(w.Age) > oldAge*float64(g.easeNow(w))
	switch {
	case w.lost() > fewLost:
		return fmt.Sprintf("the engine cannot keep up: %.0f %% of the due pictures gave way to newer ones", 100*w.lost())
	case old:
		return fmt.Sprintf("pictures got old: %d ms, %d ms at ease", w.Age.Milliseconds(), g.easeNow(w).Milliseconds())
	case w.Use > highUse && g.allowed > 0:
		return fmt.Sprintf("the engine is at %.0f %% of what it can do", 100*w.Use)
	}
	return ""
}

// learn notes the age at ease.
func (g *Governor) learn(w *Window) {
	if w.Ages < fewSamples || w.Use > calmUse || g.allowed > 0 {
		return
	}
	if g.ease == 0 {
		g.ease = w.Age
	}
	// Cameras that start send a burst, whose age is not that of a box at ease: one such
	// window raises it by little, and where it came first it is forgotten soon.
	off, far := w.Age-g.ease, g.ease/4
	if off < -far {
		g.ease += off / 2
	} else {
		g.ease += time.Duration(smooth * float64(min(off, far)))
	}
	g.easeCost = w.cost()
}

// easeNow is the age at ease of an engine as fast as it is now: what a slower one
// makes older, a lower rate makes no younger.
func (g *Governor) easeNow(w *Window) time.Duration {
	if g.easeCost == 0 {
		return g.ease
	}
	return time.Duration(float64(g.ease) * max(w.cost()/g.easeCost, 1))
}

func (g *Governor) lower(now time.Time, w *Window, why string) {
	served := w.rate()
	if served == 0 {
		return // nothing was inferred at all: that is no matter of rates
	}
	before := g.allowed
	if before == 0 {
		before, g.since = g.asked, now
	}
	// A window in which the engine was held up, by a change of cameras or by the
	// machine, says little of what it can do: no step goes all the way down to it.
	heldUp := served < lowestStep*before
	base := min(max(served, lowestStep*before), before)
	// Far over the good load it goes there at once. Otherwise it feels its way,
	// as something else than the engine is short.
	step := mildStep
	if w.Use > goodUse {
		step = min(max(goodUse/w.Use, lowestStep), mildStep)
	} else if !heldUp {
		g.remember(now, base, w)
	}
	g.allowed, g.reason = base*step, why
	g.bad, g.good = 0, 0
}

// remember keeps it from going back to a rate at once that is too much although
// the engine seems to have room.
func (g *Governor) remember(now time.Time, rate float64, w *Window) {
	g.wait = min(max(2*g.wait, firstWait), longestWait)
	g.ceiling, g.probeAt, g.cost = rate, now.Add(g.wait), g.usual
}

func (g *Governor) raise(now time.Time, w *Window) {
	step := highestStep
	switch {
	case w.Use > 0 && w.Use < idleUse:
		step = idleStep
	case w.Use > 0:
		step = min(goodUse/w.Use, highestStep)
	}
	if g.usual < cheaper*g.cost {
		g.ceiling, g.wait = 0, 0 // it was another engine then
	}
	next := g.allowed * step
	if g.ceiling > 0 && next > mildStep*g.ceiling && now.Before(g.probeAt) {
		next = max(g.allowed, mildStep*g.ceiling)
	}
	g.allowed = next
}
