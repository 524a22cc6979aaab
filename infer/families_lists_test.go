package infer_test

import (
	"math/rand/v2"

	"edgecam/infer"
)

// endToEnd is rows of left, top, right, bottom, score, class (YOLOv10, YOLO26), or with
// the image's number in front and the class before the score (YOLOv7 with NMS).
func endToEnd(name string, image bool) family {
	const classes = 9
	l := infer.Layout{Kind: infer.EndToEnd, Values: 6, Classes: classes, Background: -1, At: none(), Outputs: noOutputs()}
	l.At.Box, l.At.Scores, l.At.Class, l.Outputs.Boxes = 0, 4, 5, 0
	if image {
		l.Values, l.At = 7, infer.Columns{Image: 0, Box: 1, Class: 5, Scores: 6, Object: -1}
	}
	return family{name, l, func(r *rand.Rand) [][]float32 {
		var o []float32
		for range 100 {
			b := centred(r)
			class, score := float32(r.IntN(classes)), r.Float32()
			row := []float32{b[0], b[1], b[0] + b[2], b[1] + b[3], score, class}
			if image {
				row = []float32{float32(r.IntN(2)), b[0], b[1], b[0] + b[2], b[1] + b[3], class, score}
			}
			o = append(o, row...)
		}
		return [][]float32{o}
	}, func(o [][]float32) (dets []infer.Detection) {
		for i := 0; i < len(o[0]); i += l.Values {
			row := o[0][i:]
			if image {
				if row[0] != 0 {
					continue
				}
				row = []float32{row[1], row[2], row[3], row[4], row[6], row[5]}
			}
			if row[4] >= threshold {
				dets = append(dets, det(int(row[5]), float64(row[4]), float64(row[0]), float64(row[1]), float64(row[2]), float64(row[3])))
			}
		}
		return dets
	}}
}

// listed is EfficientNMS (a count, pixels), TensorFlow's SSD (a count, top first,
// fractions, ids from 1) and torchvision's SSD (as many rows as there are).
func listed(name string, box infer.BoxFormat, units infer.Units, count bool, firstID int) family {
	const classes, rows = 9, 60
	l := infer.Layout{
		Kind: infer.Listed, Values: 4, Classes: classes, Box: box, Units: units, Background: -1, FirstID: firstID,
		At: none(), Outputs: infer.Outputs{Boxes: 0, Scores: 1, Classes: 2, Count: -1, Selected: -1},
	}
	if count {
		l.Outputs.Count = 3
	}
	return family{name, l, func(r *rand.Rand) [][]float32 {
		o := make([][]float32, 4)
		for range rows {
			b := centred(r)
			b = [4]float32{b[0], b[1], b[0] + b[2], b[1] + b[3]}
			if units == infer.Fractions {
				b = [4]float32{b[0] / wide, b[1] / high, b[2] / wide, b[3] / high}
			}
			if box == infer.YXYX {
				b = [4]float32{b[1], b[0], b[3], b[2]}
			}
			o[0] = append(o[0], b[:]...)
			o[1] = append(o[1], r.Float32())
			o[2] = append(o[2], float32(r.IntN(classes)+firstID))
		}
		o[3] = []float32{float32(r.IntN(rows + 1))}
		return o
	}, func(o [][]float32) (dets []infer.Detection) {
		n := rows
		if count {
			n = int(o[3][0])
		}
		for i := range n {
			x1, y1, x2, y2 := float64(o[0][4*i]), float64(o[0][4*i+1]), float64(o[0][4*i+2]), float64(o[0][4*i+3])
			if box == infer.YXYX {
				x1, y1, x2, y2 = y1, x1, y2, x2
			}
			if units == infer.Fractions {
				x1, y1, x2, y2 = x1*wide, y1*high, x2*wide, y2*high
			}
			if o[1][i] >= threshold {
				dets = append(dets, det(int(o[2][i])-firstID, float64(o[1][i]), x1, y1, x2, y2))
			}
		}
		return dets
	}}
}

// selectedRows is ONNX's NonMaxSuppression: boxes [rows][4], scores [classes][rows],
// and the indices that it selected.
func selectedRows() family {
	const classes, rows = 4, 50
	l := infer.Layout{
		Kind: infer.Selected, Values: 4, Classes: classes, Box: infer.YXYX, Background: -1, ScoresByValue: true, At: none(),
		Outputs: infer.Outputs{Boxes: 0, Scores: 1, Selected: 2, Classes: -1, Count: -1},
	}
	return family{"onnx nms", l, func(r *rand.Rand) [][]float32 {
		o := make([][]float32, 3)
		for range rows {
			b := centred(r)
			o[0] = append(o[0], b[1], b[0], b[1]+b[3], b[0]+b[2])
		}
		for range classes * rows {
			o[1] = append(o[1], r.Float32())
		}
		for range 20 {
			o[2] = append(o[2], float32(r.IntN(2)), float32(r.IntN(classes)), float32(r.IntN(rows)))
		}
		return o
	}, func(o [][]float32) (dets []infer.Detection) {
		for i := 0; i < len(o[2]); i += 3 {
			class, row := int(o[2][i+1]), int(o[2][i+2])
			score, b := o[1][class*rows+row], o[0][4*row:]
			if o[2][i] == 0 && score >= threshold {
				dets = append(dets, det(class, float64(score), float64(b[1]), float64(b[0]), float64(b[3]), float64(b[2])))
			}
		}
		return dets
	}}
}
