package pipeline

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"edgecam/capture"
	"edgecam/capture/decode"
	"edgecam/capture/rtsp"
	"edgecam/framepool"
	"edgecam/internal/config"
	"edgecam/internal/event"
	"edgecam/internal/pipeline/schedule"
)

// viewerInterval bounds the pictures drawn for viewers to about 15 a second;
// pictures that are inferred are always among them, so that boxes have the
// picture they belong to.
const viewerInterval = time.Second / 15

// inferenceSilence is how long the annotated pictures wait for the next
// inferred one before they go on without boxes.
const inferenceSilence = time.Second

// camera is one camera as one value: everything between its URL and the event
// broker. A changed camera is stopped and built anew whole.
type camera struct {
	id     string
	cfg    config.Camera
	p      *Pipeline
	logger *slog.Logger

	disabled   string                   // why it is, in words; "" = it runs
	supervisor *capture.Supervisor      // nil when disabled
	at         atomic.Pointer[analysis] // where it is decoded and analysed; nil when disabled and without inference
	raw        *feed
	annotated  *feed
	lending    lending

	ages     ages
	inferred *rate
	drops    drops
	total    atomic.Uint64 // pictures inferred since start
	activity *activity
	limit    limit // of the station's governor

	// owned by the decoding goroutine
	pace      schedule.Pace
	turn      schedule.Turn
	before    time.Time     // when the last picture left the decoder
	apart     time.Duration // that pictures leave it, smoothed; 0 = not known
	lastShown time.Time

	lastInferred atomic.Int64 // of Meta.Received, monotonic nanoseconds since p.start

	seq     *atomic.Uint64 // of the last decoded picture, across sessions and the cameras in its place
	retired atomic.Bool    // another camera is in its place: what still comes is of no interest

	publishing sync.Mutex
	inherited  bool // guarded by publishing: another camera has the feeds now
	gone       bool // guarded by publishing: the camera was stopped, what is still in an engine is of no interest

	mu       sync.Mutex
	decoder  *decode.Decoder   // guarded by mu; of the newest session, nil before the first
	lost     map[string]uint64 // guarded by mu; drops of the decoders before that one
	skipping schedule.Skip     // guarded by mu; what the decoder leaves out
	spared   spared            // guarded by mu
}

// newCamera lists the stages in the order in which a frame walks through them.
func (p *Pipeline) newCamera(id string, cfg config.Camera) (*camera, error) {
	c := &camera{id: id, cfg: cfg, p: p, logger: p.logger.With("camera", id), inferred: newRate(p.now()), lost: map[string]uint64{}}
	c.seq, c.activity = new(atomic.Uint64), newActivity(p.now())
	c.ages = newAges()
	c.raw = newFeed(id, false, p, c.logger)
	c.annotated = newFeed(id, true, p, c.logger)
	if len(p.bays) > 0 && cfg.Detect.Enabled {
		if err := p.checkModel(id, cfg); err != nil {
			return nil, err
		}
		c.pace = schedule.NewPace(cfg.Detect.FPS, schedule.Phase(int(p.phases.Add(1))))
	}
	if !cfg.Enabled {
		c.disabled = "disabled in the configuration"
		return c, nil
	}
	if !cfg.TLS.Verify {
		c.logger.Warn("the camera's certificate is not checked: whoever answers at its address gets the login", "key", "tls.verify")
	}
	sup, err := capture.NewSupervisor(capture.Options{
		Camera:            id,
		Host:              hostOf(cfg),
		Hosts:             &p.hosts,
		Prober:            p.prober,
		Open:              c.opener(),
		Admit:             p.starts.admit,
		NewDecoder:        c.newDecoder,
		Emit:              c.emit,
		ConnectTimeout:    cfg.ConnectTimeout,
		FirstFrameTimeout: cfg.FirstFrameTimeout,
		StallTimeout:      cfg.StallTimeout,
		Logger:            p.logger, // it adds the camera itself, as the decoder does
	})
	if err != nil {
		return nil, fmt.Errorf("camera %s: %w", id, err)
	}
	c.supervisor = sup
	return c, p.settleCamera(c, cfg)
}

