package pipeline_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"edgecam/framepool"
	"edgecam/infer/builtin"
	"edgecam/infer/model/fixture"
	"edgecam/infer/ort"
	"edgecam/internal/config"
	"edgecam/internal/event"
	"edgecam/internal/pipeline"
	"edgecam/internal/sim"
	"edgecam/internal/testkit"
	"edgecam/platform"
	"edgecam/platform/avcodec"
	"edgecam/platform/cuda"
)

// callTimeout is what the card of these tests may take for a call: less than the
// product's, and far more than a batch takes.
const callTimeout = 3 * time.Second

// startGPU is start with a card of stand-ins in the processor's place. model is the
// built-in one, or a small one where what counts is around it.
func startGPU(t *testing.T, cameras int, model string, more ...func(*pipeline.Options)) (*box, *testkit.Card, *pipeline.GPU) {
	t.Helper()
	logger := slog.New(slog.DiscardHandler)
	s, err := sim.New(sim.Options{Cameras: make([]sim.Camera, cameras), Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	cfg := configOf(s, cameras, func(c *config.Camera) { c.Decoder = "software" })
	card := testkit.NewCard(t)
	gpu, err := pipeline.OpenGPU(t.Context(), pipeline.GPUOptions{
		Driver: cuda.New(cuda.Options{Library: card.Driver}),
		Card:   platform.GPU{Name: "stand-in", CanMapHost: true, HostRegisterSupported: true, NUMANode: -1},
		Engine: ort.DeviceOptions{Library: card.ONNXRuntime, Model: model, Provider: "cuda", MaxBatch: 2, NoGraphs: true},
		Memory: "mapped", CallTimeout: callTimeout, Logger: logger,
	})
	if err != nil {
		t.Fatal(err)
	}
	codecs, err := avcodec.Open()
	if err != nil {
		t.Fatal(err)
	}
	b := &box{sim: s, cfg: cfg, budget: framepool.NewBudget(1 << 30)}
	options := pipeline.Options{
		Config: cfg, GPUs: []*pipeline.GPU{gpu}, Budget: b.budget, Codecs: codecs, Version: "test", Logger: logger,
	}
	for _, change := range more {
		change(&options)
	}
	b.Pipeline, err = pipeline.New(options)
	if err != nil {
		t.Fatal(err)
	}
	b.play(t, func() {
		card.Unblock()
		gpu.Close()
	})
	return b, card, gpu
}

// The card's answers go the whole way, and stopping leaves nothing: the pools
// are gone before the card is, which has to forget them.
func TestGPUPipeline(t *testing.T) {
	b, card, _ := startGPU(t, 2, builtin.NanoDetG)
	for _, id := range []string{"cam1", "cam2"} {
		b.detection(t, id, func(d *event.Detection) bool { return persons(d) >= 3 })
	}
	if ok, why := b.Ready(); !ok {
		t.Errorf("not ready: %s", why)
	}
	s := b.System()
	if s.Inference.Provider != "cuda" || s.Memory.PinnedBytes == 0 {
		t.Errorf("system %+v", s)
	}
	next := *b.cfg // a camera that goes takes its pool out of the card
	next.Cameras = map[string]config.Camera{"cam1": b.cfg.Cameras["cam1"]}
	if _, err := b.Reload(&next); err != nil {
		t.Fatal(err)
	}
	b.detection(t, "cam1", func(*event.Detection) bool { return true })
	b.stop()
	if used := b.budget.Used(); used != 0 {
		t.Errorf("%d bytes of frame memory are still reserved", used)
	}
	if n := card.Live(); n != 0 {
		t.Errorf("%d objects of the driver are left", n)
	}
}

// Scores that cannot be make the box unready and are not published.
func TestGPUPipelineUnhealthy(t *testing.T) {
	b, card, _ := startGPU(t, 1, fixture.NewPictureStub().File(t))
	b.detection(t, "cam1", func(d *event.Detection) bool { return persons(d) > 0 })
	card.Corrupt(testkit.ScoresNaN, testkit.ScoresGood)
	waitUnready(t, b, "the model is unhealthy: ")
	silent(t, b)
	card.Corrupt(testkit.ScoresGood, testkit.ScoresGood)
	b.detection(t, "cam1", func(d *event.Detection) bool { return persons(d) > 0 })
}

// A card that is lost in the middle of the work makes the box unready in time,
// with the reason. Nothing is published any more; the pictures of cameras that the
// processor decodes go on, and the box can be stopped.
func TestGPUPipelineLosesTheCard(t *testing.T) {
	for name, lose := range map[string]func(*testkit.Card){
		"by an error":          func(c *testkit.Card) { c.FailCall("cuLaunchKernel", cuda.CodeLaunchFailed, 0) },
		"by a call that hangs": func(c *testkit.Card) { c.Block("cuLaunchKernel") },
	} {
		t.Run(name, func(t *testing.T) {
			b, card, gpu := startGPU(t, 1, fixture.NewPictureStub().File(t))
			b.detection(t, "cam1", func(d *event.Detection) bool { return persons(d) > 0 })
			began := time.Now()
			lose(card)
			waitUnready(t, b, "gpu lost: infer batch: ")
			if took := time.Since(began); took > callTimeout+2*time.Second {
				t.Errorf("unready after %v", took)
			}
			var lost *cuda.LostError
			if !errors.As(gpu.Err(), &lost) {
				t.Errorf("reason %v", gpu.Err())
			}
			silent(t, b)
			pictures(t, b, 10)
			b.stop()
		})
	}
}

func waitUnready(t *testing.T, b *box, reason string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for limit := time.Now().Add(patience); ; <-tick.C {
		ok, why := b.Ready()
		if !ok && strings.HasPrefix(why, reason) {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("ready %v: %q, want %q", ok, why, reason)
		}
	}
}

// silent fails the test where a detection is published from now on.
func silent(t *testing.T, b *box) {
	t.Helper()
	sub := b.Detections(nil)
	defer sub.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if found, err := sub.Next(ctx); err == nil {
		t.Errorf("published: %+v", found[0])
	}
}

// pictures waits for n pictures of each kind.
func pictures(t *testing.T, b *box, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, annotated := range []bool{false, true} {
		pics, err := b.Pictures([]string{"cam1"}, annotated)
		if err != nil {
			t.Fatal(err)
		}
		for range n {
			if _, err := pics.Next(ctx); err != nil {
				t.Fatalf("pictures, annotated %v: %v", annotated, err)
			}
		}
		pics.Close()
	}
}
