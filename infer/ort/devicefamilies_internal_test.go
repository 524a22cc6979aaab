package ort

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"edgecam/infer"
	"edgecam/infer/model/fixture"
	"edgecam/infer/model/onnx"
	"edgecam/platform/cuda"
)

// fetch runs n pictures on a side and reads the detections of each.
func (r *rig) fetch(t *testing.T, e *DeviceEngine, n int) (all [][]infer.Detection) {
	t.Helper()
	reader, err := e.NewReader(0)
	if err != nil {
		t.Fatal(err)
	}
	reader.SetThresholds(half)
	err = r.dev.Do(context.Background(), "run", func(c *cuda.Context) error {
		if err := errors.Join(e.Run(c, 1, n), c.Wait(e.Stream())); err != nil {
			return err
		}
		for i := range n {
			outputs, err := e.Fetch(c, 1, i)
			if err != nil {
				return err
			}
			dets, _, err := reader.Read(i, outputs, nil)
			if err != nil {
				return err
			}
			all = append(all, dets)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestDeviceFamilies serves models of other layouts on the card: those that have no
// size before a run, or want pictures that the card does not prepare, are refused
// with the reason, and the processor takes them.
func TestDeviceFamilies(t *testing.T) {
	filtered := []string{
		"yolov5", "yolov6", "yolov7", "yolov8", "yolov8/transposed", "yolov8/seg", "yolov8/pose", "yolox", "yolox/decoded", "yolo-nas",
		"rt-detr/ultralytics", "rt-detr/logits", "rf-detr", "ssd-priors", "fastestdet",
	}
	for _, family := range fixture.Families() {
		if family == "efficientnms" {
			continue
		}
		t.Run(family, func(t *testing.T) {
			d := detector(family)
			d.Batch = -1
			if family == "ssd-torchvision" {
				d.Batch = 1
			}
			path := detectorFile(t, d)
			r := newRig(t)
			r.opts.Model, r.opts.Spec, r.opts.Provider = path, specOf(t, path), "cuda"
			e, err := NewDevice(t.Context(), r.dev, r.opts)
			var refused *ProviderError
			if errors.As(err, &refused) {
				if want := refusals()[family]; want == "" || err.Error() != "CUDA: "+want {
					t.Errorf("error %v, want %s", err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			})
			for i, got := range r.fetch(t, e, min(3, e.Info().MaxBatch)) {
				wants(t, fmt.Sprintf("image %d", i), got)
			}
			plan, _, why := e.Filter()
			if want := slices.Contains(filtered, family); (why == "" && plan != nil) != want && family != "boxes-scores" {
				t.Errorf("a filter: %v (%s), want %v", plan != nil, why, want)
			}
		})
	}
}

// refusals are why a card cannot serve families.
func refusals() map[string]string {
	const anySize = ": its size is known after each run only, a card's memory is laid out before"
	const images = "rows that say which image they are of are read one image at a time"
	return map[string]string{
		"yolov7/end2end": images, "yolo-nas/flat": images, "ssd-torchvision": "output boxes" + anySize, "onnx-nms": "output selected" + anySize,
	}
}

func TestDeviceRefusesInputs(t *testing.T) {
	for name, change := range map[string]func(*fixture.Detector){
		"uint8": func(d *fixture.Detector) { d.Type = onnx.Uint8 },
		"NHWC":  func(d *fixture.Detector) { d.NHWC = true },
	} {
		t.Run(name, func(t *testing.T) {
			d := detector("yolov8")
			change(&d)
			path := detectorFile(t, d)
			r := newRig(t)
			r.opts.Model, r.opts.Spec = path, specOf(t, path)
			_, err := NewDevice(t.Context(), r.dev, r.opts)
			var refused *ProviderError
			if want := "CUDA: input images: pictures are prepared on the card as float32 or float16 [N,3,height,width] alone"; !errors.As(err, &refused) || err.Error() != want || refused.Hint == "" {
				t.Errorf("error %v, want %s", err, want)
			}
		})
	}
}

// TestDeviceFixedBatchOfThree runs fewer pictures than the model always takes.
func TestDeviceFixedBatchOfThree(t *testing.T) {
	d := detector("yolov8")
	d.Batch, d.Type = 3, onnx.Float16
	path := detectorFile(t, d)
	r := newRig(t)
	r.opts.Model, r.opts.Spec, r.opts.Provider = path, specOf(t, path), "cuda"
	e := r.start()
	if got := e.Info().MaxBatch; got != 3 {
		t.Errorf("max batch %d", got)
	}
	if _, half := e.Input(0); !half {
		t.Error("the input is float16")
	}
	for i, got := range r.fetch(t, e, 2) {
		wants(t, fmt.Sprintf("image %d", i), got)
	}
}

// TestAnswersOfLayouts compares answers of models that list what they found.
func TestAnswersOfLayouts(t *testing.T) {
	det := infer.Detection{Class: 1, Score: 0.8, X1: 10, Y1: 10, X2: 110, Y2: 60}
	moved, other, weak, less := det, det, det, det
	moved.X1 += 10
	other.Class = 2
	weak.Score = sureScore + 0.01
	less.Score -= 0.015
	list := func(d ...infer.Detection) answer { return answer{list: true, found: d} }
	tests := []struct {
		name      string
		want, got answer
		text      string
	}{
		{"same", list(det), list(det), ""},
		{"within", list(det), list(less), ""},
		{"near the threshold", list(det, weak), list(det), ""},
		{"missing", list(det), list(), "answers differ: class 1 at (10.0 10.0 110.0 60.0) with a score of 0.800 is missing"},
		{"more", list(), list(det), "answers differ: class 1 at (10.0 10.0 110.0 60.0) with a score of 0.800 was not expected"},
		{"moved", list(det), list(moved), "answers differ: class 1 at (10.0 10.0 110.0 60.0) with a score of 0.800 is missing"},
		{"other class", list(det), list(other), "answers differ: class 1 at (10.0 10.0 110.0 60.0) with a score of 0.800 is missing"},
		{"zeros", list(det), answer{list: true, zero: true}, "read output scores of image 0: value 0 is 0: all scores are 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := agree(tt.want, tt.got)
			if got := fmt.Sprint(err); err == nil && tt.text != "" || err != nil && got != tt.text {
				t.Errorf("error %v, want %q", err, tt.text)
			}
		})
	}
}
