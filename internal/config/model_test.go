package config_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"edgecam/internal/config"
)

// known is what the tests take for the program's models.
func known(m config.Model, _ string) ([]string, []config.ModelProblem) {
	switch {
	case strings.HasSuffix(m.File, "unclear.onnx") && m.Family == "":
		return nil, []config.ModelProblem{{Key: "family", Err: errors.New("the outputs may be of two families (yolov5, yolov8)")}}
	case strings.HasSuffix(m.File, "gone.onnx"):
		return nil, []config.ModelProblem{{Err: errors.New("no such file"), File: true}}
	case len(m.Labels.Names) > 0:
		return m.Labels.Names, nil
	}
	return []string{"person", "car", "TV"}, nil
}

func parseModels(t *testing.T, text string, env ...string) (*config.Config, error) {
	t.Helper()
	return config.Parse([]byte(text), "/etc/edgecam/edgecam.yaml", config.Options{
		Env: env, Families: []string{"yolov5", "yolov8", "nanodet"}, CheckModel: known,
		CheckBuiltin: func(model, _ string) error {
			if model != "builtin:nanodet-g" {
				return errors.New("there is no such built-in model")
			}
			return nil
		},
	})
}

func TestModelForms(t *testing.T) {
	const whole = `{file: m/yard.onnx, family: yolov8, input: {size: [640, 320], layout: NHWC, color: BGR, mean: [1, 2.5, -3],
 std: [1, 1, 2], scale: 0.5, letterbox: top_left}, labels: [person, "car"], score_threshold: 0.3, nms: {iou: 0.5, class_agnostic: true}}`
	want := config.Model{
		File: "/etc/edgecam/m/yard.onnx", Family: "yolov8",
		Input:  config.ModelInput{Size: []int{640, 320}, Layout: "NHWC", Color: "BGR", Mean: []float64{1, 2.5, -3}, Std: []float64{1, 1, 2}, Scale: 0.5, Letterbox: "top_left"},
		Labels: config.Labels{Names: []string{"person", "car"}}, ScoreThreshold: 0.3, NMS: config.NMS{IoU: 0.5, ClassAgnostic: true},
	}
	byDefault := config.Default().Inference.Model
	file := func(name string) config.Model { return config.Model{File: name} }
	threshold := byDefault
	threshold.ScoreThreshold = 0.2
	named := file("/srv/a.onnx")
	named.Labels.File = "/etc/edgecam/labels.txt"
	for _, tt := range []struct {
		name, text string
		env        []string
		model      config.Model
		models     map[string]config.Model
	}{
		{"nothing", "version: 1", nil, byDefault, nil},
		{"text", "inference: {model: yard.onnx}", nil, file("/etc/edgecam/yard.onnx"), nil},
		{"mapping", "inference: {model: " + whole + "}", nil, want, nil},
		{"mapping without file", "inference: {model: {score_threshold: 0.2}}", nil, threshold, nil},
		{"empty lists", "inference: {model: {input: {size: [], mean: []}, labels: []}}", nil, byDefault, nil},
		{"alias", "inference: {model: &m " + whole + ", models: {b: *m}}", nil, want, map[string]config.Model{"b": want}},
		{
			"several", "inference: {models: {a: {file: /srv/a.onnx, labels: labels.txt}, b: b.onnx}}", nil, byDefault,
			map[string]config.Model{"a": named, "b": file("/etc/edgecam/b.onnx")},
		},
		{"variable for all", "inference: {model: " + whole + "}", []string{"EDGECAM_INFERENCE_MODEL=/srv/b.onnx"}, file("/srv/b.onnx"), nil},
		{
			"variables for keys", "inference: {model: yard.onnx, models: {b: b.onnx}}",
			[]string{"EDGECAM_INFERENCE_MODEL_INPUT_SIZE=[320, 320]", "EDGECAM_INFERENCE_MODEL_LABELS=[a, b]", "EDGECAM_INFERENCE_MODELS_B_FAMILY=yolov5"},
			config.Model{File: "/etc/edgecam/yard.onnx", Input: config.ModelInput{Size: []int{320, 320}}, Labels: config.Labels{Names: []string{"a", "b"}}},
			map[string]config.Model{"b": {File: "/etc/edgecam/b.onnx", Family: "yolov5"}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseModels(t, tt.text, tt.env...)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got.Inference.Model, tt.model) || !reflect.DeepEqual(got.Inference.Models, tt.models) {
				t.Errorf("got  %+v, %+v\nwant %+v, %+v", got.Inference.Model, got.Inference.Models, tt.model, tt.models)
			}
		})
	}
}

