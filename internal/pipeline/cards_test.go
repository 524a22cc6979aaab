package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"edgecam/capture/decode"
	"edgecam/framepool"
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
	"edgecam/web"
)

// cards is a box with several cards of stand-ins.
type cards struct {
	*box

	cards []*testkit.Card
	gpus  []*pipeline.GPU
}

// patientCall is what a call to one of several cards may take: they take turns with
// the processor, which carries out their kernels.
const patientCall = 15 * time.Second

func startCards(t *testing.T, n, cameras int, before ...func(*pipeline.Pipeline)) *cards {
	t.Helper()
	return startCardsAs(t, n, cameras, cardsOf{decoder: "software", logger: slog.New(slog.DiscardHandler)}, before...)
}

// cardsOf says how cards are used.
type cardsOf struct {
	decoder string
	nvdec   *avcodec.Library // decodes on the cards, which have different numbers then; nil = the cards do not decode
	logger  *slog.Logger
}

func startCardsAs(t *testing.T, n, cameras int, of cardsOf, before ...func(*pipeline.Pipeline)) *cards {
	t.Helper()
	logger := of.logger
	s, err := sim.New(sim.Options{Cameras: make([]sim.Camera, cameras), Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	cfg := configOf(s, cameras, func(c *config.Camera) {
		c.Decoder, c.Detect.FPS = of.decoder, 1 // the processor carries the kernels out
	})
	codecs, err := avcodec.Open()
	if err != nil {
		t.Fatal(err)
	}
	model := fixture.NewPictureStub().File(t)
	setUps := decode.NewSetUps()
	b := &cards{box: &box{sim: s, cfg: cfg, budget: framepool.NewBudget(1 << 30)}}
	for i := range n {
		card := testkit.NewCard(t)
		index := 0 // each has a driver of its own, where it is the first
		if of.nvdec != nil {
			index = i
		}
		gpu, err := pipeline.OpenGPU(t.Context(), pipeline.GPUOptions{
			Driver: cuda.New(cuda.Options{Library: card.Driver}), Codecs: of.nvdec, SetUps: setUps,
			Card: platform.GPU{
				Index: index, Name: "stand-in", UUID: fmt.Sprintf("GPU-%d", i), CanMapHost: true, HostRegisterSupported: true, NUMANode: -1,
			},
			Engine: ort.DeviceOptions{Library: card.ONNXRuntime, Model: model, Provider: "cuda", MaxBatch: 2},
			Memory: "mapped", CallTimeout: patientCall, Logger: logger,
		})
		if err != nil {
			t.Fatal(err)
		}
		b.cards, b.gpus = append(b.cards, card), append(b.gpus, gpu)
	}
	b.Pipeline, err = pipeline.New(pipeline.Options{
		Config: cfg, GPUs: b.gpus, Budget: b.budget, Codecs: codecs, Version: "test", Logger: logger,
		Unused: []pipeline.UnusedGPU{{Card: platform.GPU{Index: 7, UUID: "GPU-old"}, Reason: "too old"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range before {
		f(b.Pipeline)
	}
	b.play(t, func() {
		for i, gpu := range b.gpus {
			b.cards[i].Unblock()
			gpu.Close()
		}
	})
	return b
}

// on gives the cameras of each card, and fails unless the API lists those that
// serve and the one that does not.
func (b *cards) on(t *testing.T) (cameras []int, states []string) {
	t.Helper()
	gpus := b.System().Platform.GPUs
	if len(gpus) != len(b.gpus)+1 {
		t.Fatalf("gpus %+v", gpus)
	}
	last := len(gpus) - 1
	if g := gpus[last]; g.State != "unused" || g.Reason != "too old" || g.Index != 7 {
		t.Errorf("the card that is not used: %+v", g)
	}
	for _, g := range gpus[:last] {
		cameras, states = append(cameras, g.Cameras), append(states, g.State)
	}
	return cameras, states
}

// ids gives the box's cameras.
func (b *cards) ids() []string { return slices.Sorted(maps.Keys(b.cfg.Cameras)) }

// everyone waits for a detection of each camera that is newer than now.
func (b *cards) everyone(t *testing.T) {
	t.Helper()
	for _, id := range b.ids() {
		b.detection(t, id, func(d *event.Detection) bool { return persons(d) > 0 })
	}
}

// order fails the test where a camera's results are published twice or run backwards.
func (b *cards) order(t *testing.T) (end func()) {
	sub := b.Detections(nil)
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		last := map[string]uint64{}
		for {
			found, err := sub.Next(ctx)
			if err != nil {
				return
			}
			for _, d := range found {
				if d.Seq <= last[d.Camera] {
					t.Errorf("picture %d of %s was published after %d", d.Seq, d.Camera, last[d.Camera])
				}
				last[d.Camera] = d.Seq
			}
		}
	})
	return func() {
		cancel()
		done.Wait()
		sub.Close()
	}
}

// Cameras are spread over the cards. Those of a card that is lost go on on the
// others, with the same viewers; they come back when the card does.
func TestCamerasMoveFromALostCard(t *testing.T) {
	for name, lose := range map[string]func(*testing.T, *cards){
		"by a call that hangs": func(_ *testing.T, b *cards) { b.cards[0].Block("cuLaunchKernel") },
		"taken away": func(t *testing.T, b *cards) {
			if err := b.TakeAway("GPU-0"); !errors.As(err, new(*cuda.LostError)) || cuda.Faulted(err) {
				t.Errorf("the card is taken away: %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			const each = 1
			b := startCards(t, 2, 2*each)
			b.everyone(t)
			if cameras, states := b.on(t); fmt.Sprint(cameras, states) != "[1 1] [ok ok]" {
				t.Fatalf("cameras %v, states %v", cameras, states)
			}
			view, err := b.Pictures(nil, true)
			if err != nil {
				t.Fatal(err)
			}
			defer view.Close()
			ordered := b.order(t)

			lose(t, b)
			<-b.gpus[0].Lost()
			began := time.Now()
			waitFor(t, "the cameras to move", func() bool {
				cameras, states := b.on(t)
				return fmt.Sprint(cameras, states) == fmt.Sprint([]int{0, 2 * each}, []string{"lost", "ok"})
			})
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("the move took %v", took)
			}
			b.everyone(t)
			seen(t, view, b.ids())
			if ok, why := b.Ready(); !ok {
				t.Errorf("not ready although one card works: %s", why)
			}
			if reason := b.System().Platform.GPUs[0].Reason; !strings.HasPrefix(reason, "gpu lost: ") {
				t.Errorf("reason %q", reason)
			}

			b.cards[0].Unblock()
			waitFor(t, "the card to come back", func() bool {
				cameras, states := b.on(t)
				return fmt.Sprint(cameras, states) == "[1 1] [ok ok]"
			})
			b.everyone(t)
			seen(t, view, b.ids())
			ordered()
			b.stop()
			if used := b.budget.Used(); used != 0 {
				t.Errorf("%d bytes of frame memory are still reserved", used)
			}
			for i, card := range b.cards {
				if n := card.Live(); n != 0 {
					t.Errorf("%d objects of driver %d are left", n, i)
				}
			}
		})
	}
}

// A lost card that cannot be opened again at once, as its memory is taken, is tried again.
func TestALostCardIsTriedAgain(t *testing.T) {
	b := startCards(t, 2, 2)
	b.everyone(t)
	if err := b.TakeAway("GPU-0"); err == nil {
		t.Fatal("it is not lost")
	}
	waitFor(t, "the camera to move", func() bool { cameras, _ := b.on(t); return cameras[0] == 0 })
	b.cards[0].FailCall("cuMemAlloc_v2", cuda.CodeOutOfMemory, 0)
	waitFor(t, "the reason", func() bool {
		reason := b.System().Platform.GPUs[0].Reason
		return strings.Contains(reason, "opening it again: ") && strings.Contains(reason, "OUT_OF_MEMORY")
	})
	b.everyone(t)
	b.cards[0].FailCall("", 0, 0)
	waitFor(t, "the card to come back", func() bool {
		cameras, states := b.on(t)
		return fmt.Sprint(cameras, states) == "[1 1] [ok ok]"
	})
	b.everyone(t)
	b.stop()
	if n := b.cards[0].Live(); n != 0 {
		t.Errorf("%d objects are left", n)
	}
}

// Where an error has ended a card's context its cameras stay on the others, and the box
// says what helps.
func TestALostCardIsLeftToTheNextProcess(t *testing.T) {
	b := startCards(t, 2, 2)
	b.everyone(t)
	b.cards[0].FailCall("cuLaunchKernel", cuda.CodeLaunchFailed, 0)
	<-b.gpus[0].Lost()
	waitFor(t, "the cameras to move, and the reason", func() bool {
		cameras, states := b.on(t)
		reason := b.System().Platform.GPUs[0].Reason
		return fmt.Sprint(cameras, states) == "[0 2] [lost ok]" && strings.Contains(reason, "used again when edgecam is started anew")
	})
	b.everyone(t)
	if ok, why := b.Ready(); !ok {
		t.Errorf("not ready although one card works: %s", why)
	}
	b.stop()
}

// When the last card is lost there is nowhere to go: the box says so, and a reload
// and the end still work.
func TestTheLastCardIsLost(t *testing.T) {
	b := startCards(t, 2, 2)
	b.everyone(t)
	for i, card := range b.cards {
		card.FailCall("cuLaunchKernel", cuda.CodeLaunchFailed, 0)
		<-b.gpus[i].Lost()
		if i == 0 {
			waitFor(t, "the cameras to move", func() bool { c, _ := b.on(t); return c[0] == 0 })
		}
	}
	<-b.Lost()
	waitUnready(t, b.box, "gpu lost: ")
	if b.LostErr() == nil {
		t.Error("no reason")
	}
	silent(t, b.box)
	next := *b.cfg
	next.Cameras = map[string]config.Camera{"cam1": b.cfg.Cameras["cam1"], "new": b.cfg.Cameras["cam2"]}
	if _, err := b.Reload(&next); err != nil {
		t.Error(err)
	}
	b.stop()
}

// A fault on one card may take the others from the process: cameras do not move to one
// that fails as well, and the box says at once that nothing works any more.
func TestAFaultTakesAllCards(t *testing.T) {
	b := startCards(t, 2, 2)
	b.everyone(t)
	b.cards[1].Die(101) // which is not lost by that alone
	// Behind what was under way there, so that the card is not found too busy to be asked.
	_ = b.OnGPU(t.Context(), "GPU-1", "wait", func(*cuda.Context) error { return nil })
	b.cards[0].Die(cuda.CodeLaunchFailed)
	<-b.gpus[0].Lost()
	<-b.gpus[1].Lost()
	<-b.Lost()
	waitUnready(t, b.box, "gpu lost: ")
	if err := b.gpus[1].Err(); err == nil || !strings.Contains(err.Error(), "loss of another gpu") {
		t.Errorf("the other card: %v", err)
	}
	silent(t, b.box)
	for _, c := range b.cards {
		c.Die(0)
	}
	b.stop()
}

// A camera stays on its card through a reload, and a new one goes where the least
// is.
func TestPlacesThroughAReload(t *testing.T) {
	b := startCards(t, 2, 3)
	b.everyone(t)
	next := *b.cfg
	next.Cameras = maps.Clone(b.cfg.Cameras)
	changed := next.Cameras["cam1"]
	changed.Name = "Renamed"
	next.Cameras["cam1"] = changed
	off := next.Cameras["cam3"] // beside cam1
	off.Enabled = false
	next.Cameras["cam3"] = off
	if _, err := b.Reload(&next); err != nil {
		t.Fatal(err)
	}
	if cameras, _ := b.on(t); fmt.Sprint(cameras) != "[1 1]" {
		t.Errorf("cameras %v", cameras)
	}
	next.Cameras = map[string]config.Camera{"cam2": next.Cameras["cam2"], "a": b.cfg.Cameras["cam1"], "b": b.cfg.Cameras["cam3"]}
	if _, err := b.Reload(&next); err != nil {
		t.Fatal(err)
	}
	if cameras, _ := b.on(t); cameras[0]+cameras[1] != 3 || min(cameras[0], cameras[1]) != 1 {
		t.Errorf("cameras %v", cameras)
	}
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for limit := time.Now().Add(2 * patience); !ok(); <-tick.C { // opening a card takes its time
		if time.Now().After(limit) {
			t.Fatalf("waited for %s", what)
		}
	}
}

// seen waits for a picture of each camera that was taken from now on.
func seen(t *testing.T, view web.PictureStream, ids []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	now, missing := time.Now(), map[string]bool{}
	for _, id := range ids {
		missing[id] = true
	}
	for len(missing) > 0 {
		p, err := view.Next(ctx)
		if err != nil {
			t.Fatalf("no pictures of %v: %v", missing, err)
		}
		if p.CapturedAt.After(now) {
			delete(missing, p.Camera)
		}
	}
}
