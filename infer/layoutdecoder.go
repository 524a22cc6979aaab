package infer

import (
	"errors"
	"fmt"
	"math"
)

// LayoutOptions say what a Layout does not.
type LayoutOptions struct {
	Width, Height int     // of the input, pixels
	Labels        int     // how many classes have a name; it must be Layout.Classes where that is set
	IoU           float32 // overlap above which NMS drops a box of the same class. It defaults to 0.6.
	ClassAgnostic bool    // NMS compares boxes of different classes too
	NoNMS         bool    // the network gives each object once
}

// LayoutDecoder turns the raw outputs of any Layout into detections. It reuses
// its memory and belongs to one goroutine.
//
// Numbers that no network at work gives are an *UnhealthyError: anything that is
// not finite, scores beyond 0..1, boxes that are inverted or far away. It names
// the first of its sort: boxes that are not finite, then scores, then impossible
// boxes of detections.
type LayoutDecoder struct {
	l     Layout
	o     LayoutOptions
	d     *Decoder // thresholds and what follows once boxes are boxes
	parts []part

	raw       []float32 // least raw score of each class that may reach its threshold
	low       float32   // the lowest of raw, but not above dead
	dead      float32   // least raw score that cannot be, as far as one above any threshold
	objectLow float32   // least raw objectness

	best    []pick // by row, of layouts with OneClass
	touched []int32
	live    []int32     // rows with objectness, of a part by value
	given   []Candidate // what a filter found
	sick    error       // the first impossible box

	seen, seenObject uint32 // bits of all scores
}

// pick is the best class of a row so far.
type pick struct {
	score float32
	class int32
	given int32 // candidate of a GPU's filter that has the box; −1: it is in the outputs
}

// part is a tensor, or a pair of them, that holds consecutive rows.
type part struct {
	first, rows            int
	level                  *Level // nil without a grid
	boxOutput, scoreOutput int
	box, object, score     view
	boxes, scores          []float32 // of the image at hand
}

// view finds number v of row r at at + r*row + v*value.
type view struct{ at, row, value int }

// NewLayoutDecoder checks that l can be decoded.
func NewLayoutDecoder(l Layout, o LayoutOptions) (*LayoutDecoder, error) {
	if l.Classes == 0 {
		l.Classes = o.Labels
	}
	if o.Labels != 0 && o.Labels != l.Classes {
		return nil, fmt.Errorf("make decoder: the model gives %d classes, %d labels are known", l.Classes, o.Labels)
	}
	if err := l.check(); err != nil {
		return nil, fmt.Errorf("make decoder: %w", err)
	}
	plain, err := NewDecoder(DecoderOptions{Width: o.Width, Height: o.Height, Boxes: max(l.Rows, 1), Classes: l.Classes, IoU: o.IoU})
	if err != nil {
		return nil, err
	}
	plain.suppress.AnyClass = o.ClassAgnostic
	d := &LayoutDecoder{l: l, o: o, d: plain, raw: make([]float32, l.Classes)}
	if l.Dense() {
		d.parts = l.parts()
	}
	if l.OneClass {
		d.best = make([]pick, l.Rows)
		d.touched = make([]int32, 0, 256)
	}
	d.SetThresholds(func(int) float32 { return 0.5 })
	return d, nil
}

// Dense says whether the outputs hold every row that the network looked at, in
// places that do not depend on the picture.
func (l *Layout) Dense() bool { return l.Kind == Joined || l.Kind == Split || l.Kind == Heads }

// columns is how many scores a row has.
func (l *Layout) columns() int {
	if l.Background >= 0 {
		return l.Classes + 1
	}
	return l.Classes
}

// column is where a class is among the scores of a row.
func (l *Layout) column(class int) int {
	if l.Background >= 0 && l.Background <= class {
		return class + 1
	}
	return class
}

// sides is how many numbers of a row make its box.
func (l *Layout) sides() int {
	if l.Coding == CellBins {
		return 4 * l.Bins
	}
	return 4
}

func (l *Layout) check() error {
	switch {
	case l.Kind > Selected:
		return fmt.Errorf("outputs of an unknown form (%d)", l.Kind)
	case l.Classes < 1 || l.Classes > maxClasses:
		return fmt.Errorf("%d classes, wanted 1 to %d", l.Classes, maxClasses)
	case l.Background > l.Classes:
		return fmt.Errorf("background at %d of %d scores", l.Background, l.Classes+1)
	case l.Coding != Plain && len(l.Grid) == 0:
		return errors.New("boxes are coded by a grid that is not known")
	case l.Coding == CellBins && l.Bins < 2:
		return fmt.Errorf("boxes of %d bins a side", l.Bins)
	case l.Activation == Softmax && l.At.Object >= 0 && l.Dense():
		return errors.New("softmax scores with objectness are not known")
	}
	if !l.Dense() {
		return nil
	}
	if l.Rows < 1 {
		return errors.New("the number of rows is not known")
	}
	if rows := l.gridRows(); len(l.Grid) > 0 && rows != l.Rows {
		return fmt.Errorf("%d rows, and a grid of %d cells", l.Rows, rows)
	}
	if l.Kind == Heads && len(l.Grid) == 0 {
		return errors.New("heads without levels")
	}
	return l.checkColumns()
}

