package candidates

import (
	"bytes"
	"encoding/binary"
	"math"

	"edgecam/infer"
	"edgecam/platform/cuda"
)

// gpuFilter is struct Filter of candidates.cu, byte for byte.
type gpuFilter struct {
	Boxes, Scores  uint64
	Thresholds     uint64
	States         uint64
	Heads, Entries uint64
	Rows, Classes  int32
	Capacity       int32
	Stamp          uint32
	Lowest         [mostImages]uint32
}

// gpuLayout is struct LayoutFilter of candidates.cu, byte for byte.
type gpuLayout struct {
	F                      gpuFilter
	BoxValues, ScoreValues int32
	Box, Object, Score     [3]int32
	HasObject              int32
	Least, Most            float32
}

func newLayout(p *infer.FilterPlan) gpuLayout {
	strides := func(s infer.Strides) [3]int32 { return [3]int32{int32(s.At), int32(s.Row), int32(s.Value)} }
	g := gpuLayout{
		BoxValues: int32(p.BoxValues), ScoreValues: int32(p.ScoreValues),
		Box: strides(p.Box), Object: strides(p.Object), Score: strides(p.Score), Least: p.Least, Most: p.Most,
	}
	if p.HasObject {
		g.HasObject = 1
	}
	return g
}

// Bytes of the structs of candidates.cu.
const (
	layoutBytes = filterBytes + 2*4 + 3*12 + 3*4 // and none between
	filterBytes = 6*8 + 4*4 + mostImages*4
	stateBytes  = 32
	headBytes   = 32
	entryBytes  = 32
)

// point says where a filter's memory lies.
func (g *gpuFilter) point(images int, states, thresholds, results cuda.DevicePtr) {
	g.States, g.Thresholds = uint64(states), uint64(thresholds)
	g.Heads, g.Entries = uint64(results), uint64(results)+uint64(images*headBytes)
}

// newStates is what states hold before the first launch: nothing found, and no
// number so bad that another is not before it.
func newStates(n int) []byte {
	one := append(make([]byte, 8), bytes.Repeat([]byte{0xff}, 16)...)
	return bytes.Repeat(append(one, make([]byte, 8)...), n)
}

type head struct {
	count            int
	seen             uint32
	badBox, badScore infer.Suspect
	stamp            uint32
}

func readHead(b []byte) head {
	e := binary.NativeEndian
	return head{
		count: int(e.Uint32(b)), seen: e.Uint32(b[4:]),
		badBox: suspect(e.Uint64(b[8:])), badScore: suspect(e.Uint64(b[16:])), stamp: e.Uint32(b[24:]),
	}
}

// suspect unpacks an index and a value's bits.
func suspect(v uint64) infer.Suspect {
	if v == math.MaxUint64 {
		return infer.Suspect{}
	}
	return infer.Suspect{Found: true, Index: int(v >> 32), Value: math.Float32frombits(uint32(v))}
}

func readEntry(b []byte) infer.Candidate {
	e := binary.NativeEndian
	c := infer.Candidate{Row: int(e.Uint32(b)), Class: int(e.Uint32(b[4:])), Score: math.Float32frombits(e.Uint32(b[8:])), Object: math.Float32frombits(e.Uint32(b[12:]))}
	for i := range c.Box {
		c.Box[i] = math.Float32frombits(e.Uint32(b[16+4*i:]))
	}
	return c
}

// halfFrom gives the bits of the least float16 that is at least t, which is from
// 0.01 to 2.
func halfFrom(t float32) uint32 {
	b := math.Float32bits(t)
	const rest = 1<<13 - 1 // bits that float16 lacks
	half := (b>>23-127+15)<<10 | b>>13&0x3ff
	if b&rest != 0 {
		half++ // carries into the exponent where it must
	}
	return half
}
