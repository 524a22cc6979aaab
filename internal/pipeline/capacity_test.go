package pipeline

import (
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"edgecam/internal/pipeline/capacity"
	"edgecam/platform/nvml"
)

func TestTicksOf(t *testing.T) {
	for line, want := range map[string][2]uint64{
		"cpu  100 5 50 800 45 1 2 7 30 0": {165, 1010}, // guests are in user's
		"cpu  1 2 3 4":                    {6, 10},
		"":                                {0, 0},
		"cpu x":                           {0, 0},
	} {
		if busy, all := ticksOf(line); busy != want[0] || all != want[1] {
			t.Errorf("%q: %d of %d, want %v", line, busy, all, want)
		}
	}
}

func TestCPUUse(t *testing.T) {
	cores := float64(runtime.GOMAXPROCS(0))
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	from := readings{at: start, process: time.Second}
	to := readings{at: start.Add(10 * time.Second), process: time.Second + time.Duration(4*cores)*time.Second}
	if u := cpuUse(from, to, 0.3*cores); math.Abs(u.Total-0.4) > 0.01 || math.Abs(u.Cameras-0.4) > 0.01 || math.Abs(u.Engine-0.3) > 0.01 {
		t.Errorf("got %+v", u)
	}
	if u := cpuUse(from, to, 10*cores); u.Engine > u.Cameras {
		t.Errorf("the engine takes more than the process: %+v", u)
	}
	if runtime.NumCPU() == runtime.GOMAXPROCS(0) {
		to.hostBusy, to.hostAll = 80, 100
		if u := cpuUse(from, to, 0); u.Total != 0.8 || math.Abs(u.Cameras-0.4) > 0.01 {
			t.Errorf("with others on the machine: %+v", u)
		}
	}
}

func TestCardUses(t *testing.T) {
	busy := nvml.Sample{GPU: 0.5, Decoder: 0.8, RXBytes: 2e9, TXBytes: 1e9, UsedMem: 30 << 30, TotalMem: 40 << 30}
	mute := nvml.Sample{GPU: -1, Decoder: -1, RXBytes: -1, TXBytes: -1, UsedMem: 10 << 30, TotalMem: 40 << 30}
	meter := func(s nvml.Sample) CardMeter {
		return CardMeter{Sample: func() nvml.Sample { return s }, LinkBytes: 10e9}
	}
	uses := func(cards ...CardMeter) map[capacity.Resource]capacity.Use {
		m := newMeters(cards)
		m.base = 10 << 30
		out := map[capacity.Resource]capacity.Use{}
		m.cardUses(out)
		return out
	}
	if got := uses(); len(got) != 0 {
		t.Errorf("without cards: %v", got)
	}
	one := uses(meter(busy))
	if one[capacity.NVDEC].Total != 0.8 || one[capacity.Link].Total != 0.2 ||
		one[capacity.Memory] != (capacity.Use{Total: 0.75, Cameras: 0.5}) {
		t.Errorf("one card: %+v", one)
	}
	two := uses(meter(busy), meter(mute))
	if _, ok := two[capacity.NVDEC]; ok || two[capacity.Memory].Total != 0.5 {
		t.Errorf("one of two cards tells nothing: %+v", two)
	}
}

// A driver that hangs costs its own figures, and no second call.
func TestCardThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, calls := make(chan struct{}), 0
		m := newMeters([]CardMeter{{Sample: func() nvml.Sample {
			calls++
			<-release
			return nvml.Sample{Decoder: 0.5}
		}}})
		for range 3 {
			began := time.Now()
			uses := map[capacity.Resource]capacity.Use{}
			m.cardUses(uses)
			if took := time.Since(began); took != sampleWithin || len(uses) != 0 {
				t.Errorf("took %v, %v", took, uses)
			}
		}
		close(release)
		if s, ok := m.cards[0].sample(); !ok || s.Decoder != 0.5 || calls != 1 {
			t.Errorf("after that: %+v %v, %d calls", s, ok, calls)
		}
	})
}
