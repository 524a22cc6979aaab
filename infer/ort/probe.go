package ort

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"edgecam/infer"
	"edgecam/infer/builtin"
	"edgecam/platform/onnxruntime"
)

const (
	// probeRuns are the timed runs of each candidate, after one that warms up.
	probeRuns = 3
	// worthwhile is how much of fp32's time int8 may take to be chosen: it
	// costs half a point of accuracy, so a tie goes to fp32.
	worthwhile = 0.9
)

// candidate is a model with a slot to try it in.
type candidate struct {
	model *model
	slot  *slot
	times []time.Duration
}

// choose loads the models that opts leave open, tries them with a picture, and
// keeps the best. The notes say why.
func choose(library *onnxruntime.Library, opts Options) (best *candidate, notes []string, err error) {
	precisions, notes, err := precisionsOf(opts)
	if err != nil {
		return nil, nil, err
	}
	var tried []*candidate
	defer func() {
		for _, c := range tried {
			if c != best {
				c.close()
			}
		}
	}()
	for _, p := range precisions {
		c, err := newCandidate(library, opts, p)
		if err != nil {
			return nil, nil, err
		}
		tried = append(tried, c)
	}
	// In turns, so that a busy moment of the machine hits both.
	for range probeRuns {
		for _, c := range tried {
			start := time.Now()
			if err := c.slot.infer(1); err != nil {
				return nil, nil, &infer.ModelError{Model: opts.Model, Err: err}
			}
			c.times = append(c.times, time.Since(start))
		}
	}
	best = tried[0]
	if len(tried) == 2 {
		if faster(tried[1].median(), tried[0].median()) {
			best = tried[1]
		}
		notes = append(notes, fmt.Sprintf("%s %.1f ms, %s %.1f ms: %s", tried[0].model.precision, ms(tried[0].median()),
			tried[1].model.precision, ms(tried[1].median()), best.model.precision))
	}
	return best, notes, nil
}

// precisionsOf lists the precisions to try, the preferred one first.
func precisionsOf(opts Options) (precisions, notes []string, err error) {
	if !strings.HasPrefix(opts.Model, builtin.Prefix) {
		if opts.Precision != precisionAuto {
			return nil, nil, &infer.ModelError{
				Model: opts.Model, Err: fmt.Errorf("precision %s picks a version of a built-in model, a file has its own", opts.Precision),
				Hint: "use precision auto with a model file",
			}
		}
		return []string{precisionFile}, nil, nil
	}
	if opts.Precision == precisionFP16 {
		return nil, nil, &infer.ModelError{Model: opts.Model, Err: errors.New("precision fp16 is for GPUs"), Hint: "use precision auto, fp32 or int8 on the CPU"}
	}
	if opts.Precision != precisionAuto {
		return []string{opts.Precision}, []string{opts.Precision + " as configured"}, nil
	}
	fast, instruction := opts.fastInt8()
	if !fast {
		return []string{precisionFP32}, []string{"int8 not tried: the CPU has no int8 dot product (avx512_vnni, avx_vnni, asimddp)"}, nil
	}
	return []string{precisionFP32, precisionINT8}, []string{"int8 tried: the CPU has " + instruction}, nil
}

// newCandidate loads a model and runs a test picture through it.
func newCandidate(library *onnxruntime.Library, opts Options, precision string) (*candidate, error) {
	m, err := loadModel(library, opts.source, precision)
	if err != nil {
		return nil, err
	}
	batch := opts.MaxBatch
	if m.batch > 0 {
		batch = m.batch
	}
	c := &candidate{model: m}
	if c.slot, err = newSlot(library, m, batch, opts.NMSIoU); err != nil {
		c.close()
		return nil, fmt.Errorf("make engine: %w", err)
	}
	if err := c.test(); err != nil {
		c.close()
		return nil, &infer.ModelError{Model: opts.Model, Err: fmt.Errorf("run a test picture: %w", err)}
	}
	return c, nil
}

// test runs a picture and wants possible numbers: one of gradients around 0, or, as
// that need not be what a camera's pictures come to, the test picture.
func (c *candidate) test() error {
	in := c.slot.Input(0)
	for i := range in {
		in[i] = float32(i%416)/208 - 1
	}
	var unhealthy *infer.UnhealthyError
	err := c.try()
	if !errors.As(err, &unhealthy) {
		return err
	}
	photo, failed := picture(c.model.meta.Input)
	if failed != nil {
		return failed
	}
	copy(in, photo)
	if c.try() == nil {
		return nil
	}
	return err
}

func (c *candidate) try() error {
	if err := c.slot.infer(1); err != nil {
		return err
	}
	_, _, err := c.slot.read(0, c.slot.extent(1), nil)
	return err
}

// faster tells whether int8 gains enough over fp32.
func faster(int8, fp32 time.Duration) bool {
	return float64(int8) <= worthwhile*float64(fp32)
}

func (c *candidate) median() time.Duration {
	times := slices.Sorted(slices.Values(c.times))
	return times[len(times)/2]
}

func (c *candidate) close() {
	if c.slot != nil {
		c.slot.close()
	}
	c.model.session.Close()
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
