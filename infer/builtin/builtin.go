// Package builtin holds the model that ships inside the binary: NanoDet-g at
// 416×416, 80 COCO classes, as float32, as a float16 network whose inputs and
// outputs are float32, and with int8 weights and activations (see
// THIRD_PARTY_NOTICES.md for its origin and licence).
package builtin

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"

	"edgecam/infer"
)

// Prefix marks a built-in model's name in the configuration.
const Prefix = "builtin:"

// NanoDetG is the name of the one built-in model.
const NanoDetG = Prefix + "nanodet-g"

//go:embed nanodet-g-416.onnx
var nanodetFP32 []byte

//go:embed nanodet-g-416-fp16.onnx
var nanodetFP16 []byte

//go:embed nanodet-g-416-int8.onnx
var nanodetINT8 []byte

//go:embed nanodet-g-416.reference.json
var referenceFP32 []byte

//go:embed nanodet-g-416-int8.reference.json
var referenceINT8 []byte

// Model gives the ONNX file of a built-in model in a precision (fp32, fp16
// or int8).
// The bytes are read-only. Errors are *infer.ModelError.
func Model(name, precision string) ([]byte, error) {
	if name != NanoDetG {
		return nil, &infer.ModelError{Model: name, Err: fmt.Errorf("there is no such built-in model"), Hint: "use " + NanoDetG + " or the path of an .onnx file"}
	}
	switch precision {
	case "fp32":
		return nanodetFP32, nil
	case "fp16":
		return nanodetFP16, nil
	case "int8":
		return nanodetINT8, nil
	}
	return nil, &infer.ModelError{Model: name, Err: fmt.Errorf("there is no %s version of it", precision), Hint: "use precision auto, fp32, fp16 or int8"}
}

// Check says why there is no built-in model of that name in a precision (auto,
// fp32 or int8), and what there is.
func Check(name, precision string) error {
	if precision == "auto" {
		precision = "fp32"
	}
	_, err := Model(name, precision)
	var me *infer.ModelError
	if errors.As(err, &me) {
		return fmt.Errorf("%w: %s", me.Err, me.Hint)
	}
	return err
}

// Reference is what the model finds in pictures of the clip that ships with
// edgecam, for tests: frames count from 0.
type Reference struct {
	ScoreThreshold float32
	IoU            float32
	Frames         map[int][]infer.Detection // boxes in pixels of the 768×576 picture
}

// ReadReference gives the reference of the built-in model in a precision.
func ReadReference(precision string) (Reference, error) {
	text := referenceFP32
	if precision == "int8" {
		text = referenceINT8
	}
	var file struct {
		ScoreThreshold float32 `json:"score_threshold"`
		NMSIoU         float32 `json:"nms_iou"`
		Frames         []struct {
			Index      int `json:"vtest_frame_index0"`
			Detections []struct {
				Class int        `json:"class"`
				Score float32    `json:"score"`
				Box   [4]float32 `json:"xyxy"`
			} `json:"detections"`
		} `json:"frames"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return Reference{}, fmt.Errorf("read reference of %s %s: %w", NanoDetG, precision, err)
	}
	r := Reference{ScoreThreshold: file.ScoreThreshold, IoU: file.NMSIoU, Frames: make(map[int][]infer.Detection, len(file.Frames))}
	for _, f := range file.Frames {
		for _, d := range f.Detections {
			r.Frames[f.Index] = append(r.Frames[f.Index], infer.Detection{Class: d.Class, Score: d.Score, X1: d.Box[0], Y1: d.Box[1], X2: d.Box[2], Y2: d.Box[3]})
		}
	}
	return r, nil
}
