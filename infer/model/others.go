package model

import (
	"fmt"
	"slices"
	"strings"

	"edgecam/infer"
)

// hint names networks that edgecam does not read, by outputs that they are known for, and says what would help.
func (in *inspector) hint() string {
	for _, look := range []func(*inspector) string{typesHint, anchorsHint, yolov4Hint, keysHint, densityHint, mapsHint, wholeHint} {
		if text := look(in); text != "" {
			return ": " + text
		}
	}
	return ""
}

// paddle tells of files that Paddle's exporter wrote.
func (in *inspector) paddle() bool {
	return strings.Contains(strings.ToLower(in.rep.Producer), "paddle") || in.mentions("multiclass_nms3")
}

// foreignInput says whose network it is that wants more than pictures and their sizes.
func (in *inspector) foreignInput(input string) string {
	switch input {
	case "scale_factor", "im_shape":
		return "; that is PaddleDetection's (PP-YOLOE, PicoDet, PP-YOLO): export it without postprocessing (export.nms=False, export.benchmark=True), which leaves that input out"
	case "iou_threshold", "score_threshold", "conf_threshold", "max_output_boxes_per_class":
		return "; export it with thresholds as constants, or without NMS"
	}
	return ""
}

func typesHint(in *inspector) string {
	if slices.ContainsFunc(in.outs, func(t tensor) bool { return t.float() }) {
		return ""
	}
	return "edgecam reads boxes and scores of float32 and float16"
}

// anchorsHint tells of raw heads whose anchors are in no file.
func anchorsHint(in *inspector) string {
	heads := 0
	for i := range in.outs {
		d := in.outs[i].dims
		switch {
		case len(d) == 4 && slices.Contains(d, 3):
			heads++
		case len(d) == 3 && d[0] > 15 && (d[0]%3 == 0 || d[0]%5 == 0) && in.cells(d[1], d[2]):
			heads++
		}
	}
	if heads == 0 || heads != len(in.outs) {
		return ""
	}
	if heads == 1 {
		return "this is a raw head with anchors, as of YOLOv2, which the file does not hold"
	}
	return "these are raw heads with anchors (YOLOv3, YOLOv4, YOLOv5, YOLOv7), which the file does not hold; export it with the decoding inside (YOLOv7: --grid; YOLOv5: without --train)"
}

// cells tells of a map of a level, from stride 8 to 64.
func (in *inspector) cells(height, width int64) bool {
	return slices.ContainsFunc(in.grid(8, 16, 32, 64), func(l infer.Level) bool {
		return height == int64(l.Height) && width == int64(l.Width)
	})
}

// yolov4Hint: boxes [rows,1,4] in fractions beside scores that objectness is multiplied into already.
func yolov4Hint(in *inspector) string {
	for i := range in.outs {
		if d := in.outs[i].dims; len(d) == 3 && d[1] == 1 && d[2] == 4 && len(in.outs) == 2 {
			return "boxes [N,rows,1,4] beside scores are those of YOLOv4 (Darknet), which edgecam does not read"
		}
	}
	return ""
}

// keysHint goes by names that exporters give.
func keysHint(in *inspector) string {
	for i := range in.outs {
		t := &in.outs[i]
		switch {
		case t.called("yolonms"):
			return "these are the names of YOLOv3 of the ONNX model zoo (Keras), which edgecam does not read"
		case t.called("detection_out") || len(t.dims) == 3 && t.dims[0] == 1 && t.dims[2] == 7:
			return "rows of seven in [N,1,rows,7] are those of Caffe's SSD and of OpenVINO, which edgecam does not read"
		case t.called("multiclass_nms3"):
			return in.paddleText()
		}
	}
	if in.paddle() {
		return in.paddleText()
	}
	return ""
}

func (in *inspector) paddleText() string {
	return "PaddleDetection wrote it (PP-YOLOE, PicoDet), whose networks edgecam does not read"
}

// densityHint: boxes and scores of nine anchors a cell, from stride 8 to 128.
func densityHint(in *inspector) string {
	rows := 9 * cellsOf(in.grid(8, 16, 32, 64, 128))
	for i := range in.outs {
		if d := in.outs[i].dims; len(d) == 2 && d[0] == rows {
			return "nine rows for each cell of strides 8 to 128 are those of RetinaNet and EfficientDet, whose anchors the file does not hold; export it with the decoding and NMS inside"
		}
	}
	return ""
}

// mapsHint: outputs that are maps.
func mapsHint(in *inspector) string {
	count := map[int64]int{} // maps by their channels
	for i := range in.outs {
		d := in.outs[i].dims
		if len(d) != 3 {
			return ""
		}
		count[d[0]]++
	}
	d := in.outs[0].dims
	i := &in.rep.Spec.Input
	switch n := len(in.outs); {
	case n == 1 && d[1] == int64(i.Height) && d[2] == int64(i.Width):
		return fmt.Sprintf("a map of the size of the picture with %d values a pixel is no detector's (segmentation, depth)", d[0])
	case n == 3 && count[2] == 2:
		return "a map of scores beside two of two values is CenterNet's, which edgecam does not read"
	case n%3 == 0 && count[4] >= n/3 && count[1] >= n/3:
		return "maps of scores, four sides and a centre-ness are those of FCOS, which edgecam does not read"
	}
	return ""
}

func wholeHint(in *inspector) string {
	if len(in.outs) == 1 && len(in.outs[0].dims) == 1 {
		return "one list of numbers a picture names pictures as a whole"
	}
	return ""
}
