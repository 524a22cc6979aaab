package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"edgecam/infer"
)

// Families lists the names that Overrides.Family takes.
func Families() []string {
	return []string{
		NanoDet, YOLOX, YOLOv5, YOLOv6, YOLOv7, YOLOv8, YOLOv10, YOLONAS, RTDETR, DFINE, RFDETR,
		SSDTensorFlow, SSDTorchvision, SSDPriors, EfficientNMS, ONNXNMS, BoxesScores, FastestDet,
	}
}

// aliases are names that people know families by.
func aliases() map[string]string {
	return map[string]string{
		"yolov9": YOLOv8, "yolov11": YOLOv8, "yolo11": YOLOv8, "yolov12": YOLOv8, "yolo12": YOLOv8,
		"yolo26": YOLOv10, "yolov26": YOLOv10,
		"rtdetr": RTDETR, "dfine": DFINE, "deim": DFINE, "rfdetr": RFDETR, "yolonas": YOLONAS, "nanodet-plus": NanoDet,
	}
}

// Names lists Families and the other names that people know them by.
func Names() []string {
	return append(Families(), slices.Sorted(maps.Keys(aliases()))...)
}

// Canonical gives the name in Families of any of Names, and others as they are.
func Canonical(family string) string {
	if name, ok := aliases()[family]; ok {
		return name
	}
	return family
}

// Check finds what is wrong with the overrides whatever the file is.
func (o *Overrides) Check() error {
	if o.Family != "" && !slices.Contains(Families(), o.Family) {
		return fmt.Errorf("inference.model.family is %q, edgecam knows %s", o.Family, strings.Join(Families(), ", "))
	}
	oneOf := func(key, value string, choices ...string) error {
		if value == "" || slices.Contains(choices, value) {
			return nil
		}
		return fmt.Errorf("inference.model.input.%s is %q, wanted %s", key, value, strings.Join(choices, " or "))
	}
	for _, err := range []error{
		oneOf("layout", o.Layout, "NCHW", "NHWC"), oneOf("color", o.Color, "RGB", "BGR"), oneOf("letterbox", o.Letterbox, "center", "top_left"),
	} {
		if err != nil {
			return err
		}
	}
	if (o.Width != 0 || o.Height != 0) && (min(o.Width, o.Height) < 1 || max(o.Width, o.Height) > maxSide) {
		return fmt.Errorf("inference.model.input.size is [%d, %d], wanted sides of 1 to %d", o.Width, o.Height, maxSide)
	}
	if !(o.IoU >= 0 && o.IoU <= 1) {
		return fmt.Errorf("inference.model.nms.iou is %v, wanted 0 to 1", o.IoU)
	}
	return o.checkNumbers()
}

// checkNumbers keeps a sample of 0..255 from becoming infinite or the same for all.
func (o *Overrides) checkNumbers() error {
	if o.Scale != nil && !(*o.Scale >= 1e-6 && *o.Scale <= 1e6) {
		return fmt.Errorf("inference.model.input.scale is %v, wanted 1e-6 to 1e6", *o.Scale)
	}
	for c := range 3 {
		if o.Std != nil && !(o.Std[c] >= 1e-6 && o.Std[c] <= 1e6) {
			return fmt.Errorf("inference.model.input.std is %v, wanted numbers of 1e-6 to 1e6", *o.Std)
		}
		if o.Mean != nil && !(o.Mean[c] >= -1e6 && o.Mean[c] <= 1e6) {
			return fmt.Errorf("inference.model.input.mean is %v, wanted numbers of -1e6 to 1e6", *o.Mean)
		}
	}
	// Numbers for samples of 0..1 without a scale of 1/255 would drive everything far out of range.
	if o.Scale == nil && o.Std != nil && max(o.Std[0], o.Std[1], o.Std[2]) < 1 {
		return fmt.Errorf("inference.model.input.std is %v, which is for samples of 0..1: set inference.model.input.scale to 0.00392157 (1/255), or to 1 if it is meant for samples of 0..255", *o.Std)
	}
	return nil
}

func (in *inspector) checkOverrides() {
	if err := in.o.Check(); err != nil {
		in.refuse("%v", err)
	}
}

// overridePixels applies what the configuration says of samples.
func (in *inspector) overridePixels() {
	o, i := &in.o, &in.rep.Spec.Input
	if o.Color != "" {
		if i.Order = infer.RGB; o.Color == "BGR" {
			i.Order = infer.BGR
		}
		in.replace("color", o.Color, "inference.model.input.color")
	}
	if o.Letterbox != "" {
		if i.Align = infer.Center; o.Letterbox == "top_left" {
			i.Align = infer.TopLeft
		}
		in.replace("letterbox", o.Letterbox, "inference.model.input.letterbox")
	}
	if o.Mean == nil && o.Std == nil && o.Scale == nil {
		return
	}
	mean, std, scale := all(0), all(1), float32(1)
	var keys []string
	if o.Mean != nil {
		mean, keys = *o.Mean, append(keys, "mean")
	}
	if o.Std != nil {
		std, keys = *o.Std, append(keys, "std")
	}
	if o.Scale != nil {
		scale, keys = *o.Scale, append(keys, "scale")
	}
	// (sample·scale − mean)/std = (sample − mean/scale)/(std/scale)
	for c := range 3 {
		i.Mean[c], i.Std[c] = mean[c]/scale, std[c]/scale
	}
	in.replace("normalisation", normalisationText(i.Mean, i.Std), "inference.model.input."+strings.Join(keys, ", "))
}

// replace puts what the configuration says in the place of a finding.
func (in *inspector) replace(about, value, evidence string) {
	f := Finding{About: about, Value: value, Evidence: evidence, Certainty: FromConfig}
	for k := range in.rep.Findings {
		if in.rep.Findings[k].About == about {
			in.rep.Findings[k] = f
			return
		}
	}
	in.rep.Findings = append(in.rep.Findings, f)
}
