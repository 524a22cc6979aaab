package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"edgecam/internal/config"
	"edgecam/internal/pipeline/bench/farm"
	"edgecam/platform/cuda"
)

// farmFlags are the flags of `bench farm`.
type farmFlags struct {
	flapping, healthy        int
	duration, warmUp, period time.Duration
	seed                     uint64
	library                  string
	asJSON                   bool
}

func newBenchFarm() *cobra.Command {
	var f farmFlags
	cmd := &cobra.Command{
		Use:   "farm",
		Short: "Run beside cameras with every fault, and see what leaks, what is lost, and how soon a camera is back",
		Long: "Farm runs the appliance against simulated cameras in processes of their own: some with every fault of `edgecam sim`\n" +
			"in turn, some in good health, and one that loses its power again and again. It ends with an error where memory\n" +
			"grows, goroutines or descriptors are left, healthy cameras lose pictures, or a camera is seen late after its return.",
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return &usageError{err}
			}
			r, err := benchFarm(cmd.Context(), f, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if err := printReport(cmd, r, f.asJSON); err != nil {
				return err
			}
			if len(r.Problems) > 0 {
				return errors.New("the farm is not as it must be: " + r.Problems[0])
			}
			return nil
		},
	}
	o := cmd.Flags()
	o.IntVar(&f.flapping, "flapping", 16, "cameras with faults")
	o.IntVar(&f.healthy, "healthy", 4, "cameras in good health")
	o.DurationVar(&f.duration, "duration", 20*time.Minute, "time that the farm is watched")
	o.DurationVar(&f.warmUp, "warm-up", 0, "time that the growth of memory leaves out (default: a quarter of the duration)")
	o.DurationVar(&f.period, "period", 12*time.Second, "time of each fault with the rest behind it")
	o.Uint64Var(&f.seed, "seed", 1, "of the faults: their order, and what they leave to chance")
	o.StringVar(&f.library, "library", "", "path of libonnxruntime.so (default: search)")
	o.BoolVar(&f.asJSON, "json", false, "print JSON")
	return cmd
}

func (f *farmFlags) check() error {
	switch {
	case f.flapping < 1 || f.healthy < 1:
		return errors.New("--flapping and --healthy: at least one each is needed")
	case f.duration < 5*time.Second:
		return fmt.Errorf("--duration %s: at least 5 s are needed", f.duration)
	case f.warmUp < 0 || f.warmUp >= f.duration:
		return fmt.Errorf("--warm-up %s: less than --duration is needed", f.warmUp)
	case f.period < time.Second || f.period > time.Hour:
		return fmt.Errorf("--period %s: a second to an hour", f.period)
	}
	if f.warmUp == 0 {
		f.warmUp = f.duration / 4
	}
	return nil
}

func benchFarm(ctx context.Context, f farmFlags, progress io.Writer) (*farm.Report, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cfg := config.Default()
	cfg.Server.Listen = "127.0.0.1:0"
	cfg.Inference.Library = f.library
	cfg.Cameras = map[string]config.Camera{}
	a, err := newAppliance(ctx, cfg, nil, newLogger(io.Discard, "error", "text"))
	if err != nil {
		return nil, err
	}
	defer a.Close()
	var r *farm.Report
	g, ctx := errgroup.WithContext(ctx)
	ctx, stop := context.WithCancel(ctx)
	g.Go(func() error { return a.Run(ctx, "", nil) })
	g.Go(func() error {
		defer stop()
		select {
		case <-a.pipeline.Started():
		case <-ctx.Done():
			return ctx.Err()
		}
		var err error
		r, err = farm.Run(ctx, farm.Options{
			Box: a.pipeline, Config: cfg, Binary: binary, Flapping: f.flapping, Healthy: f.healthy,
			Duration: f.duration, WarmUp: f.warmUp, Period: f.period, Seed: f.seed, Progress: progress,
		})
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	fmt.Fprintln(progress)
	r.Machine = machineOf(detect(cuda.New(cuda.Options{})))
	return r, nil
}
