package preprocess

import (
	"fmt"

	"edgecam/framepool"
	"edgecam/infer"
)

// maxPlans bounds the tables that a CPU keeps. Each is about 8 kB for a
// 416-pixel input; cameras of one site have a handful of geometries.
const maxPlans = 64

// CPU fills input tensors on the processor. It belongs to one goroutine at a
// time.
type CPU struct {
	spec    infer.InputSpec
	norms   [3]norm // of R, G and B
	pad     [3]float32
	channel [3]int   // the tensor's plane of R, G and B
	plans   []*plan  // most recently used first
	ys      []uint32 // a row of weighted codes: Y,
	uvs     []uint64 // Cb and Cr
	vectors bool     // the processor runs the assembly
}

// NewCPU returns a CPU for the inputs of one engine.
func NewCPU(spec infer.InputSpec) *CPU {
	c := &CPU{spec: spec, channel: [3]int{0, 1, 2}, vectors: haveVectors()}
	if spec.Order == infer.BGR {
		c.channel = [3]int{2, 1, 0}
	}
	norms, pad := newNorms(spec)
	for i, ch := range c.channel {
		c.norms[i] = norms[ch]
	}
	c.pad = pad
	n := max(spec.Width, 0)
	c.ys, c.uvs = make([]uint32, n), make([]uint64, n)
	return c
}

// Run writes the picture of f into dst, which must hold exactly
// 3*Height*Width values, and returns where it lies there. All of dst is
// written. It borrows f, reads the planes in place and allocates nothing once it
// has met the frame's geometry.
func (c *CPU) Run(f *framepool.Frame, dst []float32) (Transform, error) {
	m := f.Meta()
	p, err := c.check(f, m, len(dst))
	if err != nil {
		return Transform{}, fmt.Errorf("preprocess picture %d of camera %s: %w", m.Seq, m.Camera, err)
	}
	k := newConverter(newColor(m.Format.BitDepth(), m.Range, m.Matrix), &c.norms, c.vectors)
	size := c.spec.Width * c.spec.Height
	var planes [3][]float32
	for i := range planes {
		planes[i] = dst[i*size : (i+1)*size]
		c.fillAround(planes[i], c.pad[i], p)
	}
	ys, uvs := c.ys[:p.width], c.uvs[:p.width]
	rp, gp, bp := planes[c.channel[0]], planes[c.channel[1]], planes[c.channel[2]]
	for i := range p.height {
		at := (p.y+i)*c.spec.Width + p.x
		end := at + p.width
		p.gatherLuma(ys, f, i)
		if !p.colour {
			k.convertGray(rp[at:end], gp[at:end], bp[at:end], ys)
			continue
		}
		p.gatherChroma(uvs, f, i)
		k.convert(rp[at:end], gp[at:end], bp[at:end], ys, uvs)
	}
	return p.transform, nil
}

// check refuses what Run would not survive and gives the frame's tables.
func (c *CPU) check(f *framepool.Frame, m *framepool.Meta, length int) (*plan, error) {
	switch {
	case c.spec.Width < 1 || c.spec.Height < 1:
		return nil, fmt.Errorf("input of %dx%d has no room for a picture", c.spec.Width, c.spec.Height)
	case length != 3*c.spec.Width*c.spec.Height:
		return nil, fmt.Errorf("tensor holds %d values, want %d", length, 3*c.spec.Width*c.spec.Height)
	case m.Format.Planes() == 0:
		return nil, fmt.Errorf("pixel format %s is not supported", m.Format)
	case m.Width < 1 || m.Height < 1:
		return nil, fmt.Errorf("picture of %dx%d is empty", m.Width, m.Height)
	case f.Memory() == framepool.MemoryDevice:
		return nil, fmt.Errorf("picture lies in device memory, out of the processor's reach")
	}
	return c.plan(shape{m.Width, m.Height, m.Format}), nil
}

// plan finds or makes the tables of a shape and puts them first.
func (c *CPU) plan(s shape) *plan {
	for i, p := range c.plans {
		if p.shape == s {
			copy(c.plans[1:i+1], c.plans[:i])
			c.plans[0] = p
			return p
		}
	}
	if len(c.plans) < maxPlans {
		c.plans = append(c.plans, nil)
	}
	copy(c.plans[1:], c.plans)
	p := newPlan(s, c.spec)
	if c.vectors {
		p.vectorise()
	}
	c.plans[0] = p
	return p
}

// fillAround writes the padding of one channel plane.
func (c *CPU) fillAround(dst []float32, v float32, p *plan) {
	w, h := p.width, p.height
	fill(dst[:p.y*c.spec.Width], v)
	fill(dst[(p.y+h)*c.spec.Width:], v)
	if w == c.spec.Width {
		return
	}
	for y := p.y; y < p.y+h; y++ {
		row := dst[y*c.spec.Width:][:c.spec.Width]
		fill(row[:p.x], v)
		fill(row[p.x+w:], v)
	}
}

// fill sets all of s by copying what is already set, which runs at memory
// speed; a loop over values does not, as the compiler has no vector stores. The
// source stays small enough for the first cache.
func fill(s []float32, v float32) {
	const chunk = 2048
	head := s[:min(len(s), chunk)]
	if len(head) == 0 {
		return
	}
	head[0] = v
	for n := 1; n < len(head); n *= 2 {
		copy(head[n:], head[:n])
	}
	for rest := s[len(head):]; len(rest) > 0; {
		rest = rest[copy(rest, head):]
	}
}
