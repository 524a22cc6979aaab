package main

import (
	"context"
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edgecam/infer"
	"edgecam/infer/model/fixture"
	"edgecam/internal/sim"
	"edgecam/internal/testkit"
)

// modelFile shows one object, at these fractions of a square picture: 0.25 0.25 0.5 0.75.
func modelFile(t *testing.T, family string, classes int) string {
	d := fixture.Detector{Family: family, Classes: classes, Objects: []infer.Detection{{Class: 0, Score: 0.9, X1: 80, Y1: 80, X2: 160, Y2: 240}}}
	return write(t, "model.onnx", string(d.Bytes()))
}

// picture is a grey PNG of 200x100.
func picture(t *testing.T) string {
	img := image.NewRGBA(image.Rect(0, 0, 200, 100))
	for y := range 100 {
		for x := range 200 {
			img.Set(x, y, color.RGBA{90, 90, 90, 255})
		}
	}
	path := filepath.Join(t.TempDir(), "picture.png")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := png.Encode(f, img); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestModelInspect(t *testing.T) {
	file, library := modelFile(t, "yolov8", 80), testkit.ONNXRuntime(t)
	code, stdout, stderr := run(t, "model", "inspect", file, "--library", library)
	if code != exitOK || stderr != "" {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	for _, want := range []string{
		file, "input      images float32 [1 3 320 320] NCHW", "family: yolov8 (the graph shows it)",
		"color: RGB (by convention)", "labels: COCO's 80 (by convention)", "providers  cpu: ", "M parameters",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
}

func TestModelInspectPicture(t *testing.T) {
	out := filepath.Join(t.TempDir(), "found.png")
	code, stdout, stderr := run(t, "model", "inspect", modelFile(t, "yolov8", 80), "--json", "--library", testkit.ONNXRuntime(t), "--image", picture(t), "--out", out)
	if code != exitOK {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	var r struct {
		Spec struct {
			Family string
			Input  struct {
				Layout, Color, Letterbox string
				Width                    int
				Std                      [3]float32
			}
			Decode struct{ Kind, Box, Units string }
			Labels []string
		}
		Findings   []map[string]string
		Providers  []string
		Detections []found
		Image      string
	}
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	if r.Spec.Family != "yolov8" || r.Spec.Input.Layout != "NCHW" || r.Spec.Input.Color != "RGB" || r.Spec.Input.Width != 320 || r.Spec.Input.Letterbox != "center" || r.Spec.Input.Std[0] != 255 || r.Spec.Decode.Kind != "joined" || r.Spec.Decode.Box != "cxcywh" || len(r.Spec.Labels) != 80 || len(r.Findings) < 8 {
		t.Errorf("%+v", r)
	}
	if r.Image != out || len(r.Detections) != 1 || r.Detections[0].Label != "person" {
		t.Fatalf("%+v", r.Detections)
	}
	// The picture fills the middle half of the input's height.
	for i, want := range [4]float32{0.25, 0, 0.5, 1} {
		if d := r.Detections[0].Box[i] - want; d > 0.01 || d < -0.01 {
			t.Errorf("box %v", r.Detections[0].Box)
			break
		}
	}
	f, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil || img.Bounds().Dx() != 200 || img.Bounds().Dy() != 100 {
		t.Fatalf("%v, %v", img.Bounds(), err)
	}
	marked := 0
	for y := range 100 {
		for x := range 200 {
			if c := color.RGBAModel.Convert(img.At(x, y)).(color.RGBA); max(c.R, c.G, c.B)-min(c.R, c.G, c.B) > 60 {
				marked++
			}
		}
	}
	if marked < 200 {
		t.Errorf("%d pixels of colour in the drawn picture", marked)
	}
}

func TestModelInspectRefuses(t *testing.T) {
	library := testkit.ONNXRuntime(t)
	labels := write(t, "labels.txt", "one\r\ntwo\r\n\r\n")
	tests := []struct {
		name           string
		args           []string
		code           int
		stdout, stderr string
	}{
		{"labels are asked for", []string{modelFile(t, "yolov10", 3)}, exitFailed, "set inference.model.labels: ", "Try: set inference.model.labels"},
		{"labels that do not fit", []string{modelFile(t, "yolov8", 3), "--labels", labels}, exitFailed, "refused: output output0 float32[N,7,2100] gives 3 classes, " + labels + " lists 2 labels", "gives 3 classes"},
		{"TensorRT alone", []string{modelFile(t, "efficientnms", 2), "--labels", labels}, exitOK, "providers  tensorrt", ""},
		{"no model", []string{labels}, exitFailed, "", "is a file of text, no ONNX model"},
		{"no file", []string{"/nonexistent/model.onnx"}, exitFailed, "", "load model /nonexistent/model.onnx: no such file or directory"},
		{"size that is none", []string{labels, "--size", "640"}, exitUsage, "", `--size is "640", wanted like 640x640`},
		{"unknown family", []string{labels, "--family", "yolo"}, exitUsage, "", `inference.model.family is "yolo"`},
		{"no picture", []string{modelFile(t, "yolov8", 80), "--image", labels}, exitFailed, "", "open picture " + labels},
		{"no arguments", nil, exitUsage, "", "edgecam model inspect takes the path of an ONNX file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, stdout, stderr := run(t, append([]string{"model", "inspect", "--library", library}, tt.args...)...)
			if code != tt.code || !strings.Contains(stdout, tt.stdout) || !strings.Contains(stderr, tt.stderr) {
				t.Errorf("exit code %d, want %d\n%s\n%s", code, tt.code, stdout, stderr)
			}
		})
	}
}

func TestModelInspectBuiltin(t *testing.T) {
	code, stdout, stderr := run(t, "model", "inspect", "builtin:nanodet-g", "--library", testkit.ONNXRuntime(t))
	if code != exitOK || !strings.Contains(stdout, "family: boxes-scores (the file says so)") || !strings.Contains(stdout, "ms an image") {
		t.Errorf("exit code %d\n%s\n%s", code, stdout, stderr)
	}
}

// A camera of a configuration gives the picture; nothing else of it is needed.
func TestModelInspectCamera(t *testing.T) {
	s, err := sim.New(sim.Options{Listen: "127.0.0.1:0", Cameras: make([]sim.Camera, 1), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	config := write(t, "edgecam.yaml", "inference: {model: gone.onnx}\ncameras: {gate: {url: '"+s.URL(0)+"', enabled: false}}\n")
	out, library := filepath.Join(t.TempDir(), "found.png"), testkit.ONNXRuntime(t)
	inspect := func(more ...string) (int, string, string) {
		return run(t, append([]string{"model", "inspect", modelFile(t, "yolov8", 80), "--json", "--library", library, "--out", out}, more...)...)
	}
	code, stdout, stderr := inspect("--camera", "gate", "--config", config)
	var r struct{ Detections []found }
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != exitOK || len(r.Detections) != 1 {
		t.Errorf("exit code %d, %s, %v, %+v", code, stderr, err, r)
	}
	if info, err := os.Stat(out); err != nil || info.Size() == 0 {
		t.Errorf("picture: %v", err)
	}
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--camera", "yard", "--config", config}, exitFailed, "has no such camera"},
		{[]string{"--camera", "gate"}, exitUsage, "--camera needs --config FILE"},
		{[]string{"--config", config}, exitUsage, "--config needs --camera ID"},
		{[]string{"--camera", "gate", "--config", config, "--image", out}, exitUsage, "one picture at a time"},
	} {
		if code, _, stderr := inspect(tt.args...); code != tt.code || !strings.Contains(stderr, tt.want) {
			t.Errorf("%q: exit code %d, %s", tt.args, code, stderr)
		}
	}
}

// A file that is no model has its reason in the JSON too, and a picture without objects
// an empty list.
func TestModelInspectJSON(t *testing.T) {
	code, stdout, _ := run(t, "model", "inspect", write(t, "page.onnx", "<!DOCTYPE html>"), "--json")
	var r struct{ Refusal string }
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != exitFailed || !strings.HasPrefix(r.Refusal, "is a web page") {
		t.Errorf("exit code %d, %v, %s", code, err, stdout)
	}
	out := filepath.Join(t.TempDir(), "found.png")
	code, stdout, stderr := run(t, "model", "inspect", modelFile(t, "yolov8", 80), "--json", "--threshold", "1", "--library", testkit.ONNXRuntime(t), "--image", picture(t), "--out", out)
	if code != exitOK || !strings.Contains(stdout, `"detections": []`) {
		t.Errorf("exit code %d, %s: %s", code, stderr, stdout)
	}
	code, _, stderr = run(t, "model", "inspect", modelFile(t, "yolov8", 80), "--library", testkit.ONNXRuntime(t), "--image", write(t, "x.jpg", "hello"))
	if code != exitFailed || !strings.Contains(stderr, "it is neither a JPEG nor a PNG") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}
