package bench

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"edgecam/platform/cuda"
	"edgecam/preprocess"
)

// TileTiming is the letterbox kernel's median time with one shape of blocks.
type TileTiming struct {
	Work     string          `json:"work"`
	Strategy string          `json:"strategy"`
	Tile     preprocess.Tile `json:"tile"`
	Threads  int             `json:"threads"`
	P50      float64         `json:"p50_us"`
}

// tileRounds is how often each shape is measured; all take turns.
const tileRounds = 21

// SweepTiles measures shapes of blocks on geometries by the strategies in place
// and on the device, to find which the kernel should have by default.
func SweepTiles(ctx context.Context, dev *cuda.Device, o MemoryOptions) ([]TileTiming, error) {
	var all []TileTiming
	for _, g := range o.Geometries {
		for _, s := range strategiesOf(o.Rules) {
			if s == preprocess.Heap {
				continue // the copy hides the kernel
			}
			rows, err := sweep(ctx, dev, o, g, s)
			if err != nil {
				return nil, fmt.Errorf("sweep tiles: %w", err)
			}
			all = append(all, rows...)
		}
	}
	return all, nil
}

func sweep(ctx context.Context, dev *cuda.Device, o MemoryOptions, g Geometry, s preprocess.Strategy) (rows []TileTiming, err error) {
	rows = shapes(o, g, s)
	err = dev.Do(ctx, "sweep tiles", func(c *cuda.Context) (err error) {
		t, err := preprocess.NewTrial(c, o.Spec, preprocess.TrialOptions{
			Format: g.Format, Width: g.Width, Height: g.Height, GPU: preprocess.GPUOptions{Half: o.Half},
		})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, t.Close(c)) }()
		took := make([][]time.Duration, len(rows))
		for round := range tileRounds + 3 {
			for i, row := range rows {
				if err := t.Tune(row.Tile, row.Threads); err != nil {
					return err
				}
				d, err := t.Run(c, s)
				if err != nil {
					return err
				}
				if round >= 3 {
					took[i] = append(took[i], d)
				}
			}
		}
		for i := range rows {
			slices.Sort(took[i])
			rows[i].P50 = us(percentile(took[i], 50))
		}
		return nil
	})
	slices.SortStableFunc(rows, func(a, b TileTiming) int { return cmp.Compare(a.P50, b.P50) })
	return rows, err
}

// shapes are the rows to be measured.
func shapes(o MemoryOptions, g Geometry, s preprocess.Strategy) (rows []TileTiming) {
	for _, w := range []int{32, 64, 128, 256} {
		for _, h := range []int{2, 4, 8, 16, 32} {
			for _, threads := range []int{128, 256, 512} {
				rows = append(rows, TileTiming{
					Work: g.name(o.Spec), Strategy: string(s), Tile: preprocess.Tile{Width: w, Height: h}, Threads: threads,
				})
			}
		}
	}
	return rows
}

// TileTable prints the best shapes of each work and strategy, and the worst.
func TileTable(w io.Writer, rows []TileTiming, best int) error {
	var t bytes.Buffer
	same := func(a, b TileTiming) bool { return a.Work == b.Work && a.Strategy == b.Strategy }
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && same(rows[0], rows[n]) {
			n++
		}
		fmt.Fprintf(&t, "%s, %s:", rows[0].Work, rows[0].Strategy)
		for _, r := range append(slices.Clone(rows[:min(best, n)]), rows[n-1]) {
			fmt.Fprintf(&t, "  %dx%d/%d %.1f", r.Tile.Width, r.Tile.Height, r.Threads, r.P50)
		}
		t.WriteString(" us\n")
		rows = rows[n:]
	}
	_, err := w.Write(t.Bytes())
	return err
}
