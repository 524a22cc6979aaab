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
	// littleUse is a load at which frames are younger than they may be: what was
	// learned there is replaced by what is seen with moreUse on top. Above it the age
	// grows with the load, by steps that a burst of old frames does not spoil.
	littleUse, moreUse = 0.2, 0.05
	// lastingWindows is how many windows in a row must ask for the same, but for
	// changedAsked, for a load that lasts. What was learned at one is not spoiled by older
	// frames on the way to another: that may be the way into an overload.
	lastingWindows, changedAsked = 5, 0.05
	// sureSamples tell an age well enough to go by it alone; fewer are averaged with
	// those of the windows before.
	sureSamples = 100

	// fewLost is the part of the due frames that may give way to newer ones
	// unnoticed; manyLost makes it act at once.
	fewLost, manyLost = 0.02, 0.15
	// fewestLost are needed to tell a part: one now and then is chance.
	fewestLost = 2
	// oldAge is how much older than at ease the oldest frames may be; the promise
	// is 1.2, and a measured age is exact to 5 %.
	oldAge = 1.15
	// fewSamples are needed to tell an age.
	fewSamples = 20

	// patient is how many windows must be bad, or good, before it acts.
	badWindows, goodWindows = 2, 3
	// steadyWindows is how many must be good for more to be tried at a load that is good
	// already: sizes of batches that are not run now may be cheaper than the load says.
	steadyWindows = 8
	// heldWindows is how many must be bad where the engine has room by its load: then
	// something holds it up, as decoders do that are set up, and that passes by itself.
	heldWindows = 5
	// The steps of one window; idleStep where the load is below idleUse, where more
	// costs nothing to try.
	lowestStep, mildStep, highestStep = 0.6, 0.93, 1.25
	idleUse, idleStep                 = 0.25, 2

	// firstWait is how long it stays below a rate that turned out to be too much
	// for a reason that the load does not show, and roomWait where the load has room
	// for all that is asked for; each time again it waits twice as long, up to
	// longestWait.
	firstWait, roomWait, longestWait = 15 * time.Second, 3 * time.Second, 4 * time.Minute
	// otherAsked is by how much what is asked for must have changed, in all, for what
	// was found out before to be of the past.
	otherAsked = 0.1
	// cheaper is a cost of a picture that shows that the engine has got faster.
	cheaper = 0.85
	// besideCost is what a picture may cost more where runs and decoders share the cores.
	besideCost = 1.25
)

// Window is what happened on one engine since the window before.
type Window struct {
	Length   time.Duration
	Sent     int           // frames that the cameras gave
	Due      int           // frames that their cameras' rates picked
	Lost     int           // of those: gave way to newer ones, or got too old, as the engine was late
	Analysed int           // frames that were inferred
	Use      float64       // load of the engine; 1 = it cannot do more
	Chosen   float64       // that of one that chooses, of what it can do by its choice, see Times.Chosen
	Age      time.Duration // that 95 of 100 published frames do not exceed
	Apart    bool          // the age is that from the decoder on, as the decoders are apart from the engine
	Ages     int           // how many frames that was told from
	Decoded  time.Duration // age that 95 of 100 of these did not exceed when they left their decoders
}

