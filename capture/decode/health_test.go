package decode

import (
	"errors"
	"testing"

	"edgecam/platform/avcodec"
)

func TestHealth(t *testing.T) {
	external, invalid := External(), Invalid()
	odd := &avcodec.Error{Code: -5, Text: "input/output error"}
	refusal := &avcodec.HardwareError{Reason: "full"}
	nvdec, installed := engine{name: "h264", nvdec: true}, engine{name: "h264_v4l2m2m", installed: true}
	key, delta := &unit{randomAccess: true}, &unit{}
	for _, c := range []struct {
		name   string
		engine engine
		health health
		unit   *unit
		err    error
		want   error
	}{
		{"whole", nvdec, health{}, key, nil, nil},
		{"refusal", nvdec, health{works: true}, delta, refusal, refusal},
		{"failure at the first start", nvdec, health{}, key, external, external},
		{"failure before a start", nvdec, health{}, delta, external, nil},
		{"first failure of one that worked", nvdec, health{works: true}, key, external, nil},
		{"second failure", nvdec, health{works: true, failures: 1}, key, external, external},
		{"broken stream", nvdec, health{failures: 1}, key, invalid, nil},
		{"odd error of the gpu", nvdec, health{}, key, odd, nil},
		{"odd error of installed hardware", installed, health{}, key, odd, odd},
		{"broken stream at installed hardware", installed, health{}, key, invalid, nil},
		{"closed underneath", installed, health{}, key, avcodec.ErrClosed, avcodec.ErrClosed},
		{"software fails", engine{name: "h264"}, health{}, key, external, nil},
		{"silent for long", installed, health{started: true, silent: maxSilent}, delta, nil, errSilent},
		{"silent before a start", nvdec, health{silent: maxSilent}, delta, nil, nil},
		{"silent for a while", nvdec, health{started: true, silent: maxSilent - 1}, delta, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := c.health
			if got := h.verdict(c.engine, c.unit, c.err); !errors.Is(got, c.want) || (got == nil) != (c.want == nil) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
	h := health{started: true, silent: maxSilent}
	h.picture()
	if err := h.verdict(nvdec, delta, nil); err != nil || !h.works {
		t.Errorf("after a picture: %v", err)
	}
}
