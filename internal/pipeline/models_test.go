package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"edgecam/infer"
	"edgecam/infer/builtin"
	"edgecam/infer/model"
	"edgecam/infer/model/fixture"
	"edgecam/infer/ort"
	"edgecam/internal/config"
	"edgecam/internal/event"
	"edgecam/internal/metrics"
	"edgecam/internal/pipeline"
	"edgecam/internal/sim"
	"edgecam/internal/testkit"
	"edgecam/web"
)

// files is a source of models that counts.
type files struct {
	t    *testing.T
	open atomic.Int32
	made atomic.Int32
	sick atomic.Bool // models loaded from now on answer with NaN
}

func (f *files) Inspect(m config.Model) (*model.Report, error) {
	if strings.HasPrefix(m.File, "builtin:") {
		return &model.Report{File: m.File, SHA256: "0"}, nil
	}
	return model.Inspect(m.File, model.Overrides{Labels: m.Labels.Names, LabelsFile: m.Labels.File})
}

func (f *files) Load(ctx context.Context, m config.Model, r *model.Report, beside *pipeline.GPU) (pipeline.Loaded, error) {
	if beside != nil {
		o := beside.Options().Engine
		o.Model, o.Precision = m.File, ""
		if o.Spec = nil; !strings.HasPrefix(m.File, "builtin:") {
			o.Spec = &r.Spec
		}
		gpu, err := beside.Beside(ctx, o, 0.6)
		f.made.Add(1)
		return pipeline.Loaded{GPU: gpu}, err
	}
	e, err := ort.New(ort.Options{Library: testkit.ONNXRuntime(f.t), Model: m.File, Spec: &r.Spec, Concurrency: 1})
	if err != nil {
		return pipeline.Loaded{}, err
	}
	f.open.Add(1)
	f.made.Add(1)
	return pipeline.Loaded{Engine: &counted{Engine: e, of: f, sick: f.sick.Load()}}, nil
}

// counted is an engine whose end is counted, and that may be out of order.
type counted struct {
	infer.Engine

	of   *files
	sick bool
}

func (c *counted) Close() error {
	c.of.open.Add(-1)
	return c.Engine.Close()
}

func (c *counted) Acquire(ctx context.Context) (infer.Slot, error) {
	s, err := c.Engine.Acquire(ctx)
	if err == nil && c.sick {
		s = sickSlot{s}
	}
	return s, err
}

type sickSlot struct{ infer.Slot }

func (sickSlot) Run(int, func(int) float32, [][]infer.Detection) error {
	return &infer.UnhealthyError{Output: "scores", Reason: "not finite"}
}

// labelled writes a model that sees one object of its only class in every picture.
func labelled(t *testing.T, dir, name, label string) config.Model {
	t.Helper()
	return detector(t, dir, name, label, fixture.Detector{
		Family: "yolov8", Classes: 1, Objects: []infer.Detection{{Score: 0.9, X1: 100, Y1: 100, X2: 180, Y2: 180}},
	})
}

func detector(t *testing.T, dir, name, label string, d fixture.Detector) config.Model {
	t.Helper()
	d.Meta = map[string]string{"names": "{0: '" + label + "'}"}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, d.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return config.Model{File: path}
}

func sees(label string) func(*event.Detection) bool {
	return func(d *event.Detection) bool {
		return slices.ContainsFunc(d.Objects, func(o event.Object) bool { return o.Label == label })
	}
}

