package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/platform/cuda"
	"edgecam/preprocess"
)

// Geometry is a kind of pictures.
type Geometry struct {
	Format        framepool.PixelFormat
	Width, Height int
}

// MemoryOptions say what is measured.
type MemoryOptions struct {
	Spec   infer.InputSpec // of the tensor that pictures are brought to
	Half   bool            // it holds float16
	Rounds int             // of each strategy. It defaults to 200.
	Rules  preprocess.Rules
	// Geometries are measured beside 1080p and 4K.
	Geometries []Geometry
	Machine    string
	Driver     string // version
}

// memoryWarmUp is rounds that are not counted.
const memoryWarmUp = 20

// MemoryReport is what Memory found.
type MemoryReport struct {
	Machine string      `json:"machine"`
	GPU     string      `json:"gpu"`
	Driver  string      `json:"driver"`
	PCIe    string      `json:"pcie"`     // the link now and at most, "" = none or unknown
	LinkGBs float64     `json:"link_gbs"` // that PCIe allows at most, each way; 0 = unknown
	LinkP50 float64     `json:"link_us"`  // of the copy engine bringing 16 MiB of locked memory: what the link gives
	Why     string      `json:"why"`      // which strategies auto considers, and why
	Works   []MemoryRow `json:"works"`
}

// MemoryRow is a piece of work with the strategies' times.
type MemoryRow struct {
	Work       string           `json:"work"`
	Bytes      int              `json:"bytes"` // of the buffer or picture
	Strategies []StrategyTiming `json:"strategies"`
	Winner     string           `json:"winner"` // among those that auto considers
}

// StrategyTiming are the times of one strategy: on the device from the first
// command to the last, and of the processor.
type StrategyTiming struct {
	Strategy string  `json:"strategy"`
	P50      float64 `json:"p50_us"`
	P99      float64 `json:"p99_us"`
	GBs      float64 `json:"gbs"`    // bytes by p50; more than the link gives where not all are read
	CPU      float64 `json:"cpu_us"` // of the calling thread
}

// Memory measures the ways of pixels to the device. All strategies take turns.
func Memory(ctx context.Context, dev *cuda.Device, o MemoryOptions) (*MemoryReport, error) {
	if o.Rounds == 0 {
		o.Rounds = 200
	}
	g := dev.GPU()
	r := &MemoryReport{Machine: o.Machine, GPU: g.Name, Driver: o.Driver, Why: o.Rules.Why}
	r.PCIe, r.LinkGBs = describeLink(g.PCIe.Gen, g.PCIe.Width, g.PCIe.MaxGen, g.PCIe.MaxWidth)
	if err := r.link(ctx, dev, o); err != nil {
		return nil, fmt.Errorf("bench memory: %w", err)
	}
	works := []Geometry{{framepool.NV12, 1920, 1080}, {framepool.I420, 1920, 1080}, {framepool.NV12, 3840, 2160}}
	for _, w := range append(works, o.Geometries...) {
		if slices.ContainsFunc(r.Works, func(row MemoryRow) bool { return row.Work == w.name(o.Spec) }) {
			continue
		}
		if err := r.geometry(ctx, dev, o, w); err != nil {
			return nil, fmt.Errorf("bench memory: %w", err)
		}
	}
	return r, nil
}

func (g Geometry) name(spec infer.InputSpec) string {
	return fmt.Sprintf("%dx%d %s to %dx%d", g.Width, g.Height, g.Format, spec.Width, spec.Height)
}

// strategiesOf are all that the device has, in the table's order.
func strategiesOf(r preprocess.Rules) []preprocess.Strategy {
	if !r.Register {
		return []preprocess.Strategy{preprocess.Heap, preprocess.Device}
	}
	inPlace := preprocess.Mapped
	if slices.Contains(r.Candidates, preprocess.Shared) {
		inPlace = preprocess.Shared
	}
	return []preprocess.Strategy{preprocess.Heap, preprocess.Staged, inPlace, preprocess.Device}
}

func (r *MemoryReport) link(ctx context.Context, dev *cuda.Device, o MemoryOptions) error {
	return dev.Do(ctx, "measure the link", func(c *cuda.Context) (err error) {
		l, err := newLink(c)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, l.close(c)) }()
		took := make([]time.Duration, 0, o.Rounds)
		for range memoryWarmUp + o.Rounds {
			d, err := l.copy(c)
			if err != nil {
				return err
			}
			took = append(took, d)
		}
		took = took[memoryWarmUp:]
		slices.Sort(took)
		r.LinkP50 = us(percentile(took, 50))
		return r.row("16 MiB read once", linkBytes, o, func(s preprocess.Strategy) (time.Duration, error) { return l.run(c, s) })
	})
}

func (r *MemoryReport) geometry(ctx context.Context, dev *cuda.Device, o MemoryOptions, g Geometry) error {
	return dev.Do(ctx, "measure memory strategies", func(c *cuda.Context) (err error) {
		t, err := preprocess.NewTrial(c, o.Spec, preprocess.TrialOptions{
			Format: g.Format, Width: g.Width, Height: g.Height, GPU: preprocess.GPUOptions{Half: o.Half},
		})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, t.Close(c)) }()
		return r.row(g.name(o.Spec), t.Bytes(), o, func(s preprocess.Strategy) (time.Duration, error) { return t.Run(c, s) })
	})
}

// row measures one work by all strategies in turn.
func (r *MemoryReport) row(work string, bytes int, o MemoryOptions, run func(preprocess.Strategy) (time.Duration, error)) error {
	strategies := strategiesOf(o.Rules)
	took, cpu := make([][]time.Duration, len(strategies)), make([]time.Duration, len(strategies))
	for round := range memoryWarmUp + o.Rounds {
		for i, s := range strategies {
			before := threadTime()
			d, err := run(s)
			if err != nil {
				return err
			}
			if round >= memoryWarmUp {
				took[i] = append(took[i], d)
				cpu[i] += threadTime() - before
			}
		}
	}
	row := MemoryRow{Work: work, Bytes: bytes}
	best := time.Duration(0)
	for i, s := range strategies {
		slices.Sort(took[i])
		p50, p99 := percentile(took[i], 50), percentile(took[i], 99)
		row.Strategies = append(row.Strategies, StrategyTiming{
			Strategy: string(s), P50: us(p50), P99: us(p99), GBs: float64(bytes) / float64(max(p50, 1)), CPU: us(cpu[i]) / float64(o.Rounds),
		})
		if slices.Contains(o.Rules.Candidates, s) && (row.Winner == "" || p50 < best) {
			row.Winner, best = string(s), p50
		}
	}
	r.Works = append(r.Works, row)
	return nil
}

func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// percentile of a sorted list, by the nearest rank.
func percentile(sorted []time.Duration, p int) time.Duration {
	return sorted[(len(sorted)*p+99)/100-1]
}

// threadTime is the processor time of this thread, which the device's goroutine
// holds.
func threadTime() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// describeLink says what a PCIe link is, and the bytes that its lanes carry a
// second each way (10⁹), of which packets' headers take a tenth and more.
func describeLink(gen, width, maxGen, maxWidth int) (text string, gbs float64) {
	if gen == 0 || width == 0 {
		return "", 0
	}
	text = fmt.Sprintf("PCIe %d x%d", gen, width)
	if maxGen > gen || maxWidth > width {
		text += fmt.Sprintf(" (up to %d x%d)", max(gen, maxGen), max(width, maxWidth))
	}
	lane := map[int]float64{1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}
	return text, lane[max(gen, maxGen)] * float64(width)
}
