package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"edgecam/capture/decode"
	"edgecam/infer"
	"edgecam/infer/ort"
	"edgecam/internal/config"
	"edgecam/internal/pipeline"
	"edgecam/platform"
	"edgecam/platform/avcodec"
	"edgecam/platform/cuda"
	"edgecam/platform/onnxruntime"
	"edgecam/preprocess"
)

// inference is where the model runs: on a card, on the processor, or, without a
// runtime that can be used, nowhere.
type inference struct {
	gpus    []*pipeline.GPU
	unused  []pipeline.UnusedGPU // cards that were meant to serve beside them
	cpu     *ort.Engine
	models  *modelLoader
	engine  ort.Options // of inference.model
	state   string      // directory for what outlives a restart, "" = none
	problem string      // why neither
	note    string      // why the processor although there is a card
}

// kept is what starts before this one left.
type kept struct {
	dir string // the state directory, "" = none
	// rest is why cards are left alone this time, "" = they are not; a configuration
	// that demands one has it tried all the same.
	rest string
}

// openInference takes what the configuration allows, the card first. A card that
// cannot serve leaves the processor at work with one warning, unless the
// configuration demands it. A runtime that is not there leaves the cameras and
// the dashboard running, with the reason shown; a model that is named and cannot
// be used ends the start.
func openInference(ctx context.Context, cfg *config.Config, box platform.Platform, driver *cuda.Driver, codecs *avcodec.Library, before kept, logger *slog.Logger) (*inference, error) {
	in := &inference{state: before.dir, models: &modelLoader{modelFiles: newModelFiles(), cfg: cfg.Inference, logger: logger}}
	main := cfg.Inference.Named()[config.DefaultModel]
	of, err := in.models.Inspect(main)
	if err != nil {
		return nil, err
	}
	in.engine = in.models.options(main, of)
	if wanted := cfg.GPU.Mode == "auto" && cfg.Inference.Provider == "auto" && len(box.GPUs) > 0; before.rest != "" && wanted {
		err = errors.New(before.rest)
	} else {
		err = in.openGPUs(ctx, cfg, box, driver, codecs, logger)
	}
	if err == nil && len(in.gpus) > 0 {
		for _, g := range in.gpus {
			report(logger, g.Info())
		}
		return in, nil
	}
	if err != nil {
		var contrary *configError
		var wrong *preprocess.StrategyError
		switch demand := demandsGPU(cfg); {
		case errors.As(err, &contrary), ctx.Err() != nil:
			return nil, err
		case errors.As(err, &wrong):
			return nil, &configError{fmt.Errorf("gpu.memory: %w", err)}
		case demand != "":
			return nil, fmt.Errorf("%s, and the GPU cannot serve: %w", demand, err)
		}
		logger.Warn("the GPU is not used: the processor does its work", "err", err)
		in.note = "the GPU is not used: " + err.Error()
	}
	return in, in.openCPU(cfg, logger)
}

// demandsGPU is what in the configuration rules the processor out.
func demandsGPU(cfg *config.Config) string {
	switch p := cfg.Inference.Provider; {
	case p == "cuda" || p == "tensorrt":
		return "inference.provider is " + p
	case cfg.GPU.Mode == "require":
		return "gpu.mode is require"
	}
	return ""
}

