package decode

import (
	"errors"
	"fmt"
	"slices"

	"edgecam/capture"
	"edgecam/platform/avcodec"
)

// engine is one way to decode the stream.
type engine struct {
	name      string // FFmpeg's decoder
	nvdec     bool   // by the GPU that FFmpeg's accelerator works on: frames in its memory
	installed bool   // by hardware that FFmpeg's decoder brings along: frames copied into the pool
}

// hardware says that another engine can take over when this one fails.
func (e engine) hardware() bool { return e.nvdec || e.installed }

func (e engine) String() string {
	if e.nvdec {
		return e.name + " (nvdec)"
	}
	return e.name
}

// engines are the ways to decode that the options allow, best first. own is
// FFmpeg's own decoder of the codec.
func engines(o *Options, own string) ([]engine, error) {
	switch o.Decoder {
	case "", "auto":
		return automatic(o, own), nil
	case "software":
		return []engine{{name: own}}, nil
	case "nvdec":
		if o.CUDA == nil {
			reason := "no NVIDIA GPU is in use"
			if o.NoCUDA != "" {
				reason = o.NoCUDA
			}
			return nil, &capture.UnsupportedError{What: "decoder nvdec", Hint: reason + "; set decoder to auto or software"}
		}
		return []engine{{name: own, nvdec: true}}, nil
	}
	return []engine{{name: o.Decoder}}, nil
}

func automatic(o *Options, own string) (out []engine) {
	// A GPU's decoder has a few hundred sessions at most and takes 50 ms to
	// set up. JPEG is cheap to decode, and cameras send it in few pictures a second.
	if o.CUDA != nil && o.Info.Codec != capture.MJPEG {
		out = append(out, engine{name: own, nvdec: true})
	}
	if o.Installed {
		for _, suffix := range []string{"_nvv4l2dec", "_v4l2m2m"} {
			has := func(i avcodec.DecoderInfo) bool { return i.Name == own+suffix }
			if slices.ContainsFunc(o.Library.Decoders(), has) {
				out = append(out, engine{name: own + suffix, installed: true})
			}
		}
	}
	return append(out, engine{name: own})
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
	dec, err := d.opts.Library.NewDecoder(a)
	if err != nil {
		return err
	}
	d.dec, d.health = dec, health{}
	d.info.Name = e.String()
	return nil
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
	case errors.As(err, &he):
		return refused(he.Reason)
	case errors.As(err, &oe) && oe.Err == nil:
		return &capture.UnsupportedError{What: "decoder " + oe.Decoder, Hint: oe.Why + "; set decoder to auto"}
	}
	return fmt.Errorf("open decoder for camera %s: %w", d.opts.Camera, err)
}

// refused is the end of a session that may decode on the GPU only.
func refused(reason string) error {
	return &capture.UnsupportedError{What: "decoder nvdec", Hint: reason + "; set decoder to auto or software"}
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
