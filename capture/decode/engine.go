package decode

import (
	"errors"
	"fmt"
	"slices"

	"edgecam/capture"
	"edgecam/platform"
	"edgecam/platform/avcodec"
	"edgecam/platform/sysav"
)

// engine is one way to decode the stream.
type engine struct {
	name      string // FFmpeg's decoder
	nvdec     bool   // by the GPU that FFmpeg's accelerator works on: frames in its memory
	installed bool   // by hardware that FFmpeg's decoder brings along: frames copied into the pool

	// system is the machine's own FFmpeg, where ours lacks the decoder. Frames are
	// copied into the pool, too.
	system *sysav.Library
}

// hardware says that another engine can take over when this one fails.
func (e engine) hardware() bool { return e.nvdec || e.installed || e.system != nil }

// blind says that the engine is hardware that tells nothing of damage, and calls
// every picture a key picture.
func (e engine) blind() bool {
	if e.system != nil {
		info, _ := e.system.Decoder(e.name)
		return info.Hardware
	}
	return e.installed
}

func (e engine) String() string {
	switch {
	case e.nvdec:
		return e.name + " (nvdec)"
	case e.system != nil:
		return fmt.Sprintf("%s (system FFmpeg %d)", e.name, e.system.Major())
	}
	return e.name
}

// codec is a decoder of FFmpeg's, ours or the system's.
type codec interface {
	Decode(u avcodec.Unit, fn func(*avcodec.Picture)) error
	Drain(fn func(*avcodec.Picture)) error
	Reopen(extradata [][]byte) error
	Strict(on bool)
	Blocks(size int)
	Lines(fn func(avcodec.Line))
	Close()
}

// engines are the ways to decode that the options allow, best first, and why the
// best one that there could be is not among them. own is FFmpeg's own decoder of
// the codec.
func engines(o *Options, own string) (list []engine, note string, err error) {
	switch o.Decoder {
	case "", "auto":
		list, note = automatic(o, own)
		return list, note, nil
	case "software":
		return []engine{{name: own}}, "", nil
	case "nvdec":
		if o.CUDA == nil {
			reason := "no NVIDIA GPU is in use"
			if o.NoCUDA != "" {
				reason = o.NoCUDA
			}
			return nil, "", refused("nvdec", reason)
		}
		return []engine{{name: own, nvdec: true}}, "", nil
	}
	return named(o)
}

// named is the decoder of a name, of the system's FFmpeg where ours has none.
func named(o *Options) ([]engine, string, error) {
	if o.System == nil || has(o.Library, o.Decoder) {
		return []engine{{name: o.Decoder}}, "", nil
	}
	system, err := o.System.Find(o.Decoder)
	if err != nil {
		return nil, "", refused(o.Decoder, absence(err))
	}
	return []engine{{name: o.Decoder, system: system}}, "", nil
}

// absence puts into words why the system's FFmpeg does not serve.
func absence(err error) string {
	var ue *platform.UnavailableError
	if oe := new(avcodec.OpenError); errors.As(err, &oe) {
		return oe.Why
	}
	if errors.As(err, &ue) {
		return "the system's FFmpeg: " + ue.Error() + "; " + ue.Hint
	}
	return err.Error()
}

func has(l *avcodec.Library, decoder string) bool {
	return slices.ContainsFunc(l.Decoders(), func(i avcodec.DecoderInfo) bool { return i.Name == decoder })
}

func automatic(o *Options, own string) (out []engine, note string) {
	// A GPU's decoder has a few hundred sessions at most and takes 50 ms to
	// set up. JPEG is cheap to decode, and cameras send it in few pictures a second.
	if o.CUDA != nil && o.Info.Codec != capture.MJPEG {
		out = append(out, engine{name: own, nvdec: true})
	}
	if o.Installed {
		var more []engine
		more, note = installed(o, own)
		out = append(out, more...)
	}
	return append(out, engine{name: own}), note
}

// installed are the decoders of a board's hardware. NVIDIA's is worth a word where
// it is missing.
func installed(o *Options, own string) (out []engine, note string) {
	for _, name := range []string{own + "_nvv4l2dec", own + "_v4l2m2m"} {
		if has(o.Library, name) {
			out = append(out, engine{name: name, installed: true})
			continue
		}
		if o.System == nil || o.Info.Codec == capture.MJPEG {
			continue
		}
		switch system, err := o.System.Find(name); {
		case err == nil:
			out = append(out, engine{name: name, system: system})
		case note == "" && len(out) == 0:
			note = "not decoded by " + name + ": " + absence(err)
		}
	}
	return out, note
}

