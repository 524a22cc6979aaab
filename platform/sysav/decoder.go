//go:build linux && (amd64 || arm64)

package sysav

import (
	"errors"
	"fmt"
	"strconv"

	"edgecam/platform/avcodec"
)

// Decoder decodes one stream. It belongs to one goroutine at a time.
type Decoder struct {
	lib      *Library
	opts     Options
	s        *session // nil once closed
	squeezed bool     // see checkup

	sets   sets
	shape  Shape
	fresh  bool // no unit since it was opened
	strict bool
	under  order

	ring      *ring
	refused   error  // what Allocate said, during a call
	format    string // that nobody takes, during a call
	exhausted int64
	lost      bool // a picture of the call was lost for want of a slot
	picture   avcodec.Picture
}

// NewDecoder opens a decoder. The error is an *avcodec.OpenError, or a
// *avcodec.HardwareError where the decoder does not answer or fails the test picture.
func (l *Library) NewDecoder(o Options) (*Decoder, error) {
	if o.Allocate == nil {
		panic("sysav: Options.Allocate is nil")
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.Shape == nil {
		o.Shape = func([][]byte) Shape { return Shape{} }
	}
	info, ok := l.Decoder(o.Decoder)
	switch {
	case !ok:
		return nil, &avcodec.OpenError{Decoder: o.Decoder, Why: "libavcodec " + l.version + " at " + l.path + " has no such decoder"}
	case o.Codec != "" && info.Codec != o.Codec:
		return nil, &avcodec.OpenError{Decoder: o.Decoder, Why: "it does not decode " + o.Codec}
	case l.hanging() >= maxStuck:
		return nil, &avcodec.HardwareError{Reason: fmt.Sprintf("%d calls of %s hang; restart the program, or the machine", l.hanging(), l.path)}
	}
	d := &Decoder{lib: l, opts: o, sets: sets{codec: info.Codec}}
	if info.Hardware {
		c := l.checkup(o.Decoder, o.Timeout)
		if c.err != nil {
			l.failed(o.Decoder, c)
			return nil, d.hardware(c.err)
		}
		d.squeezed = c.squeezed
	}
	d.sets.learn(o.Extradata)
	if err := d.open(); err != nil {
		return nil, err
	}
	return d, nil
}

// hardware is the end of a decoder whose stream can go on with another one.
func (d *Decoder) hardware(err error) error {
	var ae *avcodec.Error
	if errors.As(err, &ae) {
		return &avcodec.OpenError{Decoder: d.opts.Decoder, Why: "libavcodec refused", Err: err}
	}
	if errors.Is(err, errHung) {
		err = fmt.Errorf("%w within %s", errHung, d.opts.Timeout)
	}
	return &avcodec.HardwareError{Reason: err.Error()}
}

// settingsOf are the options of a context. Frame threads would hold a picture a
// thread back. Damaged pictures come out, flagged: the caller drops them.
func settingsOf(shape Shape, threads int) []setting {
	out := []setting{
		{"flags", "+unaligned+output_corrupt"},
		{"thread_type", "slice"},
		{"threads", strconv.Itoa(max(threads, 1))},
		// V4L2's decoders convert our times by one of these.
		{"time_base", "1/1000000"},
		{"pkt_timebase", "1/1000000"},
	}
	if shape.Width > 0 {
		out = append(out,
			setting{"video_size", fmt.Sprintf("%dx%d", shape.Width, shape.Height)},
			setting{"pixel_format", "yuv420p"})
	}
	return out
}

func (d *Decoder) open() error {
	d.shape = d.opts.Shape(d.sets.known)
	d.fresh, d.under = true, order{}
	s, err := d.lib.newSession(d.opts.Decoder, settingsOf(d.shape, d.opts.Threads), d.opts.Timeout)
	if err != nil {
		err = d.hardware(s.explain(err))
		s.close()
		return err
	}
	d.s = s
	if d.strict {
		s.strict(true)
	}
	return nil
}

// Decode gives u to the decoder and calls fn for every picture that has come out,
// in display order; it does not wait for u's own. The error speaks of this unit: an
// *avcodec.Error, avcodec.ErrExhausted, an *avcodec.FormatError, an
// *avcodec.HardwareError (then only Close may follow), or what Allocate returned.
func (d *Decoder) Decode(u avcodec.Unit, fn func(*avcodec.Picture)) error {
	if d.s == nil {
		return fmt.Errorf("decode: %w", avcodec.ErrClosed)
	}
	d.refused, d.format, d.lost = nil, "", false
	if err := d.follow(u.Parts, fn); err != nil {
		return err
	}
	parts := d.sets.with(u.Parts, d.fresh)
	if len(parts) == 0 {
		return nil
	}
	if code := d.s.load(parts, u.StartCodes, d.under.send(u.PTS)); code < 0 {
		return fmt.Errorf("copy an access unit: %w", d.lib.errorOf(code))
	}
	d.fresh = false
	return d.verdict(d.exchange(fn))
}

// follow opens the decoder anew where the pictures change their shape: NVIDIA's
// keeps memory of the size that the first picture had.
func (d *Decoder) follow(parts [][]byte, fn func(*avcodec.Picture)) error {
	if !d.sets.learn(parts) || d.opts.Shape(d.sets.known) == d.shape {
		return nil
	}
	if !d.fresh {
		if _, err := d.finish(fn); err != nil {
			return d.hardware(err)
		}
	}
	return d.reopen()
}

// exchange sends the unit that is loaded and takes the pictures that are there. It
// gives the first error code of libavcodec.
func (d *Decoder) exchange(fn func(*avcodec.Picture)) (first int32, err error) {
	// A decoder that is full takes nothing before it has given something; one that
	// does neither breaks libavcodec's contract.
	for range maxPending {
		code, err := d.s.do(jobSend)
		if err != nil {
			return 0, err
		}
		if code < 0 && code != tryAgain {
			first = code
		}
		n, failed, err := d.receive(fn)
		if err != nil {
			return 0, err
		}
		if first == 0 {
			first = failed
		}
		if !d.s.loaded || n == 0 && failed == 0 {
			break
		}
	}
	if d.s.loaded {
		return 0, errors.New("it neither takes a unit nor gives a picture")
	}
	return first, d.under.late()
}

// receive takes all pictures that are there.
func (d *Decoder) receive(fn func(*avcodec.Picture)) (n int, first int32, err error) {
	for range maxPending {
		code, err := d.s.do(jobReceive)
		if err != nil {
			return n, first, err
		}
		switch {
		case code == tryAgain || code == endOfFile:
			return n, first, nil
		case code < 0:
			if first == 0 {
				first = code
			}
			continue
		}
		n++
		d.show(fn)
	}
	return n, first, nil
}

// finish ends the stream and takes what the decoder holds back.
func (d *Decoder) finish(fn func(*avcodec.Picture)) (int32, error) {
	if _, err := d.s.do(jobEnd); err != nil {
		return 0, err
	}
	_, first, err := d.receive(fn)
	return first, err
}

// show copies the picture that was received into a slot and calls fn.
func (d *Decoder) show(fn func(*avcodec.Picture)) {
	p := d.s.read()
	pts, ok := d.under.come(p.pts)
	switch {
	case !ok:
		return // nobody knows what it is a picture of
	case p.format == avcodec.FormatNone:
		d.format = p.name
		return
	case !p.whole():
		d.lost = true
		return
	}
	if !d.allocate(requestFor(&p)) {
		return
	}
	slot, generation, ok := d.ring.take()
	if !ok {
		d.exhausted++
		d.lost = true
		return
	}
	r := d.ring
	defer r.give(slot)
	d.picture = avcodec.Picture{
		Ring: r.ID, Slot: slot, Gen: generation, Copied: r.write(slot, &p),
		Format: p.format, Width: p.width, Height: p.height, Offset: r.request.Offset, Stride: r.request.Stride,
		FullRange: p.full, Matrix: p.matrix, PTS: pts, Key: p.key, Intra: p.intra, Corrupt: p.corrupt, Damaged: p.damaged,
	}
	d.colour(&p)
	d.picture.Readers = r.readers(slot)
	fn(&d.picture)
}

// colour fills in what a decoder does not tell of colours and the stream does.
func (d *Decoder) colour(p *picture) {
	o := &d.picture
	if d.shape.Width == 0 {
		return
	}
	o.FullRange = o.FullRange || d.shape.Full
	if d.squeezed {
		o.FullRange = false
	}
	if p.matrix == avcodec.MatrixUnspecified {
		o.Matrix = d.shape.Matrix
	}
}

func (d *Decoder) allocate(q avcodec.Request) bool {
	if d.ring != nil && d.ring.fits(q) {
		return true
	}
	d.ring = nil // whatever the answer, no slot of it is taken again
	r, err := d.opts.Allocate(q)
	if err == nil && (r.Slots <= 0 || r.SlotStride < q.Size || r.Base == 0 || r.Words == 0) {
		err = fmt.Errorf("a ring of %d slots of %d bytes for pictures of %d", r.Slots, r.SlotStride, q.Size)
	}
	if err != nil {
		d.refused = err
		return false
	}
	d.ring = &ring{Ring: r, request: q}
	return true
}

func (d *Decoder) verdict(code int32, err error) error {
	switch {
	case err != nil:
		return d.hardware(err)
	case d.format != "":
		return &avcodec.FormatError{Format: d.format}
	case d.refused != nil:
		return fmt.Errorf("allocate pictures: %w", d.refused)
	case d.lost:
		return avcodec.ErrExhausted
	case code < 0:
		return d.lib.errorOf(code)
	}
	return nil
}

// Drain calls fn for the pictures that the decoder holds back, and makes it ready
// for a new start. A decoder that works beside its caller, as NVIDIA's does, may
// keep its last ones for itself.
func (d *Decoder) Drain(fn func(*avcodec.Picture)) error {
	if d.s == nil {
		return fmt.Errorf("drain decoder: %w", avcodec.ErrClosed)
	}
	d.refused, d.format, d.lost = nil, "", false
	code, err := d.finish(fn)
	if err != nil {
		return d.hardware(err)
	}
	if err := d.reopen(); err != nil {
		return err
	}
	return d.verdict(code, nil)
}

// Reopen starts the decoder anew, with the parameter sets given if none have been
// seen. Pictures that it holds back are lost: Drain first. After an error the
// decoder is closed.
func (d *Decoder) Reopen(extradata [][]byte) error {
	if d.s == nil {
		return fmt.Errorf("reopen decoder: %w", avcodec.ErrClosed)
	}
	if len(d.sets.known) == 0 {
		d.sets.learn(extradata)
	}
	return d.reopen()
}

// reopen makes a new context: not every decoder can be flushed.
func (d *Decoder) reopen() error {
	if d.s.lost {
		return d.hardware(errHung)
	}
	d.s.close()
	d.s = nil
	return d.open()
}

// Strict says what becomes of a unit that is not whole: on, it is an error.
func (d *Decoder) Strict(on bool) {
	if d.s != nil && !d.s.lost && d.strict != on {
		d.strict = on
		d.s.strict(on)
	}
}

// Blocks does nothing: pictures are copied, and what a decoder's own memory held
// before is not known.
func (d *Decoder) Blocks(int) {}

// Exhausted counts the pictures that were lost for want of a free slot.
func (d *Decoder) Exhausted() int64 { return d.exhausted }

// Lines calls fn for every log line about this decoder since the call before.
func (d *Decoder) Lines(fn func(avcodec.Line)) {
	if d.s == nil || d.s.lost {
		return
	}
	for _, line := range logs.take(d.s.context) {
		fn(line)
	}
}

// Close gives back all that the decoder holds, as far as it answers. It may be
// called twice.
func (d *Decoder) Close() {
	if d.s == nil {
		return
	}
	d.s.close()
	d.s = nil
}
