package ort

import (
	"errors"
	"fmt"
	"slices"

	"edgecam/infer"
	"edgecam/platform/onnxruntime"
)

// inputPort is the tensor of pictures.
type inputPort struct {
	name          string
	element       onnxruntime.ElementType
	width, height int
	nhwc          bool // [height,width,channels] instead of [channels,height,width]
	batched       bool // the batch is its first dimension
}

// shape is that of a batch of n.
func (p *inputPort) shape(n int) []int64 {
	dims := []int64{3, int64(p.height), int64(p.width)}
	if p.nhwc {
		dims = []int64{int64(p.height), int64(p.width), 3}
	}
	if !p.batched {
		return dims
	}
	return append([]int64{int64(n)}, dims...)
}

// direct says that the tensor holds what infer.InputSpec describes.
func (p *inputPort) direct() bool { return p.element == onnxruntime.Float32 && !p.nhwc }

// values are those of an image.
func (p *inputPort) values() int { return 3 * p.width * p.height }

// outputPort is an output that is read.
type outputPort struct {
	name    string
	element onnxruntime.ElementType
	place   int     // among the outputs as the decoder counts them
	dims    []int64 // of one image where batched, else all; nil = each run tells
	values  int     // numbers of dims
	batched bool    // the batch is its first dimension
}

// shape is that of a batch of n.
func (p *outputPort) shape(n int) []int64 {
	if !p.batched {
		return p.dims
	}
	return append([]int64{int64(n)}, p.dims...)
}

// part gives what belongs to image i of all that a run of n images gave.
func (p *outputPort) part(all []float32, i, n int) []float32 {
	if !p.batched {
		return all
	}
	each := p.values
	if p.dims == nil {
		each = len(all) / n
	}
	return all[i*each : (i+1)*each]
}

// encode gives an image as the tensor takes it.
func (m *model) encode(image []float32) []byte {
	b := make([]byte, len(image)*m.input.element.Size())
	m.input.convert(b, image)
	return b
}

// fitsGPU says why a card cannot serve the model.
func (m *model) fitsGPU() error {
	if m.input.nhwc || m.input.element != onnxruntime.Float32 && m.input.element != onnxruntime.Float16 {
		return fmt.Errorf("input %s: pictures are prepared on the card as float32 or float16 [N,3,height,width] alone", m.input.name)
	}
	if m.layout != nil && m.layout.Kind == infer.EndToEnd && m.layout.At.Image >= 0 && m.batch != 1 {
		return errors.New("rows that say which image they are of are read one image at a time")
	}
	for i := range m.outputs {
		if p := &m.outputs[i]; p.dims == nil {
			return fmt.Errorf("output %s: its size is known after each run only, a card's memory is laid out before", p.name)
		}
	}
	return nil
}

// boxesPort and scoresPort are the places of the tensors of boxes and of scores
// among the outputs that are read.
func (m *model) boxesPort() int { return m.portAt(m.boxesPlace()) }

func (m *model) boxesPlace() int {
	if m.layout == nil || m.layout.Kind == infer.Heads {
		return 0
	}
	return m.layout.Outputs.Boxes
}

func (m *model) scoresPort() int {
	switch {
	case m.layout == nil:
		return 1
	case m.layout.Kind == infer.Split:
		return m.portAt(m.layout.Outputs.Scores)
	}
	return m.boxesPort()
}

func (m *model) portAt(place int) int {
	return max(0, slices.IndexFunc(m.outputs, func(p outputPort) bool { return p.place == place }))
}
