package infer

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Bounds of what a model may ask for: beyond them lies a damaged file, not a
// detector.
const (
	maxSide    = 8192
	maxClasses = 10000
)

// Metadata is what a model says of itself in metadata_props.
type Metadata struct {
	Labels []string
	Input  InputSpec
	NHWC   bool // the input is [N,height,width,3] instead of [N,3,height,width]
}

// ParseMetadata reads the keys of the family "boxes-scores": one output of
// boxes in input pixels, one of scores between 0 and 1. Every key but task and
// scale is needed; an error names the key.
//
//	names            JSON list of the classes' labels
//	family           boxes-scores
//	task             detect (the default)
//	input_size       JSON [width, height] in pixels
//	input_layout     NCHW or NHWC
//	color_order      RGB or BGR
//	mean, std        JSON [c0, c1, c2] in the order of color_order
//	scale            factor on the samples 0..255 before mean and std (default 1)
//	letterbox        center or top_left
//	letterbox_pad    sample value of the padding, 0..255
//	box_format       xyxy
//	box_units        input_pixels
//	scores_activated true
func ParseMetadata(props map[string]string) (Metadata, error) {
	p := properties{values: props}
	p.want("family", "boxes-scores")
	if _, ok := props["task"]; ok {
		p.want("task", "detect")
	}
	p.want("box_format", "xyxy")
	p.want("box_units", "input_pixels")
	p.want("scores_activated", "true")

	m := Metadata{Labels: p.labels("names"), NHWC: p.oneOf("input_layout", "NCHW", "NHWC") == 1}
	m.Input.Width, m.Input.Height = p.size("input_size")
	m.Input.Order = ColorOrder(p.oneOf("color_order", "RGB", "BGR"))
	m.Input.Align = Align(p.oneOf("letterbox", "center", "top_left"))
	m.Input.Pad = p.number("letterbox_pad", 0, 255)
	m.Input.Mean, m.Input.Std = p.normalisation()
	if p.err != nil {
		return Metadata{}, p.err
	}
	return m, nil
}

// properties reads values until the first error.
type properties struct {
	values map[string]string
	err    error
}

func (p *properties) fail(key, format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("metadata %s: %s", key, fmt.Sprintf(format, args...))
	}
}

func (p *properties) get(key string) string {
	v, ok := p.values[key]
	if !ok {
		p.fail(key, "is missing")
	}
	return strings.TrimSpace(v)
}

func (p *properties) want(key, value string) { p.oneOf(key, value) }

// oneOf gives the place of the value in choices.
func (p *properties) oneOf(key string, choices ...string) int {
	v := p.get(key)
	for i, c := range choices {
		if v == c {
			return i
		}
	}
	p.fail(key, "is %s, edgecam knows %s", clip(v), strings.Join(choices, ", "))
	return 0
}

func (p *properties) number(key string, low, high float64) float32 {
	v, err := strconv.ParseFloat(p.get(key), 64)
	if err != nil || !(v >= low && v <= high) {
		p.fail(key, "is %s, wanted a number from %v to %v", clip(p.values[key]), low, high)
	}
	return float32(v)
}

func (p *properties) labels(key string) []string {
	var labels []string
	if err := json.Unmarshal([]byte(p.get(key)), &labels); err != nil {
		p.fail(key, "is no JSON list of labels: %v", err)
		return nil
	}
	if len(labels) == 0 || len(labels) > maxClasses {
		p.fail(key, "holds %d labels, wanted 1 to %d", len(labels), maxClasses)
	}
	for i, l := range labels {
		if labels[i] = strings.TrimSpace(l); labels[i] == "" {
			p.fail(key, "label %d is empty", i)
		}
	}
	return labels
}

func (p *properties) size(key string) (width, height int) {
	var sides []int
	if err := json.Unmarshal([]byte(p.get(key)), &sides); err != nil || len(sides) != 2 {
		p.fail(key, "is %s, wanted [width, height]", clip(p.values[key]))
		return 0, 0
	}
	for _, s := range sides {
		if s < 1 || s > maxSide {
			p.fail(key, "side %d is not between 1 and %d", s, maxSide)
		}
	}
	return sides[0], sides[1]
}

// normalisation folds scale into mean and std:
// (sample*scale − mean)/std = (sample − mean/scale)/(std/scale).
func (p *properties) normalisation() (mean, std [3]float32) {
	scale := 1.0
	if _, ok := p.values["scale"]; ok {
		scale = float64(p.number("scale", 1e-6, 1e6))
	}
	m, s := p.triple("mean"), p.triple("std")
	if p.err != nil {
		return mean, std
	}
	for c := range 3 {
		mean[c], std[c] = float32(m[c]/scale), float32(s[c]/scale)
		// Beyond these a sample of 0..255 becomes infinite or the same for all.
		if !(std[c] >= 1e-6 && std[c] <= 1e6) {
			p.fail("std", "channel %d is %v (scale %v), wanted 1e-6 to 1e6", c, s[c], scale)
		}
		if !(mean[c] >= -1e6 && mean[c] <= 1e6) {
			p.fail("mean", "channel %d is %v (scale %v), wanted -1e6 to 1e6", c, m[c], scale)
		}
	}
	return mean, std
}

func (p *properties) triple(key string) []float64 {
	var v []float64
	if err := json.Unmarshal([]byte(p.get(key)), &v); err != nil || len(v) != 3 {
		p.fail(key, "is %s, wanted three numbers", clip(p.values[key]))
		return make([]float64, 3)
	}
	return v
}

// clip quotes a value, shortened to what fits a line.
func clip(v string) string {
	const longest = 60
	if len(v) > longest {
		v = v[:longest] + "…"
	}
	return strconv.Quote(v)
}
