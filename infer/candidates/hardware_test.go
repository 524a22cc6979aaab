//go:build hw

package candidates

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"edgecam/platform/cuda"
)

func hardware(t *testing.T) *cuda.Device {
	t.Helper()
	dev, err := cuda.New(cuda.Options{}).NewDevice(t.Context(), cuda.DeviceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return dev
}

// hardwareRig is a rig whose outputs are brought to the device. Allocations have
// their exact size, so that a memory checker sees any byte behind them.
func hardwareRig(t *testing.T, dev *cuda.Device, o Options) *rig {
	t.Helper()
	r := rigOn(t, dev, o)
	var boxes, scores cuda.DevicePtr
	r.do(t, func(c *cuda.Context) (err error) {
		if boxes, err = c.Alloc(len(r.boxes)); err == nil {
			scores, err = c.Alloc(len(r.scores))
		}
		return err
	})
	r.upload = func(c *cuda.Context, b, s []byte) (cuda.DevicePtr, cuda.DevicePtr, error) {
		return boxes, scores, errors.Join(c.CopyInNow(boxes, b), c.CopyInNow(scores, s))
	}
	t.Cleanup(func() {
		err := dev.Do(context.Background(), "free", func(c *cuda.Context) error { return errors.Join(c.Free(boxes), c.Free(scores)) })
		if err != nil {
			t.Error(err)
		}
	})
	return r
}

func TestHardwareFilterAgreesWithDecode(t *testing.T) {
	dev := hardware(t)
	for _, half := range []bool{false, true} {
		for _, o := range []Options{
			{MaxBatch: 1, Boxes: 3549, Classes: 80},
			{MaxBatch: 64, Boxes: 3549, Classes: 80},
			{MaxBatch: 5, Boxes: 101, Classes: 7},
			{MaxBatch: 3, Boxes: 1, Classes: 1},
		} {
			o.Half = half
			t.Run(fmt.Sprintf("%dx%dx%d half=%v", o.MaxBatch, o.Boxes, o.Classes, half), func(t *testing.T) {
				hardwareRig(t, dev, o).agree(t, 12)
			})
		}
		hardwareRig(t, dev, Options{MaxBatch: 3, Boxes: 7, Classes: 5, Half: half}).agreeOnSpecials(t)
		hardwareRig(t, dev, Options{MaxBatch: 2, Boxes: 60, Classes: 9, Half: half}).agreeOnUniform(t)
	}
}

// hardwareLayout is a layoutRig whose outputs are brought to the device.
func hardwareLayout(t *testing.T, dev *cuda.Device, name string, half bool, images int) *layoutRig {
	t.Helper()
	r := newLayoutRig(t, dev, layouts()[name], half, images)
	var boxes, scores cuda.DevicePtr
	r.do(t, func(c *cuda.Context) (err error) {
		if boxes, err = c.Alloc(len(r.boxes)); err == nil && !r.joined {
			scores, err = c.Alloc(len(r.scores))
		}
		return err
	})
	r.upload = func(c *cuda.Context, b, s []byte) (cuda.DevicePtr, cuda.DevicePtr, error) {
		if r.joined {
			return boxes, boxes, c.CopyInNow(boxes, b)
		}
		return boxes, scores, errors.Join(c.CopyInNow(boxes, b), c.CopyInNow(scores, s))
	}
	t.Cleanup(func() {
		err := dev.Do(context.Background(), "free", func(c *cuda.Context) error {
			err := c.Free(boxes)
			if !r.joined {
				err = errors.Join(err, c.Free(scores))
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
	return r
}

func TestHardwareLayoutFilterAgreesWithDecode(t *testing.T) {
	dev := hardware(t)
	for name := range layouts() {
		for _, half := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s half=%v", name, half), func(t *testing.T) {
				hardwareLayout(t, dev, name, half, 16).agreeOnLayout(t, 24)
			})
		}
	}
}

func TestHardwareFilterSpeed(t *testing.T) {
	dev := hardware(t)
	for _, half := range []bool{false, true} {
		for _, batch := range []int{1, 16, 64} {
			o := Options{MaxBatch: batch, Boxes: 3549, Classes: 80, Half: half}
			r := hardwareRig(t, dev, o)
			boxes, scores := fill(rand.New(rand.NewPCG(1, 1)), batch, o.Boxes, o.Classes, 60)
			r.put(r.boxes, boxes)
			r.put(r.scores, scores)
			threshold := func(int, int) float32 { return 0.45 }
			var took []time.Duration
			r.do(t, func(c *cuda.Context) error {
				b, s, err := r.upload(c, r.boxes, r.scores)
				if err != nil {
					return err
				}
				watch, err := c.NewStopwatch()
				if err != nil {
					return err
				}
				measure := watch.Time // the first time loads the kernel
				for range 50 {
					d, err := measure(c, 0, func() error { return r.f.Launch(c, 0, batch, b, s, threshold) })
					if err != nil {
						return err
					}
					took, measure = append(took, d), watch.TimeHeld
				}
				return watch.Close(c)
			})
			slices.Sort(took)
			t.Logf("batch %d, half %v: %v, %.0f GB/s", batch, half, took[25], float64(len(r.scores)+len(r.boxes))/float64(took[25]))
		}
	}
}