func (w *Window) lost() float64 {
	if w.Due == 0 || w.Lost < fewestLost {
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

// busy is how much the engine has to do, of what it can as it works now.
func (w *Window) busy() float64 { return max(w.Use, w.Chosen) }

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
	trying    bool          // it has just gone beyond what the load says
	ease      time.Duration // age at ease, 0 = not known
	easeUse   float64       // the load then
	easeRate  float64       // the pictures a second
	easeCost  float64       // and what one cost
	lasting   bool          // that was a load that lasted
	same      int           // windows in a row that ask for about as much as sameAsked
	sameAsked float64
	age       time.Duration // of late, 0 = not known
	younger   int           // windows in a row with far younger frames than at ease
	lost, due float64       // frames of late, see losing

	fair    float64 // load of a picture a second, of an engine that nothing holds up
	usual   float64 // that of late; one window says little where others use the processor too
	ceiling float64 // that it does not go back to before probeAt; 0 = none
	cost    float64 // what was usual when that was found
	probeAt time.Time
	wait    time.Duration
	found   float64 // what was asked for then
	cameras int     // of the window before
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
	g.ask(now, claims)
	g.follow(&w)
	why := g.overload(&w)
	g.judge(&w, why != "")
	switch {
	case reducing && g.fits(now, &w):
		g.bad = 0
		if g.good++; g.good >= goodWindows {
			g.allowed = g.asked
		}
	case why != "":
		g.bad, g.good = g.bad+1, 0
		if g.bad >= g.patience(&w) {
			g.lower(now, &w, why)
		}
	default:
		g.bad = 0
		g.learn(&w)
		g.good++
		g.trying = g.trying && g.good < goodWindows
		if reducing && g.good >= g.calm(&w) {
			g.raise(now, &w)
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

// ask sums up what is asked for. When that has changed, what was found out about
// too much is of the past, however small the steps were; and so it is after a long
// time without a reason to reduce.
func (g *Governor) ask(now time.Time, claims []Claim) {
	g.asked = 0
	for i := range claims {
		g.asked += claims[i].Wish
	}
	if g.same++; math.Abs(g.asked-g.sameAsked) > changedAsked*g.sameAsked {
		g.same, g.sameAsked = 0, g.asked
	}
	others := len(claims) != g.cameras
	g.cameras = len(claims)
	if g.wait == 0 {
		return
	}
	calm := g.allowed == 0 && now.Sub(g.probeAt) > longestWait
	if calm || others || math.Abs(g.asked-g.found) > otherAsked*g.found {
		g.ceiling, g.wait = 0, 0
	}
}

// losing is the part of the due frames that gave way, or got too old. Where it leaves so
// few due that a window does not tell fewLost, it is that of the last windows: one or two
// of each are what its cameras miss of their shares. Those of one window are not held
// against the next ones.
func (g *Governor) losing(w *Window) float64 {
	if g.allowed == 0 || w.Lost == 0 || fewLost*float64(w.Due) >= fewestLost || g.lost < fewestLost {
		return w.lost()
	}
	return max(w.lost(), min(g.lost/g.due, 1))
}

// follow notes how old pictures are, what they cost, and how many are lost.
func (g *Governor) follow(w *Window) {
	const keeps = 0.75
	g.lost, g.due = keeps*g.lost+float64(w.Lost), keeps*g.due+float64(w.Due)
	if w.Ages >= fewSamples {
		if g.age == 0 {
			g.age = w.Age
		}
		g.age += time.Duration(min(float64(w.Ages)/sureSamples, 1) * float64(w.Age-g.age))
	}
	cost := w.cost()
	switch {
	case cost == 0:
	case g.usual == 0:
		g.usual = cost
	default:
		g.usual += (cost - g.usual) / 4
	}
}

// judge notes what pictures cost where nothing holds the engine up: where all is well,
// and where it is at work all the time. Few pictures make small batches, so that they
// seem dear while it reduces.
func (g *Governor) judge(w *Window, bad bool) {
	switch {
	case g.fair == 0, w.Use > goodUse, !bad && g.allowed == 0, g.usual < g.fair:
		g.fair = g.usual
	}
}

// room says whether the engine could do all that is asked for, by what its pictures
// cost before it was held up.
func (g *Governor) room(w *Window) bool { return w.Use < goodUse && g.fair*g.asked < goodUse }

// patience is how many windows in a row must be bad before it acts.
func (g *Governor) patience(w *Window) int {
	switch {
	case g.room(w):
		return heldWindows
	case w.lost() > manyLost && w.busy() > ageHeld:
		return 1
	}
	return badWindows
}

// calm is how many windows in a row must be good before more is allowed.
func (g *Governor) calm(w *Window) int {
	switch {
	case w.busy() < idleUse:
		return 1
	case w.busy() < lowUse:
		return goodWindows
	case w.busy() < mildStep*highUse:
		return steadyWindows
	}
	return math.MaxInt
}

// fits says whether all that is asked for would be no overload. How old the frames
// get with it is what was asked for, then.
func (g *Governor) fits(now time.Time, w *Window) bool {
	if g.losing(w) > fewLost || w.Use == 0 || g.ceiling > 0 && g.asked > g.ceiling && now.Before(g.probeAt) {
		return false
	}
	return w.Use*g.asked/g.allowed < lowUse || g.room(w)
}

// overload says what of the window is too much, "" if nothing.
func (g *Governor) overload(w *Window) string {
	switch lost := g.losing(w); {
	case lost > fewLost && g.room(w):
		return fmt.Sprintf("the engine is held up: %.0f %% of the due pictures gave way to newer ones at a load of %.0f %%", 100*lost, 100*w.Use)
	case lost > fewLost:
		return fmt.Sprintf("the engine cannot keep up: %.0f %% of the due pictures gave way to newer ones", 100*lost)
	case g.old(w):
		return g.howOld(w)
	case w.Use > highUse && g.allowed > 0:
		return fmt.Sprintf("the engine is at %.0f %% of what it can do", 100*w.Use)
	case w.Chosen > highUse && g.allowed > 0:
		return fmt.Sprintf("the engine is at %.0f %% of what it can do with young pictures", 100*w.Chosen)
	}
	return ""
}

// old says whether frames are older than at ease for a load that is more than at ease:
// with less of it they would not get younger, as something else makes them old.
func (g *Governor) old(w *Window) bool {
	if g.ease == 0 || w.Ages < fewSamples || float64(g.age) <= oldAge*float64(g.easeNow(w)) {
		return false
	}
	return w.Use > ageUse || g.allowed > 0 && w.Use > max(ageHeld, g.easeUse) && w.rate() > g.easeRate
}

// howOld puts the age into words.
func (g *Governor) howOld(w *Window) string {
	part := ""
	if w.Apart {
		part = " from their decoder on"
	} else if w.Decoded > g.age/2 {
		part = fmt.Sprintf(", %d ms of it until they were decoded", w.Decoded.Milliseconds())
	}
	return fmt.Sprintf("pictures got old: %d ms%s, %d ms at ease", g.age.Milliseconds(), part, g.easeNow(w).Milliseconds())
}

// learn notes the age at ease.
func (g *Governor) learn(w *Window) {
	if w.Ages < fewSamples || w.Use > calmUse || g.allowed > 0 {
		return
	}
	lasts := g.same >= lastingWindows
	off, far := w.Age-g.ease, g.ease/4
	if g.lasting && !lasts && off > 0 {
		return
	}
	g.lasting = g.lasting || lasts && w.Use > littleUse
	if off < -far {
		g.younger++
	} else {
		g.younger = 0
	}
	more := w.Use > g.easeUse+moreUse
	switch {
	case g.ease == 0, more && g.easeUse < littleUse:
		g.ease, g.easeUse, g.easeRate = w.Age, w.Use, w.rate()
	case more:
		g.ease, g.easeUse, g.easeRate = g.ease+max(min(off, far), -far), w.Use, w.rate()
	// Cameras that start send a burst, whose age is not that of a box at ease: one such
	// window raises it by little, and where it came first it is forgotten soon.
	case g.younger > 1:
		g.ease += off / 2
	default:
		g.ease += time.Duration(smooth * float64(max(min(off, far), -far)))
	}
	g.easeUse += smooth * (w.Use - g.easeUse)
	g.easeRate += smooth * (w.rate() - g.easeRate)
	g.easeCost = g.usual
}

// easeNow is the age at ease of an engine as fast as it is now: what a slower one makes
// older, a lower rate makes no younger. Runs beside each other are slower too, and that a
// lower rate does mend.
func (g *Governor) easeNow(w *Window) time.Duration {
	if g.easeCost == 0 {
		return g.ease
	}
	return time.Duration(float64(g.ease) * max(w.cost()/(g.easeCost*besideCost), 1))
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
	if use := w.busy(); use > goodUse && !g.trying {
		step = min(max(goodUse/use, lowestStep), mildStep)
	} else if !heldUp {
		g.remember(now, base, w)
	}
	g.allowed, g.reason = base*step, why
	g.bad, g.good, g.age, g.trying = 0, 0, 0, false
	g.lost, g.due = 0, 0
}

// remember keeps it from going back to a rate at once that is too much although
// the engine seems to have room.
func (g *Governor) remember(now time.Time, rate float64, w *Window) {
	first := firstWait
	if g.room(w) || w.Use < ageHeld {
		first = roomWait
	}
	g.wait = min(max(2*g.wait, first), longestWait)
	g.ceiling, g.probeAt, g.cost, g.found = rate, now.Add(g.wait), g.usual, g.asked
}

func (g *Governor) raise(now time.Time, w *Window) {
	step := highestStep
	switch use := w.busy(); {
	case use > 0 && use < idleUse:
		step = idleStep
	case use > lowUse:
		step, g.trying = 1/mildStep, true
	case use > 0:
		step = min(goodUse/use, highestStep)
	}
	if g.usual < cheaper*g.cost {
		g.ceiling, g.wait = 0, 0 // it was another engine then
	}
	next := g.allowed * step
	if g.ceiling > 0 && next > mildStep*g.ceiling && now.Before(g.probeAt) {
		next = max(g.allowed, mildStep*g.ceiling)
	}
	g.allowed, g.good = next, min(g.good, goodWindows)
	if g.trying {
		g.good = 0
	}
}
