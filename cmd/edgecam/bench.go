package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"edgecam/framepool"
	"edgecam/infer/ort"
	"edgecam/internal/config"
	"edgecam/internal/pipeline/bench"
	"edgecam/internal/sim"
	"edgecam/platform"
	"edgecam/platform/avcodec"
	"edgecam/platform/cuda"
)

func newBench() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure this machine",
		Args:  exactArgs(0, "a sub-command"),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBenchMemory(), newBenchPipeline(), newBenchCameras(), newBenchFarm(), newBenchSoak())
	return cmd
}

// printReport prints what a bench found: a table for people, or JSON.
func printReport(cmd *cobra.Command, r interface{ Table(io.Writer) error }, asJSON bool) error {
	if !asJSON {
		return r.Table(cmd.OutOrStdout())
	}
	e := json.NewEncoder(cmd.OutOrStdout())
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// machineOf names the machine beside its figures.
func machineOf(box platform.Platform) string {
	return fmt.Sprintf("%s, %d cores", box.CPU.Model, box.CPU.Cores)
}

// benchFlags are the flags of `bench pipeline`.
type benchFlags struct {
	frames                          int
	clip, model, precision, library string
	provider, device, memory, state string
	decoders                        []string
	batch                           int
	asJSON                          bool
}

func newBenchPipeline() *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "pipeline",
		Short: "Take a clip through decoding, preprocessing and the model as fast as it goes",
		Long: "With a GPU that can serve, batches of each size go through all stages on it, from a decoder of its own and\n" +
			"from the processor's, and the engine runs alone for comparison. Without one, or with --provider cpu,\n" +
			"the stages are measured on one core.",
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := benchStages(cmd.Context(), f, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return printReport(cmd, r, f.asJSON)
		},
	}
	cmd.Flags().IntVar(&f.frames, "frames", 2000, "pictures to take through the stages; the clip loops")
	cmd.Flags().StringVar(&f.clip, "clip", "", "MP4 file with H.264 or H.265 video (default: the built-in clip)")
	f.addEngine(cmd, "auto, fp32, fp16 or int8", "auto, cpu, cuda or tensorrt", "auto, mapped, staged, device or heap")
	cmd.Flags().StringSliceVar(&f.decoders, "decoder", []string{"nvdec", "software"}, "decoders whose pictures the GPU takes")
	cmd.Flags().IntVar(&f.batch, "max-batch", 64, "largest batch on the GPU")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	return cmd
}

// addEngine adds the flags of the engine and of the GPU; the words are what three of
// them take here.
func (f *benchFlags) addEngine(cmd *cobra.Command, precisions, providers, memories string) {
	o, byDefault := cmd.Flags(), config.Default()
	o.StringVar(&f.model, "model", byDefault.Inference.Model.File, "builtin:nanodet-g or an ONNX file")
	o.StringVar(&f.precision, "precision", byDefault.Inference.Precision, precisions+" (built-in model)")
	o.StringVar(&f.library, "library", "", "path of libonnxruntime.so (default: search)")
	o.StringVar(&f.provider, "provider", "auto", providers)
	o.StringVar(&f.device, "device", "0", "number or UUID of the GPU")
	o.StringVar(&f.memory, "memory", byDefault.GPU.Memory, "how pictures come to the GPU: "+memories)
	o.StringVar(&f.state, "state", "", "directory for TensorRT's engines, which take a minute to build")
}

// benchStages measures on the GPU where there is one that can serve, else on the
// processor.
func benchStages(ctx context.Context, f benchFlags, progress io.Writer) (interface{ Table(io.Writer) error }, error) {
	if !slices.Contains([]string{"auto", "cpu", "cuda", "tensorrt"}, f.provider) {
		return nil, &usageError{fmt.Errorf("--provider %s: it is auto, cpu, cuda or tensorrt", f.provider)}
	}
	if f.provider != "cpu" {
		r, err := benchGPU(ctx, f, progress)
		if err == nil || f.provider != "auto" || ctx.Err() != nil {
			return r, err
		}
		fmt.Fprintf(progress, "no GPU: %v\n", err)
	}
	return benchPipeline(ctx, f, progress)
}

func benchPipeline(ctx context.Context, f benchFlags, progress io.Writer) (*bench.Report, error) {
	logger := newLogger(progress, "warn", "text")
	clip, err := sim.OpenClip(f.clip)
	if err != nil {
		return nil, err
	}
	byDefault := config.Default()
	engine, err := ort.New(ort.Options{
		Library: f.library, Model: f.model, Precision: f.precision, Concurrency: 1,
		MaxBatch: 1, NMSIoU: float32(byDefault.Inference.NMSIoU),
	})
	if err != nil {
		return nil, fmt.Errorf("load model %s: %w", f.model, err)
	}
	defer engine.Close() //nolint:errcheck // nothing is left to save
	codecs, err := avcodec.Open()
	if err != nil {
		return nil, err
	}
	limit, _ := framepool.DetectLimit(byDefault.Memory.Share, 0)
	r, err := bench.Run(ctx, bench.Options{
		Clip: clip, Frames: f.frames, Engine: engine, Split: func() (model, candidates time.Duration) {
			st := engine.Stats()
			return st.Infer, st.Decode
		},
		ScoreThreshold: float32(byDefault.Inference.ScoreThreshold),
		Budget:         framepool.NewBudget(limit), Codecs: codecs, Logger: logger,
		Progress: func(done int) { fmt.Fprintf(progress, "\r%d of %d frames", done, f.frames) },
	})
	fmt.Fprintln(progress)
	if err != nil {
		return nil, err
	}
	box := detect(cuda.New(cuda.Options{}))
	r.Machine = machineOf(box)
	if f.clip != "" {
		r.Clip = filepath.Base(f.clip) + ", " + r.Clip
	}
	return r, nil
}
