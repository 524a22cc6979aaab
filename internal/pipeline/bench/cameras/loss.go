package cameras

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"edgecam/internal/pipeline"
	"edgecam/platform/cuda"
)

//go:embed trap.ptx
var trapPTX []byte

// Lose has a card fail for good during a trial.
type Lose struct {
	UUID  string
	After time.Duration // from the beginning of the measured time
	// Trap has a kernel fault, which takes all cards of the process away. Without it the
	// card alone is taken away (pipeline.TakeAway).
	Trap bool
	// Stays says that this process cannot use the card again, as after a fault: the trial
	// does not wait for that.
	Stays bool
	// Back is how long the trial waits for the card to serve again, and for all of its
	// cameras, once its time is over. It defaults to 45 s.
	Back time.Duration
}

const (
	// soonAgain is how long the cameras of a lost card may go without analysis.
	soonAgain = 5 * time.Second
	// backWithin is what Lose.Back defaults to; backFor is how long the cards are watched
	// once all is well again.
	backWithin, backFor = 45 * time.Second, 3 * time.Second
)

// Loss is what became of a lost card's cameras.
type Loss struct {
	GPU          string  `json:"gpu"`
	Error        string  `json:"error"`         // that the card was lost with
	AfterSeconds float64 `json:"after_seconds"` // into the trial

	Moved        int      `json:"moved"`             // cameras that the card had
	AgainP50     float64  `json:"again_p50_seconds"` // from the loss until they were analysed elsewhere
	AgainMost    float64  `json:"again_most_seconds"`
	NotAgain     []string `json:"not_again,omitempty"`  // cameras that were not
	OthersGap    float64  `json:"others_most_seconds"`  // longest time without analysis of a camera that had been elsewhere
	Twice        int      `json:"published_twice"`      // pictures
	Backwards    int      `json:"published_backwards"`  // pictures behind a newer one of their camera
	OfDead       int      `json:"published_of_dead"`    // pictures of the lost card, after the loss
	BeforeFPS    float64  `json:"before_fps"`           // analysed until the loss
	WithoutFPS   float64  `json:"without_fps"`          // from there on that all cameras were analysed again, until the card served
	Reductions   int      `json:"governor_reductions"`  // how often the governor began to lower rates
	LowestShare  float64  `json:"lowest_allowed_share"` // of the asked rates, by the governor
	Reason       string   `json:"reduced_because,omitempty"`
	Stays        bool     `json:"stays_lost"`           // to this process
	ServedAfter  float64  `json:"served_after_seconds"` // from the loss until the card analysed again; 0 = it did not
	CamerasBack  int      `json:"cameras_back"`         // that it analysed then
	BackMost     float64  `json:"back_most_seconds"`    // from the loss until the last of these
	BackGap      float64  `json:"back_gap_seconds"`     // longest time without analysis of those that came back
	EverySeconds []Second `json:"seconds"`
}

// Second is what each card analysed in one second of the trial.
type Second struct {
	Second   int            `json:"second"`
	Analysed map[string]int `json:"analysed"` // by UUID
}

// published is one published picture.
type publication struct {
	camera, gpu string
	seq         uint64
	life        int
	at          time.Time
}

// lossLog keeps everything that was published in a trial.
type lossLog struct {
	mu  sync.Mutex
	all []publication
}

func (l *lossLog) add(r pipeline.Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, publication{camera: r.Camera, gpu: r.GPU, seq: r.Seq, life: r.Life, at: r.At})
}

// losing is a trial in which a card is lost. A nil one loses none.
type losing struct {
	b     *Bench
	log   *lossLog
	began time.Time
	stop  context.CancelFunc
	done  chan struct{}
	whole time.Time // all was well again

	failed chan struct{} // closed when the card is lost, or is not and err says why
	// set before failed is closed
	homes       map[string]string // the card that each camera was on
	asked, lost time.Time         // the card was made to fail, and was known to be lost
	err         error

	governor governorLog // set before done is closed
}

