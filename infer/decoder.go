package infer

import (
	"errors"
	"fmt"
	"math"
)

const (
	// maxCandidates bounds the boxes that go into NMS, whose time grows with
	// their number times the number kept; the best are taken.
	maxCandidates = 2000
	// maxDetections bounds the objects of one picture.
	maxDetections = 300
	// minThreshold keeps a threshold of 0 from making every box a candidate.
	minThreshold = 0.01
	// overOne is what rounding may put on top of a score of 1.
	overOne = 1e-3
	// reach is how far beyond the input, in input sizes, a box may end.
	reach = 4
)

// Reasons of an UnhealthyError.
const (
	notFinite = "not finite"
	notAScore = "not between 0 and 1"
)

// DecoderOptions describe the outputs of a detector.
type DecoderOptions struct {
	Width, Height int     // of the input, pixels
	Boxes         int     // rows of both outputs
	Classes       int     // columns of scores
	IoU           float32 // overlap above which NMS drops a box of the same class. It defaults to 0.6.
}

// Decoder turns raw outputs into detections. It reuses its memory and belongs
// to one goroutine.
type Decoder struct {
	opts       DecoderOptions
	thresholds []float32
	lowest     uint32 // bits of the lowest threshold
	candidates []Detection
	suppress   Suppressor
}

// NewDecoder checks opts.
func NewDecoder(opts DecoderOptions) (*Decoder, error) {
	if opts.IoU == 0 {
		opts.IoU = 0.6
	}
	if !(opts.IoU > 0 && opts.IoU <= 1) {
		return nil, fmt.Errorf("make decoder: overlap %v is not between 0 and 1", opts.IoU)
	}
	if opts.Width < 1 || opts.Height < 1 || opts.Boxes < 1 || opts.Classes < 1 {
		return nil, errors.New("make decoder: width, height, boxes and classes must be at least 1")
	}
	d := &Decoder{
		opts:       opts,
		thresholds: make([]float32, opts.Classes),
		candidates: make([]Detection, 0, 256),
		suppress:   Suppressor{IoU: opts.IoU, Limit: maxDetections},
	}
	d.SetThresholds(func(int) float32 { return 0.5 })
	return d, nil
}

// SetThresholds takes the least score of every class for the calls of Decode
// that follow. Above 1 a class is not wanted at all; below 0.01 (or NaN) it
// counts as 0.01.
func (d *Decoder) SetThresholds(threshold func(class int) float32) {
	lowest := ClampThreshold(2)
	for class := range d.thresholds {
		t := ClampThreshold(threshold(class))
		d.thresholds[class] = t
		lowest = min(lowest, t)
	}
	d.lowest = math.Float32bits(lowest)
}

// ClampThreshold brings a threshold to what decoding compares with: from 0.01, so
// that one of 0 (or NaN) does not make every box a candidate, to the next number
// above 1, as scores beyond 1 must be met whatever is wanted: they are unhealthy.
func ClampThreshold(t float32) float32 {
	t = min(t, math.Nextafter32(1, 2))
	if !(t >= minThreshold) {
		return minThreshold
	}
	return t
}

// Decode appends the detections of one image to dst: boxes holds x1, y1, x2,
// y2 of each box in input pixels, scores one value a class and box. Boxes are
// clipped to the input; those outside of it are dropped. zero reports that
// every score was exactly 0, which a network at work does not give. An
// *UnhealthyError leaves dst as it was; its Image is 0.
func (d *Decoder) Decode(boxes, scores []float32, dst []Detection) (dets []Detection, zero bool, err error) {
	if len(boxes) != d.opts.Boxes*4 || len(scores) != d.opts.Boxes*d.opts.Classes {
		return dst, false, fmt.Errorf("decode outputs: %d box and %d score values, wanted %d boxes of %d classes", len(boxes), len(scores), d.opts.Boxes, d.opts.Classes)
	}
	if i := firstNotFinite(boxes); i >= 0 {
		return dst, false, &UnhealthyError{Output: "boxes", Index: i, Value: boxes[i], Reason: notFinite}
	}
	d.candidates = d.candidates[:0]
	seen, classes := uint32(0), d.opts.Classes
	for row := range d.opts.Boxes {
		hit, any := scan(scores[row*classes:(row+1)*classes], d.lowest)
		seen |= any
		if !hit {
			continue
		}
		if err := d.collect(row, boxes[row*4:row*4+4], scores[row*classes:(row+1)*classes]); err != nil {
			return dst, false, err
		}
	}
	const sign = 1 << 31
	return d.finish(dst), seen&^sign == 0, nil
}

// finish appends what is left of the candidates after NMS.
func (d *Decoder) finish(dst []Detection) []Detection {
	if len(d.candidates) > maxCandidates {
		d.candidates = best(d.candidates, maxCandidates)
	}
	return append(dst, d.suppress.Run(d.candidates)...)
}

// collect appends the classes of one row that reach their thresholds.
func (d *Decoder) collect(row int, box, scores []float32) error {
	for class, score := range scores {
		if score >= 0 && score < d.thresholds[class] {
			continue
		}
		if !(score >= 0 && score <= 1+overOne) {
			return &UnhealthyError{Output: "scores", Index: row*len(scores) + class, Value: score, Reason: notAScore}
		}
		if err := d.consider(row, class, score, box); err != nil {
			return err
		}
	}
	return nil
}

// consider appends a score from 0 to 1+overOne if it reaches its threshold.
func (d *Decoder) consider(row, class int, score float32, box []float32) error {
	score = min(score, 1)
	if score < d.thresholds[class] {
		return nil // the class is not wanted
	}
	if i, reason := d.impossible(box); i >= 0 {
		return &UnhealthyError{Output: "boxes", Index: row*4 + i, Value: box[i], Reason: reason}
	}
	width, height := float32(d.opts.Width), float32(d.opts.Height)
	det := Detection{
		Class: class, Score: score,
		X1: min(max(box[0], 0), width), Y1: min(max(box[1], 0), height),
		X2: min(max(box[2], 0), width), Y2: min(max(box[3], 0), height),
	}
	if det.X1 < det.X2 && det.Y1 < det.Y2 {
		d.add(det)
	}
	return nil
}

// impossible finds a coordinate that no detector at work gives.
func (d *Decoder) impossible(box []float32) (index int, reason string) {
	for i, v := range box {
		side := float32(d.opts.Width)
		if i%2 == 1 {
			side = float32(d.opts.Height)
		}
		if v < -reach*side || v > (1+reach)*side {
			return i, "far outside of the input"
		}
	}
	if box[2] < box[0] {
		return 2, "right of the box left of its left"
	}
	if box[3] < box[1] {
		return 3, "bottom of the box above its top"
	}
	return -1, ""
}

// add keeps the best maxCandidates: when twice as many are there the worse
// half goes.
func (d *Decoder) add(det Detection) {
	if len(d.candidates) == 2*maxCandidates {
		d.candidates = best(d.candidates, maxCandidates)
	}
	d.candidates = append(d.candidates, det)
}
