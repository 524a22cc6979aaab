package schedule_test

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"time"

	"edgecam/internal/pipeline/schedule"
)

// box is a machine whose time is a variable: cameras send, an engine works, and
// the rules under test decide. It is what internal/pipeline does with goroutines
// and a clock.
type box struct {
	now, start time.Time
	cameras    []*cam
	sending    byNext
	board      schedule.Board[*cam]
	workers    []*engine
	times      *schedule.Times
	governor   *schedule.Governor
	budget     time.Duration
	slow       float64       // factor on the engine's time
	held       time.Duration // that somebody else has the engine, of each 100 ms
	apart      bool          // the decoders are on a card
	random     *rand.Rand

	tick   time.Time
	window schedule.Window
	ages   schedule.Tail

	batches map[int]int // by size
	choice  schedule.Choice

	noise func(cost time.Duration) time.Duration // what a run takes in truth, nil = cost
	late  func() time.Duration                   // what the next picture is behind, nil = the camera's lag
}

// cam is a camera.
type cam struct {
	lane   schedule.Lane[*cam]
	fps    float64
	asked  float64
	weight float64
	idle   bool
	gone   bool

	pace     schedule.Pace
	limit    float64
	turn     schedule.Turn
	sent     int
	received time.Time     // of the next frame
	next     time.Time     // when it leaves the decoder
	ready    time.Time     // the decoder, before which it gives nothing
	lag      time.Duration // that it is behind
	origin   time.Time
	newest   frame // that has left the decoder
	waiting  frame // for the engine
	waits    bool
	analysed int
	lost     int
	ages     []time.Duration // of what was published since they were last taken
}

// frame is one's way to the engine.
type frame struct{ received, decoded time.Time }

// decoding is what a picture takes at least, one after the other.
const decoding = time.Millisecond

// tooOld is the age from which a picture that leaves its decoder is no use.
const tooOld = time.Second

// byNext is a heap of cameras, the one that sends next first.
type byNext []*cam

func (h byNext) Len() int           { return len(h) }
func (h byNext) Less(i, j int) bool { return h[i].next.Before(h[j].next) }
func (h byNext) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byNext) Push(x any)        { *h = append(*h, x.(*cam)) }
func (h *byNext) Pop() any {
	old := *h
	c := old[len(old)-1]
	*h = old[:len(old)-1]
	return c
}

// engine is one queue of it.
type engine struct {
	flight *schedule.Flight
	depth  int
	most   int
	cost   func(n int) time.Duration
	begun  []*flown
	free   time.Time // when it has ended all that was begun
}

type flown struct {
	cams   []*cam
	frames []frame
	end    time.Time
}

// affine is an engine that takes base for a batch and each for every picture of its
// bucket, as GPUs do.
func affine(base, each time.Duration) func(int) time.Duration {
	return func(n int) time.Duration {
		bucket := 1
		for bucket < n {
			bucket *= 2
		}
		return base + time.Duration(bucket)*each
	}
}

func newBox(workers, depth, most int, cost func(int) time.Duration) *box {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	b := &box{
		now: start, start: start, tick: start.Add(time.Second), times: schedule.NewTimes(most), governor: schedule.NewGovernor(),
		budget: 80 * time.Millisecond, slow: 1, random: rand.New(rand.NewPCG(7, 7)), batches: map[int]int{},
	}
	if workers == 1 {
		b.board.PerLane = depth
	}
	for range workers {
		b.workers = append(b.workers, &engine{flight: schedule.NewFlight(b.times), depth: depth, most: most, cost: cost, free: start})
	}
	return b
}

// add connects a camera that sends fps pictures a second and asks for asked of them.
func (b *box) add(fps, asked, weight float64) *cam {
	c := &cam{fps: fps, asked: asked, weight: weight, pace: schedule.NewPace(asked, schedule.Phase(len(b.cameras)))}
	c.lane.Of = c
	c.origin = b.now.Add(time.Duration(b.random.Float64() / fps * float64(time.Second)))
	c.received, c.next = c.origin, c.origin
	b.cameras = append(b.cameras, c)
	heap.Push(&b.sending, c)
	return c
}

