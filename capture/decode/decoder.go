package decode

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"edgecam/capture"
	"edgecam/framepool"
	"edgecam/platform/avcodec"
	"edgecam/platform/sysav"
)

// Options of a decoder.
type Options struct {
	Camera      string             // id, for frames, pools and logs
	Info        capture.StreamInfo // Codec and ParameterSets matter here
	Budget      *framepool.Budget  // nil counts nothing
	ReaderSlots int                // frames that readers may hold at once. It defaults to 6
	Node        int                // NUMA node for the pool, -1 for any
	Lock        bool               // keep pools in RAM
	HugePages   bool
	Mapper      framepool.Mapper // nil means no GPU
	Threads     int              // slice threads. It defaults to 1: cameras rarely cut slices, and cameras are many
	Library     *avcodec.Library

	// Decoder is "auto" or "" (the GPU, else an installed hardware decoder, else
	// software), "software", "nvdec" (the GPU or nothing), or the name of one of
	// FFmpeg's decoders.
	Decoder   string
	CUDA      *avcodec.HardwareDevice // the GPU that decodes. It may be nil
	NoCUDA    string                  // why CUDA is nil, for the user
	Lost      <-chan struct{}         // closed when the GPU does not answer any more. It may be nil
	Closer    *Closer                 // of the GPU. nil = its decoders are closed at once
	Installed bool                    // auto tries FFmpeg's nvv4l2dec and v4l2m2m decoders: for a Jetson
	System    *sysav.System           // the machine's FFmpeg, for decoders that Library lacks. It may be nil
	Queue     Turnstile               // passed around each call that may wait for the GPU's decoder. It may be nil
	CPU       Turnstile               // passed around each call that decodes in software. It may be nil

	Seq    *atomic.Uint64   // numbers the frames of the camera across its sessions; nil = from 1
	Logger *slog.Logger     // nil discards
	Now    func() time.Time // It defaults to time.Now.

	engines []engine                      // for tests: in place of those that Decoder means
	fail    func(e engine, u *unit) error // for tests: the engine's answer to a unit
	timeout time.Duration                 // for tests: of calls into System's decoders
	guard   framepool.Guard               // for tests: pages beside the slots that fault
}

const defaultReaderSlots = 6

// Decoder decodes one session of one camera.
type Decoder struct {
	opts      Options
	codec     string   // FFmpeg's name
	engines   []engine // the one in use and those that can take over
	described [][]byte // parameter sets of the session's description
	dec       codec
	lease     *lease // of dec where the GPU decodes, nil elsewhere
	failed    bool   // the engine's context serves no more calls
	health    health
	log       *slog.Logger
	now       func() time.Time

	pools    pools
	surfaces surfaces
	units    pending
	gate     gate
	filter   filter
	lines    lineLimiter
	skip     skipper
	next     int64 // PTS of the next unit
	shown    int64 // that of the last one whose picture was published
	emit     func(*framepool.Frame)
	take     func(*avcodec.Picture) // d.picture, bound once

	counts counts
	queued queued
	info   capture.DecoderInfo
	closed bool
}

var _ capture.Decoder = (*Decoder)(nil)

// New opens a decoder for the stream. The error is an *capture.UnsupportedError
// for a codec that edgecam does not take, for a decoder that FFmpeg lacks, and
// for "nvdec" where no GPU decodes; a *capture.CardLostError where the GPU is lost that
// "nvdec" means.
func New(o Options) (*Decoder, error) {
	own, ok := softwareDecoder(o.Info.Codec)
	if !ok {
		return nil, &capture.UnsupportedError{
			What: fmt.Sprintf("codec %q", o.Info.Codec), Hint: "set the camera to H.264, H.265 or MJPEG",
		}
	}
	if o.Library == nil {
		return nil, fmt.Errorf("open decoder for camera %s: no libavcodec", o.Camera)
	}
	o.ReaderSlots = cmp.Or(o.ReaderSlots, defaultReaderSlots)
	list, note, err := engines(&o, own)
	if err != nil {
		return nil, err
	}
	if o.engines != nil {
		list = o.engines
	}
	d := &Decoder{opts: o, codec: own, engines: list, log: o.Logger, now: o.Now}
	d.info.Note = note
	d.setUp()
	d.described = d.filter.parameterSets(o.Info.ParameterSets)
	if err := d.openFirst(); err != nil {
		return nil, err
	}
	return d, nil
}

