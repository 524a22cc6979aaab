package infer

import "math"

// chunk is how many scores of a column are looked at together.
const chunk = 128

// parts lays out the rows of a dense layout.
func (l *Layout) parts() []part {
	if l.Kind == Heads {
		parts := make([]part, len(l.Grid))
		first := 0
		for i := range l.Grid {
			g := &l.Grid[i]
			p := &parts[i]
			*p = part{first: first, rows: g.Width * g.Height, level: g, boxOutput: g.Boxes, scoreOutput: g.Scores}
			l.views(p, g.Boxes == g.Scores)
			first += p.rows
		}
		return parts
	}
	p := part{rows: l.Rows, boxOutput: l.Outputs.Boxes, scoreOutput: l.Outputs.Scores}
	if l.Kind == Joined {
		p.scoreOutput = p.boxOutput
	}
	if len(l.Grid) == 0 {
		l.views(&p, l.Kind == Joined)
		return []part{p}
	}
	return l.split(p)
}

// split makes a part of every level of tensors that hold all levels.
func (l *Layout) split(all part) []part {
	l.views(&all, l.Kind == Joined)
	parts := make([]part, len(l.Grid))
	first := 0
	for i := range l.Grid {
		p := all
		p.first, p.rows, p.level = first, l.Grid[i].Width*l.Grid[i].Height, &l.Grid[i]
		for _, v := range []*view{&p.box, &p.object, &p.score} {
			v.at += first * v.row
		}
		first += p.rows
		parts[i] = p
	}
	return parts
}

// views says where in its tensors a part's numbers are. The width of a tensor of
// scores alone is found when it is there.
func (l *Layout) views(p *part, joined bool) {
	at := func(column, width int, byValue bool) view {
		if byValue {
			return view{column * p.rows, 1, p.rows}
		}
		return view{column, width, 1}
	}
	p.box = at(l.At.Box, l.Values, l.ByValue)
	width, byValue := l.Values, l.ByValue
	if !joined {
		width, byValue = l.At.Scores+l.columns(), l.ScoresByValue
	}
	p.object, p.score = at(l.At.Object, width, byValue), at(l.At.Scores, width, byValue)
}

func (p *part) byValue() bool { return p.score.value != 1 }

// dense reads layouts with a place for every row.
func (d *LayoutDecoder) dense(outputs [][]float32) (zero bool, err error) {
	for i := range d.parts {
		if err := d.bind(&d.parts[i], outputs); err != nil {
			return false, err
		}
	}
	for i := range d.parts {
		if err := d.finiteBoxes(&d.parts[i]); err != nil {
			return false, err
		}
	}
	for i := range d.parts {
		p := &d.parts[i]
		switch {
		case d.l.Activation == Softmax:
			err = d.softmaxRows(p)
		case p.byValue():
			err = d.scanColumns(p)
		default:
			err = d.scanRows(p)
		}
		if err != nil {
			return false, err
		}
	}
	return d.zero(), d.settle()
}

// zero says whether the network gave nothing but zeros.
func (d *LayoutDecoder) zero() bool {
	const sign = 1 << 31
	return d.seen&^sign == 0 || d.l.At.Object >= 0 && d.seenObject&^sign == 0
}

// settle hands the best classes of rows on, and says what could not be.
func (d *LayoutDecoder) settle() error {
	for _, row := range d.touched {
		b := &d.best[row]
		p := d.partOf(int(row))
		d.take(int(row), int(b.class), b.score, d.box(p, int(row)-p.first, b.given))
	}
	return d.sick
}

// box gives the box of a row, which a filter may have given.
func (d *LayoutDecoder) box(p *part, row int, given int32) [4]float32 {
	if given >= 0 {
		return d.convert(p, row, d.given[given].Box)
	}
	return d.boxAt(p, row)
}

func (d *LayoutDecoder) partOf(row int) *part {
	for i := range d.parts {
		if p := &d.parts[i]; row < p.first+p.rows {
			return p
		}
	}
	return nil
}