// startModels runs three cameras: one on inference.model, two on others of which
// the last has the same file as the first.
func startModels(t *testing.T) (*box, *files, string) {
	t.Helper()
	dir, f := t.TempDir(), &files{t: t}
	b := startOn(t, sim.Options{Cameras: make([]sim.Camera, 3)}, func(cfg *config.Config) {
		cat := labelled(t, dir, "cat.onnx", "cat")
		again := cat
		again.ScoreThreshold = 0.95 // above what the model gives
		cfg.Inference.Models = map[string]config.Model{"cats": cat, "surecats": again}
		two, three := cfg.Cameras["cam2"], cfg.Cameras["cam3"]
		two.Model, three.Model = "cats", "surecats"
		cfg.Cameras["cam2"], cfg.Cameras["cam3"] = two, three
	}, func(o *pipeline.Options) {
		o.Models, o.Engine = f, engineOf(t, builtin.NanoDetG, "int8")
		if err := o.OpenModels(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	return b, f, dir
}

// copyOf is a configuration to be changed.
func copyOf(c *config.Config) *config.Config {
	next := *c
	next.Cameras, next.Inference.Models = maps.Clone(c.Cameras), maps.Clone(c.Inference.Models)
	return &next
}

func TestModelsByCamera(t *testing.T) {
	b, f, _ := startModels(t)
	b.detection(t, "cam1", sees("person"))
	b.detection(t, "cam2", sees("cat"))
	d := b.detection(t, "cam3", func(*event.Detection) bool { return true })
	if len(d.Objects) != 0 {
		t.Errorf("camera 3 found %+v below its model's threshold", d.Objects)
	}
	if n := f.made.Load(); n != 1 {
		t.Errorf("%d models loaded for two names of one file, want 1", n)
	}
	b.stop()
	if n := f.open.Load(); n != 0 {
		t.Errorf("%d models are open after the end", n)
	}
}

// A model changes while its camera's stream goes on, and the old one is unloaded.
func TestSwapModel(t *testing.T) {
	b, f, dir := startModels(t)
	b.detection(t, "cam1", sees("person"))
	b.detection(t, "cam2", sees("cat"))
	before, _ := b.Camera("cam1")

	next := copyOf(b.cfg)
	next.Inference.Model = labelled(t, dir, "dog.onnx", "dog")
	changes, err := b.Reload(next)
	if err != nil || !changes.Models || changes.Inference {
		t.Fatalf("changes %+v, error %v", changes, err)
	}
	if d := b.detection(t, "cam1", func(*event.Detection) bool { return true }); !sees("dog")(d) {
		t.Errorf("after the swap camera 1 sees %+v", d.Objects)
	}
	// The same path with other content is another model; so is one of a camera.
	labelled(t, dir, "dog.onnx", "fox")
	if changes, err := b.Reload(copyOf(next)); err != nil || !changes.Models {
		t.Fatalf("changes %+v, error %v", changes, err)
	}
	two := next.Cameras["cam2"]
	two.Model, two.Detect.Objects = "default", map[string]float64{"fox": 0.5}
	next = copyOf(next)
	next.Cameras["cam2"] = two
	delete(next.Inference.Models, "surecats")
	delete(next.Cameras, "cam3")
	if _, err := b.Reload(next); err != nil {
		t.Fatal(err)
	}
	b.detection(t, "cam1", sees("fox"))
	b.detection(t, "cam2", sees("fox"))
	delete(next.Inference.Models, "cats")
	if _, err := b.Reload(copyOf(next)); err != nil {
		t.Fatal(err)
	}
	if open := f.open.Load(); open != 1 {
		t.Errorf("%d models are open, want the one that is used", open)
	}
	after, _ := b.Camera("cam1")
	if after.Attempts != before.Attempts || !after.Since.Equal(before.Since) || after.Frames < before.Frames {
		t.Errorf("camera 1 was torn down: %+v, then %+v", before, after)
	}
}

// A model that cannot be used leaves everything as it was, and says why.
func TestSwapRefused(t *testing.T) {
	b, f, dir := startModels(t)
	b.detection(t, "cam1", sees("person"))
	for _, tt := range []struct {
		name string
		edit func(*config.Config)
		want string
	}{
		{"no file", func(c *config.Config) { c.Inference.Model.File = filepath.Join(dir, "gone.onnx") }, "model default: load model " + filepath.Join(dir, "gone.onnx") + ": "},
		{"unhealthy", func(c *config.Config) {
			f.sick.Store(true)
			c.Inference.Model = labelled(t, dir, "nan.onnx", "dog")
		}, "model default: on a live picture: "},
		{"label", func(c *config.Config) {
			f.sick.Store(false)
			cam := c.Cameras["cam1"]
			cam.Detect.Objects = map[string]float64{"doge": 0.5}
			c.Cameras["cam1"] = cam
			c.Inference.Model = labelled(t, dir, "dog2.onnx", "dog")
		}, `camera cam1: detect.objects: the model has no label "doge": did you mean "dog"?`},
		{"name", func(c *config.Config) {
			cam := c.Cameras["cam1"]
			cam.Model = "kats"
			c.Cameras["cam1"] = cam
		}, `camera cam1: model: there is no "kats" under inference.models`},
	} {
		next := copyOf(b.cfg)
		tt.edit(next)
		_, err := b.Reload(next)
		if err == nil || !strings.HasPrefix(err.Error(), "reload: nothing changed: "+tt.want) {
			t.Errorf("%s: error %v, want %s", tt.name, err, tt.want)
		}
		b.detection(t, "cam1", sees("person"))
	}
	if n := f.open.Load(); n != 1 {
		t.Errorf("%d models are open, want 1", n)
	}
	if ok, why := b.Ready(); !ok {
		t.Errorf("not ready: %s", why)
	}
}

// startCats starts two cameras, the second of which has a model of cats, beside more
// models that none has.
func startCats(t *testing.T, f pipeline.ModelSource, more map[string]config.Model) *box {
	t.Helper()
	return startOn(t, sim.Options{Cameras: make([]sim.Camera, 2)}, func(cfg *config.Config) {
		cfg.Inference.Models = map[string]config.Model{"cats": labelled(t, t.TempDir(), "cat.onnx", "cat")}
		maps.Copy(cfg.Inference.Models, more)
		two := cfg.Cameras["cam2"]
		two.Model = "cats"
		cfg.Cameras["cam2"] = two
	}, func(o *pipeline.Options) {
		o.Models, o.Engine = f, engineOf(t, builtin.NanoDetG, "int8")
		if err := o.OpenModels(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// A model that does not load leaves its cameras out, and no others.
func TestModelRefusedAtStart(t *testing.T) {
	b := startCats(t, &refusing{files{t: t}}, nil)
	b.detection(t, "cam1", sees("person"))
	if c, _ := b.Camera("cam2"); !strings.HasSuffix(c.Reason, "camera cam2: model cats: no such operation") {
		t.Errorf("camera 2: %s, %s", c.State, c.Reason)
	}
}

type refusing struct{ files }

func (*refusing) Load(context.Context, config.Model, *model.Report, *pipeline.GPU) (pipeline.Loaded, error) {
	return pipeline.Loaded{}, errors.New("no such operation")
}

// A preview shows what a model finds at other thresholds, of a camera that another
// model analyses, and changes nothing.
func TestPreview(t *testing.T) {
	b, _, _ := startModels(t)
	b.detection(t, "cam1", sees("person"))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, tt := range []struct {
		model string
		score float32
		want  int
	}{{"cats", 0.5, 1}, {"cats", 0.95, 0}, {"surecats", 0.5, 1}, {"default", 1, 0}} {
		p, err := b.Preview(ctx, tt.model, "cam1", tt.score, 0.6)
		if err != nil || p.Objects != tt.want || p.Camera != "cam1" || len(p.JPEG) == 0 {
			t.Errorf("%s at %v: %d objects, %d bytes, error %v; want %d objects", tt.model, tt.score, p.Objects, len(p.JPEG), err, tt.want)
		}
	}
	few, err := b.Preview(ctx, "default", "cam1", 0.7, 0.6)
	many, err2 := b.Preview(ctx, "default", "cam1", 0.05, 0.6)
	if err != nil || err2 != nil || many.Objects <= few.Objects {
		t.Errorf("%d objects at 0.7, %d at 0.05, errors %v, %v", few.Objects, many.Objects, err, err2)
	}
	if _, err := b.Preview(ctx, "none", "cam1", 0.5, 0.6); !errors.Is(err, web.ErrUnknownModel) {
		t.Errorf("unknown model: %v", err)
	}
	if _, err := b.Preview(ctx, "cats", "broken", 0.5, 0.6); !errors.Is(err, web.ErrNoPicture) {
		t.Errorf("camera without pictures: %v", err)
	}
}

// Labels in a file of their own are part of the model: when they change it is another one.
func TestSwapLabels(t *testing.T) {
	b, _, dir := startModels(t)
	b.detection(t, "cam1", sees("person"))
	names := filepath.Join(dir, "dog.txt")
	next := copyOf(b.cfg)
	next.Inference.Model = labelled(t, dir, "dog.onnx", "dog")
	next.Inference.Model.Labels.File = names
	for _, label := range []string{"hound", "puppy"} {
		if err := os.WriteFile(names, []byte(label+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Reload(copyOf(next)); err != nil {
			t.Fatal(err)
		}
		b.detection(t, "cam1", sees(label))
		if got := b.Models()[0].Labels; !slices.Equal(got, []string{label}) {
			t.Errorf("labels %q, want %s", got, label)
		}
	}
}

// What is wrong with a model is in the metrics, by its name and kind.
func TestModelMetrics(t *testing.T) {
	f := &files{t: t}
	f.sick.Store(true)
	b := startCats(t, f, map[string]config.Model{"gone": {File: filepath.Join(t.TempDir(), "gone.onnx")}})
	b.detection(t, "cam1", sees("person"))
	waitFor(t, "the model that answers badly to be unhealthy", func() bool { return b.Models()[1].State == "unhealthy" })
	got := map[string]metrics.Model{}
	for _, m := range b.Metrics().Models {
		got[m.Name] = m
	}
	if m := got["default"]; m.State != "ready" || m.Reason != "" || m.Runs == 0 || m.Pictures < m.Runs || m.Bad != 0 || m.Cameras != 1 {
		t.Errorf("default: %+v", m)
	}
	if m := got["cats"]; m.State != "unhealthy" || m.Reason != "not finite" || m.Runs != 0 || m.Bad == 0 || m.Cameras != 1 {
		t.Errorf("cats: %+v", m)
	}
	if m := got["gone"]; m.State != "refused" || m.Reason != "refused" {
		t.Errorf("gone: %+v", m)
	}
	if ok, why := b.Ready(); ok || !strings.HasSuffix(why, "not finite") || !strings.Contains(why, "cat.onnx") {
		t.Errorf("ready %v: %s", ok, why)
	}
	b.RejectModel("cats", errors.New("no label"))
	b.RejectModel("unknown", errors.New("no such model"))
	if r := b.Models()[1].Rejected; r == nil || r.Reason != "no label" {
		t.Errorf("%+v", r)
	}
}

func TestModelsOfTheAPI(t *testing.T) {
	b, _, dir := startModels(t)
	b.detection(t, "cam1", sees("person"))
	var got []string
	for _, m := range b.Models() {
		got = append(got, fmt.Sprint(m.ID, " ", m.State, " ", m.Provider, " ", m.ScoreThreshold, " ", m.Cameras))
	}
	want := []string{"default ready cpu 0.45 [cam1]", "cats ready cpu 0.45 [cam2]", "surecats ready cpu 0.95 [cam3]"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if r, ok := b.ModelReport("cats"); !ok || r.(model.Report).Spec.Family != "yolov8" { //nolint:forcetypeassert // it is what the test is about
		t.Errorf("report %+v", r)
	}
	next := copyOf(b.cfg)
	next.Inference.Model.File = filepath.Join(dir, "gone.onnx")
	if _, err := b.Reload(next); err == nil {
		t.Fatal("a file that is not there was loaded")
	}
	m := b.Models()[0]
	if m.State != "ready" || m.Rejected == nil || m.Rejected.File != next.Inference.Model.File || !strings.Contains(m.Rejected.Reason, "no such file") {
		t.Errorf("after the refusal: %+v", m)
	}
	if _, err := b.Reload(copyOf(b.cfg)); err != nil || b.Models()[0].Rejected != nil {
		t.Errorf("error %v, still rejected: %+v", err, b.Models()[0].Rejected)
	}
}