type governorLog struct {
	reductions int
	reducing   bool
	lowest     float64
	reason     string
}

// startLoss begins to watch, and to wait for the moment of the loss.
func (b *Bench) startLoss(ctx context.Context) *losing {
	if b.o.Lose == nil || b.o.FindMax {
		return nil
	}
	l := &losing{b: b, log: &lossLog{}, began: time.Now(), done: make(chan struct{}), failed: make(chan struct{}), governor: governorLog{lowest: 1}}
	b.loss.Store(l.log)
	ctx, l.stop = context.WithCancel(ctx)
	go l.run(ctx)
	return l
}

func (l *losing) run(ctx context.Context) {
	defer close(l.done)
	sleep(ctx, l.b.o.Lose.After)
	if ctx.Err() != nil {
		return
	}
	l.b.o.Progress("the card " + l.b.o.Lose.UUID + " is made to fail")
	l.homes = map[string]string{}
	for _, c := range l.b.o.Pipeline.Cameras() {
		l.homes[c.ID] = c.GPU
	}
	l.asked = time.Now()
	l.err = l.b.o.Lose.lose(ctx, l.b.o.Pipeline)
	l.lost = time.Now()
	close(l.failed)
	for ctx.Err() == nil {
		l.governor.look(l.b.o.Pipeline)
		sleep(ctx, l.b.o.every/10)
	}
}

var errNoFault = errors.New("the kernel ran to its end")

// lose has the card fail; the error is what it was lost with.
func (o *Lose) lose(ctx context.Context, p Pipeline) error {
	if o.Trap {
		return p.OnGPU(ctx, o.UUID, "fail for a rehearsal", trap)
	}
	return p.TakeAway(o.UUID)
}

// trap has a kernel fault, after which the context serves no more calls.
func trap(c *cuda.Context) error {
	m, err := c.Load(trapPTX)
	if err != nil {
		return err
	}
	f, err := c.Function(m, "trap")
	if err != nil {
		return err
	}
	if err := c.Launch(f, [3]uint32{1, 1, 1}, [3]uint32{1, 1, 1}, 0, 0, cuda.NewParams()); err != nil {
		return err
	}
	if err := c.Synchronize(); err != nil {
		return err
	}
	return errNoFault
}

func (g *governorLog) look(p Pipeline) {
	now := p.System().Governor
	if now.Reducing && !g.reducing {
		g.reductions++
		g.reason = now.Reason
	}
	g.reducing = now.Reducing
	if now.AskedFPS > 0 {
		g.lowest = min(g.lowest, now.AllowedFPS/now.AskedFPS)
	}
}

// goesOn says whether the trial waits for the card and its cameras although its time
// was over at end.
func (l *losing) goesOn(end time.Time) bool {
	if l == nil {
		return false
	}
	within := l.b.o.Lose.Back
	if within == 0 {
		within = backWithin
	}
	if time.Since(end) > within {
		return false
	}
	select {
	case <-l.failed:
	default:
		return true
	}
	if l.lossErr() == nil {
		return false
	}
	if now := l.sumUp(); l.whole.IsZero() && (now.ServedAfter > 0 || now.Stays) && len(now.NotAgain) == 0 {
		l.whole = time.Now()
	}
	return l.whole.IsZero() || time.Since(l.whole) < backFor
}

// sumUp sums up what was published so far; the card is lost.
func (l *losing) sumUp() *Loss {
	l.log.mu.Lock()
	defer l.log.mu.Unlock()
	sum := sumUp(l.log.all, l.homes, l.b.o.Lose.UUID, l.began, l.asked, l.lost)
	sum.Stays = l.b.o.Lose.Stays
	return sum
}