// openGPUs opens the cards that the configuration means. No card at all is an
// error only where one is demanded. Where every card is meant and only some can
// serve, those do, unless all are demanded.
func (in *inference) openGPUs(ctx context.Context, cfg *config.Config, box platform.Platform, driver *cuda.Driver, codecs *avcodec.Library, logger *slog.Logger) error {
	demand := demandsGPU(cfg)
	if cfg.GPU.Mode == "off" || cfg.Inference.Provider == "cpu" {
		if demand != "" {
			return &configError{fmt.Errorf("gpu.mode is %s and inference.provider is %s: one rules out the other", cfg.GPU.Mode, cfg.Inference.Provider)}
		}
		return nil
	}
	if len(box.GPUs) == 0 {
		if demand != "" {
			return errors.New(box.Why)
		}
		return nil
	}
	cards, err := cardsMeant(cfg.GPU.Device, box)
	if err != nil {
		return err
	}
	var first error
	setUps := decode.NewSetUps()
	for _, card := range cards {
		o := in.gpuOptions(cfg, card, box, driver, codecs, logger)
		o.SetUps = setUps
		gpu, err := pipeline.OpenGPU(ctx, o)
		if err == nil {
			in.gpus = append(in.gpus, gpu)
			continue
		}
		if first == nil {
			first = err
		}
		in.unused = append(in.unused, pipeline.UnusedGPU{Card: card, Reason: err.Error()})
	}
	if first == nil {
		return nil
	}
	if len(in.gpus) == 0 || cfg.GPU.Device == "all" || ctx.Err() != nil {
		in.closeGPUs()
		return first
	}
	for _, u := range in.unused {
		logger.Warn("a GPU is not used", "gpu", u.Card.Index, "err", u.Reason)
	}
	return nil
}

// cardsMeant gives the cards that gpu.device names. Of the integrated ones there
// is one, and it is none of several: auto takes it where there is nothing else.
func cardsMeant(device string, box platform.Platform) ([]platform.GPU, error) {
	if device != "auto" && device != "all" {
		card, err := box.Select(device)
		return []platform.GPU{card}, err
	}
	var discrete []platform.GPU
	for _, g := range box.GPUs {
		if !g.Integrated {
			discrete = append(discrete, g)
		}
	}
	if len(discrete) == 0 {
		return box.GPUs[:1], nil
	}
	return discrete, nil
}

func (in *inference) gpuOptions(cfg *config.Config, card platform.GPU, box platform.Platform, driver *cuda.Driver, codecs *avcodec.Library, logger *slog.Logger) pipeline.GPUOptions {
	return pipeline.GPUOptions{
		Driver: driver, Card: card, Memory: cfg.GPU.Memory, Codecs: codecs, Logger: logger,
		NMSIoU: in.engine.NMSIoU,
		Engine: ort.DeviceOptions{
			Library: cfg.Inference.Library, Model: in.engine.Model, Spec: in.engine.Spec, Precision: cfg.Inference.Precision,
			Provider: cfg.Inference.Provider, MaxBatch: cfg.Inference.MaxBatch,
			StateDir: in.state, Driver: box.Driver, Logger: logger,
			Changed: func(i infer.Info) { report(logger, i) },
		},
	}
}

func (in *inference) closeGPUs() {
	for _, g := range in.gpus {
		g.Close()
	}
	in.gpus = nil
}

// openCPU opens the processor's engine. A precision that only cards have is a
// mistake where there is no card; where there is one, its failure must not end the
// start, and the processor takes its own.
func (in *inference) openCPU(cfg *config.Config, logger *slog.Logger) error {
	o := in.engine
	onlyGPU := o.Precision == "fp16" && isBuiltin(cfg.Inference.Model)
	if onlyGPU && in.note != "" {
		o.Precision = "auto"
	}
	engine, err := ort.New(o)
	var missing *onnxruntime.UnavailableError
	if errors.As(err, &missing) && cfg.Inference.Library == "" {
		logger.Warn("inference is off: pictures only", "err", err, "try", missing.Hint)
		in.problem = fmt.Sprintf("%v. %s", err, missing.Hint)
		return nil
	}
	var refused *infer.ModelError
	if onlyGPU && errors.As(err, &refused) {
		return &configError{err}
	}
	if err != nil {
		return err
	}
	in.cpu = engine
	report(logger, engine.Info())
	return nil
}

func report(logger *slog.Logger, i infer.Info) {
	logger.Info("model ready", "model", i.Model, "precision", i.Precision, "provider", i.Provider,
		"runtime", i.Version, "ms_per_image", i.ProbeMS)
}

// close gives the engines back, once nothing uses them.
func (in *inference) close(logger *slog.Logger) {
	in.closeGPUs()
	if in.cpu != nil {
		if err := in.cpu.Close(); err != nil {
			logger.Warn("close model", "err", err)
		}
	}
}
