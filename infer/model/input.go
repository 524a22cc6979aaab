package model

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"edgecam/infer/model/onnx"
)

// maxSide bounds the input: beyond it lies a damaged file, not a detector.
const maxSide = 8192

// input finds the tensor of pictures and its form.
func (in *inspector) input() bool {
	v := in.pictures()
	if v == nil {
		return false
	}
	i := &in.rep.Spec.Input
	i.Name, i.Type, i.Shape = v.Name, v.Type.String(), ints(v.Dims)
	if !slices.Contains([]onnx.Type{onnx.Float32, onnx.Float16, onnx.Uint8}, v.Type) {
		in.refuse("input %s is %v: edgecam feeds float32, float16 and uint8", v.Name, v.Type)
		return false
	}
	if !in.layout(v) || !in.sides(v) {
		return false
	}
	switch batch := v.Dims[0]; {
	case !strings.HasPrefix(i.Layout, "N"):
		i.Batch = 1
		in.find("batch", "1", fmt.Sprintf("input %s takes one picture, without a batch", name(v)), FromShape)
	case batch < 0:
		in.find("batch", "free", fmt.Sprintf("input %s leaves it open", name(v)), FromShape)
	case batch == 0 || batch > 1024:
		in.refuse("input %s: a batch of %d", name(v), batch)
		return false
	default:
		i.Batch = int(batch)
		in.find("batch", fmt.Sprint(batch), fmt.Sprintf("input %s fixes it", name(v)), FromShape)
	}
	return true
}

// name is a value with its type and shape, as in images float32[1,3,640,640].
func name(v *onnx.Value) string {
	if !v.Shaped {
		return fmt.Sprintf("%s %v", v.Name, v.Type)
	}
	var dims []string
	for i, d := range v.Dims {
		switch {
		case d >= 0:
			dims = append(dims, fmt.Sprint(d))
		case v.Names[i] != "":
			dims = append(dims, v.Names[i])
		default:
			dims = append(dims, "?")
		}
	}
	return fmt.Sprintf("%s %v[%s]", v.Name, v.Type, strings.Join(dims, ","))
}

func names(values []onnx.Value) string {
	var all []string
	for i := range values {
		all = append(all, name(&values[i]))
	}
	return strings.Join(all, ", ")
}

func ints(dims []int64) []int {
	out := make([]int, len(dims))
	for i, d := range dims {
		out[i] = int(min(d, 1<<31-1))
	}
	return out
}

// pictures finds which of the inputs takes pictures, and one that takes their sizes.
func (in *inspector) pictures() *onnx.Value {
	inputs := in.model.Graph.Inputs
	var found []*onnx.Value
	for i := range inputs {
		v := &inputs[i]
		switch {
		case len(v.Dims) == 4 || len(v.Dims) == 3:
			found = append(found, v)
		case sizesInput(v) && in.rep.Spec.Input.Sizes == nil:
			// Keras says (height, width), and calls it a shape.
			in.rep.Spec.Input.Sizes = &SizesInput{Name: v.Name, Type: v.Type.String(), HeightFirst: strings.Contains(strings.ToLower(v.Name), "shape")}
		default:
			in.refuse("has an input %s: edgecam feeds pictures, and perhaps their sizes [batch,2]%s", name(v), in.foreignInput(v.Name))
			return nil
		}
	}
	switch {
	case len(inputs) == 0:
		in.refuse("has no inputs")
		return nil
	case len(found) == 0:
		in.refuse("has no input of pictures: %s", names(inputs))
		return nil
	case len(found) > 1:
		in.refuse("has %d inputs that could be pictures (%s): edgecam feeds one", len(found), names(inputs))
		return nil
	}
	if s := in.rep.Spec.Input.Sizes; s != nil {
		in.find("sizes", s.Name, "a second input of [batch,2] asks for the pictures' sizes: it is fed the input's own", FromShape)
	}
	return found[0]
}

func sizesInput(v *onnx.Value) bool {
	n := strings.ToLower(v.Name)
	return len(v.Dims) == 2 && (v.Dims[1] == 2 || v.Dims[1] < 0) && (strings.Contains(n, "size") || strings.Contains(n, "shape")) &&
		slices.Contains([]onnx.Type{onnx.Int64, onnx.Int32, onnx.Float32}, v.Type)
}