// startLate connects a camera whose decoder is ready only after a time, as others are set
// up before it.
func (b *box) startLate(fps float64, after time.Duration) *cam {
	c := b.add(fps, 0, 1)
	c.ready = b.now.Add(after)
	c.next = c.out(c.received)
	heap.Init(&b.sending)
	return c
}

// out is when a picture leaves the decoder.
func (c *cam) out(received time.Time) time.Time {
	at := received.Add(c.lag)
	for _, t := range []time.Time{c.ready, c.newest.decoded.Add(decoding)} {
		if at.Before(t) {
			at = t
		}
	}
	return at
}

func (b *box) remove(c *cam) {
	c.gone, c.waits = true, false
	b.board.Remove(&c.lane)
}

// run lets time pass. Nothing of it is real.
func (b *box) run(d time.Duration) {
	for end := b.now.Add(d); ; {
		at := b.nextEvent()
		if at.After(end) {
			b.now = end
			return
		}
		b.now = at
		b.arrivals()
		b.work()
		if !b.now.Before(b.tick) {
			b.govern()
		}
	}
}

func (b *box) nextEvent() time.Time {
	at := b.tick
	if len(b.sending) > 0 && b.sending[0].next.Before(at) {
		at = b.sending[0].next
	}
	for _, e := range b.workers {
		if len(e.begun) > 0 && e.begun[0].end.Before(at) {
			at = e.begun[0].end
		}
		if len(e.begun) == 0 || len(e.begun) >= e.depth {
			continue
		}
		if wait := b.wait(e); wait > 0 && b.now.Add(wait).Before(at) {
			at = b.now.Add(wait)
		}
	}
	if _, later := b.board.Ready(b.now); later.After(b.now) && later.Before(at) {
		at = later
	}
	if at.Before(b.now) {
		return b.now
	}
	return at
}

func (b *box) arrivals() {
	for len(b.sending) > 0 && !b.sending[0].next.After(b.now) {
		c := b.sending[0]
		if c.gone {
			heap.Pop(&b.sending)
			continue
		}
		b.arrive(c)
		heap.Fix(&b.sending, 0)
	}
}

func (b *box) arrive(c *cam) {
	f := frame{received: c.received, decoded: c.next}
	c.sent++
	b.window.Sent++
	jitter := (b.random.Float64() - 0.5) * 0.3
	c.received = c.origin.Add(time.Duration((float64(c.sent) + jitter) / c.fps * float64(time.Second)))
	sent := schedule.Sent{Received: f.received, Decoded: f.decoded, Due: f.received.Add(b.budget)}
	if !c.newest.received.IsZero() {
		sent.Apart = f.received.Sub(c.newest.received)
	}
	c.newest = f // the decoder is at it no more
	if b.late != nil {
		c.lag = b.late()
	}
	c.next = c.out(c.received)
	asked := c.asked
	if c.limit > 0 && (asked == 0 || c.limit < asked) {
		asked = c.limit
	}
	if f.decoded.Sub(f.received) > tooOld {
		return
	}
	c.pace.SetRate(asked, f.received)
	sent.Rate = asked
	due := c.pace.DueUnless(f.received, b.crowded)
	if !due {
		if b.board.Newer(&c.lane, sent) {
			c.waits, c.waiting = true, f
		}
		return
	}
	_, owed := b.board.Offer(&c.lane, sent)
	due, missed := c.turn.Offered(f.decoded, c.waits && !owed, c.fps)
	if due {
		b.window.Due++
	}
	if missed {
		c.lost++
		b.window.Lost++
	}
	c.waits, c.waiting = true, f
}

// wait is how long an engine's next batch stays open.
func (b *box) wait(e *engine) time.Duration {
	n, due := b.board.Pressing()
	return e.flight.Wait(b.now, n, b.room(e), due)
}

// wide says whether one more worker may be busy, if e is not.
func (b *box) wide(e *engine) bool {
	return len(e.begun) > 0 || b.choice.Width == 0 || b.busy() < b.choice.Width
}

// beside is how many workers may be busy at once while the engine chooses.
func (b *box) beside() int {
	if b.apart {
		return len(b.workers)
	}
	return schedule.LeaveCores(len(b.workers), len(b.workers))
}

func (b *box) busy() (n int) {
	for _, e := range b.workers {
		if len(e.begun) > 0 {
			n++
		}
	}
	return n
}