// Every mistake is told with its place, and with what may have been meant.
func TestModelMistakes(t *testing.T) {
	const camera = "\ncameras: {gate: {url: 'rtsp://192.0.2.1/'"
	for _, tt := range []struct {
		name, text string
		env        []string
		want       string // without the file's name
	}{
		{"key", "inference:\n  model: {file: a.onnx, famly: yolov8}", nil, "2:25: inference.model.famly: unknown key: did you mean family?"},
		{"family", "inference:\n  model: {file: a.onnx, family: yolo8}", nil, `2:33: inference.model.family: did you mean yolov8?, not "yolo8"`},
		{"other family", "inference:\n  models: {a: {file: a.onnx, family: resnet}}", nil, `2:38: inference.models.a.family: want one of yolov5, yolov8, nanodet, not "resnet"`},
		{"colour", "inference: {model: {input: {color: rgb}}}", nil, `1:36: inference.model.input.color: want RGB or BGR, not "rgb"`},
		{"size", "inference: {model: {input: {size: [640]}}}", nil, "1:35: inference.model.input.size: want width and height in pixels, 1 to 8192, such as [640, 640]"},
		{"size as text", "inference: {model: {input: {size: 640x640}}}", nil, "1:35: inference.model.input.size: want a list, not a single value"},
		{"size of words", "inference: {model: {input: {size: [640, high]}}}", nil, `1:41: inference.model.input.size: want a whole number, not "high"`},
		{"std", "inference: {model: {input: {std: [1, 0, 1]}}}", nil, "1:34: inference.model.input.std: want three numbers of 1e-6 to 1e6, one a channel in the order of color"},
		{"overlap", "inference: {model: {nms: {iou: 2}}}", nil, `1:32: inference.model.nms.iou: want 0 to 1, not "2"`},
		{"list", "inference: {model: [a.onnx]}", nil, "1:20: inference.model: want keys and values, not a list"},
		{"labels", "inference: {model: {labels: {a: b}}}", nil, "1:29: inference.model.labels: want the path of a file, or a list of labels"},
		{"no file", "inference: {models: {a: {family: yolov8}}}", nil, "1:22: inference.models.a: want builtin:nanodet-g or the path of an .onnx file"},
		{"name", "inference: {models: {default: a.onnx}}", nil, "1:22: inference.models.default: want a name of 1 to 64 of the characters a-z 0-9 _ -, other than default, which is inference.model"},
		{"built-in", "inference: {models: {a: builtin:x}}", nil, `1:22: inference.models.a: there is no such built-in model, not "builtin:x"`},
		{"file asks", "inference: {model: {file: unclear.onnx}}", nil, "1:20: inference.model.family: the outputs may be of two families (yolov5, yolov8)"},
		{"file is gone", "inference:\n  models:\n    a: gone.onnx", nil, `3:5: inference.models.a: no such file, not "gone.onnx"`},
		{"variable", "version: 1", []string{"EDGECAM_INFERENCE_MODEL_INPUT_SIZE=big"}, `EDGECAM_INFERENCE_MODEL_INPUT_SIZE: inference.model.input.size: want a list, not a single value`},
		{"model of a camera", "inference: {models: {plates: p.onnx}}" + camera + ", model: plate}}", nil, `2:51: cameras.gate.model: there is no such model under inference.models: did you mean plates?, not "plate"`},
		{"no model of a camera", "version: 1" + camera + ", model: yard}}", nil, `2:51: cameras.gate.model: there is no such model under inference.models: want default, not "yard"`},
		{"label", "version: 1" + camera + ", detect: {objects: {persn: 0.5}}}}", nil, `2:63: cameras.gate.detect.objects.persn: the model has no label "persn": did you mean "person"?`},
		{"label by case", "version: 1" + camera + ", detect: {objects: {tv: 0.5}}}}", nil, `2:63: cameras.gate.detect.objects.tv: the model has no label "tv": did you mean "TV"?`},
		{"label of another model", "inference: {models: {plates: {file: p.onnx, labels: [plate]}}}" + camera + ", model: plates, detect: {objects: {person: 0.5}}}}", nil, `2:78: cameras.gate.detect.objects.person: the model has no label "person"; it has plate`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parseModels(t, tt.text, tt.env...)
			got := strings.ReplaceAll(text(err), "/etc/edgecam/edgecam.yaml:", "")
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// A label that a model does not have leaves its camera out, and no other.
func TestUnknownLabelLeavesOneOut(t *testing.T) {
	cfg, err := parseModels(t, "cameras: {a: {url: 'rtsp://192.0.2.1/', detect: {objects: {peron: 0}}}, b: {url: 'rtsp://192.0.2.2/', detect: {objects: {car: 0}}}}")
	if err == nil || cfg == nil || len(cfg.Cameras) != 1 {
		t.Fatalf("config %+v, error %v", cfg, err)
	}
}

func TestNamed(t *testing.T) {
	cfg, err := parseModels(t, "inference: {score_threshold: 0.4, nms_iou: 0.7, model: a.onnx, models: {b: {file: b.onnx, score_threshold: 0.2, nms: {iou: 0.5}}}}")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]config.Model{
		"default": {File: "/etc/edgecam/a.onnx", ScoreThreshold: 0.4},
		"b":       {File: "/etc/edgecam/b.onnx", ScoreThreshold: 0.2, NMS: config.NMS{IoU: 0.5}},
	}
	if got := cfg.Inference.Named(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if c := (config.Camera{}); c.ModelName() != config.DefaultModel {
		t.Error("a camera that names no model has none")
	}
}