// layout finds where the channels stand.
func (in *inspector) layout(v *onnx.Value) bool {
	i := &in.rep.Spec.Input
	rank := len(v.Dims)
	first, last := v.Dims[rank-3], v.Dims[rank-1]
	prefix := strings.Repeat("N", rank-3)
	evidence := fmt.Sprintf("input %s", name(v))
	c := FromShape
	switch want := strings.ToUpper(in.o.Layout); {
	case first == 3 && last != 3:
		i.Layout = prefix + "CHW"
	case last == 3 && first != 3:
		i.Layout = prefix + "HWC"
	case first > 0 && last > 0 && first != 3 && last != 3:
		in.refuse("input %s has no three channels: edgecam feeds colour pictures", name(v))
		return false
	case want != "":
		i.Layout = prefix + strings.TrimPrefix(want, "N")
		c, evidence = FromConfig, "inference.model.input.layout"
	case in.startsTransposed(v.Name):
		i.Layout, evidence = prefix+"HWC", "the graph begins by moving the channels forward"
	case first < 0 && in.convolved(v.Name):
		i.Layout, evidence = prefix+"CHW", "the first convolution reads three channels there"
	default:
		in.ask("inference.model.input.layout", fmt.Sprintf("input %s does not tell where the channels stand", name(v)), "NCHW", "NHWC")
		return false
	}
	if want := strings.TrimPrefix(strings.ToUpper(in.o.Layout), "N"); want != "" && want != strings.TrimPrefix(i.Layout, "N") {
		in.refuse("inference.model.input.layout is %s, but input %s is %s", in.o.Layout, name(v), i.Layout)
		return false
	}
	in.find("layout", i.Layout, evidence, c)
	return true
}

// users calls fn for every node that reads a value.
func (in *inspector) users(value string, fn func(*onnx.Node)) {
	for i := range in.model.Graph.Nodes {
		if n := &in.model.Graph.Nodes[i]; slices.Contains(n.Inputs, value) {
			fn(n)
		}
	}
}

func (in *inspector) startsTransposed(input string) (yes bool) {
	in.users(input, func(n *onnx.Node) {
		perm := n.Ints("perm")
		yes = yes || n.Op == "Transpose" && (slices.Equal(perm, []int64{0, 3, 1, 2}) || slices.Equal(perm, []int64{2, 0, 1}))
	})
	return yes
}

func (in *inspector) convolved(input string) (yes bool) {
	in.users(input, func(n *onnx.Node) {
		if t := in.g.fixed[n.Input(1)]; n.Op == "Conv" && t != nil && len(t.Dims) == 4 {
			yes = t.Dims[1] == 3
		}
	})
	return yes
}

// sides finds the size to feed.
func (in *inspector) sides(v *onnx.Value) bool {
	i := &in.rep.Spec.Input
	at := len(v.Dims) - 2 // of the height
	if strings.HasSuffix(i.Layout, "HWC") {
		at--
	}
	height, width := v.Dims[at], v.Dims[at+1]
	i.DynamicSize = height < 0 || width < 0
	for _, side := range []int64{height, width} {
		if side == 0 || side > maxSide {
			in.refuse("input %s: a side of %d is not between 1 and %d", name(v), side, maxSide)
			return false
		}
	}
	want, from, c := in.wantedSize()
	if !i.DynamicSize {
		i.Width, i.Height = int(width), int(height)
		if in.o.Width > 0 && (in.o.Width != i.Width || in.o.Height != i.Height) {
			in.refuse("inference.model.input.size is [%d, %d], but input %s fixes [%d, %d]", in.o.Width, in.o.Height, name(v), i.Width, i.Height)
			return false
		}
		in.find("size", fmt.Sprintf("%d×%d", i.Width, i.Height), fmt.Sprintf("input %s fixes it", name(v)), FromShape)
		return true
	}
	for k, declared := range [2]int64{width, height} {
		if declared >= 0 && int64(want[k]) != declared {
			if c == FromConfig {
				in.refuse("inference.model.input.size is [%d, %d], but input %s fixes a side of %d", want[0], want[1], name(v), declared)
				return false
			}
			want[k] = int(declared)
		}
	}
	i.Width, i.Height = want[0], want[1]
	in.find("size", fmt.Sprintf("%d×%d", i.Width, i.Height), fmt.Sprintf("input %s leaves it open; %s", name(v), from), c)
	return true
}

// wantedSize is the size for an input that leaves it open.
func (in *inspector) wantedSize() (size [2]int, from string, c Certainty) {
	if in.o.Width > 0 {
		return [2]int{in.o.Width, in.o.Height}, "inference.model.input.size", FromConfig
	}
	for _, key := range []string{"input_size", "imgsz"} {
		var v []int
		if side, err := strconv.Atoi(strings.TrimSpace(in.rep.Metadata[key])); err == nil {
			v = []int{side, side}
		} else if json.Unmarshal([]byte(in.rep.Metadata[key]), &v) != nil {
			continue
		}
		if len(v) != 2 || min(v[0], v[1]) < 1 || max(v[0], v[1]) > maxSide {
			continue
		}
		if key == "imgsz" { // height first
			v[0], v[1] = v[1], v[0]
		}
		return [2]int{v[0], v[1]}, "metadata " + key, Stated
	}
	return [2]int{640, 640}, "most detectors are trained with 640×640: inference.model.input.size sets another", Convention
}
