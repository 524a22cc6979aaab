package preprocess

import (
	"errors"
	"math"

	"edgecam/framepool"
	"edgecam/platform/cuda"
)

// gpuPreview is struct Preview of kernels/preview.cu, byte for byte.
type gpuPreview struct {
	plane            [3]uint64
	out              [3]uint64
	stride           [3]int32
	strideY, strideC int32
	width, height    int32
	cwidth, cheight  int32
	planes           int32
	bytes            int32
	shift            int32
	cols, rows       int32
	stepX, stepY     float32
	cstepX, cstepY   float32
	logW, logH       int32
	cross            int32
	cbY, crY         int32
	cbCb, crCb       int32
	cbCr, crCr       int32
	black, lumaK     float32
	chromaK          float32
}

const (
	gpuPreviewBytes = 168
	previewHeader   = 384 // means_at in kernels/preview.cu
)

// previewSize is the size of the small picture of one of w×h: both sides are
// even, the last column or row of an odd picture that does not shrink is doubled.
func previewSize(w, h, limit int) (cols, rows int, shrinks bool) {
	if limit == 0 || (w+1)&^1 <= limit {
		return (w + 1) &^ 1, (h + 1) &^ 1, false
	}
	cols = limit &^ 1
	return cols, max((h*cols+w)/(2*w)*2, 2), true
}

// newGPUPreview describes the making of a small picture, but for where it goes.
func newGPUPreview(src Source, limit int) (gpuPreview, error) {
	m := src.Meta
	cols, rows, shrinks := previewSize(m.Width, m.Height, limit)
	stepX, stepY := 1.0, 1.0
	if shrinks {
		stepX, stepY = float64(m.Width)/float64(cols), float64(m.Height)/float64(rows)
	}
	g := gpuPreview{
		width: int32(m.Width), height: int32(m.Height), planes: int32(m.Format.Planes()), bytes: int32(m.Format.SampleBytes()),
		cols: int32(cols), rows: int32(rows), stepX: float32(stepX), stepY: float32(stepY),
		strideC: int32((cols/2 + 63) &^ 63),
	}
	g.strideY = 2 * g.strideC
	for i := range g.planes {
		g.plane[i], g.stride[i] = uint64(src.Planes[i]), int32(m.Stride[i])
	}
	if g.bytes == 2 {
		g.shift = 2
	}
	if m.Format == framepool.P010 {
		g.shift = 8
	}
	if g.planes > 1 {
		sx, sy := m.Format.ChromaShift()
		g.cwidth, g.cheight = int32((m.Width+1<<sx-1)>>sx), int32((m.Height+1<<sy-1)>>sy)
		// A chroma sample of the output covers 2 by 2 of its pixels.
		g.cstepX, g.cstepY = float32(2*stepX/float64(int(1)<<sx)), float32(2*stepY/float64(int(1)<<sy))
	}
	g.tone(m.Range, m.Matrix)
	return g, g.fit()
}

// tone sets how codes of the stream become JFIF's.
func (g *gpuPreview) tone(r framepool.Range, m framepool.Matrix) {
	black, ys, cs := 16.0, 255.0/219, 255.0/224
	if r == framepool.RangeFull {
		black, ys, cs = 0, 1, 1
	}
	g.black, g.lumaK, g.chromaK = float32(black), float32(ys), float32(cs)
	if m == framepool.MatrixBT601 {
		return
	}
	// To RGB by the stream's matrix (ITU-T H.273 table 4) and back by BT.601. Grey
	// stays grey, so that luma goes into luma alone.
	kr, kb := lumaWeights(m)
	kg := 1 - kr - kb
	rv, bu := 2*(1-kr), 2*(1-kb)
	gu, gv := bu*kb/kg, rv*kr/kg
	cbY, crY := 0.114*bu-0.587*gu, 0.299*rv-0.587*gv
	fixed := func(v float64) int32 { return int32(math.Round(v * 65536)) }
	g.cross = 1
	g.cbY, g.crY = fixed(cs*cbY/ys), fixed(cs*crY/ys)
	g.cbCb, g.crCb = fixed(cs*(bu-cbY)/1.772), fixed(cs*-crY/1.772)
	g.cbCr, g.crCr = fixed(cs*-cbY/1.402), fixed(cs*(rv-crY)/1.402)
}

// fit chooses the tile: a block's threads have a quad of two rows each, less
// where the area that a tile averages does not fit into shared memory.
func (g *gpuPreview) fit() error {
	for g.logW, g.logH = 7, 4; g.shared() > maxShared; {
		switch {
		case g.logH > 1:
			g.logH--
		case g.logW > 2:
			g.logW--
		default:
			return errors.New("picture shrinks too much for the gpu")
		}
	}
	return nil
}

// shared bounds the dynamic shared memory of a block.
func (g *gpuPreview) shared() int {
	area := func(log, rows int32, step float32, samples int) int {
		cols := int(math.Ceil(float64(step)*float64(int(1)<<log))) + 4
		vecs := (cols*samples*int(g.bytes) + 30) / 16
		return vecs * 16 / int(g.bytes) << rows
	}
	n := previewHeader + area(g.logW, g.logH, g.stepX, 1)
	switch g.planes {
	case 2:
		n += area(g.logW-1, g.logH-1, g.cstepX, 2)
	case 3:
		n += 2 * area(g.logW-1, g.logH-1, g.cstepX, 1)
	}
	return n
}

// bytesOut is the size of the small picture in memory.
func (g *gpuPreview) bytesOut() int {
	return int(g.strideY)*int(g.rows) + int(g.strideC)*int(g.rows)
}

// place says where the small picture goes: b is the processor's view of it, at
// the device's.
func (g *gpuPreview) place(b []byte, at cuda.DevicePtr) Picture {
	luma, chroma := int(g.strideY)*int(g.rows), int(g.strideC)*int(g.rows)/2
	g.out = [3]uint64{uint64(at), uint64(at) + uint64(luma), uint64(at) + uint64(luma+chroma)}
	return Picture{
		Width: int(g.cols), Height: int(g.rows), StrideY: int(g.strideY), StrideC: int(g.strideC),
		Y: b[:luma:luma], Cb: b[luma : luma+chroma : luma+chroma], Cr: b[luma+chroma : luma+2*chroma : luma+2*chroma],
	}
}