// run captures until ctx ends, then takes the camera's stages down from the
// first to the last.
func (c *camera) run(ctx context.Context) {
	defer c.end()
	if c.supervisor == nil {
		<-ctx.Done()
		return
	}
	if err := c.supervisor.Run(ctx); err != nil && ctx.Err() == nil {
		c.logger.Error("capture ended", "err", err)
		<-ctx.Done()
	}
}

// inherit takes over the viewers of the camera that c takes the place of, so
// that they see the changed camera and no end. It is called before c runs.
func (c *camera) inherit(old *camera) {
	old.publishing.Lock()
	defer old.publishing.Unlock()
	old.inherited = true
	c.raw, c.annotated, c.seq = old.raw, old.annotated, old.seq
}

// retire makes sure that nothing of the camera is shown or published any more,
// before it has ended: another one goes on in its place.
func (c *camera) retire() {
	c.retired.Store(true)
	c.publishing.Lock()
	defer c.publishing.Unlock()
	c.gone = true
}

// end takes the stages after capture down. Nothing of the camera is published
// once it has returned.
func (c *camera) end() {
	if a := c.at.Load(); a != nil {
		a.leave()
	}
	c.lending.end()
	c.publishing.Lock()
	c.gone = true
	inherited := c.inherited
	c.publishing.Unlock()
	if inherited {
		return // its viewers go on with the camera in its place
	}
	c.raw.close()
	c.annotated.close()
}

// emit takes a decoded picture from the camera's decoder to viewers and
// inference. It consumes f.
func (c *camera) emit(f *framepool.Frame) {
	if c.retired.Load() {
		f.Release()
		return
	}
	received := f.Meta().Received
	if tooOld(received, c.p.now()) {
		c.drops.add(dropTooOld)
		f.Release()
		return
	}
	c.lending.lend(f)
	r := c.rhythm(f.Meta().Decoded)
	a := c.at.Load()
	analysed := a != nil && a.lane != nil
	due := analysed && c.due(received, r.due, a.st)
	c.show(f, due, received)
	if analysed {
		a.st.load.sent.Add(1)
	}
	switch {
	case due:
		c.offer(a, f, r)
	case !analysed || !a.st.sched.newer(a.lane, f, r):
		f.Release()
	}
}

// offer has a frame analysed that is due. It consumes f.
func (c *camera) offer(a *analysis, f *framepool.Frame, r rhythm) {
	decoded := f.Meta().Decoded
	missed := a.st.sched.offer(a.lane, f, r)
	fps := 0.0
	if missed {
		c.drops.add(dropBusy)
		if fps = c.rates().All; fps == 0 {
			fps = r.due
		}
	}
	a.st.load.offered(c.turn.Offered(decoded, missed, fps))
}

// rhythm tells of the camera's pictures, one of which has left the decoder. Where some
// are told from later ones they leave it in another order than they were received in,
// or two by two.
func (c *camera) rhythm(decoded time.Time) rhythm {
	const smooth = 8
	if !c.before.IsZero() {
		apart := decoded.Sub(c.before)
		if c.apart == 0 {
			c.apart = apart
		}
		c.apart += (apart - c.apart) / smooth
	}
	c.before = decoded
	return rhythm{apart: c.apart, due: c.limit.of(c.cfg.Detect.FPS)}
}

// due says whether the picture is analysed, at the rate that the camera is set to
// or the lower one that the governor leaves it.
func (c *camera) due(received time.Time, fps float64, s *station) bool {
	c.pace.SetRate(fps, received)
	return c.pace.DueUnless(received, s.crowded)
}

// gpu is the card that the camera's frames may lie on, nil without.
func (c *camera) gpu() *GPU {
	s := c.station()
	if s == nil {
		return nil
	}
	return s.gpu.host()
}

// show offers a picture that just came to those who watch. One that is due for
// inference waits for its turn there, so that viewers get boxes of that very
// picture; it is shown at once only where inference has fallen silent. It
// borrows f.
func (c *camera) show(f *framepool.Frame, due bool, received time.Time) {
	silent := c.lane() == nil || received.Sub(c.p.start)-time.Duration(c.lastInferred.Load()) > inferenceSilence
	if due && !silent {
		c.lastShown = received
		return
	}
	if received.Sub(c.lastShown) < viewerInterval {
		return
	}
	c.lastShown = received
	c.raw.offer(picture{frame: f, gpu: c.gpu()})
	if silent {
		c.annotated.offer(picture{frame: f, gpu: c.gpu()})
	}
}

