package config_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"edgecam/internal/config"
)

var update = flag.Bool("update", false, "write the expected texts of testdata/*.bad.yaml anew") //nolint:gochecknoglobals // flags are

// refuse stands for the check that the RTSP client brings along.
func refuse(url, user, _ string) error {
	if strings.Contains(url, "refused.example") {
		return errors.New("refused for user " + user)
	}
	return nil
}

func options(env ...string) config.Options {
	return config.Options{CheckURL: refuse, Env: append([]string{"GATE_PASSWORD=s3cret", "TOKEN=t", "USER_NAME=u", "WHICH=password", "PW=p w"}, env...)}
}

// TestBadFiles compares the whole text for each bad file with the one beside
// it. The files hold "hunter2" where a secret may stand: it appears in none.
func TestBadFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.bad.yaml")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			_, err := config.Load(file, options())
			var list config.Errors
			if !errors.As(err, &list) {
				t.Fatalf("got %v, want a list of problems", err)
			}
			got := list.Error() + "\n"
			if strings.Contains(got, "hunter") {
				t.Errorf("a secret shows in\n%s", got)
			}
			wantFile := strings.TrimSuffix(file, "yaml") + "txt"
			if *update {
				if err := os.WriteFile(wantFile, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(wantFile)
			if err != nil || got != string(want) {
				t.Errorf("got\n%s\nwant (%v)\n%s", got, err, want)
			}
		})
	}
}

func TestVideoTrack(t *testing.T) {
	for text, want := range map[string]int{"auto": 0, "1": 1, "16": 16} {
		c, err := config.Parse([]byte("version: 1\ncameras: {gate: {url: rtsp://192.0.2.1/, video_track: "+text+"}}"), "x", config.Options{})
		if err != nil {
			t.Fatal(err)
		}
		gate := c.Cameras["gate"]
		if got := gate.Track(); got != want {
			t.Errorf("video_track %s is %d, want %d", text, got, want)
		}
	}
	for _, text := range []string{"0", "-1", "17", "first", "1.5", "999"} {
		_, err := config.Parse([]byte("version: 1\ncameras: {gate: {url: rtsp://192.0.2.1/, video_track: "+text+"}}"), "x", config.Options{})
		if err == nil || !strings.Contains(err.Error(), "cameras.gate.video_track: want auto, or the number of a video track: 1 to 16") {
			t.Errorf("video_track %s: error is %v", text, err)
		}
	}
}

func TestGoodFiles(t *testing.T) {
	contract := config.Default()
	contract.GPU.Device = "0"
	gate := config.DefaultCamera()
	gate.Name, gate.Username = "Front gate", "viewer"
	gate.URL, gate.Password = config.NewSecret("rtsp://192.0.2.21/stream1"), config.NewSecret("s3cret")
	gate.Detect.Objects = map[string]float64{"person": 0.5}
	contract.Cameras = map[string]config.Camera{"gate": gate}

	for file, want := range map[string]*config.Config{
		"contract.good.yaml": contract, "every.good.yaml": every(), "version.good.yaml": config.Default(),
	} {
		t.Run(file, func(t *testing.T) {
			got, err := config.Load("testdata/"+file, options())
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
			if c := config.Diff(want, got); c.Any() {
				t.Errorf("differences %+v", c)
			}
		})
	}
}

// every is what testdata/every.good.yaml says.
func every() *config.Config {
	gate := config.Camera{
		Name: `Küche / "Back Porch" #2`, URL: config.NewSecret("rtsp://viewer:P@ss@192.0.2.10:554/s?a=1"), TLS: config.TLS{Verify: true},
		Transport: "udp", VideoTrack: "2", Decoder: "h264_cuvid",
		Detect:         config.Detect{FPS: 0.5, Priority: 10, Objects: map[string]float64{"person": 0, "traffic light": 1}},
		ConnectTimeout: time.Minute, FirstFrameTimeout: 90 * time.Second, StallTimeout: 2 * time.Second,
	}
	yard := gate
	yard.Name, yard.Username = "0123", "a@b"
	yard.URL, yard.Password = config.NewSecret("RTSPS://[fe80::1%25eth0]:322"), config.NewSecret("50%25#x")
	literal := config.DefaultCamera()
	literal.URL = config.NewSecret("rtsp://192.0.2.11/${x}$$y?token=t&t")
	literal.Username, literal.Password = "u", config.NewSecret("o'\"brien")
	file := config.DefaultCamera()
	file.URL, file.Username, file.Password = config.NewSecret("rtsp://192.0.2.12/main"), "admin", config.NewSecret("from file # 1 ")
	return &config.Config{
		Version: 1,
		Server: config.Server{Listen: "[::]:443", Auth: &config.Auth{
			User:         "Jürgen",
			PasswordHash: config.NewSecret("$argon2id$v=19$m=65536,t=3,p=4$c2FsdHNhbHQ$MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"),
		}},
		GPU: config.GPU{Mode: "require", Device: "GPU-8f1c2f6e-aaaa-bbbb-cccc-0123456789ab", Memory: "mapped"},
		Inference: config.Inference{
			Model: config.Model{File: "testdata/models/yard.onnx"}, Provider: "cuda", Precision: "fp16", Library: "/opt/onnxruntime/lib/libonnxruntime.so",
			ScoreThreshold: 0.25, NMSIoU: 1, MaxBatch: 256, LatencyBudget: 1500 * time.Millisecond,
		},
		Memory:   config.Memory{Limit: 1536 << 20, Share: 1},
		Log:      config.Log{Level: "debug", Format: "json"},
		StateDir: "testdata/state",
		Cameras:  map[string]config.Camera{"gate": gate, "yard-2": yard, "literal": literal, "file": file},
	}
}
