package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edgecam/infer"
	"edgecam/infer/model/fixture"
	"edgecam/internal/config"
)

// checkText reads a configuration as `edgecam check` does.
func checkText(t *testing.T, dir, text string) string {
	t.Helper()
	path := filepath.Join(dir, "edgecam.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readConfig(path, newModelFiles().check); err != nil {
		return strings.ReplaceAll(err.Error(), dir+"/", "")
	}
	return ""
}

// A configuration is held against the model files that it names.
func TestCheckModels(t *testing.T) {
	dir := t.TempDir()
	d := fixture.Detector{Family: "yolov8", Classes: 2, Objects: []infer.Detection{{Score: 0.9, X1: 10, Y1: 10, X2: 90, Y2: 90}}}
	d.Meta = map[string]string{"names": "{0: 'person', 1: 'forklift'}"}
	for name, content := range map[string][]byte{"yard.onnx": d.Bytes(), "broken.onnx": []byte("not a model"), "one.txt": []byte("person\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	camera := func(more string) string {
		return fmt.Sprintf("\ncameras:\n  gate: {url: 'rtsp://192.0.2.1/', %s}\n", more)
	}
	for _, tt := range []struct{ name, text, want string }{
		{"fine", "inference: {model: yard.onnx}" + camera("detect: {objects: {forklift: 0.5}}"), ""},
		{"built-in", "version: 1" + camera("detect: {objects: {traffic light: 0.5}}"), ""},
		{"typing error", "version: 1" + camera("detect: {objects: {persn: 0.5}}"), `edgecam.yaml:3:55: cameras.gate.detect.objects.persn: the model has no label "persn": did you mean "person"?`},
		{"other model", "inference: {models: {yard: yard.onnx}}" + camera("model: yard, detect: {objects: {car: 0.5}}"), `edgecam.yaml:3:68: cameras.gate.detect.objects.car: the model has no label "car"; it has person, forklift`},
		{"gone", "inference: {model: gone.onnx}", `edgecam.yaml:1:20: inference.model: no such file or directory; name the path of an .onnx file, not "gone.onnx"`},
		{"family", "inference: {model: {file: yard.onnx, family: yolo8}}", `edgecam.yaml:1:46: inference.model.family: did you mean yolov8?, not "yolo8"`},
	} {
		if got := checkText(t, dir, tt.text); got != tt.want {
			t.Errorf("%s: got %s\nwant %s", tt.name, got, tt.want)
		}
	}
	for name, text := range map[string]string{"broken": "inference: {model: broken.onnx}", "labels": "inference: {model: {file: yard.onnx, labels: one.txt}}"} {
		if got := checkText(t, dir, text); !strings.HasPrefix(got, "edgecam.yaml:1:") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// What was found in a file is kept until the file, its labels or what is said of
// it changes.
func TestModelFilesAreReadOnce(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "yard.onnx")
	write := func(label string) {
		d := fixture.Detector{Family: "yolov8", Classes: 1, Meta: map[string]string{"names": "{0: '" + label + "'}"}}
		if err := os.WriteFile(path, d.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("cat")
	f, m := newModelFiles(), config.Model{File: path}
	first, err := f.Inspect(m)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := f.Inspect(m); again != first {
		t.Error("the same file was read twice")
	}
	m.NMS.IoU = 0.3
	if other, err := f.Inspect(m); err != nil || other == first {
		t.Errorf("another overlap gave the report of before, error %v", err)
	}
	write("giraffe")
	if r, err := f.Inspect(m); err != nil || r.Spec.Labels[0] != "giraffe" {
		t.Errorf("report %+v, error %v", r, err)
	}
}