func (d *Decoder) setUp() {
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if d.now == nil {
		d.now = time.Now
	}
	if d.opts.Seq == nil {
		d.opts.Seq = new(atomic.Uint64)
	}
	codec := d.opts.Info.Codec
	d.log = d.log.With("camera", d.opts.Camera)
	d.surfaces = surfaces{opts: &d.opts, filter: &d.filter, log: d.log}
	d.pools = pools{opts: &d.opts, need: &d.filter.need, log: d.log}
	d.filter = newFilter(codec)
	d.skip.codec = codec
	d.shown = -1
	d.gate = gate{codec: codec, open: codec == capture.MJPEG}
	d.lines = lineLimiter{log: d.log, now: d.now}
	d.take = d.picture
	d.queued.base = time.Now()
	d.counts.waiting.Store(!d.gate.open)
}

// softwareDecoder is FFmpeg's own decoder of a codec, which goes by the codec's name.
func softwareDecoder(c capture.Codec) (string, bool) {
	switch c {
	case capture.H264:
		return "h264", true
	case capture.H265:
		return "hevc", true
	case capture.MJPEG:
		return "mjpeg", true
	}
	return "", false
}

// Decode implements capture.Decoder. It is the only place where frames come out.
func (d *Decoder) Decode(au *capture.AccessUnit, emit func(*framepool.Frame)) error {
	if d.closed {
		return fmt.Errorf("decode access unit: %w", avcodec.ErrClosed)
	}
	if d.skip.leaves(au) {
		return nil
	}
	if d.skip.lost() {
		whole := *au // nothing before it is there to build on
		whole.LossBefore = true
		au = &whole
	}
	key := d.next
	err := d.decode(au, emit)
	if au.RandomAccess {
		d.skip.decoded(d.shown == key)
	}
	return err
}

func (d *Decoder) decode(au *capture.AccessUnit, emit func(*framepool.Frame)) error {
	d.emit = emit
	if err := d.prepare(au); err != nil {
		return err
	}
	parts := d.filter.parts(au.NALUs)
	if len(parts) == 0 {
		d.emit = nil
		return nil
	}
	if d.filter.stale && au.RandomAccess {
		if err := d.forget(); err != nil {
			d.emit = nil
			return err
		}
	}
	u := d.begin(au)
	err := d.judge(u, d.run(u, parts))
	if d.gate.dirty {
		d.resync()
	}
	d.emit = nil
	d.counts.waiting.Store(!d.gate.open)
	d.dec.Lines(d.lines.line)
	d.pools.reap()
	return err
}

// prepare empties libavcodec where the unit starts something new.
func (d *Decoder) prepare(au *capture.AccessUnit) error {
	if au.LossBefore && d.gate.codec != capture.MJPEG {
		d.gate.shut(d.next, au.Received)
		d.resync()
	}
	if !au.RandomAccess || !d.gate.soil {
		return nil
	}
	if e := d.engines[0]; e.nvdec || e.blind() {
		d.gate.soil = false
		return nil // it conceals in its own way, and 50 ms to set up are no trifle
	}
	// Only a new context is rid of what broken slices left behind: see
	// avcodec.Decoder.Reopen.
	d.resync()
	d.gate.soil = false
	if err := d.dec.Reopen(d.filter.sets()); err != nil {
		d.emit = nil
		return fmt.Errorf("decode access unit of camera %s: %w", d.opts.Camera, err)
	}
	return nil
}

