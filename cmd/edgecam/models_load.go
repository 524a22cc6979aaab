package main

import (
	"context"
	"log/slog"
	"reflect"
	"strings"

	"edgecam/infer/builtin"
	"edgecam/infer/model"
	"edgecam/infer/ort"
	"edgecam/internal/config"
	"edgecam/internal/pipeline"
)

var _ pipeline.ModelSource = (*modelLoader)(nil)

// modelLoader loads models for the pipeline, with what the configuration says of
// all of them.
type modelLoader struct {
	*modelFiles

	cfg    config.Inference
	logger *slog.Logger
}

// Load implements pipeline.ModelSource.
func (l *modelLoader) Load(ctx context.Context, m config.Model, of *model.Report, beside *pipeline.GPU) (pipeline.Loaded, error) {
	if beside == nil {
		o := l.options(m, of)
		o.Precision = precisionOf(m, l.cfg.Precision)
		engine, err := ort.New(o)
		if err != nil {
			return pipeline.Loaded{}, err
		}
		report(l.logger, engine.Info())
		return pipeline.Loaded{Engine: engine, ZeroStreak: func() uint64 { return engine.Stats().ZeroStreak }}, nil
	}
	o := beside.Options().Engine
	o.Model, o.Spec, o.Precision = m.File, specOf(m, of), precisionOf(m, l.cfg.Precision)
	gpu, err := beside.Beside(ctx, o, iouOf(m, l.cfg))
	if err != nil {
		return pipeline.Loaded{}, err
	}
	report(l.logger, gpu.Info())
	return pipeline.Loaded{GPU: gpu}, nil
}

// options are those of a model on the processor, in the precision that is asked
// for.
func (l *modelLoader) options(m config.Model, of *model.Report) ort.Options {
	return ort.Options{
		Library: l.cfg.Library, Model: m.File, Spec: specOf(m, of), Precision: l.cfg.Precision,
		MaxBatch: l.cfg.MaxBatch, NMSIoU: iouOf(m, l.cfg),
	}
}

// specOf is what an engine is told of a model. Of a built-in one it knows it all,
// but for what the configuration says otherwise.
func specOf(m config.Model, of *model.Report) *model.Spec {
	plain := config.Model{File: m.File, ScoreThreshold: m.ScoreThreshold}
	if of == nil || isBuiltin(m) && reflect.DeepEqual(m, plain) {
		return nil
	}
	return &of.Spec
}

func isBuiltin(m config.Model) bool { return strings.HasPrefix(m.File, builtin.Prefix) }

// precisionOf is what inference.precision means for one of several models: files
// have their own.
func precisionOf(m config.Model, asked string) string {
	if !isBuiltin(m) {
		return "auto"
	}
	return asked
}

func iouOf(m config.Model, c config.Inference) float32 {
	if m.NMS.IoU != 0 {
		return float32(m.NMS.IoU)
	}
	return float32(c.NMSIoU)
}
