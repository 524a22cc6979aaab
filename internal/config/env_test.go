package config_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"edgecam/internal/config"
)

const twoCameras = `
cameras:
  gate: {url: "rtsp://192.0.2.1/"}
  back-yard: {url: "rtsp://192.0.2.2/", detect: {objects: {person: 0.5, traffic light: 0.4}}}
`

func TestEnvironmentOverrides(t *testing.T) {
	env := []string{
		"EDGECAM_CONFIG=/etc/edgecam/edgecam.yaml",
		"EDGECAM_SERVER_LISTEN=:443",
		"EDGECAM_SERVER_AUTH_USER=admin",
		"EDGECAM_SERVER_AUTH_PASSWORD_HASH=$argon2id$v=19$m=65536,t=3,p=4$c2FsdHNhbHQ$MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY",
		"EDGECAM_GPU_MODE=off",
		"EDGECAM_INFERENCE_MAX_BATCH=4",
		"EDGECAM_INFERENCE_LATENCY_BUDGET=10ms",
		"EDGECAM_INFERENCE_NMS_IOU=0.5",
		"EDGECAM_MEMORY_LIMIT=512MiB",
		"EDGECAM_MEMORY_LOCK=false",
		"EDGECAM_STATE_DIR=/var/lib/edgecam",
		"EDGECAM_CAMERAS_GATE_URL=rtsp://192.0.2.9/",
		"EDGECAM_CAMERAS_GATE_USERNAME=viewer",
		"EDGECAM_CAMERAS_GATE_PASSWORD=as it is: ${X} $$ {file: y} #",
		"EDGECAM_CAMERAS_GATE_DETECT_OBJECTS={car: 0.25}",
		"EDGECAM_CAMERAS_BACK_YARD_NAME=Hinterhof",
		"EDGECAM_CAMERAS_BACK_YARD_DETECT_FPS=2.5",
		"EDGECAM_CAMERAS_BACK_YARD_DETECT_PRIORITY=3",
		"EDGECAM_CAMERAS_BACK_YARD_DETECT_OBJECTS_TRAFFIC_LIGHT=0.9",
		// Not ours: other programs' names, and what Kubernetes sets.
		"EDGECAM_PORT_8080_TCP=tcp://192.0.2.3:8080", "EDGECAM_SERVICE_HOST=192.0.2.3", "EDGECAM_DEBUG=1", "EDGECAM_ONNXRUNTIME=/opt/libonnxruntime.so", "HOME=/", "broken",
	}
	got, err := config.Parse([]byte(twoCameras), "edgecam.yaml", config.Options{Env: env})
	if err != nil {
		t.Fatal(err)
	}
	want := config.Default()
	want.Server = config.Server{Listen: ":443", Auth: &config.Auth{
		User: "admin", PasswordHash: config.NewSecret("$argon2id$v=19$m=65536,t=3,p=4$c2FsdHNhbHQ$MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"),
	}}
	want.GPU.Mode = "off"
	want.Inference.MaxBatch, want.Inference.LatencyBudget, want.Inference.NMSIoU = 4, 10*time.Millisecond, 0.5
	want.Memory.Limit, want.Memory.Lock = 512<<20, false
	want.StateDir = "/var/lib/edgecam"
	gate, yard := config.DefaultCamera(), config.DefaultCamera()
	gate.URL, gate.Username, gate.Password = config.NewSecret("rtsp://192.0.2.9/"), "viewer", config.NewSecret("as it is: ${X} $$ {file: y} #")
	gate.Detect.Objects = map[string]float64{"car": 0.25}
	yard.URL, yard.Name, yard.Detect.FPS = config.NewSecret("rtsp://192.0.2.2/"), "Hinterhof", 2.5
	yard.Detect.Priority = 3
	yard.Detect.Objects = map[string]float64{"person": 0.5, "traffic light": 0.9}
	want.Cameras = map[string]config.Camera{"gate": gate, "back-yard": yard}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestEnvironmentErrors(t *testing.T) {
	tests := []struct{ name, file, env, want string }{
		{"misspelt section", twoCameras, "EDGECAM_SERVR_LISTEN=:1", "EDGECAM_SERVR_LISTEN: fits no key: did you mean EDGECAM_SERVER_LISTEN?"},
		{"misspelt key", twoCameras, "EDGECAM_INFERENCE_MAXBATCH=1", "EDGECAM_INFERENCE_MAXBATCH: fits no key: did you mean EDGECAM_INFERENCE_MAX_BATCH?"},
		{"misspelt camera", twoCameras, "EDGECAM_CAMERAS_GTAE_URL=rtsp://u:hunter2@x", "EDGECAM_CAMERAS_GTAE_URL: fits no key: did you mean EDGECAM_CAMERAS_GATE_URL?"},
		{"camera that is not in the file", twoCameras, "EDGECAM_CAMERAS_WAREHOUSE_NORTH_SIDE_URL=x", "EDGECAM_CAMERAS_WAREHOUSE_NORTH_SIDE_URL: fits no key of a camera in the file: cameras are added in the file alone"},
		{"whole section", twoCameras, "EDGECAM_SERVER=x", "EDGECAM_SERVER: fits no key"},
		{"nothing near", twoCameras, "EDGECAM_GPU_TEMPERATURE_LIMIT_IN_KELVIN=1", "EDGECAM_GPU_TEMPERATURE_LIMIT_IN_KELVIN: fits no key"},
		{"bad number", twoCameras, "EDGECAM_INFERENCE_MAX_BATCH=many", `EDGECAM_INFERENCE_MAX_BATCH: inference.max_batch: want a whole number, not "many"`},
		{"out of range", twoCameras, "EDGECAM_INFERENCE_MAX_BATCH=0", `EDGECAM_INFERENCE_MAX_BATCH: inference.max_batch: want 1 to 256, not "0"`},
		{"empty", twoCameras, "EDGECAM_INFERENCE_NMS_IOU=", "EDGECAM_INFERENCE_NMS_IOU: inference.nms_iou: want a number, not an empty text"},
		{"empty word", twoCameras, "EDGECAM_GPU_MODE=", "EDGECAM_GPU_MODE: gpu.mode: want auto, require or off, not an empty text"},
		{"bad secret is not shown", twoCameras, "EDGECAM_CAMERAS_GATE_URL=http://u:hunter2@192.0.2.1/", "EDGECAM_CAMERAS_GATE_URL: cameras.gate.url: want rtsp:// or rtsps://, not http://"},
		{"objects that are no YAML", twoCameras, "EDGECAM_CAMERAS_GATE_DETECT_OBJECTS={", `EDGECAM_CAMERAS_GATE_DETECT_OBJECTS: cameras.gate.detect.objects: want YAML such as {person: 0.5}, not "{"`},
		{"objects out of range", twoCameras, "EDGECAM_CAMERAS_GATE_DETECT_OBJECTS={car: 7}", `EDGECAM_CAMERAS_GATE_DETECT_OBJECTS: cameras.gate.detect.objects.car: want 0 to 1, not "7"`},
		{"objects of another kind", twoCameras, "EDGECAM_CAMERAS_GATE_DETECT_OBJECTS={car: high}", `EDGECAM_CAMERAS_GATE_DETECT_OBJECTS: cameras.gate.detect.objects.car: want a number, not "high"`},
		{
			"two ids with one name",
			"cameras: {a-b: {url: 'rtsp://192.0.2.1/'}, a_b: {url: 'rtsp://192.0.2.2/'}}", "EDGECAM_CAMERAS_A_B_NAME=x",
			"EDGECAM_CAMERAS_A_B_NAME: fits cameras.a-b.name and cameras.a_b.name: rename one",
		},
		{
			"an id that ends like a key",
			"cameras: {gate: {url: 'rtsp://192.0.2.1/'}, gate_detect: {url: 'rtsp://192.0.2.2/'}}", "EDGECAM_CAMERAS_GATE_DETECT_ENABLED=false",
			"EDGECAM_CAMERAS_GATE_DETECT_ENABLED: fits cameras.gate.detect.enabled and cameras.gate_detect.enabled: rename one",
		},
		{
			"half an auth", twoCameras, "EDGECAM_SERVER_AUTH_USER=admin",
			"edgecam.yaml: server.auth.password_hash: want an argon2id hash ($argon2id$v=19$m=…,t=…,p=…$…$…), as edgecam hash-password makes it",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := config.Parse([]byte(tt.file), "edgecam.yaml", config.Options{Env: []string{tt.env}})
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestAmbiguityOnlyWhenUsed(t *testing.T) {
	file := "cameras: {a-b: {url: 'rtsp://192.0.2.1/'}, a_b: {url: 'rtsp://192.0.2.2/'}}"
	if _, err := config.Parse([]byte(file), "edgecam.yaml", config.Options{}); err != nil {
		t.Error(err)
	}
}

// A problem of one camera leaves the others, and the file's order, as they are.
func TestProblemsOfCamerasLeaveTheRest(t *testing.T) {
	file := "log: {level: debug}\ncameras:\n  bad: {url: 'http://192.0.2.1/'}\n  good: {url: 'rtsp://192.0.2.2/'}\n"
	cfg, err := config.Parse([]byte(file), "edgecam.yaml", config.Options{})
	var list config.Errors
	if !errors.As(err, &list) {
		t.Fatal(err)
	}
	if ids, only := list.Cameras(); !only || len(ids) != 1 || ids[0] != "bad" {
		t.Errorf("cameras %v, only %v", ids, only)
	}
	if cfg == nil || len(cfg.Cameras) != 1 || cfg.Cameras["good"].URL.Reveal() != "rtsp://192.0.2.2/" || cfg.Log.Level != "debug" {
		t.Errorf("rest %+v", cfg)
	}
	cfg, err = config.Parse([]byte("lug: {}\n"+file), "edgecam.yaml", config.Options{})
	if cfg != nil || err == nil || !errors.As(err, &list) || len(list) != 2 {
		t.Errorf("with a problem of the file: %+v, %v", cfg, err)
	}
	if _, only := list.Cameras(); only {
		t.Error("a problem of the file counts as a camera's")
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	for path, want := range map[string]string{
		"testdata/absent.yaml": "read config testdata/absent.yaml: no such file or directory",
		"testdata":             "read config testdata: is a directory",
		"/dev/zero":            "read config /dev/zero: is not a regular file",
	} {
		if cfg, err := config.Load(path, config.Options{}); cfg != nil || err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestErrorsUnwrap(t *testing.T) {
	cause := errors.New("no such camera")
	o := config.Options{CheckURL: func(string, string, string) error { return cause }}
	_, err := config.Parse([]byte(twoCameras), "edgecam.yaml", o)
	var fe *config.FieldError
	if !errors.Is(err, cause) || !errors.As(err, &fe) || fe.Path != "cameras.gate.url" || fe.Line != 3 || fe.Column != 15 || fe.Value != "" {
		t.Errorf("%v, %+v", err, fe)
	}
}

func TestHugeFileIsRefused(t *testing.T) {
	_, err := config.Parse(make([]byte, 1<<20+1), "clip.mp4", config.Options{})
	if want := "clip.mp4: the file has 1048577 bytes, more than the 1048576 of a configuration"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestManyCameras(t *testing.T) {
	var b strings.Builder
	b.WriteString("cameras:\n")
	for i := range 500 {
		fmt.Fprintf(&b, "  cam-%d:\n    url: rtsp://192.0.2.1:%d/stream\n    detect: {objects: {person: 0.5}}\n", i, i+1)
	}
	cfg, err := config.Parse([]byte(b.String()), "edgecam.yaml", config.Options{Env: []string{"EDGECAM_CAMERAS_CAM_499_NAME=last"}})
	if err != nil || len(cfg.Cameras) != 500 || cfg.Cameras["cam-499"].Name != "last" {
		t.Fatal(err)
	}
}
