package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"edgecam/framepool"
	"edgecam/infer/ort"
	"edgecam/internal/config"
	"edgecam/internal/pipeline"
	"edgecam/internal/pipeline/bench"
	"edgecam/internal/sim"
	"edgecam/internal/state"
	"edgecam/platform"
	"edgecam/platform/avcodec"
	"edgecam/platform/cuda"
)

// benchBox is a GPU that benches use, and what they say of it.
type benchBox struct {
	gpu    *pipeline.GPU
	box    platform.Platform
	card   platform.GPU
	codecs *avcodec.Library
	budget *framepool.Budget
	logger *slog.Logger
	state  *state.Dir // nil = none
}

func (b *benchBox) close() {
	if b.gpu != nil {
		b.gpu.Close()
	}
	if err := b.state.Close(); err != nil {
		b.logger.Warn("close state directory", "err", err)
	}
}

// openBenchGPU takes the card into use and waits for its engine to be the one
// that stays.
func openBenchGPU(ctx context.Context, f benchFlags, progress io.Writer) (*benchBox, error) {
	driver := cuda.New(cuda.Options{})
	b := &benchBox{box: detect(driver), logger: newLogger(progress, "warn", "text")}
	if len(b.box.GPUs) == 0 {
		return nil, errors.New(b.box.Why)
	}
	var err error
	if b.card, err = b.box.Select(f.device); err != nil {
		return nil, err
	}
	if b.codecs, err = avcodec.Open(); err != nil {
		return nil, err
	}
	byDefault := config.Default()
	limit, _ := framepool.DetectLimit(byDefault.Memory.Share, 0)
	b.budget = framepool.NewBudget(limit)
	if f.state != "" {
		if b.state, err = openState(&config.Config{StateDir: f.state}, b.logger); err != nil {
			return nil, err
		}
	}
	b.gpu, err = pipeline.OpenGPU(ctx, pipeline.GPUOptions{
		Driver: driver, Card: b.card, Memory: f.memory, Codecs: b.codecs, Logger: b.logger, NMSIoU: float32(byDefault.Inference.NMSIoU),
		Engine: ort.DeviceOptions{
			Library: f.library, Model: f.model, Precision: f.precision, Provider: f.provider, MaxBatch: f.batch,
			StateDir: f.state, Driver: b.box.Driver, Logger: b.logger,
		},
	})
	if err != nil {
		b.close()
		return nil, err
	}
	start := time.Now()
	fmt.Fprintf(progress, "waiting for the engine\n")
	select {
	case <-b.gpu.Settled():
	case <-ctx.Done():
		b.close()
		return nil, ctx.Err()
	}
	fmt.Fprintf(progress, "%s serves after another %s\n", b.gpu.Info().Provider, time.Since(start).Round(time.Millisecond))
	return b, nil
}

func benchGPU(ctx context.Context, f benchFlags, progress io.Writer) (*bench.GPUReport, error) {
	clip, err := sim.OpenClip(f.clip)
	if err != nil {
		return nil, err
	}
	b, err := openBenchGPU(ctx, f, progress)
	if err != nil {
		return nil, err
	}
	defer b.close()
	r, err := bench.GPU(ctx, bench.GPUOptions{
		Clip: clip, Card: b.gpu.Bench(float32(config.Default().Inference.ScoreThreshold)), Decoders: f.decoders,
		Budget: b.budget, Codecs: b.codecs, Logger: b.logger,
		Progress: func(decoder string, images int) { fmt.Fprintf(progress, "\r%s, batches of %d   ", decoder, images) },
	})
	fmt.Fprintln(progress)
	if err != nil {
		return nil, err
	}
	r.Machine, r.GPU, r.Driver = machineOf(b.box), b.card.Name, b.box.Driver
	if f.clip != "" {
		r.Clip = filepath.Base(f.clip) + ", " + r.Clip
	}
	return r, nil
}

// soakFlags are the flags of `bench soak`.
type soakFlags struct {
	benchFlags

	duration, warmUp time.Duration
	seed             uint64
}

func newBenchSoak() *cobra.Command {
	var f soakFlags
	byDefault := config.Default()
	cmd := &cobra.Command{
		Use:   "soak",
		Short: "Take batches of random sizes from cameras of random sizes through the GPU, and watch its memory",
		Args:  exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			b, err := openBenchGPU(cmd.Context(), f.benchFlags, cmd.ErrOrStderr())
			if err != nil {
				return fmt.Errorf("bench soak: %w", err)
			}
			defer b.close()
			r, err := bench.Soak(cmd.Context(), bench.SoakOptions{
				Card: b.gpu.Bench(float32(byDefault.Inference.ScoreThreshold)), Duration: f.duration, WarmUp: f.warmUp, Seed: f.seed,
			})
			if err != nil {
				return err
			}
			r.Machine, r.GPU, r.Driver = machineOf(b.box), b.card.Name, b.box.Driver
			if err := printReport(cmd, r, f.asJSON); err != nil {
				return err
			}
			return r.Verdict()
		},
	}
	cmd.Flags().DurationVar(&f.duration, "duration", time.Minute, "how long it goes on after the warm-up")
	cmd.Flags().DurationVar(&f.warmUp, "warm-up", 20*time.Second, "how long memory may still grow")
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "of the random sizes")
	f.addEngine(cmd, "auto, fp32 or fp16", "auto, cuda or tensorrt", "auto, mapped, staged or heap")
	cmd.Flags().IntVar(&f.batch, "max-batch", 64, "largest batch")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	return cmd
}
