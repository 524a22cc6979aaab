package pipeline_test

import (
	"bytes"
	"context"
	"fmt"
	"image/jpeg"
	"log/slog"
	"sync"
	"testing"
	"time"

	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/infer/builtin"
	"edgecam/infer/model/fixture"
	"edgecam/infer/ort"
	"edgecam/internal/config"
	"edgecam/internal/event"
	"edgecam/internal/pipeline"
	"edgecam/internal/sim"
	"edgecam/internal/testkit"
	"edgecam/platform/avcodec"
	"edgecam/web"
)

func TestMain(m *testing.M) { testkit.CheckFrames(m) }

// patience bounds every wait of these tests; it is reached only when something
// is broken.
const patience = 60 * time.Second

// box is a pipeline under test with the cameras it is connected to.
type box struct {
	*pipeline.Pipeline
	sim    *sim.Server
	cfg    *config.Config
	budget *framepool.Budget
	stop   func()
}

// start runs a pipeline on simulated cameras; edit may change the config first.
func start(t *testing.T, cameras int, fault string, edit func(*config.Config)) *box {
	t.Helper()
	return startOn(t, sim.Options{Cameras: make([]sim.Camera, cameras), Fault: fault}, edit)
}

// startOn runs a pipeline on the cameras of a simulator; more changes what it is
// made of.
func startOn(t *testing.T, o sim.Options, edit func(*config.Config), more ...func(*pipeline.Options)) *box {
	t.Helper()
	logger := slog.New(slog.DiscardHandler)
	s, err := sim.New(o)
	if err != nil {
		t.Fatal(err)
	}
	cfg := configOf(s, len(o.Cameras), nil)
	if edit != nil {
		edit(cfg)
	}
	codecs, err := avcodec.Open()
	if err != nil {
		t.Fatal(err)
	}
	b := &box{sim: s, cfg: cfg, budget: framepool.NewBudget(1 << 30)}
	options := pipeline.Options{
		Config: cfg, Bad: map[string]string{"broken": "cameras.broken.url: no host"},
		Budget: b.budget, Codecs: codecs, Version: "test", Logger: logger,
	}
	for _, change := range more {
		change(&options)
	}
	if options.Engine == nil {
		options.Engine = engineOf(t, builtin.NanoDetG, "int8")
	}
	b.Pipeline, err = pipeline.New(options)
	if err != nil {
		t.Fatal(err)
	}
	b.play(t, func() {
		if used := b.budget.Used(); used != 0 {
			t.Errorf("%d bytes of frame memory are still reserved after the end", used)
		}
	})
	return b
}

// configOf is a configuration of a simulator's first n cameras; edit may change
// each of them.
func configOf(s *sim.Server, n int, edit func(*config.Camera)) *config.Config {
	cfg := config.Default()
	cfg.Memory.Lock = false
	cfg.Cameras = map[string]config.Camera{}
	for i := range n {
		c := config.DefaultCamera()
		c.URL = config.NewSecret(s.URL(i))
		if edit != nil {
			edit(&c)
		}
		cfg.Cameras[fmt.Sprintf("cam%d", i+1)] = c
	}
	return cfg
}

// play runs the simulator and the pipeline until stop, or the end of the test;
// then comes once both have ended.
func (b *box) play(t *testing.T, then func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { check(t, b.sim.Run(ctx)) })
	running.Go(func() { check(t, b.Run(ctx)) })
	b.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		then()
	})
	t.Cleanup(b.stop)
}

// engineOf gives an engine for two runs at once, which is closed at the end.
func engineOf(t *testing.T, model, precision string) infer.Engine {
	t.Helper()
	engine, err := ort.New(ort.Options{Library: testkit.ONNXRuntime(t), Model: model, Precision: precision, Concurrency: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, engine.Close()) })
	return engine
}

