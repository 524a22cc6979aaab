package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/internal/pipeline/bench"
	"edgecam/platform/cuda"
	"edgecam/preprocess"
)

// memoryFlags are the flags of `bench memory`.
type memoryFlags struct {
	device string
	sizes  []string
	input  int
	half   bool
	rounds int
	tiles  bool
	asJSON bool
}

func newBenchMemory() *cobra.Command {
	var f memoryFlags
	cmd := &cobra.Command{
		Use:   "memory",
		Short: "Measure the ways of pixels to the GPU",
		Long: "Memory takes pictures of several sizes to the model's input by every strategy that the GPU allows, in\n" +
			"turn, and prints the times, the rates and the fastest. It needs a GPU.",
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return benchMemory(cmd, f) },
	}
	cmd.Flags().StringVar(&f.device, "device", "0", "number or UUID of the GPU")
	cmd.Flags().StringSliceVar(&f.sizes, "size", nil, "further picture sizes beside 1080p and 4K, as 768x576 (I420)")
	cmd.Flags().IntVar(&f.input, "input", 640, "side of the model's input")
	cmd.Flags().BoolVar(&f.half, "half", false, "the input holds float16")
	cmd.Flags().IntVar(&f.rounds, "rounds", 200, "measurements of each strategy")
	cmd.Flags().BoolVar(&f.tiles, "tiles", false, "measure the kernel's tile sizes instead")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	return cmd
}

func benchMemory(cmd *cobra.Command, f memoryFlags) error {
	driver := cuda.New(cuda.Options{})
	box := detect(driver)
	if len(box.GPUs) == 0 {
		return errors.New("bench memory: " + box.Why)
	}
	card, err := box.Select(f.device)
	if err != nil {
		return err
	}
	o := bench.MemoryOptions{
		Spec: benchSpec(f.input), Half: f.half, Rounds: f.rounds, Rules: preprocess.RulesFor(card),
		Machine: machineOf(box), Driver: box.Driver,
	}
	if o.Geometries, err = geometries(f.sizes); err != nil {
		return &usageError{err}
	}
	dev, err := driver.NewDevice(cmd.Context(), cuda.DeviceOptions{Index: card.Index})
	if err != nil {
		return err
	}
	defer dev.Close() //nolint:errcheck // nothing is left to save
	if f.tiles {
		return benchTiles(cmd.Context(), cmd, dev, o)
	}
	r, err := bench.Memory(cmd.Context(), dev, o)
	if err != nil {
		return err
	}
	return printReport(cmd, r, f.asJSON)
}

func benchTiles(ctx context.Context, cmd *cobra.Command, dev *cuda.Device, o bench.MemoryOptions) error {
	const best = 6 // rows of each picture and strategy
	rows, err := bench.SweepTiles(ctx, dev, o)
	if err != nil {
		return err
	}
	return bench.TileTable(cmd.OutOrStdout(), rows, best)
}

// benchSpec is a square input with the usual normalisation to 0..1.
func benchSpec(side int) infer.InputSpec {
	return infer.InputSpec{Width: side, Height: side, Std: [3]float32{255, 255, 255}, Pad: 114}
}

func geometries(sizes []string) ([]bench.Geometry, error) {
	var out []bench.Geometry
	for _, s := range sizes {
		g := bench.Geometry{Format: framepool.I420}
		if n, err := fmt.Sscanf(s, "%dx%d", &g.Width, &g.Height); n != 2 || err != nil || g.Width < 1 || g.Height < 1 {
			return nil, fmt.Errorf("--size %s: a size is written like 1920x1080", s)
		}
		out = append(out, g)
	}
	return out, nil
}
