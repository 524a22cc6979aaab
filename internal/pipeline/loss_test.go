package pipeline_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"edgecam/internal/config"
	"edgecam/internal/pipeline"
	"edgecam/internal/pipeline/bench/cameras"
	"edgecam/platform/cuda"
)

// The rehearsal of a loss takes one card away, or makes it fail as a faulty kernel
// does, and reports what became of its cameras.
func TestRehearsedLoss(t *testing.T) {
	t.Run("taken away", func(t *testing.T) { rehearseLoss(t, false, "taken away") })
	t.Run("trap", func(t *testing.T) { rehearseLoss(t, true, "719") })
}

func rehearseLoss(t *testing.T, trap bool, code string) {
	t.Helper()
	const each = 1 // the processor carries the kernels out
	bench := cameras.New()
	b := startCards(t, 2, 2*each, func(p *pipeline.Pipeline) { p.Observe(bench.Observe) })
	b.everyone(t)
	report, err := bench.Run(t.Context(), cameras.Options{
		Pipeline: b.Pipeline, Config: func(int) *config.Config { return b.cfg }, Cameras: 2 * each, DetectFPS: 1,
		P95: time.Minute, Duration: 5 * time.Second, Settle: 100 * time.Millisecond,
		Cards: []cameras.CardOptions{{UUID: "GPU-0", Node: -1}, {UUID: "GPU-1", Node: -1}},
		Lose:  &cameras.Lose{UUID: "GPU-0", After: 2 * time.Second, Trap: trap, Stays: trap, Back: 2 * patience},
	})
	if err != nil {
		t.Fatal(err)
	}
	trial := report.Best
	var text strings.Builder
	if err := report.Table(&text); err != nil {
		t.Fatal(err)
	}
	t.Log(text.String())
	loss := trial.Loss
	if loss == nil || loss.GPU != "GPU-0" || !strings.Contains(loss.Error, code) || loss.Moved != each || len(loss.NotAgain) != 0 {
		t.Fatalf("loss %+v", loss)
	}
	if loss.Twice != 0 || loss.Backwards != 0 || loss.OfDead != 0 {
		t.Errorf("published twice %d, backwards %d, of the dead card %d", loss.Twice, loss.Backwards, loss.OfDead)
	}
	if loss.AgainMost <= 0 || trap != loss.Stays {
		t.Errorf("loss %+v", loss)
	}
	if !trap && (loss.ServedAfter <= 0 || loss.CamerasBack == 0 || loss.BackMost < loss.ServedAfter) {
		t.Errorf("the times do not follow each other: %+v", loss)
	}
	analysed := map[string]int{}
	for _, s := range loss.EverySeconds {
		for gpu, n := range s.Analysed {
			analysed[gpu] += n
		}
	}
	for i, c := range trial.Cards {
		if c.UUID != b.System().Platform.GPUs[i].UUID || c.AnalysedFPS <= 0 || c.P95 <= 0 || analysed[c.UUID] == 0 || (c.Lost != "") != (trap && i == 0) {
			t.Errorf("card %d: %+v, %d in the seconds of the loss", i, c, analysed[c.UUID])
		}
	}
	for _, c := range b.Cameras() {
		if c.GPU != "GPU-0" && c.GPU != "GPU-1" {
			t.Errorf("camera %s is on %q", c.ID, c.GPU)
		}
	}
	want := "[1 1] [ok ok]"
	if trap {
		want = "[0 2] [lost ok]"
	}
	if cameras, states := b.on(t); fmt.Sprint(cameras, states) != want {
		t.Errorf("in the end: cameras %v, states %v, want %s", cameras, states, want)
	}
	if err := b.OnGPU(t.Context(), "GPU-9", "ask", func(*cuda.Context) error { return nil }); err == nil {
		t.Error("there is a GPU-9")
	}
	if err := b.TakeAway("GPU-9"); err == nil {
		t.Error("a GPU-9 was taken away")
	}
}