// report publishes the tracked objects of a frame. It borrows f. What nobody
// watches is not put into words.
func (c *camera) report(f *framepool.Frame, a *analysis, at stamps) {
	c.publishing.Lock()
	defer c.publishing.Unlock()
	if c.gone {
		return
	}
	m, published := f.Meta(), c.p.now()
	if a.st.lost() != nil { // after the time was taken: nothing bears one from behind the loss
		c.drops.add(dropInferenceError)
		a.st.load.lost.Add(1)
		return
	}
	if a != c.at.Load() { // the camera has moved on
		c.drops.add(dropBusy)
		a.st.load.lost.Add(1)
		return
	}
	if published.Sub(m.Received) > at.oldest() {
		c.drops.add(dropTooOld)
		a.st.load.grewOld(m, published)
		return
	}
	c.lastInferred.Store(int64(m.Received.Sub(c.p.start)))
	drawn, watched := c.annotated.watched(), c.p.broker.Watched(c.id)
	var objects []event.Object
	if drawn || watched {
		objects = a.objects()
	}
	// The counts come first: who hears of a detection finds it counted.
	c.ages.observe(m, at, published)
	c.observed(m, at, published)
	c.inferred.add(published)
	c.total.Add(1)
	a.st.load.published(m, published)
	if watched {
		c.p.broker.Publish(&event.Detection{
			Camera: c.id, Seq: m.Seq, CapturedAt: m.CapturedAt, RTPTime: m.RTPTime, AgeMS: ms(published.Sub(m.Received)),
			Width: m.Width, Height: m.Height, Objects: objects,
		})
	}
	if drawn {
		c.annotated.offer(picture{frame: f, gpu: c.gpu(), objects: objects})
	}
}

func (a *analysis) objects() []event.Object {
	out := make([]event.Object, 0, len(a.tracked))
	for _, o := range a.tracked {
		out = append(out, event.Object{
			Track: o.ID, Label: a.labels[o.Class], Score: o.Score, Box: [4]float32{o.X1, o.Y1, o.X2, o.Y2},
		})
	}
	return out
}

// tooOld says whether a picture that arrived at a time is of no use any more,
// neither to inference nor to viewers.
func tooOld(received, now time.Time) bool { return now.Sub(received) > maxFrameAge }

// hostOf is where a camera's sessions go to, "" where its URL is wrong: opening
// it then says so.
func hostOf(cfg config.Camera) string {
	target, err := rtsp.ParseURL(cfg.URL.Reveal(), cfg.Username, cfg.Password.Reveal())
	if err != nil {
		return ""
	}
	return target.Addr()
}

func (c *camera) opener() func(attempt int) (capture.Source, error) {
	memory := &rtsp.TransportMemory{}
	return func(int) (capture.Source, error) {
		return rtsp.New(rtsp.Options{
			URL: c.cfg.URL.Reveal(), Username: c.cfg.Username, Password: c.cfg.Password.Reveal(),
			TLS:       rtsp.TLS{CA: c.cfg.TLS.CA, Fingerprint: c.cfg.TLS.Fingerprint, SkipVerify: !c.cfg.TLS.Verify},
			Transport: rtsp.Transport(c.cfg.Transport), Memory: memory,
			VideoTrack:     c.cfg.Track(),
			ConnectTimeout: c.cfg.ConnectTimeout, UserAgent: "edgecam/" + c.p.version, Logger: c.logger,
		})
	}
}

// newDecoder makes the decoder of a session; the one before is closed by then.
func (c *camera) newDecoder(info capture.StreamInfo) (capture.Decoder, error) {
	o := decode.Options{
		Camera: c.id, Info: info, Decoder: c.cfg.Decoder, Library: c.p.codecs, Seq: c.seq,
		Budget: c.p.budget, Node: -1, Lock: c.p.cfg.Memory.Lock, HugePages: c.p.cfg.Memory.HugePages,
		CPU: c.p.software, System: c.p.ffmpeg, Installed: c.p.board, Logger: c.p.logger,
	}
	c.gpu().serve(&o)
	d, err := decode.New(o)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.decoder != nil {
		for reason, n := range c.decoder.Stats().Dropped {
			c.lost[reason] += n
		}
	}
	c.decoder, c.skipping = d, schedule.SkipNothing
	return d, nil
}