// bind gives p the numbers of the image.
func (d *LayoutDecoder) bind(p *part, outputs [][]float32) error {
	if p.boxOutput >= len(outputs) || p.scoreOutput >= len(outputs) {
		return wrongSize("outputs", len(outputs), max(p.boxOutput, p.scoreOutput)+1)
	}
	p.boxes, p.scores = outputs[p.boxOutput], outputs[p.scoreOutput]
	if have, want := len(p.boxes), p.extent(p.box, d.l.sides()); have < want || have != d.l.Values*d.tensorRows(p) {
		return wrongSize("boxes", have, max(want, d.l.Values*d.tensorRows(p)))
	}
	have, want := len(p.scores), p.extent(p.score, d.l.columns())
	if p.scoreOutput != p.boxOutput {
		want = (d.l.At.Scores + d.l.columns()) * d.tensorRows(p)
	}
	if have < want || have > want && p.scoreOutput != p.boxOutput {
		return wrongSize("scores", have, want)
	}
	return nil
}

// tensorRows is how many rows the tensors of a part have.
func (d *LayoutDecoder) tensorRows(p *part) int {
	if d.l.Kind == Heads {
		return p.rows
	}
	return d.l.Rows
}

// extent is where the numbers of a part end.
func (p *part) extent(v view, n int) int {
	return v.at + (p.rows-1)*v.row + (n-1)*v.value + 1
}

// finiteBoxes wants every number of every box to be one.
func (d *LayoutDecoder) finiteBoxes(p *part) error {
	n := d.l.sides()
	bad := func(i int) error {
		return &UnhealthyError{Output: "boxes", Index: i, Value: p.boxes[i], Reason: notFinite}
	}
	if p.box.value == 1 && p.box.row == n { // nothing else is in the tensor
		if i := firstNotFinite(p.boxes[p.box.at:][:p.rows*n]); i >= 0 {
			return bad(p.box.at + i)
		}
		return nil
	}
	if p.box.value != 1 {
		for v := range n {
			at := p.box.at + v*p.box.value
			if i := firstNotFinite(p.boxes[at:][:p.rows]); i >= 0 {
				return bad(at + i)
			}
		}
		return nil
	}
	for at := p.box.at; at < p.box.at+p.rows*p.box.row; at += p.box.row {
		if i := firstNotFinite(p.boxes[at:][:n]); i >= 0 {
			return bad(at + i)
		}
	}
	return nil
}

// scanRows reads scores that lie row by row.
func (d *LayoutDecoder) scanRows(p *part) error {
	n, object := d.l.columns(), float32(1)
	for row := range p.rows {
		live := true
		if d.l.At.Object >= 0 {
			at := p.object.at + row*p.object.row
			object = p.scores[at]
			if !d.possible(object) {
				return notScore(at, object)
			}
			d.seenObject |= math.Float32bits(object)
			live = object >= d.objectLow
		}
		at := p.score.at + row*p.score.row
		hit, any := d.scan(p.scores[at:at+n], live)
		d.seen |= any
		if !hit {
			continue
		}
		for k, v := range p.scores[at : at+n] {
			if err := d.judge(p, row, k, at+k, v, object, live); err != nil {
				return err
			}
		}
	}
	return nil
}

// scanColumns reads scores that lie class by class.
func (d *LayoutDecoder) scanColumns(p *part) error {
	objects, err := d.objects(p)
	if err != nil {
		return err
	}
	for k := range d.l.columns() {
		at := p.score.at + k*p.score.value
		column := p.scores[at : at+p.rows]
		for from := 0; from < p.rows; from += chunk {
			part := column[from:min(from+chunk, p.rows)]
			hit, any := d.scan(part, objects == nil)
			d.seen |= any
			if !hit {
				continue
			}
			for i, v := range part {
				if err := d.judge(p, from+i, k, at+from+i, v, 1, objects == nil); err != nil {
					return err
				}
			}
		}
		for _, row := range d.live {
			if err := d.judge(p, int(row), k, at+int(row), column[row], objects[row], true); err != nil {
				return err
			}
		}
	}
	return nil
}

