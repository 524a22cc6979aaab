package model

import (
	"fmt"
	"strings"

	"edgecam/infer"
)

// stated reads models that carry edgecam's own metadata.
func stated(in *inspector) []match {
	if in.rep.Metadata["family"] != BoxesScores {
		return nil
	}
	meta, err := infer.ParseMetadata(in.rep.Metadata)
	if err != nil {
		in.refuse("%v", err)
		return nil
	}
	var boxes, scores *tensor
	for i := range in.outs {
		switch in.outs[i].name {
		case "boxes":
			boxes = &in.outs[i]
		case "scores":
			scores = &in.outs[i]
		}
	}
	if boxes == nil || scores == nil {
		in.refuse("has no outputs boxes and scores, only %s", in.outputNames())
		return nil
	}
	if len(boxes.dims) != 2 || len(scores.dims) != 2 || boxes.dims[1] != 4 || boxes.dims[0] != scores.dims[0] || boxes.dims[0] < 1 {
		in.refuse("outputs %v and %v: wanted boxes [N,rows,4] and scores [N,rows,classes]", boxes, scores)
		return nil
	}
	i := &in.rep.Spec.Input
	if i.Width != meta.Input.Width || i.Height != meta.Input.Height {
		in.refuse("metadata input_size is [%d, %d], but the input is fed %d×%d", meta.Input.Width, meta.Input.Height, i.Width, i.Height)
		return nil
	}
	i.InputSpec = meta.Input
	in.find("color", orderName(i.Order), "metadata color_order", Stated)
	in.find("normalisation", normalisationText(i.Mean, i.Std), "metadata mean, std, scale", Stated)
	in.find("letterbox", alignName(i.Align), "metadata letterbox", Stated)
	l := layoutOf(infer.Split)
	l.Rows, l.Values, l.Classes = int(boxes.dims[0]), 4, int(scores.dims[1])
	l.At.Box, l.At.Scores = 0, 0
	l.Outputs.Boxes, l.Outputs.Scores = boxes.place, scores.place
	return []match{{
		family: BoxesScores, layout: l, c: Stated, why: "metadata family",
		roles: map[int]string{boxes.place: "boxes", scores.place: "scores"},
	}}
}

// describe says in words how outputs are read.
func describe(l *infer.Layout) string {
	rows := "rows"
	if l.Rows > 0 {
		rows = fmt.Sprintf("%d rows", l.Rows)
	}
	var parts []string
	switch l.Kind {
	case infer.Joined:
		parts = append(parts, fmt.Sprintf("%s of %d values in one tensor", rows, l.Values))
		if l.ByValue {
			parts = append(parts, "a value of all rows after the other")
		}
	case infer.Split:
		parts = append(parts, rows+", boxes and scores apart")
	case infer.EndToEnd:
		parts = append(parts, rows+" of finished detections")
	case infer.Listed:
		parts = append(parts, rows+" of finished detections, boxes, scores and classes apart")
	case infer.Selected:
		parts = append(parts, rows+", boxes and scores apart, and which of them are left")
	case infer.Heads:
		parts = append(parts, fmt.Sprintf("%s in heads of strides %s", rows, strides(l.Grid)))
	}
	parts = append(parts, boxWords(l))
	if l.At.Object >= 0 {
		parts = append(parts, "an objectness")
	}
	if l.Classes > 0 {
		parts = append(parts, fmt.Sprintf("%d classes", l.Classes))
	}
	switch l.Activation {
	case infer.Sigmoid:
		parts = append(parts, "a sigmoid still to apply")
	case infer.Softmax:
		parts = append(parts, "a softmax still to apply")
	}
	if l.Background >= 0 {
		parts = append(parts, fmt.Sprintf("class %d is the background", l.Background))
	}
	return strings.Join(parts, ", ")
}

func boxWords(l *infer.Layout) string {
	switch l.Coding {
	case infer.CellExp:
		return "centre and logarithm of the size in cells"
	case infer.CellBins:
		return fmt.Sprintf("distances of the four sides as distributions of %d", l.Bins)
	case infer.CellDistance:
		return "distances of the four sides in cells"
	case infer.CellTanh:
		return "centre by tanh and size by sigmoid"
	}
	format := [...]string{"left, top, right, bottom", "centre and size", "left, top and size", "top, left, bottom, right", "distances of the four sides"}[l.Box]
	if l.Units == infer.Fractions {
		return format + " in fractions of the input"
	}
	return format + " in pixels of the input"
}
