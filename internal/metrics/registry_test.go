package metrics_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"edgecam/internal/metrics"
)

func sample() metrics.Snapshot {
	age := metrics.NewHistogram([]float64{0.1, 0.5})
	age.Observe(0.04)
	age.Observe(0.3)
	run := metrics.NewHistogram([]float64{0.02, 0.05})
	run.Observe(0.0625)
	batch := metrics.NewHistogram([]float64{1, 2})
	batch.Observe(2)
	return metrics.Snapshot{
		Cameras: []metrics.Camera{
			{
				ID: "gate", State: "live", Frames: 120, Inferred: 100, Sessions: 2,
				Dropped: map[string]uint64{"replaced": 19, "decode_error": 1},
				Ages:    map[string]metrics.Counts{"published": age.Snapshot()},
				Pool:    &metrics.Pool{Slots: 12, InUse: 5, HighWater: 9, Exhausted: 3},
			},
			{ID: "yard", State: "backoff", Sessions: 7},
		},
		Inference: run.Snapshot(),
		Batch:     batch.Snapshot(),
		Viewers:   map[string]int{"pictures": 2, "detections": 1},
		GPUs:      []metrics.GPU{{Index: 0, UUID: "GPU-a", Name: "NVIDIA H200", Up: true, Cameras: 3, Utilisation: 0.5}, {Index: 1, UUID: "GPU-b", Name: "NVIDIA L4"}},
		Models: []metrics.Model{
			{Name: "default", State: "ready", Cameras: 2, Runs: 90, Pictures: 100},
			{Name: "night", State: "unhealthy", Reason: "not finite", Cameras: 1, Runs: 3, Pictures: 3, Bad: 7},
		},
		AskedFPS: 40, AllowedFPS: 30,
		PoolBytes: 4096, PinnedBytes: 1024, LimitBytes: 8192,
	}
}

