package decode

import (
	"strings"
	"time"

	"edgecam/framepool"
	"edgecam/platform/avcodec"
)

// WithEngines makes the decoder go through these decoders of FFmpeg's, which all
// but the last pass for hardware. An error from fail is what those answer to unit
// n, counted from 0.
func (o Options) WithEngines(fail func(n int64) error, names ...string) Options {
	for i, name := range names {
		o.engines = append(o.engines, engine{name: name, installed: i < len(names)-1})
	}
	o.fail = func(e engine, u *unit) error {
		if !e.installed {
			return nil
		}
		return fail(u.key)
	}
	return o
}

// WithGuard puts pages beside the slots that nobody may touch.
func (o Options) WithGuard(g framepool.Guard) Options {
	o.guard = g
	return o
}

// Within bounds the setting up and the closing of a decoder.
func (c *Closer) Within(limit time.Duration) *Closer {
	c.limit = limit
	return c
}

// WithTimeout bounds calls into the system's FFmpeg.
func (o Options) WithTimeout(t time.Duration) Options {
	o.timeout = t
	return o
}

// Engines are the decoders that the options stand for, best first.
func Engines(o Options) string {
	own, _ := softwareDecoder(o.Info.Codec)
	list, _, err := engines(&o, own)
	if err != nil {
		return err.Error()
	}
	var names []string
	for _, e := range list {
		names = append(names, e.String())
	}
	return strings.Join(names, ", ")
}

// External is the error of a GPU that fails, Invalid that of a broken stream.
func External() error { return &avcodec.Error{Code: -0x20545845, Text: "external"} }

// Invalid see External.
func Invalid() error { return &avcodec.Error{Code: -0x41444e49, Text: "invalid"} }

// Take counts a decoder, as opening one does.
func (c *Closer) Take() (end func(), err error) { return c.take() }

// Later calls f in its turn, as closing a decoder does.
func (c *Closer) Later(f, then func()) { c.later(f, then) }
