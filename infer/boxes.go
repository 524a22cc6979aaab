package infer

import "math"

// boxAt gives the box of a row of p in input pixels.
func (d *LayoutDecoder) boxAt(p *part, row int) [4]float32 {
	at := p.box.at + row*p.box.row
	var raw [4]float32
	for i := range raw {
		if d.l.Coding == CellBins {
			raw[i] = expectation(p.boxes, at+i*d.l.Bins*p.box.value, p.box.value, d.l.Bins)
			continue
		}
		raw[i] = p.boxes[at+i*p.box.value]
	}
	return d.convert(p, row, raw)
}

// expectation is the mean of 0…n−1 with the softmax of n numbers as weights.
func expectation(values []float32, at, step, n int) float32 {
	most := values[at]
	for i := 1; i < n; i++ {
		most = max(most, values[at+i*step])
	}
	sum, mean := 0.0, 0.0
	for i := range n {
		w := math.Exp(float64(values[at+i*step] - most))
		sum += w
		mean += w * float64(i)
	}
	return float32(mean / sum)
}

// convert makes left, top, right and bottom in input pixels of a row's numbers.
func (d *LayoutDecoder) convert(p *part, row int, raw [4]float32) [4]float32 {
	if d.l.Coding != Plain {
		return d.cellBox(p.level, row, raw)
	}
	if d.l.Units == Fractions {
		w, h := float32(d.o.Width), float32(d.o.Height)
		if d.l.Box == YXYX {
			w, h = h, w
		}
		raw = [4]float32{raw[0] * w, raw[1] * h, raw[2] * w, raw[3] * h}
	}
	return corners(d.l.Box, raw)
}

// cellBox decodes what a cell of a grid says.
func (d *LayoutDecoder) cellBox(g *Level, cell int, raw [4]float32) [4]float32 {
	s := float32(g.Stride)
	column, line := float32(cell%g.Width), float32(cell/g.Width)
	switch d.l.Coding {
	case CellExp:
		return corners(CXCYWH, [4]float32{(raw[0] + column) * s, (raw[1] + line) * s, exp(raw[2]) * s, exp(raw[3]) * s})
	case CellTanh:
		return corners(CXCYWH, [4]float32{
			(tanh(raw[0]) + column) * s, (tanh(raw[1]) + line) * s,
			sigmoid(raw[2]) * float32(d.o.Width), sigmoid(raw[3]) * float32(d.o.Height),
		})
	default:
		x, y := (column+d.l.CellPoint)*s, (line+d.l.CellPoint)*s
		return [4]float32{x - raw[0]*s, y - raw[1]*s, x + raw[2]*s, y + raw[3]*s}
	}
}

func exp(v float32) float32  { return float32(math.Exp(float64(v))) }
func tanh(v float32) float32 { return float32(math.Tanh(float64(v))) }

// corners makes left, top, right and bottom of a box's numbers.
func corners(format BoxFormat, b [4]float32) [4]float32 {
	switch format {
	case CXCYWH:
		w, h := b[2]/2, b[3]/2
		return [4]float32{b[0] - w, b[1] - h, b[0] + w, b[1] + h}
	case XYWH:
		return [4]float32{b[0], b[1], b[0] + b[2], b[1] + b[3]}
	case YXYX:
		return [4]float32{b[1], b[0], b[3], b[2]}
	default:
		return b
	}
}

// Expand gives every row's box in input pixels and every score, as the outputs of
// one image of a dense layout say: for comparing two runs number by number.
func (d *LayoutDecoder) Expand(outputs [][]float32) (boxes, scores []float32, err error) {
	boxes, scores = make([]float32, 0, 4*d.l.Rows), make([]float32, 0, d.l.Classes*d.l.Rows)
	for i := range d.parts {
		p := &d.parts[i]
		if err := d.bind(p, outputs); err != nil {
			return nil, nil, err
		}
		for row := range p.rows {
			b := d.boxAt(p, row)
			boxes = append(boxes, b[:]...)
			scores = d.appendScores(scores, p, row)
		}
	}
	return boxes, scores, nil
}

func (d *LayoutDecoder) appendScores(to []float32, p *part, row int) []float32 {
	at, object := p.score.at+row*p.score.row, float32(1)
	if d.l.At.Object >= 0 {
		object = p.scores[p.object.at+row*p.object.row]
	}
	sum := 0.0
	if d.l.Activation == Softmax {
		for k := range d.l.columns() {
			sum += math.Exp(float64(p.scores[at+k*p.score.value]))
		}
	}
	for class := range d.l.Classes {
		v := p.scores[at+d.l.column(class)*p.score.value]
		if d.l.Activation == Softmax {
			to = append(to, float32(math.Exp(float64(v))/sum))
			continue
		}
		to = append(to, d.score(v, object))
	}
	return to
}
