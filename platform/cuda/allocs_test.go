//go:build linux && (amd64 || arm64) && !race

package cuda_test

import (
	"testing"

	"edgecam/platform/cuda"
)

// What is done for each batch makes three Go objects: the task, its channel and
// the caller's function value.
func TestAllocationCeiling(t *testing.T) {
	f := newFake(t)
	dev := f.open(cuda.DeviceOptions{})
	_, fns := loaded(t, dev, "fill")
	var p cuda.DevicePtr
	var s cuda.Stream
	var e cuda.Event
	do(t, dev, func(c *cuda.Context) (err error) {
		if p, err = c.Alloc(64); err != nil {
			return err
		}
		if s, err = c.NewStream(); err != nil {
			return err
		}
		e, err = c.NewEvent(false)
		return err
	})
	args := cuda.NewParams(8, 4, 1)
	ctx := t.Context()
	var failed error
	n := testing.AllocsPerRun(200, func() {
		err := dev.Do(ctx, "infer", func(c *cuda.Context) error {
			cuda.Set(args, 0, p)
			cuda.Set(args, 1, uint32(64))
			if err := c.Launch(fns[0], [3]uint32{1, 1, 1}, [3]uint32{64, 1, 1}, 0, s, args); err != nil {
				return err
			}
			if err := c.Record(e, s); err != nil {
				return err
			}
			return c.WaitEvent(e)
		})
		if err != nil {
			failed = err
		}
	})
	if failed != nil {
		t.Fatal(failed)
	}
	if n > 3 {
		t.Errorf("%v allocations, want 3 at most", n)
	}
}