func registry(t *testing.T, snapshot func() metrics.Snapshot) *metrics.Registry {
	t.Helper()
	r, err := metrics.New(metrics.Options{Snapshot: snapshot, Version: "1.2.3", Revision: "abc"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func scrape(t *testing.T, h http.Handler) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	return w.Code, w.Body.String()
}

// The names and labels are what users' dashboards and alerts are made of.
func TestExposition(t *testing.T) {
	const want = `
# HELP edgecam_analysed_fps_allowed Pictures a second that may be analysed; less than asked under overload.
# TYPE edgecam_analysed_fps_allowed gauge
edgecam_analysed_fps_allowed 30
# HELP edgecam_analysed_fps_asked Pictures a second that all cameras ask to be analysed.
# TYPE edgecam_analysed_fps_asked gauge
edgecam_analysed_fps_asked 40
# HELP edgecam_batch_size Pictures in one inference run.
# TYPE edgecam_batch_size histogram
edgecam_batch_size_bucket{le="1"} 0
edgecam_batch_size_bucket{le="2"} 1
edgecam_batch_size_bucket{le="+Inf"} 1
edgecam_batch_size_sum 2
edgecam_batch_size_count 1
# HELP edgecam_camera_state 1 for the state that the camera is in, 0 for all others.
# TYPE edgecam_camera_state gauge
edgecam_camera_state{camera="gate",state="auth_failed"} 0
edgecam_camera_state{camera="gate",state="backoff"} 0
edgecam_camera_state{camera="gate",state="connecting"} 0
edgecam_camera_state{camera="gate",state="disabled"} 0
edgecam_camera_state{camera="gate",state="live"} 1
edgecam_camera_state{camera="gate",state="stalled"} 0
edgecam_camera_state{camera="gate",state="unsupported"} 0
edgecam_camera_state{camera="yard",state="auth_failed"} 0
edgecam_camera_state{camera="yard",state="backoff"} 1
edgecam_camera_state{camera="yard",state="connecting"} 0
edgecam_camera_state{camera="yard",state="disabled"} 0
edgecam_camera_state{camera="yard",state="live"} 0
edgecam_camera_state{camera="yard",state="stalled"} 0
edgecam_camera_state{camera="yard",state="unsupported"} 0
# HELP edgecam_frame_age_seconds Age of frames as they leave a stage, from the arrival of their last packet.
# TYPE edgecam_frame_age_seconds histogram
edgecam_frame_age_seconds_bucket{camera="gate",stage="published",le="0.1"} 1
edgecam_frame_age_seconds_bucket{camera="gate",stage="published",le="0.5"} 2
edgecam_frame_age_seconds_bucket{camera="gate",stage="published",le="+Inf"} 2
edgecam_frame_age_seconds_sum{camera="gate",stage="published"} 0.33999999999999997
edgecam_frame_age_seconds_count{camera="gate",stage="published"} 2
# HELP edgecam_frames_dropped_total Pictures that were not inferred, by reason.
# TYPE edgecam_frames_dropped_total counter
edgecam_frames_dropped_total{camera="gate",reason="decode_error"} 1
edgecam_frames_dropped_total{camera="gate",reason="replaced"} 19
# HELP edgecam_frames_total Pictures decoded.
# TYPE edgecam_frames_total counter
edgecam_frames_total{camera="gate"} 120
edgecam_frames_total{camera="yard"} 0
# HELP edgecam_gpu_cameras Cameras on the card.
# TYPE edgecam_gpu_cameras gauge
edgecam_gpu_cameras{gpu="0"} 3
edgecam_gpu_cameras{gpu="1"} 0
# HELP edgecam_gpu_engine_utilisation Part of the last second that the card's engine was at work.
# TYPE edgecam_gpu_engine_utilisation gauge
edgecam_gpu_engine_utilisation{gpu="0"} 0.5
edgecam_gpu_engine_utilisation{gpu="1"} 0
# HELP edgecam_gpu_info 1 for each card, with what tells it apart.
# TYPE edgecam_gpu_info gauge
edgecam_gpu_info{gpu="0",name="NVIDIA H200",uuid="GPU-a"} 1
edgecam_gpu_info{gpu="1",name="NVIDIA L4",uuid="GPU-b"} 1
# HELP edgecam_gpu_up 1 for a card that serves, 0 for one that is lost.
# TYPE edgecam_gpu_up gauge
edgecam_gpu_up{gpu="0"} 1
edgecam_gpu_up{gpu="1"} 0
# HELP edgecam_inference_seconds Time of one inference run.
# TYPE edgecam_inference_seconds histogram
edgecam_inference_seconds_bucket{le="0.02"} 0
edgecam_inference_seconds_bucket{le="0.05"} 0
edgecam_inference_seconds_bucket{le="+Inf"} 1
edgecam_inference_seconds_sum 0.0625
edgecam_inference_seconds_count 1
# HELP edgecam_model_bad_runs_total Inference runs of the model whose answers could not be used.
# TYPE edgecam_model_bad_runs_total counter
edgecam_model_bad_runs_total{model="default"} 0
edgecam_model_bad_runs_total{model="night"} 7
# HELP edgecam_model_cameras Cameras that the model analyses.
# TYPE edgecam_model_cameras gauge
edgecam_model_cameras{model="default"} 2
edgecam_model_cameras{model="night"} 1
# HELP edgecam_model_healthy 1 for a model whose answers can be used, 0 for one that is unhealthy or refused.
# TYPE edgecam_model_healthy gauge
edgecam_model_healthy{model="default"} 1
edgecam_model_healthy{model="night"} 0
# HELP edgecam_model_pictures_total Pictures in these runs.
# TYPE edgecam_model_pictures_total counter
edgecam_model_pictures_total{model="default"} 100
edgecam_model_pictures_total{model="night"} 3
# HELP edgecam_model_problem 1 with the kind of what is wrong with the model; nothing for one that is well.
# TYPE edgecam_model_problem gauge
edgecam_model_problem{model="night",reason="not finite"} 1
# HELP edgecam_model_runs_total Inference runs of the model that gave answers.
# TYPE edgecam_model_runs_total counter
edgecam_model_runs_total{model="default"} 90
edgecam_model_runs_total{model="night"} 3
# HELP edgecam_model_state 1 for the state that the model is in, 0 for all others.
# TYPE edgecam_model_state gauge
edgecam_model_state{model="default",state="loading"} 0
edgecam_model_state{model="default",state="ready"} 1
edgecam_model_state{model="default",state="refused"} 0
edgecam_model_state{model="default",state="unhealthy"} 0
edgecam_model_state{model="night",state="loading"} 0
edgecam_model_state{model="night",state="ready"} 0
edgecam_model_state{model="night",state="refused"} 0
edgecam_model_state{model="night",state="unhealthy"} 1
# HELP edgecam_pinned_bytes Memory of the frame pools that is locked in RAM.
# TYPE edgecam_pinned_bytes gauge
edgecam_pinned_bytes 1024
# HELP edgecam_pool_slots Slots of the camera's frame pool, by what they are doing.
# TYPE edgecam_pool_slots gauge
edgecam_pool_slots{camera="gate",state="free"} 7
edgecam_pool_slots{camera="gate",state="in_use"} 5
# HELP edgecam_viewers Open streams, by kind.
# TYPE edgecam_viewers gauge
edgecam_viewers{kind="detections"} 1
edgecam_viewers{kind="pictures"} 2
`
	r := registry(t, sample)
	err := testutil.GatherAndCompare(r.Gatherer(), strings.NewReader(want),
		"edgecam_batch_size", "edgecam_camera_state", "edgecam_frame_age_seconds", "edgecam_frames_dropped_total", "edgecam_frames_total",
		"edgecam_inference_seconds", "edgecam_pinned_bytes", "edgecam_pool_slots", "edgecam_viewers")
	if err != nil {
		t.Error(err)
	}
}

func TestLint(t *testing.T) {
	problems, err := testutil.GatherAndLint(registry(t, sample).Gatherer())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestHandler(t *testing.T) {
	code, body := scrape(t, registry(t, sample).Handler())
	if code != http.StatusOK {
		t.Fatalf("status %d: %s", code, body)
	}
	for _, want := range []string{
		`edgecam_build_info{goarch="`, `revision="abc"`, `version="1.2.3"`,
		"edgecam_frames_total{camera=\"gate\"} 120\n", "go_goroutines ", "process_resident_memory_bytes ",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("scrape lacks %q", want)
		}
	}
}

func TestRemovedCameraDisappears(t *testing.T) {
	s := sample()
	r := registry(t, func() metrics.Snapshot { return s })
	if _, body := scrape(t, r.Handler()); !strings.Contains(body, `camera="yard"`) {
		t.Fatal("yard is missing before it is removed")
	}
	s.Cameras = s.Cameras[:1]
	_, body := scrape(t, r.Handler())
	if strings.Contains(body, `camera="yard"`) {
		t.Error("yard is still there after it was removed")
	}
	if !strings.Contains(body, `camera="gate"`) {
		t.Error("gate is gone too")
	}
}

func TestCardinalityIsBounded(t *testing.T) {
	dropped := map[string]uint64{"bad \xff bytes": 5}
	for i := range 1000 {
		dropped[fmt.Sprintf("reason %04d", i)] = 1
	}
	s := metrics.Snapshot{Cameras: []metrics.Camera{{ID: "gate", State: "nonsense", Dropped: dropped}, {ID: "gate", State: "live"}}}
	code, body := scrape(t, registry(t, func() metrics.Snapshot { return s }).Handler())
	if code != http.StatusOK {
		t.Fatalf("status %d: %s", code, body)
	}
	if got := strings.Count(body, "edgecam_frames_dropped_total{"); got != 33 {
		t.Errorf("%d series of dropped frames, want 32 reasons and other", got)
	}
	for _, want := range []string{`reason="bad ? bytes"} 5`, `reason="other"} 969`} {
		if !strings.Contains(body, want) {
			t.Errorf("scrape lacks %s", want)
		}
	}
	if got := strings.Count(body, "edgecam_camera_state{"); got != len(metrics.States()) {
		t.Errorf("%d series of camera state, want %d", got, len(metrics.States()))
	}
}

func TestPanickingSnapshotSpoilsOnlyItsOwnMetrics(t *testing.T) {
	var log bytes.Buffer
	r, err := metrics.New(metrics.Options{
		Snapshot: func() metrics.Snapshot { panic("broken stage") },
		Logger:   slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	code, body := scrape(t, r.Handler())
	if code != http.StatusOK || !strings.Contains(body, "go_goroutines ") {
		t.Errorf("status %d, want the other metrics", code)
	}
	if !strings.Contains(log.String(), "broken stage") {
		t.Errorf("log = %q, want the cause", log.String())
	}
}

func TestNewNeedsSnapshot(t *testing.T) {
	_, err := metrics.New(metrics.Options{})
	if err == nil || err.Error() != "new metrics: no Snapshot" {
		t.Errorf("err = %v", err)
	}
}

func BenchmarkScrape16Cameras(b *testing.B) {
	ages := metrics.NewAges()
	ages.Observe(40 * time.Millisecond)
	s := metrics.Snapshot{}
	for i := range 16 {
		s.Cameras = append(s.Cameras, metrics.Camera{
			ID: fmt.Sprintf("cam%d", i), State: "live", Pool: &metrics.Pool{Slots: 12},
			Ages: map[string]metrics.Counts{"decoded": ages.Histogram(), "batched": ages.Histogram(), "inferred": ages.Histogram(), "published": ages.Histogram()},
		})
	}
	r, err := metrics.New(metrics.Options{Snapshot: func() metrics.Snapshot { return s }})
	if err != nil {
		b.Fatal(err)
	}
	h := r.Handler()
	for b.Loop() {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", nil))
	}
}