// room is what an engine's batch holds.
func (b *box) room(e *engine) int {
	if b.board.Choosing() {
		return b.choice.Most
	}
	return e.most
}

func (b *box) crowded() bool {
	return schedule.Crowded(b.board.Len(), b.busy(), len(b.workers), b.workers[0].most)
}

// work ends what has ended and begins what is to be begun, until nothing of both is
// left to do now.
func (b *box) work() {
	for changed := true; changed; {
		changed = false
		for _, e := range b.workers {
			if len(e.begun) > 0 && !e.begun[0].end.After(b.now) {
				b.finish(e)
				changed = true
			}
			if n, _ := b.board.Ready(b.now); n > 0 && len(e.begun) < e.depth && b.wait(e) == 0 && b.wide(e) {
				b.begin(e)
				changed = true
			}
		}
	}
}

func (b *box) begin(e *engine) {
	f := &flown{}
	waiting, _ := b.board.Ready(b.now)
	for room := e.flight.Fill(waiting, b.room(e)); len(f.cams) < room; {
		l := b.board.Next(b.now)
		if l == nil {
			break
		}
		c := l.Of
		c.waits = false
		f.cams, f.frames = append(f.cams, c), append(f.frames, c.waiting)
	}
	n := len(f.cams)
	e.flight.Begun(n, b.now, b.now, false)
	if e.free.Before(b.now) {
		e.free = b.now
	}
	if part := e.free.Sub(b.start) % (100 * time.Millisecond); part < b.held {
		e.free = e.free.Add(b.held - part)
	}
	cost := time.Duration(b.slow * float64(e.cost(n)))
	if b.noise != nil {
		cost = b.noise(cost)
	}
	e.free = e.free.Add(cost)
	f.end = e.free
	e.begun = append(e.begun, f)
	b.batches[n]++
}

func (b *box) finish(e *engine) {
	f := e.begun[0]
	e.begun = e.begun[1:]
	e.flight.Finished(b.now, true, 0)
	b.window.Analysed += len(f.cams)
	for i, c := range f.cams {
		c.analysed++
		age := b.now.Sub(f.frames[i].received)
		c.ages = append(c.ages, age)
		if b.apart {
			age = b.now.Sub(f.frames[i].decoded)
		}
		b.ages.Add(age)
		b.board.Done(&c.lane)
	}
}

func (b *box) govern() {
	w := b.window
	w.Length = time.Second
	w.Use = float64(w.Analysed) * b.times.PerPicture().Seconds() / float64(len(b.workers))
	w.Apart = b.apart
	w.Chosen = b.times.Chosen(b.choice, b.governor.State(), w, b.beside())
	w.Age, w.Ages = b.ages.Quantile(0.95), b.ages.Len()
	var claims []schedule.Claim
	var live []*cam
	for _, c := range b.cameras {
		if c.gone {
			continue
		}
		wish := c.fps
		if c.asked > 0 {
			wish = min(wish, c.asked)
		}
		claims = append(claims, schedule.Claim{Wish: wish, Weight: c.weight, Idle: c.idle})
		live = append(live, c)
	}
	b.governor.Step(b.now, w, claims)
	for i, c := range live {
		c.limit = claims[i].Limit(b.governor.Level())
	}
	b.choice = b.times.Choice(b.governor.State(), w, b.beside())
	b.board.Choose(b.choice)
	b.window = schedule.Window{}
	b.ages.Reset()
	b.tick = b.tick.Add(time.Second)
}

// measure lets time pass and gives, for each camera, its analysed pictures a
// second, and the 95th percentile of the age of all.
func (b *box) measure(d time.Duration) (fps []float64, p95 time.Duration) {
	for _, c := range b.cameras {
		c.analysed, c.lost, c.ages = 0, 0, nil
	}
	b.run(d)
	var ages []time.Duration
	for _, c := range b.cameras {
		fps = append(fps, float64(c.analysed)/d.Seconds())
		ages = append(ages, c.ages...)
	}
	if len(ages) == 0 {
		return fps, 0
	}
	slices.Sort(ages)
	return fps, ages[len(ages)*95/100]
}

// totals sums up the rates that measure gave, and what gave way meanwhile.
func (b *box) totals(fps []float64) (sum float64, lost int) {
	for i, c := range b.cameras {
		sum += fps[i]
		lost += c.lost
	}
	return sum, lost
}
