package infer_test

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"edgecam/infer"
)

func goodProperties() map[string]string {
	return map[string]string{
		"names": `["person","car"]`, "family": "boxes-scores", "task": "detect", "input_size": "[416,320]", "input_layout": "NCHW",
		"color_order": "BGR", "mean": "[103.53,116.28,123.675]", "std": "[57.375,57.12,58.395]", "scale": "1", "letterbox": "center",
		"letterbox_pad": "114", "strides": "[8,16,32]", "box_format": "xyxy", "box_units": "input_pixels", "scores_activated": "true",
	}
}

func TestParseMetadata(t *testing.T) {
	got, err := infer.ParseMetadata(goodProperties())
	if err != nil {
		t.Fatal(err)
	}
	want := infer.InputSpec{
		Width: 416, Height: 320, Order: infer.BGR, Pad: 114, Align: infer.Center,
		Mean: [3]float32{103.53, 116.28, 123.675}, Std: [3]float32{57.375, 57.12, 58.395},
	}
	if got.Input != want || !slices.Equal(got.Labels, []string{"person", "car"}) {
		t.Errorf("got %+v, want input %+v", got, want)
	}
}

// TestParseMetadataScale folds a factor on the samples into mean and std.
func TestParseMetadataScale(t *testing.T) {
	p := goodProperties()
	maps.Copy(p, map[string]string{"scale": "0.5", "mean": "[1,2,3]", "std": "[4,5,6]", "color_order": "RGB", "letterbox": "top_left"})
	got, err := infer.ParseMetadata(p)
	if err != nil {
		t.Fatal(err)
	}
	in := got.Input
	if in.Mean != [3]float32{2, 4, 6} || in.Std != [3]float32{8, 10, 12} || in.Order != infer.RGB || in.Align != infer.TopLeft {
		t.Errorf("input %+v", in)
	}
}

func TestParseMetadataNamesTheKey(t *testing.T) {
	tests := []struct{ name, key, value, want string }{
		{"family", "family", "yolo", `metadata family: is "yolo", edgecam knows boxes-scores`},
		{"task", "task", "pose", `metadata task: is "pose", edgecam knows detect`},
		{"layout", "input_layout", "CHWN", `metadata input_layout: is "CHWN", edgecam knows NCHW, NHWC`},
		{"order", "color_order", "GRB", `metadata color_order: is "GRB", edgecam knows RGB, BGR`},
		{"letterbox", "letterbox", "stretch", `metadata letterbox: is "stretch", edgecam knows center, top_left`},
		{"pad", "letterbox_pad", "256", `metadata letterbox_pad: is "256", wanted a number from 0 to 255`},
		{"pad NaN", "letterbox_pad", "NaN", `metadata letterbox_pad: is "NaN", wanted a number from 0 to 255`},
		{"size", "input_size", "416", `metadata input_size: is "416", wanted [width, height]`},
		{"size of three", "input_size", "[3,416,416]", `metadata input_size: is "[3,416,416]", wanted [width, height]`},
		{"size 0", "input_size", "[0,416]", "metadata input_size: side 0 is not between 1 and 8192"},
		{"size huge", "input_size", "[416,99999]", "metadata input_size: side 99999 is not between 1 and 8192"},
		{"mean of two", "mean", "[1,2]", `metadata mean: is "[1,2]", wanted three numbers`},
		{"std of zero", "std", "[1,0,1]", "metadata std: channel 1 is 0 (scale 1), wanted 1e-6 to 1e6"},
		{"mean beyond", "mean", "[1,1e30,1]", "metadata mean: channel 1 is 1e+30 (scale 1), wanted -1e6 to 1e6"},
		{"names no JSON", "names", "person,car", "metadata names: is no JSON list of labels: invalid character 'p' looking for beginning of value"},
		{"no names", "names", "[]", "metadata names: holds 0 labels, wanted 1 to 10000"},
		{"empty name", "names", `["person"," "]`, "metadata names: label 1 is empty"},
		{"raw scores", "scores_activated", "false", `metadata scores_activated: is "false", edgecam knows true`},
		{"long value", "box_format", strings.Repeat("x", 70), `metadata box_format: is "` + strings.Repeat("x", 60) + `…", edgecam knows xyxy`},
		{"scale 0", "scale", "0", `metadata scale: is "0", wanted a number from 1e-06 to 1e+06`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := goodProperties()
			p[tt.key] = tt.value
			if _, err := infer.ParseMetadata(p); err == nil || err.Error() != tt.want {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
	for key := range goodProperties() {
		p := goodProperties()
		delete(p, key)
		_, err := infer.ParseMetadata(p)
		optional := key == "task" || key == "scale" || key == "strides"
		if optional != (err == nil) || !optional && err.Error() != "metadata "+key+": is missing" {
			t.Errorf("without %s: %v", key, err)
		}
	}
}

// FuzzParseMetadata feeds property lists: whatever passes must be usable.
func FuzzParseMetadata(f *testing.F) {
	good, err := json.Marshal(goodProperties())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Fuzz(func(t *testing.T, data []byte) {
		var p map[string]string
		if json.Unmarshal(data, &p) != nil {
			return
		}
		m, err := infer.ParseMetadata(p)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "metadata ") {
				t.Errorf("error %q names no key", err)
			}
			return
		}
		in := m.Input
		if in.Width < 1 || in.Height < 1 || in.Width > 8192 || in.Height > 8192 || len(m.Labels) == 0 {
			t.Errorf("unusable %+v passed", m)
		}
		for c := range 3 {
			black, white := (0-in.Mean[c])/in.Std[c], (255-in.Mean[c])/in.Std[c]
			if math.IsNaN(float64(black)) || math.IsInf(float64(white), 0) || !(white > black) {
				t.Errorf("channel %d maps 0..255 to %v..%v", c, black, white)
			}
		}
	})
}
