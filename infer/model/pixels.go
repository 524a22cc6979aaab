package model

import (
	"fmt"
	"strings"

	"edgecam/infer"
	"edgecam/infer/model/onnx"
)

// convention is how a family's networks are fed.
type convention struct {
	order     infer.ColorOrder
	mean, std [3]float32 // of samples 0..255
	align     infer.Align
	who       string
}

// all gives every channel the same number.
func all(v float32) [3]float32 { return [3]float32{v, v, v} }

// imageNet are the mean and deviation of ImageNet's pictures, for samples 0..255.
func imageNet() (mean, std [3]float32) {
	return [3]float32{0.485 * 255, 0.456 * 255, 0.406 * 255}, [3]float32{0.229 * 255, 0.224 * 255, 0.225 * 255}
}

func conventionOf(family string) convention {
	c := convention{order: infer.RGB, mean: all(0), std: all(255), who: family + " is trained with"}
	switch family {
	case NanoDet:
		c.order, c.mean, c.std = infer.BGR, [3]float32{103.53, 116.28, 123.675}, [3]float32{57.375, 57.12, 58.395}
	case YOLOX:
		c.order, c.std, c.align = infer.BGR, all(1), infer.TopLeft
	case FastestDet:
		c.order = infer.BGR
	case RFDETR:
		c.mean, c.std = imageNet()
	case SSDTensorFlow:
		c.std = all(1)
	case SSDPriors:
		c.mean, c.std = all(127), all(128)
	}
	return c
}

// padding is the sample outside of the picture: the grey that YOLO's letterbox has.
const padding = 114

// pixels says how samples become the input's numbers.
func (in *inspector) pixels() {
	s := &in.rep.Spec
	if s.Family == BoxesScores {
		in.overridePixels()
		return
	}
	c := conventionOf(s.Family)
	i := &s.Input
	i.Order, i.Mean, i.Std, i.Align, i.Pad = c.order, c.mean, c.std, c.align, padding
	colour, evidence, certainty := orderName(c.order), c.who+" this order of channels", Convention
	if in.swapsChannels() {
		evidence += "; the graph turns them round itself"
	}
	in.find("color", colour, evidence, certainty)
	in.normalisation(c)
	in.find("letterbox", alignName(i.Align), c.who+" this", Convention)
	in.overridePixels()
}

func orderName(o infer.ColorOrder) string {
	if o == infer.BGR {
		return "BGR"
	}
	return "RGB"
}

func alignName(a infer.Align) string {
	if a == infer.TopLeft {
		return "top_left"
	}
	return "center"
}

// normalisation asks the graph, and else takes what the family is trained with.
func (in *inspector) normalisation(c convention) {
	i := &in.rep.Spec.Input
	say := func(evidence string, certainty Certainty) {
		in.find("normalisation", normalisationText(i.Mean, i.Std), evidence, certainty)
	}
	if i.Type == "uint8" {
		i.Mean, i.Std = all(0), all(1)
		say("the input takes bytes", FromShape)
		return
	}
	switch scale, offset, evidence := in.scaling(i.Name); {
	case evidence == "":
		say(c.who+" this, and the graph does not normalise", Convention)
	case scale < 0.05 || offset > 3: // brings 0..255 into a small range, or takes away a mean of such samples
		i.Mean, i.Std = all(0), all(1)
		say("the graph normalises samples of 0..255 itself: "+evidence, FromShape)
	default:
		i.Mean, i.Std = all(0), all(255)
		say("the graph normalises fractions of 0..1 itself: "+evidence, FromShape)
	}
}

func normalisationText(mean, std [3]float32) string {
	// As many digits as files state: 1/255 as a float32 makes 254.99998 of 255.
	m, s := fmt.Sprintf("%.6g", mean), fmt.Sprintf("%.6g", std)
	switch {
	case mean == all(0) && std == all(1):
		return "samples 0..255 as they are"
	case mean == all(0) && s == fmt.Sprintf("%.6g", all(255)):
		return "samples / 255"
	}
	return fmt.Sprintf("(sample − %s) / %s", m, s)
}

// scaling reads the constant factor and offset that the graph applies to the pictures before anything else.
func (in *inspector) scaling(value string) (scale, offset float64, evidence string) {
	scale = 1
	var steps []string
	for range 12 {
		n := in.onlyUser(value)
		if n == nil || len(n.Outputs) == 0 {
			break
		}
		switch n.Op {
		case "Sub", "Add", "Div", "Mul":
			v, ok := in.besidesConstant(n, value)
			if !ok {
				return scale, offset, strings.Join(steps, ", ")
			}
			scale, offset = apply(n.Op, v, scale, offset)
			steps = append(steps, fmt.Sprintf("%s %.5g", n.Op, v))
		case "BatchNormalization":
			steps = append(steps, "BatchNormalization")
		default:
			if !moves(n.Op) && n.Op != "Gather" && n.Op != "Resize" && n.Op != "Clip" && n.Op != "Pad" {
				return scale, offset, strings.Join(steps, ", ")
			}
		}
		value = n.Outputs[0]
	}
	return scale, offset, strings.Join(steps, ", ")
}

// apply follows one step. offset is the sample that becomes 0, as a magnitude.
func apply(op string, v, scale, offset float64) (float64, float64) {
	switch op {
	case "Div":
		return scale / v, offset
	case "Mul":
		return scale * v, offset
	case "Add":
		v = -v
	}
	return scale, max(offset, v/scale)
}

// onlyUser is the node that reads a value, where it is one alone.
func (in *inspector) onlyUser(value string) (only *onnx.Node) {
	several := false
	in.users(value, func(n *onnx.Node) {
		if n.Op == "Shape" {
			return
		}
		several, only = only != nil, n
	})
	if several {
		return nil
	}
	return only
}

// besidesConstant is the constant that a node combines a value with; the mean of one for each channel.
func (in *inspector) besidesConstant(n *onnx.Node, value string) (float64, bool) {
	if len(n.Inputs) != 2 {
		return 0, false
	}
	other := n.Inputs[0]
	if other == value {
		other = n.Inputs[1]
	} else if n.Op == "Sub" || n.Op == "Div" {
		return 0, false
	}
	v := in.g.numbers(other, 16)
	if len(v) != 1 && len(v) != 3 {
		return 0, false
	}
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	sum /= float64(len(v))
	return sum, sum != 0
}

// swapsChannels tells whether the graph itself turns RGB round.
func (in *inspector) swapsChannels() bool {
	value := in.rep.Spec.Input.Name
	for range 6 {
		n := in.onlyUser(value)
		if n == nil || len(n.Outputs) == 0 {
			return false
		}
		if n.Op == "Gather" {
			v := in.g.numbers(n.Input(1), 3)
			return len(v) == 3 && v[0] == 2 && v[1] == 1 && v[2] == 0
		}
		value = n.Outputs[0]
	}
	return false
}

// suppression says what becomes of overlapping boxes.
func (in *inspector) suppression() {
	n, o := &in.rep.Spec.NMS, &in.o
	n.IoU, n.ClassAgnostic = o.IoU, o.ClassAgnostic
	value, evidence, c := "of each class", "the graph leaves overlapping boxes", FromShape
	if n.Inside {
		value, evidence = "inside the graph", "its outputs are finished detections"
	}
	if n.ClassAgnostic {
		value, evidence, c = "of all classes together", "inference.model.nms.class_agnostic", FromConfig
	}
	in.find("nms", value, evidence, c)
}