// objects notes the rows whose objectness may do, and gives the column.
func (d *LayoutDecoder) objects(p *part) ([]float32, error) {
	d.live = d.live[:0]
	if d.l.At.Object < 0 {
		return nil, nil
	}
	column := p.scores[p.object.at:][:p.rows]
	for row, o := range column {
		if !d.possible(o) {
			return nil, notScore(p.object.at+row, o)
		}
		d.seenObject |= math.Float32bits(o)
		if o >= d.objectLow {
			d.live = append(d.live, int32(row))
		}
	}
	return column, nil
}

// scan tells whether any of the scores has to be judged: it may reach a
// threshold (live) or cannot be.
func (d *LayoutDecoder) scan(scores []float32, live bool) (hit bool, any uint32) {
	low := d.low
	if !live {
		low = d.dead
	}
	if d.l.Activation == None {
		return scan(scores, math.Float32bits(low))
	}
	return scanReal(scores, low)
}

// possible says whether a raw score or objectness can be.
func (d *LayoutDecoder) possible(v float32) bool {
	if d.l.Activation == None {
		return v >= 0 && v <= 1+overOne
	}
	return math.Abs(float64(v)) <= math.MaxFloat32
}

// judge looks at one score, which is in column k of its row and at index of its tensor.
func (d *LayoutDecoder) judge(p *part, row, k, index int, v, object float32, live bool) error {
	if !d.possible(v) {
		return notScore(index, v)
	}
	if !live || k == d.l.Background {
		return nil
	}
	class := k
	if d.l.Background >= 0 && k > d.l.Background {
		class--
	}
	if v >= d.raw[class] {
		d.hit(p, row, class, d.score(v, object), -1)
	}
	return nil
}

// score is what a class's raw score and the objectness of its row come to.
func (d *LayoutDecoder) score(v, object float32) float32 {
	if d.l.Activation == Sigmoid {
		v = sigmoid(v)
	}
	if d.l.At.Object < 0 {
		return v
	}
	if d.l.Activation == Sigmoid {
		object = sigmoid(object)
	}
	v, object = min(v, 1), min(object, 1)
	if d.l.ObjectPower != 0 {
		object = float32(math.Pow(float64(object), float64(d.l.ObjectPower)))
	}
	if d.l.ClassPower != 0 {
		v = float32(math.Pow(float64(v), float64(d.l.ClassPower)))
	}
	return v * object
}

func sigmoid(v float32) float32 { return float32(1 / (1 + math.Exp(-float64(v)))) }

// softmaxRows reads scores whose sum over a row has to become 1.
func (d *LayoutDecoder) softmaxRows(p *part) error {
	n := d.l.columns()
	logLow := float32(math.Log(float64(d.low))) - 1e-3
	for row := range p.rows {
		at := p.score.at + row*p.score.row
		most, mostClass := float32(math.Inf(-1)), float32(math.Inf(-1))
		for k := range n {
			i := at + k*p.score.value
			v := p.scores[i]
			if !d.possible(v) {
				return notScore(i, v)
			}
			d.seen |= math.Float32bits(v)
			most = max(most, v)
			if k != d.l.Background {
				mostClass = max(mostClass, v)
			}
		}
		// A class's share is at most e^(v − most).
		if mostClass-most >= logLow {
			d.shares(p, row, most)
		}
	}
	return nil
}

// shares takes the classes of one row by their share.
func (d *LayoutDecoder) shares(p *part, row int, most float32) {
	at, sum := p.score.at+row*p.score.row, 0.0
	for k := range d.l.columns() {
		sum += math.Exp(float64(p.scores[at+k*p.score.value] - most))
	}
	for class := range d.l.Classes {
		v := p.scores[at+d.l.column(class)*p.score.value]
		d.hit(p, row, class, float32(math.Exp(float64(v-most))/sum), -1)
	}
}
