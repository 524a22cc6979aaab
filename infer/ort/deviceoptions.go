package ort

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"edgecam/infer"
	"edgecam/infer/builtin"
	spec "edgecam/infer/model"
	"edgecam/platform/cuda"
)

// The providers of a DeviceEngine, as configured and as Info says them.
const (
	providerAuto     = "auto"
	providerCUDA     = "cuda"
	providerTensorRT = "tensorrt"
)

// maxBatchGPU is the largest batch that is bound. Beyond 64 images an H200
// gains nothing from a larger one.
const maxBatchGPU = 64

// DeviceOptions say what a DeviceEngine loads and how.
type DeviceOptions struct {
	// Library is the path of the GPU build's libonnxruntime.so. Empty: it is
	// searched for, see onnxruntime.FindGPU.
	Library string
	// Model is "builtin:nanodet-g" (the default) or the path of an .onnx file.
	Model string
	// Spec is what is known of a model file. nil: the file is looked into.
	Spec *spec.Spec
	// Precision picks the version of a built-in model: auto (the default: the
	// one that is measured to be faster), fp32 or fp16. A file takes auto only.
	Precision string
	// Provider is auto (the default: TensorRT where it works and is faster than
	// CUDA), cuda, or tensorrt (where it works, whatever its speed). CUDA serves
	// until TensorRT is ready and when it cannot be.
	Provider string
	// Stream is what runs are queued on. 0: the engine makes one, see
	// DeviceEngine.Stream.
	Stream cuda.Stream
	// MaxBatch is the most images of one run, 1 to 64. It defaults to 16.
	MaxBatch int
	// StateDir holds TensorRT's engines in its directory tensorrt. Empty: every
	// start builds anew.
	StateDir string
	// Driver is the version of the NVIDIA driver, which engines depend on.
	Driver string
	// NoGraphs keeps the CUDA provider's runs from being captured as CUDA graphs,
	// which is tried where CUDA is to serve for good.
	NoGraphs bool
	// Changed, if set, is told of every change of Info after NewDevice. It must
	// not block.
	Changed func(infer.Info)
	Logger  *slog.Logger // it defaults to discarding

	source source
}

func (o DeviceOptions) withDefaults() (DeviceOptions, error) {
	for _, d := range []struct {
		value *string
		what  string
	}{{&o.Model, builtin.NanoDetG}, {&o.Precision, precisionAuto}, {&o.Provider, providerAuto}} {
		if *d.value == "" {
			*d.value = d.what
		}
	}
	if o.MaxBatch == 0 {
		o.MaxBatch = 16
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.MaxBatch < 1 || o.MaxBatch > maxBatchGPU {
		return o, fmt.Errorf("make gpu engine: batch %d is not between 1 and %d", o.MaxBatch, maxBatchGPU)
	}
	if !slices.Contains([]string{providerAuto, providerCUDA, providerTensorRT}, o.Provider) {
		return o, fmt.Errorf("make gpu engine: provider %q is not auto, cuda or tensorrt", o.Provider)
	}
	if _, err := o.precisions(); err != nil {
		return o, err
	}
	var err error
	o.source, err = sourceOf(o.Model, o.Spec)
	return o, err
}

// precisions lists the versions of the model to try, the preferred one first.
func (o DeviceOptions) precisions() ([]string, error) {
	file := !strings.HasPrefix(o.Model, builtin.Prefix)
	switch {
	case file && o.Precision != precisionAuto:
		return nil, &infer.ModelError{
			Model: o.Model, Err: fmt.Errorf("precision %s picks a version of a built-in model, a file has its own", o.Precision),
			Hint: "use precision auto with a model file",
		}
	case file:
		return []string{precisionFile}, nil
	case o.Precision == precisionAuto:
		return []string{precisionFP32, precisionFP16}, nil
	case o.Precision == precisionFP32 || o.Precision == precisionFP16:
		return []string{o.Precision}, nil
	}
	return nil, &infer.ModelError{
		Model: o.Model, Err: fmt.Errorf("precision %s is not for GPUs", o.Precision), Hint: "use precision auto, fp32 or fp16 on a GPU",
	}
}

// bucketsUpTo lists the batch sizes that are bound: powers of two and the
// largest.
func bucketsUpTo(batch int) []int {
	var list []int
	for n := 1; n < batch; n *= 2 {
		list = append(list, n)
	}
	return append(list, batch)
}

// bucketFor is the place of the smallest bucket that holds n images.
func bucketFor(buckets []int, n int) int {
	for k, size := range buckets {
		if size >= n {
			return k
		}
	}
	return -1
}