// forget starts libavcodec anew where the parameter sets leave out what older ones
// told. Its H.264 decoder would stay with that: a camera that goes from full range
// to the usual one, and does not say so, had grey blacks for ever.
func (d *Decoder) forget() error {
	d.filter.stale = false
	if d.gone() != nil {
		return nil //nolint:nilerr // a lost card is dealt with when the unit is decoded
	}
	d.drain()
	if d.engines[0].nvdec { // one that closes and one that is set up, each in its turn
		d.dec.Lines(d.lines.line)
		d.shut()
		return d.openFirst()
	}
	if err := d.dec.Reopen(d.filter.sets()); err != nil {
		return fmt.Errorf("decode access unit of camera %s: %w", d.opts.Camera, err)
	}
	return nil
}

// begin notes what is known of the unit until its picture comes out.
func (d *Decoder) begin(au *capture.AccessUnit) *unit {
	u, old := d.units.add(d.next, au)
	d.next++
	d.settle(&old)
	d.gate.arrive(u)
	return u
}

// settle counts a unit that never gave a picture while a random access point
// was awaited.
func (d *Decoder) settle(u *unit) {
	if u.waiting && !u.settled {
		u.settled = true
		d.counts.drop(DropWaiting)
	}
}

// judge turns what libavcodec said of a unit into what that means for the
// stream.
func (d *Decoder) judge(u *unit, err error) error {
	var fe *avcodec.FormatError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &fe):
		return &capture.UnsupportedError{
			What: "pixel format " + fe.Format, Hint: "set the camera to 4:2:0, 8 or 10 bits",
		}
	case errors.As(err, new(*capture.UnsupportedError)), errors.As(err, new(*capture.CardLostError)):
		return err
	case errors.Is(err, avcodec.ErrExhausted):
		d.lose(u, DropExhausted)
	case u.waiting && !u.randomAccess:
		// Expected: its references never came.
		d.lose(u, DropWaiting)
		return nil
	default:
		d.lose(u, DropDamaged)
	}
	return fmt.Errorf("decode access unit of camera %s: %w", d.opts.Camera, err)
}

// lose counts the unit as lost, and with it what is built on it.
func (d *Decoder) lose(u *unit, reason string) {
	u.damaged = true
	if !u.settled {
		u.settled = true
		d.counts.drop(reason)
	}
	d.gate.damage(u)
}

// resync empties libavcodec, which then starts at a random access point, and
// keeps track of gradual refreshes from there. Pictures that were whole
// before still come out.
func (d *Decoder) resync() {
	if d.gate.resumes(d.engines[0]) || d.gone() != nil {
		d.gate.dirty = false
		return
	}
	d.drain()
	for i := range d.units.ring {
		d.settle(&d.units.ring[i])
	}
	d.units.clear()
	d.gate.dirty = false
}

// drain takes out what libavcodec holds back.
func (d *Decoder) drain() {
	if d.gone() != nil {
		return
	}
	d.gate.draining = true
	err := d.emptied()
	d.gate.draining = false
	if err != nil {
		d.log.Debug("drain decoder", "err", err)
	}
}

func (d *Decoder) emptied() error {
	if d.engines[0].installed {
		// FFmpeg's v4l2m2m decoders cannot be flushed: after the end of a stream
		// they stay at the end.
		return d.dec.Reopen(d.sets())
	}
	return d.dec.Drain(d.take)
}

// Info implements capture.Decoder.
func (d *Decoder) Info() capture.DecoderInfo {
	info := d.info
	info.Memory = "device"
	if !d.engines[0].nvdec {
		info.Memory = d.pools.memory()
	}
	return info
}

// Close implements capture.Decoder.
func (d *Decoder) Close() {
	if d.closed {
		return
	}
	d.closed = true
	d.dec.Lines(d.lines.line)
	d.lines.flush()
	d.shut()
	d.pools.close()
}