// openFirst opens the first engine that opens, from d.engines[0] on.
func (d *Decoder) openFirst() error {
	for {
		err := d.openEngine()
		if err == nil {
			return nil
		}
		if len(d.engines) == 1 {
			return d.openFailed(err)
		}
		d.note(err)
		d.engines = d.engines[1:]
	}
}

func (d *Decoder) openEngine() error {
	e := d.engines[0]
	a := avcodec.Options{
		Decoder: e.name, Codec: d.codec, Extradata: d.sets(), Threads: d.opts.Threads, Allocate: d.pools.allocate,
	}
	if e.nvdec {
		a.Hardware, a.Surfaces = d.opts.CUDA, d.surfaces.size
	}
	if e.system != nil {
		return d.openSystem(e)
	}
	if e.nvdec {
		return d.openOnCard(e, a)
	}
	dec, err := d.opts.Library.NewDecoder(a)
	if err != nil {
		return err
	}
	d.begins(e, dec)
	return nil
}

func (d *Decoder) openOnCard(e engine, a avcodec.Options) error {
	if isLost(d.opts.Lost) {
		return errLost
	}
	end, err := d.opts.Closer.take()
	if err != nil {
		return err
	}
	dec, err := d.opts.Library.NewDecoder(a)
	if err != nil {
		end()
		return err
	}
	d.begins(e, dec)
	d.lease = &lease{closer: d.opts.Closer, close: dec.Close, ended: end}
	d.surfaces.lease = d.lease
	return nil
}

func (d *Decoder) openSystem(e engine) error {
	dec, err := e.system.NewDecoder(sysav.Options{
		Decoder: e.name, Codec: d.codec, Extradata: d.sets(), Threads: d.opts.Threads, Allocate: d.pools.allocate,
		Shape:   func(sets [][]byte) sysav.Shape { return shapeOf(d.opts.Info.Codec, sets) },
		Timeout: d.opts.timeout,
	})
	if err != nil {
		return err
	}
	d.begins(e, dec)
	return nil
}

// begins puts dec to work.
func (d *Decoder) begins(e engine, dec codec) {
	d.dec, d.lease, d.failed, d.health = dec, nil, false, health{}
	d.pools.copies.Store(e.system != nil)
	d.gate.late = e.blind() && d.gate.codec != capture.MJPEG
	d.gate.strict = d.gate.late
	d.info.Name = e.String()
}

// sets are the parameter sets that are known: the description's, or those that
// have come since.
func (d *Decoder) sets() [][]byte {
	if now := d.filter.sets(); len(now) > 0 {
		return now
	}
	return d.described
}

func (d *Decoder) openFailed(err error) error {
	var (
		oe *avcodec.OpenError
		he *avcodec.HardwareError
	)
	switch {
	case errors.Is(err, errLost):
		return &capture.CardLostError{}
	case errors.As(err, &he):
		return refused(d.engines[0].option(), he.Reason)
	case errors.As(err, &oe) && oe.Err == nil:
		return &capture.UnsupportedError{What: "decoder " + oe.Decoder, Hint: oe.Why + "; set decoder to auto"}
	}
	return fmt.Errorf("open decoder for camera %s: %w", d.opts.Camera, err)
}

// option is the word of the configuration that means the engine alone.
func (e engine) option() string {
	if e.nvdec {
		return "nvdec"
	}
	return e.name
}

// refused is the end of a session that may decode in one way only.
func refused(option, reason string) error {
	return &capture.UnsupportedError{What: "decoder " + option, Hint: reason + "; set decoder to auto or software"}
}

// note keeps why the first engine is not the one that decodes.
func (d *Decoder) note(err error) {
	reason := err.Error()
	if he := new(avcodec.HardwareError); errors.As(err, &he) {
		reason = he.Reason
	}
	if d.info.Note == "" {
		d.info.Note = "not decoded by " + d.engines[0].String() + ": " + reason
	}
	d.log.Warn("another decoder takes over", "from", d.engines[0].String(), "to", d.engines[1].String(), "reason", reason)
}
