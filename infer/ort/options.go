package ort

import (
	"fmt"
	"runtime"

	"edgecam/infer/builtin"
	spec "edgecam/infer/model"
)

// The precisions of the built-in models.
const (
	precisionAuto = "auto"
	precisionFP32 = "fp32"
	precisionFP16 = "fp16" // on a GPU
	precisionINT8 = "int8"
	// precisionFile is what Info says of a model file, whose numbers are its own.
	precisionFile = "as in the file"
)

// maxBatchCPU bounds the batch: a run uses one thread, so that a batch takes as
// long as its images one after another and only makes the first wait for the
// last (int8 on one core of an EPYC: 16.5 ms an image alone and in fours).
const maxBatchCPU = 1

// Options say what to load and how.
type Options struct {
	// Library is the path of libonnxruntime.so. Empty: it is searched for, see
	// onnxruntime.Candidates.
	Library string
	// Model is "builtin:nanodet-g" (the default) or the path of an .onnx file.
	Model string
	// Spec is what is known of a model file. nil: the file is looked into.
	Spec *spec.Spec
	// Precision picks the version of a built-in model: auto (the default),
	// fp32 or int8. A file takes auto only.
	Precision string
	// Concurrency is the number of slots, and so of runs at once. It defaults
	// to the number of CPUs that the process may use.
	Concurrency int
	// MaxBatch bounds the images of one run. The CPU takes 1 whatever is asked, or
	// as many as a model with a fixed batch has.
	MaxBatch int
	// NMSIoU is the overlap above which of two boxes of a class only the better
	// stays, 0..1. It defaults to 0.6.
	NMSIoU float32

	fastInt8 func() (bool, string) // asks the CPU
	batchCap int                   // maxBatchCPU but in tests
	source   source
}

func (o Options) withDefaults() (Options, error) {
	if o.Model == "" {
		o.Model = builtin.NanoDetG
	}
	if o.Precision == "" {
		o.Precision = precisionAuto
	}
	if o.Concurrency == 0 {
		o.Concurrency = runtime.GOMAXPROCS(0)
	}
	if o.fastInt8 == nil {
		o.fastInt8 = fastInt8
	}
	if o.batchCap == 0 {
		o.batchCap = maxBatchCPU
	}
	o.MaxBatch = max(min(o.MaxBatch, o.batchCap), 1)
	if o.Concurrency < 0 || o.Concurrency > 1024 {
		return o, fmt.Errorf("make engine: concurrency %d is not between 1 and 1024", o.Concurrency)
	}
	var err error
	o.source, err = sourceOf(o.Model, o.Spec)
	return o, err
}