// end fills in the loss and what it makes different in the trial.
func (l *losing) end(t *Trial, took float64) error {
	if l == nil {
		return nil
	}
	l.b.loss.Store(nil)
	l.stop()
	<-l.done
	lost := l.lossErr()
	switch {
	case l.asked.IsZero():
		return errors.New("lose a card: the trial ended before its moment came")
	case lost == nil:
		return fmt.Errorf("lose a card: it did not fail: %w", l.err)
	}
	loss := l.sumUp()
	loss.Error = lost.Error()
	loss.Reductions, loss.LowestShare, loss.Reason = l.governor.reductions, l.governor.lowest, l.governor.reason
	t.Loss = loss
	t.AnalysedFPS = 0
	for _, s := range loss.EverySeconds {
		for _, n := range s.Analysed {
			t.AnalysedFPS += float64(n) / took
		}
	}
	t.AnalysedShare = share(t.AnalysedFPS, t.AskedFPS)
	return nil
}

// lossErr is the error that the card was lost with, nil where it was not.
func (l *losing) lossErr() (lost *cuda.LostError) {
	errors.As(l.err, &lost)
	return lost
}

// course is one camera's way through the trial.
type course struct {
	home        string // the card that it was on
	last        time.Time
	newest      uint64
	seen        map[uint64]bool
	again, back time.Time // first picture from elsewhere, and from the card after that
	gap         time.Duration
	backGap     time.Duration
}

// sumUp makes the report of everything that was published, in the order in which it
// was; of one camera that is the order of publication.
func sumUp(all []publication, homes map[string]string, dead string, began, asked, lost time.Time) *Loss {
	l := &Loss{GPU: dead, AfterSeconds: asked.Sub(began).Seconds(), LowestShare: 1}
	life := -1 // of the card until then; nothing is known of one that analysed nothing
	for _, p := range all {
		if p.gpu == dead && !p.at.After(lost) {
			life = p.life
		}
	}
	cameras := map[string]*course{}
	for id, home := range homes {
		cameras[id] = &course{home: home, seen: map[uint64]bool{}}
	}
	for _, p := range all {
		c := cameras[p.camera]
		if c == nil {
			c = &course{seen: map[uint64]bool{}}
			cameras[p.camera] = c
		}
		l.order(c, p)
		c.follow(p, dead, life, asked, lost)
		if p.gpu == dead && p.life == life && p.at.After(lost) {
			l.OfDead++
		}
	}
	served := l.returned(cameras, asked)
	again := l.moved(cameras, dead, asked)
	l.rates(all, dead, began, asked, again, served)
	return l
}

func (l *Loss) order(c *course, p publication) {
	switch {
	case c.seen[p.seq]:
		l.Twice++
	case p.seq < c.newest:
		l.Backwards++
	}
	c.seen[p.seq] = true
	c.newest = max(c.newest, p.seq)
}