// small is a change to startOn's options: a model that costs nothing, for tests
// that are not about what is found.
func small(t *testing.T) func(*pipeline.Options) {
	t.Helper()
	engine := engineOf(t, fixture.NewPictureStub().File(t), "auto")
	return func(o *pipeline.Options) { o.Engine = engine }
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// detection waits for a detection that want accepts.
func (b *box) detection(t *testing.T, camera string, want func(*event.Detection) bool) *event.Detection {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	sub := b.Detections([]string{camera})
	defer sub.Close()
	for {
		found, err := sub.Next(ctx)
		if err != nil {
			t.Fatalf("no such detection of %s: %v", camera, err)
		}
		for _, d := range found {
			if want(d) {
				return d
			}
		}
	}
}

func persons(d *event.Detection) (n int) {
	for _, o := range d.Objects {
		if o.Label == "person" {
			n++
		}
	}
	return n
}

func TestPipelineDetectsOnEveryCamera(t *testing.T) {
	b := start(t, 2, "", nil)
	for _, id := range []string{"cam1", "cam2"} {
		d := b.detection(t, id, func(d *event.Detection) bool { return persons(d) >= 3 })
		if d.Width != 768 || d.Height != 576 || d.AgeMS <= 0 || d.Seq == 0 || d.CapturedAt.IsZero() {
			t.Errorf("detection %+v", d)
		}
		for _, o := range d.Objects {
			if o.Score < 0.45 || o.Score > 1 || o.Box[0] >= o.Box[2] || o.Box[1] >= o.Box[3] || o.Box[0] < 0 || o.Box[3] > 1 {
				t.Errorf("object %+v", o)
			}
		}
		c, ok := b.Camera(id)
		if !ok || c.State != "live" || c.Codec != "h264" || c.Width != 768 || c.Decoder != "h264" || c.Inferred == 0 || c.AgeMS == nil || c.Pool == nil {
			t.Errorf("camera %+v", c)
		}
	}
	if ok, why := b.Ready(); !ok {
		t.Errorf("not ready: %s", why)
	}
	s := b.System()
	if s.Inference.Provider != "cpu" || s.Inference.Precision != "int8" || s.Memory.Slots == 0 || s.Memory.PoolBytes == 0 {
		t.Errorf("system %+v", s)
	}
	m := b.Metrics()
	if len(m.Cameras) != 3 || m.Inference.Count == 0 || m.Batch.Mean() != 1 {
		t.Errorf("metrics %+v", m)
	}
}

func TestPicturesAreOfTheFrameTheyName(t *testing.T) {
	b := start(t, 2, "", nil)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, annotated := range []bool{false, true} {
		pics, err := b.Pictures(nil, annotated)
		if err != nil {
			t.Fatal(err)
		}
		last := map[string]uint64{}
		for len(last) < 2 || last["cam1"] < 5 {
			p, err := pics.Next(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if p.Seq <= last[p.Camera] {
				t.Errorf("picture %d of %s came after %d", p.Seq, p.Camera, last[p.Camera])
			}
			last[p.Camera] = p.Seq
			img, err := jpeg.DecodeConfig(bytes.NewReader(p.JPEG))
			if err != nil || img.Width != p.Width || img.Height != p.Height || p.Width != 768 {
				t.Errorf("picture %dx%d decodes as %dx%d, error %v", p.Width, p.Height, img.Width, img.Height, err)
			}
		}
		pics.Close()
		pics.Close()
		if _, err := pics.Next(ctx); err == nil {
			t.Error("a closed stream gave a picture")
		}
	}
}

func TestSnapshotOfACameraWithoutPictureSaysWhy(t *testing.T) {
	b := start(t, 1, "notfound", nil)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := b.Snapshot(ctx, "nobody", false); !isUnknown(err) {
		t.Errorf("error %v, want that there is no such camera", err)
	}
	_, err := b.Snapshot(ctx, "broken", false)
	const want = "no picture: camera broken is disabled: left out, its settings are wrong: cameras.broken.url: no host"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func isUnknown(err error) bool {
	return err != nil && bytes.Contains([]byte(err.Error()), []byte(web.ErrUnknownCamera.Error()))
}

func TestReloadTouchesOnlyWhatChanged(t *testing.T) {
	b := start(t, 2, "", nil)
	b.detection(t, "cam1", func(*event.Detection) bool { return true })
	b.detection(t, "cam2", func(*event.Detection) bool { return true })
	before, _ := b.Camera("cam1")

	next := *b.cfg
	next.Cameras = map[string]config.Camera{"cam1": b.cfg.Cameras["cam1"]}
	changed := b.cfg.Cameras["cam2"]
	changed.Detect.Objects = map[string]float64{"car": 0.3}
	next.Cameras["cam2"] = changed
	added := b.cfg.Cameras["cam1"]
	added.Name = "Third"
	added.Detect.Enabled = false
	next.Cameras["third"] = added
	changes, err := b.Reload(&next)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(changes.Added, changes.Changed, changes.Removed) != "[third] [cam2] []" {
		t.Errorf("changes %+v", changes)
	}
	d := b.detection(t, "cam2", func(d *event.Detection) bool { return len(d.Objects) > 0 })
	if persons(d) != 0 {
		t.Errorf("camera 2 still reports persons: %+v", d.Objects)
	}
	after, _ := b.Camera("cam1")
	if after.Attempts != before.Attempts || !after.Since.Equal(before.Since) {
		t.Errorf("camera 1 was touched: %+v, then %+v", before, after)
	}
	if c, ok := b.Camera("third"); !ok || c.Name != "Third" || c.Detecting {
		t.Errorf("third camera %+v", c)
	}
	if _, ok := b.Camera("broken"); ok {
		t.Error("the camera with wrong settings is still there after a good reload")
	}

	bad := next
	bad.Cameras = map[string]config.Camera{"cam1": next.Cameras["cam1"]}
	wrong := next.Cameras["cam2"]
	wrong.Detect.Objects = map[string]float64{"persn": 0.3}
	bad.Cameras["cam2"] = wrong
	_, err = b.Reload(&bad)
	const want = `reload: nothing changed: camera cam2: detect.objects: the model has no label "persn": did you mean "person"?`
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if len(b.Cameras()) != 3 {
		t.Errorf("%d cameras after a refused reload, want 3", len(b.Cameras()))
	}
}

// A camera that changed is another one for the program, and the same for who watches it.
func TestViewersStayWithAChangedCamera(t *testing.T) {
	b := start(t, 2, "", nil)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	b.detection(t, "cam2", func(*event.Detection) bool { return true })
	var views []web.PictureStream
	for _, annotated := range []bool{false, true} {
		pics, err := b.Pictures([]string{"cam1", "cam2"}, annotated)
		if err != nil {
			t.Fatal(err)
		}
		defer pics.Close()
		views = append(views, pics)
	}
	next := *b.cfg
	changed := b.cfg.Cameras["cam2"]
	changed.Name = "Renamed"
	next.Cameras = map[string]config.Camera{"cam1": b.cfg.Cameras["cam1"], "cam2": changed}
	if _, err := b.Reload(&next); err != nil {
		t.Fatal(err)
	}
	reloaded := time.Now()
	for i, pics := range views {
		for seen := map[string]bool{}; !seen["cam1"] || !seen["cam2"]; {
			p, err := pics.Next(ctx)
			if err != nil {
				t.Fatalf("view %d ended at %v after pictures of %v", i, err, seen)
			}
			seen[p.Camera] = seen[p.Camera] || p.CapturedAt.After(reloaded)
		}
	}

	next.Cameras = map[string]config.Camera{"cam1": b.cfg.Cameras["cam1"]}
	gone, err := b.Pictures([]string{"cam2"}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	if _, err := b.Reload(&next); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = gone.Next(ctx)
	}
	if ctx.Err() != nil {
		t.Error("the view of a removed camera did not end")
	}
}

func TestStopAtAnyMoment(t *testing.T) {
	for _, fault := range []string{"", "silent", "auth", "novideo", "stall:3", "close:2"} {
		t.Run("fault "+fault, func(t *testing.T) {
			b := start(t, 1, fault, nil)
			pics, err := b.Pictures([]string{"cam1"}, false)
			if err != nil {
				t.Fatal(err)
			}
			defer pics.Close()
			b.stop()
			if _, err := pics.Next(context.Background()); err == nil {
				// A picture that was drawn before the end may still be there; after it, no more.
				if _, err := pics.Next(context.Background()); err == nil {
					t.Error("pictures go on after the end")
				}
			}
			if _, err := b.Reload(b.cfg); err == nil {
				t.Error("a stopped pipeline reloads")
			}
		})
	}
}