// checkColumns wants everything to be within a row.
func (l *Layout) checkColumns() error {
	if l.At.Box < 0 || l.At.Box+l.sides() > l.Values {
		return fmt.Errorf("rows of %d numbers end before their box", l.Values)
	}
	joined := l.Kind == Joined
	if l.Kind == Heads {
		for _, g := range l.Grid {
			joined = joined || g.Boxes == g.Scores
		}
	}
	if l.At.Scores < 0 || joined && l.At.Scores+l.columns() > l.Values {
		return fmt.Errorf("rows of %d numbers end before their scores", l.Values)
	}
	if limit := max(l.Values, l.At.Scores+l.columns()); l.At.Object >= limit {
		return fmt.Errorf("objectness at %d of %d numbers", l.At.Object, limit)
	}
	return nil
}

func (l *Layout) gridRows() int {
	n := 0
	for _, g := range l.Grid {
		n += g.Width * g.Height
	}
	return n
}

// SetThresholds takes the least score of every class, see Decoder.SetThresholds.
func (d *LayoutDecoder) SetThresholds(threshold func(class int) float32) {
	d.d.SetThresholds(threshold)
	lowest := math.Inf(1)
	d.dead = float32(math.Inf(1))
	if d.l.Activation == None {
		d.dead = math.Nextafter32(1+overOne, 2)
	}
	d.low = d.dead
	for class, t := range d.d.thresholds {
		lowest = min(lowest, float64(t))
		d.raw[class] = d.l.rawScore(float64(t), d.l.ClassPower)
		d.low = min(d.low, d.raw[class])
	}
	d.objectLow = d.l.rawScore(lowest, d.l.ObjectPower)
}

// rawScore is a number that a raw score must reach for a score of t. What reaches
// it is computed and compared exactly.
func (l *Layout) rawScore(t float64, power float32) float32 {
	if power != 0 {
		t = math.Pow(t, 1/float64(power)) * (1 - 1e-5)
	}
	if l.Activation != Sigmoid {
		return float32(t)
	}
	if t > 1 {
		return float32(math.Inf(1)) // is not wanted
	}
	// A float32 sigmoid is 1 from about 17 on.
	t = min(t, 1-1.0/(1<<26))
	return float32(math.Log(t/(1-t)) - 1e-4)
}

// Decode appends the detections of one image to dst, see Decoder.Decode.
// outputs are the session's, in its order, each with the numbers of this image
// alone.
func (d *LayoutDecoder) Decode(outputs [][]float32, dst []Detection) (dets []Detection, zero bool, err error) {
	return d.DecodeImage(0, outputs, dst)
}

// DecodeImage is Decode for layouts whose rows tell the image that they belong to:
// those of the others are passed over.
func (d *LayoutDecoder) DecodeImage(image int, outputs [][]float32, dst []Detection) (dets []Detection, zero bool, err error) {
	d.begin()
	switch d.l.Kind {
	case EndToEnd:
		zero, err = d.rows(image, outputs)
	case Listed:
		zero, err = d.list(outputs)
	case Selected:
		err = d.selected(image, outputs)
	default:
		zero, err = d.dense(outputs)
	}
	if err != nil {
		return dst, false, err
	}
	return d.finish(dst, zero), zero, nil
}

func (d *LayoutDecoder) begin() {
	for _, row := range d.touched {
		d.best[row] = pick{}
	}
	d.touched = d.touched[:0]
	d.d.candidates = d.d.candidates[:0]
	d.given, d.sick, d.seen, d.seenObject = nil, nil, 0, 0
}

func (d *LayoutDecoder) finish(dst []Detection, zero bool) []Detection {
	// Logits of exactly 0 would be scores of 0.5.
	if zero {
		return dst
	}
	if d.o.NoNMS {
		return append(dst, best(d.d.candidates, maxDetections)...)
	}
	return d.d.finish(dst)
}

// hit takes a score that may reach its class's threshold. given is the place of
// the row's box among a filter's candidates, −1: it is in the outputs.
func (d *LayoutDecoder) hit(p *part, row, class int, score float32, given int32) {
	if score = min(score, 1); score < d.d.thresholds[class] {
		return
	}
	if !d.l.OneClass {
		d.take(p.first+row, class, score, d.box(p, row, given))
		return
	}
	b := &d.best[p.first+row]
	if b.score == 0 {
		d.touched = append(d.touched, int32(p.first+row))
	} else if b.score >= score {
		return
	}
	*b = pick{score, int32(class), given}
}

// take hands a detection on, and keeps the first reason to refuse one.
func (d *LayoutDecoder) take(row, class int, score float32, box [4]float32) {
	if err := d.d.consider(row, class, score, box[:]); err != nil && d.sick == nil {
		d.sick = err
	}
}

// notScore is the error for a score that cannot be.
func notScore(index int, v float32) error {
	reason := notAScore
	if v != v || math.IsInf(float64(v), 0) {
		reason = notFinite
	}
	return &UnhealthyError{Output: "scores", Index: index, Value: v, Reason: reason}
}

func wrongSize(what string, have, want int) error {
	return fmt.Errorf("decode outputs: %d numbers of %s, wanted %d", have, what, want)
}
