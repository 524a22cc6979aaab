package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"edgecam/infer"
	"edgecam/infer/builtin"
	"edgecam/infer/model"
	"edgecam/internal/config"
)

// modelFiles looks into the model files of a configuration, each once as long as
// it stays the same.
type modelFiles struct {
	mu    sync.Mutex
	known map[string]*model.Report // guarded by mu
}

func newModelFiles() *modelFiles { return &modelFiles{known: map[string]*model.Report{}} }

// forget makes the next look a new one: a file may be written anew within the same
// tick of the clock, or keep its time as copies do.
func (f *modelFiles) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.known)
}

// Inspect says what a model is. The report is there, beside the error, where the
// file can be read and not be used.
func (f *modelFiles) Inspect(m config.Model) (*model.Report, error) {
	o := overridesOf(m)
	key, err := stampOf(m.File, o)
	if err != nil {
		return inspectModel(m.File, o) // which says it better
	}
	f.mu.Lock()
	known := f.known[key]
	f.mu.Unlock()
	if known != nil {
		return known, known.Err()
	}
	report, err := inspectModel(m.File, o)
	if report == nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known[key] = report
	return report, err
}

// stampOf changes with the overrides, with a file, and with the files that it is
// read with.
func stampOf(file string, o model.Overrides) (string, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	key := file + "\x00" + string(text)
	for _, name := range []string{file, o.LabelsFile} {
		if name == "" || strings.HasPrefix(name, builtin.Prefix) {
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			return "", err
		}
		key += fmt.Sprintf("\x00%d %d", info.Size(), info.ModTime().UnixNano())
	}
	return key, nil
}

func overridesOf(m config.Model) model.Overrides {
	o := model.Overrides{
		Family: model.Canonical(m.Family), Layout: m.Input.Layout, Color: m.Input.Color, Letterbox: m.Input.Letterbox,
		Mean: three(m.Input.Mean), Std: three(m.Input.Std),
		Labels: m.Labels.Names, LabelsFile: m.Labels.File, IoU: float32(m.NMS.IoU), ClassAgnostic: m.NMS.ClassAgnostic,
	}
	if len(m.Input.Size) == 2 {
		o.Width, o.Height = m.Input.Size[0], m.Input.Size[1]
	}
	if m.Input.Scale != 0 {
		scale := float32(m.Input.Scale)
		o.Scale = &scale
	}
	return o
}

func three(n []float64) *[3]float32 {
	if len(n) != 3 {
		return nil
	}
	return &[3]float32{float32(n[0]), float32(n[1]), float32(n[2])}
}

// check holds a model of the configuration against its file, for config.Options.
func (f *modelFiles) check(m config.Model, _ string) (labels []string, problems []config.ModelProblem) {
	report, err := f.Inspect(m)
	if err == nil {
		return report.Spec.Labels, nil
	}
	if report != nil && report.Refusal == "" {
		for _, q := range report.Ask {
			text := q.Why
			if len(q.Alternatives) > 0 {
				text += " (" + strings.Join(q.Alternatives, ", ") + ")"
			}
			problems = append(problems, config.ModelProblem{Key: withoutModel(q.Key), Err: errors.New(withoutModel(text))})
		}
		return nil, problems
	}
	var refused *infer.ModelError
	if errors.As(err, &refused) { // without the file's name, which the problem's place tells
		err = fmt.Errorf("%w; %s", refused.Err, refused.Hint)
	}
	return nil, []config.ModelProblem{{Err: errors.New(withoutModel(err.Error())), File: report == nil}}
}

// checkReadable is check of files that can be read.
func (f *modelFiles) checkReadable(m config.Model, precision string) (labels []string, problems []config.ModelProblem) {
	if report, err := f.Inspect(m); report == nil && err != nil {
		return nil, nil
	}
	return f.check(m, precision)
}

// withoutModel takes the place of the one model off keys, as the model may be
// another one.
func withoutModel(text string) string { return strings.ReplaceAll(text, "inference.model.", "") }