func (c *course) follow(p publication, dead string, life int, asked, lost time.Time) {
	returned := p.gpu == dead && p.life > life
	switch {
	case !p.at.After(lost):
	case returned && c.back.IsZero():
		c.back, c.backGap = p.at, p.at.Sub(c.last)
	case !returned && c.home != dead:
		c.gap = max(c.gap, p.at.Sub(later(c.last, asked)))
	}
	if p.at.After(lost) && c.again.IsZero() && (p.gpu != dead || returned) {
		c.again = p.at
	}
	c.last = p.at
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// returned fills in how cameras came back, and gives when the first one had.
func (l *Loss) returned(cameras map[string]*course, asked time.Time) (served time.Time) {
	for _, c := range cameras {
		if c.back.IsZero() {
			continue
		}
		l.CamerasBack++
		l.BackMost = max(l.BackMost, c.back.Sub(asked).Seconds())
		l.BackGap = max(l.BackGap, c.backGap.Seconds())
		if served.IsZero() || c.back.Before(served) {
			served = c.back
		}
	}
	if !served.IsZero() {
		l.ServedAfter = served.Sub(asked).Seconds()
	}
	return served
}

// moved fills in how the cameras of the lost card fared, and gives when the last of
// them was analysed again.
func (l *Loss) moved(cameras map[string]*course, dead string, asked time.Time) (last time.Time) {
	var took []float64
	last = asked
	for id, c := range cameras {
		switch {
		case c.home != dead:
			l.OthersGap = max(l.OthersGap, c.gap.Seconds())
			continue
		case c.again.IsZero():
			l.NotAgain = append(l.NotAgain, id)
		default:
			took = append(took, c.again.Sub(asked).Seconds())
			last = later(last, c.again)
		}
		l.Moved++
	}
	slices.Sort(took)
	slices.Sort(l.NotAgain)
	if n := len(took); n > 0 {
		l.AgainP50, l.AgainMost = took[n/2], took[n-1]
	}
	return last
}

// rates fills in what was analysed a second.
func (l *Loss) rates(all []publication, dead string, began, asked, again, served time.Time) {
	if len(all) == 0 {
		return
	}
	if served.IsZero() {
		served = all[len(all)-1].at
	}
	before, without := 0, 0
	for _, p := range all {
		if p.at.Before(began) {
			continue
		}
		if p.at.Before(asked) {
			before++
		}
		if p.at.After(again) && p.at.Before(served) {
			without++
		}
		i := int(p.at.Sub(began).Seconds())
		for len(l.EverySeconds) <= i {
			l.EverySeconds = append(l.EverySeconds, Second{Second: len(l.EverySeconds), Analysed: map[string]int{}})
		}
		l.EverySeconds[i].Analysed[p.gpu]++
	}
	l.BeforeFPS = float64(before) / asked.Sub(began).Seconds()
	if d := served.Sub(again).Seconds(); d > 0 {
		l.WithoutFPS = float64(without) / d
	}
}

// fails says in words what went wrong, "" = nothing.
func (l *Loss) fails() string {
	switch {
	case l.Moved == 0:
		return "the card that was lost had no cameras"
	case len(l.NotAgain) > 0:
		return fmt.Sprintf("%d cameras were not analysed again, such as %s", len(l.NotAgain), l.NotAgain[0])
	case l.AgainMost > soonAgain.Seconds():
		return fmt.Sprintf("the last camera was analysed again after %.1f s", l.AgainMost)
	case l.Twice > 0 || l.Backwards > 0:
		return fmt.Sprintf("%d pictures were published twice, %d behind newer ones", l.Twice, l.Backwards)
	case l.OfDead > 0:
		return fmt.Sprintf("%d pictures of the lost card were published after the loss", l.OfDead)
	case l.ServedAfter == 0 && !l.Stays:
		return "the lost card did not serve again"
	}
	return ""
}

func (l *Loss) table(w io.Writer) {
	fmt.Fprintf(w, "\n%s was lost after %.1f s (%s)\n", l.GPU, l.AfterSeconds, l.Error)
	fmt.Fprintf(w, "its %d cameras were analysed again after %.2f s (p50), %.2f s (the last); not again: %d; longest gap of the others: %.2f s\n",
		l.Moved, l.AgainP50, l.AgainMost, len(l.NotAgain), l.OthersGap)
	fmt.Fprintf(w, "analysed: %.1f frames/s before, %.1f without the card; the governor lowered rates %d times, to %.0f %% at least%s\n",
		l.BeforeFPS, l.WithoutFPS, l.Reductions, l.LowestShare*100, because(l.Reason))
	fmt.Fprintf(w, "published twice: %d, behind newer ones: %d, of the dead card after the loss: %d\n", l.Twice, l.Backwards, l.OfDead)
	switch {
	case l.Stays:
		fmt.Fprintln(w, "the card serves again in the next process")
		return
	case l.ServedAfter == 0:
		fmt.Fprintln(w, "the card did not serve again")
		return
	}
	fmt.Fprintf(w, "the card served again after %.1f s; %d cameras came back until %.1f s, the longest gap of theirs was %.2f s\n",
		l.ServedAfter, l.CamerasBack, l.BackMost, l.BackGap)
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}
