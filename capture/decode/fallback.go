package decode

import (
	"errors"

	"edgecam/capture"
	"edgecam/platform/avcodec"
	"edgecam/platform/cuda"
)

// health is what is known of a hardware engine: whether it works at all.
type health struct {
	works    bool // a picture has come
	setUp    bool // a unit that decoding can start at was taken: the GPU's decoder is set up
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
			if cause = d.fatal(err); cause == nil {
				cause = d.health.verdict(d.engines[0], u, err)
			}
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

// gone says whether the GPU that decodes is lost, or its context is to this decoder:
// neither may be called any more.
func (d *Decoder) gone() error {
	if !d.engines[0].nvdec {
		return nil
	}
	if d.failed || isLost(d.opts.Lost) {
		return errLost
	}
	return nil
}

func isLost(lost <-chan struct{}) bool {
	select {
	case <-lost:
		return true
	default:
		return false
	}
}

// fatal gives the error of a call after which the GPU's context serves no more, and
// tells the card before anybody makes the next one.
func (d *Decoder) fatal(err error) error {
	var de *avcodec.DriverError
	if !d.engines[0].nvdec || !errors.As(err, &de) {
		return nil
	}
	sticky := cuda.StickyNamed(de.Call, de.Name, de.Text)
	if sticky == nil {
		return nil
	}
	d.failed = true
	d.opts.Closer.failed(sticky)
	if d.opts.Closer != nil && d.opts.Closer.lost() {
		return errLost
	}
	return sticky
}

// shut closes the engine, the GPU's in its turn and without waiting for it.
func (d *Decoder) shut() {
	if d.lease == nil {
		d.dec.Close()
		return
	}
	d.lease.end()
	d.dec, d.lease = shutDown{}, nil
}

// shutDown stands for a decoder that is not the session's any more.
type shutDown struct{}

func (shutDown) Decode(avcodec.Unit, func(*avcodec.Picture)) error { return avcodec.ErrClosed }
func (shutDown) Drain(func(*avcodec.Picture)) error                { return avcodec.ErrClosed }
func (shutDown) Reopen([][]byte) error                             { return avcodec.ErrClosed }
func (shutDown) Strict(bool)                                       {}
func (shutDown) Blocks(int)                                        {}
func (shutDown) Lines(func(avcodec.Line))                          {}
func (shutDown) Close()                                            {}

// giveUp ends the session of a decoder that has no other engine.
func (d *Decoder) giveUp(cause error) error {
	if errors.Is(cause, errLost) || d.failed {
		return &capture.CardLostError{}
	}
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
		t := Turn{Received: u.received, SetUp: d.engines[0].nvdec && !d.health.works && !d.health.setUp}
		leave := d.queued.enter(q, t, d.opts.Lost)
		if leave == nil {
			return errLost
		}
		defer leave()
		if t.SetUp {
			defer d.opts.Closer.bound("set up decoder")()
		}
		if err := d.gone(); err != nil { // while the turn came
			return err
		}
	}
	if d.opts.fail != nil {
		if err := d.opts.fail(d.engines[0], u); err != nil {
			return err
		}
	}
	err := d.dec.Decode(avcodec.Unit{Parts: parts, StartCodes: d.gate.codec != capture.MJPEG, PTS: u.key}, d.take)
	d.health.setUp = d.health.setUp || err == nil && u.randomAccess
	return err
}
