package decode

import (
	"errors"

	"edgecam/capture"
	"edgecam/platform/avcodec"
)

// health is what is known of a hardware engine: whether it works at all.
type health struct {
	works    bool // a picture has come
	started  bool // a unit that decoding can start at has gone in
	silent   int  // units since then, or since the last picture
	failures int  // units in a row that decoding could start at and that it failed at
}

const (
	// maxFailures ends an engine that had worked: one failure may be the stream's.
	maxFailures = 2
	// maxSilent is more than any decoder holds back: 16 pictures in fields, and
	// the queues of hardware.
	maxSilent = 64
)

// errLost says that the GPU's owner has given it up.
var errLost = errors.New("the GPU was lost")

// errSilent says that units go in and nothing comes out.
var errSilent = errors.New("no picture came from it")

// verdict gives the error for which the engine must be left, nil if it may go on.
func (h *health) verdict(e engine, u *unit, err error) error {
	if !e.hardware() {
		return nil
	}
	if errors.Is(err, errLost) {
		return errLost
	}
	if he := new(avcodec.HardwareError); errors.As(err, &he) {
		return he
	}
	if h.started = h.started || u.randomAccess; h.started {
		h.silent++
	}
	if h.silent > maxSilent {
		return errSilent
	}
	if !u.randomAccess {
		return nil
	}
	if !enginesFault(e, err) {
		h.failures = 0
		return nil
	}
	if h.failures++; !h.works || h.failures >= maxFailures {
		return err
	}
	return nil
}

// enginesFault tells failures of the hardware from damage of the stream.
func enginesFault(e engine, err error) bool {
	var ae *avcodec.Error
	if errors.Is(err, avcodec.ErrClosed) {
		return true
	}
	if !errors.As(err, &ae) {
		return false
	}
	return ae.External() || (e.installed || e.system != nil) && !ae.Invalid()
}

// picture notes that one came.
func (h *health) picture() { h.works, h.silent = true, 0 }

// run decodes the unit, with the next engine where one fails: the same unit
// is fed to it, so that nothing is lost.
func (d *Decoder) run(u *unit, parts [][]byte) error {
	for {
		var err error
		cause := d.gone()
		if cause == nil {
			err = d.feed(u, parts)
			cause = d.health.verdict(d.engines[0], u, err)
		}
		if cause == nil {
			return err
		}
		if len(d.engines) == 1 {
			return d.giveUp(cause)
		}
		if err := d.fallBack(u, cause); err != nil {
			return err
		}
		if u.settled {
			return nil // its picture came before the failure
		}
	}
}

// gone says whether the GPU that decodes is lost.
func (d *Decoder) gone() error {
	if !d.engines[0].nvdec {
		return nil
	}
	select {
	case <-d.opts.Lost:
		return errLost
	default:
		return nil
	}
}

// shut closes the engine. A GPU that is lost may never answer: then the closing
// is left to itself, like the call that the GPU's owner gave up.
func (d *Decoder) shut() {
	if d.gone() != nil {
		go d.dec.Close()
		return
	}
	d.dec.Close()
}

// giveUp ends the session of a decoder that has no other engine.
func (d *Decoder) giveUp(cause error) error {
	if he := new(avcodec.HardwareError); errors.As(cause, &he) {
		return refused(d.engines[0].option(), he.Reason)
	}
	return refused(d.engines[0].option(), cause.Error())
}

// fallBack takes the next engine in place of the first.
func (d *Decoder) fallBack(u *unit, cause error) error {
	d.note(cause)
	// What a decoder holds that only refused a new geometry is whole. One that
	// failed has nothing to say any more, and may hang.
	if d.engines[0].nvdec && errors.As(cause, new(*avcodec.HardwareError)) {
		d.drain()
	}
	d.dec.Lines(d.lines.line)
	d.shut()
	d.engines = d.engines[1:]
	if err := d.openFirst(); err != nil {
		return err
	}
	d.gate.soil = false
	if !u.randomAccess || u.settled {
		d.gate.close(u.key, u.received) // its references went with the old engine
		u.waiting = !d.gate.open
	}
	return nil
}

// feed gives the unit to the engine.
func (d *Decoder) feed(u *unit, parts [][]byte) error {
	d.dec.Blocks(d.filter.block)
	// Before a random access point broken references are the rule, and a gradual
	// refresh mends them: there libavcodec must make the best of it. From it on
	// what is not whole must not pass.
	d.dec.Strict(!d.gate.lenient && (d.gate.open || d.gate.suspect || u.randomAccess))
	if q := d.turnstile(); q != nil {
		t := Turn{Received: u.received, SetUp: d.engines[0].nvdec && !d.health.works}
		if !d.queued.enter(q, t, d.opts.Lost) {
			return errLost
		}
		defer q.Leave(t)
	}
	if d.opts.fail != nil {
		if err := d.opts.fail(d.engines[0], u); err != nil {
			return err
		}
	}
	return d.dec.Decode(avcodec.Unit{Parts: parts, StartCodes: d.gate.codec != capture.MJPEG, PTS: u.key}, d.take)
}
