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
	Decoder     string           // "auto" or "" and "software": FFmpeg's own; else the name of one of FFmpeg's
	Library     *avcodec.Library
	Seq         *atomic.Uint64   // numbers the frames of the camera across its sessions; nil = from 1
	Logger      *slog.Logger     // nil discards
	Now         func() time.Time // It defaults to time.Now.
}

const defaultReaderSlots = 6

// Decoder decodes one session of one camera.
type Decoder struct {
	opts Options
	name string // FFmpeg's
	dec  *avcodec.Decoder
	log  *slog.Logger
	now  func() time.Time

	pools  pools
	units  pending
	gate   gate
	filter filter
	lines  lineLimiter
	next   int64 // PTS of the next unit
	emit   func(*framepool.Frame)
	take   func(*avcodec.Picture) // d.picture, bound once

	counts counts
	info   capture.DecoderInfo
	closed bool
}

var _ capture.Decoder = (*Decoder)(nil)

// New opens a decoder for the stream. The error is an *capture.UnsupportedError
// for a codec that edgecam does not take and for a decoder that FFmpeg lacks.
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
	d := &Decoder{opts: o, name: own, log: o.Logger, now: o.Now}
	if o.Decoder != "" && o.Decoder != "auto" && o.Decoder != "software" {
		d.name = o.Decoder
	}
	d.setUp()
	dec, err := o.Library.NewDecoder(avcodec.Options{
		Decoder: d.name, Codec: own, Extradata: d.filter.parameterSets(o.Info.ParameterSets),
		Threads: o.Threads, Allocate: d.pools.allocate,
	})
	var oe *avcodec.OpenError
	if errors.As(err, &oe) && oe.Err == nil {
		return nil, &capture.UnsupportedError{What: "decoder " + oe.Decoder, Hint: oe.Why + "; set decoder to auto"}
	}
	if err != nil {
		return nil, fmt.Errorf("open decoder for camera %s: %w", o.Camera, err)
	}
	d.dec = dec
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
	d.pools = pools{opts: &d.opts, need: &d.filter.need, log: d.log}
	d.filter = newFilter(codec)
	d.gate = gate{codec: codec, open: codec == capture.MJPEG}
	d.lines = lineLimiter{log: d.log, now: d.now}
	d.take = d.picture
	d.info = capture.DecoderInfo{Name: d.name, Memory: "heap"}
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
	d.emit = emit
	if err := d.prepare(au); err != nil {
		return err
	}
	parts := d.filter.parts(au.NALUs)
	if len(parts) == 0 {
		d.emit = nil
		return nil
	}
	u := d.begin(au)
	err := d.dec.Decode(avcodec.Unit{Parts: parts, StartCodes: d.gate.codec != capture.MJPEG, PTS: u.key}, d.take)
	err = d.judge(u, err)
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

// begin notes what is known of the unit until its picture comes out.
func (d *Decoder) begin(au *capture.AccessUnit) *unit {
	u, old := d.units.add(d.next, au)
	d.next++
	d.settle(&old)
	d.gate.arrive(u)
	// Before a random access point broken references are the rule, and a gradual
	// refresh mends them: there libavcodec must make the best of it. From it on
	// what is not whole must not pass.
	d.dec.Strict(!d.gate.lenient && (d.gate.open || u.randomAccess))
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
	case errors.As(err, new(*capture.UnsupportedError)):
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
	d.gate.draining = true
	if err := d.dec.Drain(d.take); err != nil {
		d.log.Debug("drain decoder", "err", err)
	}
	d.gate.draining = false
	for i := range d.units.ring {
		d.settle(&d.units.ring[i])
	}
	d.units.clear()
	d.gate.dirty = false
}

// picture is called for every picture that libavcodec gives, in display order.
func (d *Decoder) picture(p *avcodec.Picture) {
	u := d.units.find(p.PTS)
	if u == nil {
		return // its unit was given up before
	}
	if reason := d.gate.judge(p, u); reason != "" {
		if reason == DropDamaged {
			d.lose(u, reason)
		} else if !u.settled {
			u.settled = true
			d.counts.drop(reason)
		}
		return
	}
	u.settled = true
	d.publish(p, u)
}

func (d *Decoder) publish(p *avcodec.Picture, u *unit) {
	pool, readers := d.pools.find(p.Ring)
	m := framepool.Meta{
		Camera: d.opts.Camera, Seq: d.opts.Seq.Add(1),
		Format: poolFormat(p.Format), Width: p.Width, Height: p.Height, Offset: p.Offset, Stride: p.Stride,
		Range: colourRange(p), Matrix: matrix(p),
		Received: u.received, Decoded: d.now(), CapturedAt: u.capturedAt, RTPTime: u.rtpTime, KeyFrame: p.Key,
	}
	d.info.Width, d.info.Height, d.info.PixelFormat = p.Width, p.Height, p.Format.String()
	if p.Readers >= readers {
		d.counts.drop(DropReaders)
		return
	}
	f := pool.Adopt(p.Slot, p.Gen, m)
	d.counts.frames.Add(1)
	d.counts.copied.Add(outside(pool, f))
	d.emit(f)
}

// outside counts the bytes of f's planes that do not lie in the pool.
func outside(pool *framepool.Pool, f *framepool.Frame) (n uint64) {
	for i := range f.Meta().Format.Planes() {
		if b := f.Plane(i); !pool.Contains(b) {
			n += uint64(len(b))
		}
	}
	return n
}

// Info implements capture.Decoder.
func (d *Decoder) Info() capture.DecoderInfo {
	info := d.info
	info.Memory = d.pools.memory()
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
	d.dec.Close()
	d.pools.close()
}
