//go:build linux && (amd64 || arm64)

package cuda_test

import (
	"bytes"
	"errors"
	"testing"

	"edgecam/platform/cuda"
)

// kernels is as much of PTX as the stand-in reads; it carries out fill.
const kernels = `
.version 6.3
.target sm_53
.address_size 64
.visible .entry fill(
	.param .u64 fill_param_0,
	.param .u32 fill_param_1,
	.param .u8 fill_param_2
)
{ ret; }
.visible .entry many(
	.param .u8 many_param_0,
	.param .f32 many_param_1,
	.param .align 8 .b8 many_param_2[24],
	.param .u16 many_param_3,
	.param .u64 many_param_4
)
{ ret; }
.visible .entry none()
{ ret; }
`

// loaded loads the text and finds its kernels.
func loaded(t *testing.T, dev *cuda.Device, names ...string) (cuda.Module, []cuda.Function) {
	t.Helper()
	var m cuda.Module
	var fns []cuda.Function
	do(t, dev, func(c *cuda.Context) (err error) {
		if m, err = c.Load([]byte(kernels)); err != nil {
			return err
		}
		for _, name := range names {
			fn, err := c.Function(m, name)
			if err != nil {
				return err
			}
			fns = append(fns, fn)
		}
		return nil
	})
	return m, fns
}

func TestLaunch(t *testing.T) {
	f := newFake(t)
	dev := f.open(cuda.DeviceOptions{})
	m, fns := loaded(t, dev, "fill", "many", "none")
	type image struct {
		data          uint64
		width, height uint32
		scale         float32
		_             uint32
	}
	many := cuda.NewParams(1, 4, 24, 2, 8)
	cuda.Set(many, 0, byte(0xab))
	cuda.Set(many, 1, float32(1))
	*cuda.At[image](many, 2) = image{data: 0x1122334455667788, width: 0x1920, height: 0x1080, scale: -2}
	cuda.Set(many, 3, uint16(0x0102))
	cuda.Set(many, 4, cuda.DevicePtr(0xfedcba9876543210))
	do(t, dev, func(c *cuda.Context) error {
		s, err := c.NewStream()
		if err != nil {
			return err
		}
		p, err := c.Alloc(64)
		if err != nil {
			return err
		}
		fill := cuda.NewParams(8, 4, 1)
		cuda.Set(fill, 0, p+8)
		cuda.Set(fill, 1, uint32(16))
		cuda.Set(fill, 2, byte(0x5a))
		var got [64]byte
		err = errors.Join(
			c.Fill(p, 0, 64, s),
			c.Launch(fns[0], [3]uint32{1, 1, 1}, [3]uint32{32, 1, 1}, 0, s, fill),
			c.AllowShared(fns[1], 64<<10),
			c.Launch(fns[1], [3]uint32{10, 20, 30}, [3]uint32{16, 8, 4}, 64<<10, s, many),
			c.Launch(fns[2], [3]uint32{1, 1, 1}, [3]uint32{1, 1, 1}, 0, 0, nil),
			c.Launch(fns[2], [3]uint32{1, 1, 1}, [3]uint32{1, 1, 1}, 0, 0, cuda.NewParams()),
			c.CopyOutNow(got[:], p),
		)
		if err != nil {
			return err
		}
		want := make([]byte, 64)
		copy(want[8:], bytes.Repeat([]byte{0x5a}, 16))
		if !bytes.Equal(got[:], want) {
			t.Errorf("filled %v", got)
		}
		return errors.Join(c.Free(p), c.FreeStream(s), c.Unload(m))
	})
	for i, want := range []string{
		1: "many grid 10,20,30 block 16,8,4 shared 65536 params ab 0000803f 88776655443322112019000080100000000000c000000000 0201 1032547698badcfe",
		2: "none grid 1,1,1 block 1,1,1 shared 0",
		3: "none grid 1,1,1 block 1,1,1 shared 0",
		4: "",
	} {
		if got := f.launch(int32(i)); i > 0 && got != want {
			t.Errorf("launch %d\n%s, want\n%s", i, got, want)
		}
	}
	if f.live() != 0 {
		t.Errorf("%d objects left", f.live())
	}
}

func TestLoadFails(t *testing.T) {
	dev := newFake(t).open(cuda.DeviceOptions{})
	for _, c := range []struct {
		name, ptx string
		code      int
		text      string
	}{
		{"nothing", "", 0, "load kernels: no text"},
		{"no PTX", "hello", cuda.CodeInvalidPTX, "load kernels: call cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX (218): a PTX JIT compilation failed: " +
			"ptxas application ptx input, line 1; fatal   : Missing .version directive; ptxas fatal   : Ptx assembly aborted due to errors"},
		{
			"newer than the driver", ".version 99.0\n.target sm_53\n", cuda.CodeUnsupportedPTX,
			"load kernels: call cuModuleLoadDataEx: CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222): the provided PTX was compiled with an unsupported toolchain.",
		},
		{
			"for another GPU", ".version 6.3\n.target sm_999\n", cuda.CodeNoBinaryForGPU,
			"load kernels: call cuModuleLoadDataEx: CUDA_ERROR_NO_BINARY_FOR_GPU (209): no kernel image is available for execution on the device",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := dev.Do(t.Context(), "load", func(ctx *cuda.Context) error { _, err := ctx.Load([]byte(c.ptx)); return err })
			if err == nil || err.Error() != c.text || cuda.Code(err) != c.code {
				t.Errorf("got  %v\nwant %s", err, c.text)
			}
		})
	}
	m, _ := loaded(t, dev)
	err := dev.Do(t.Context(), "find", func(c *cuda.Context) error { _, err := c.Function(m, "missing"); return err })
	if want := "find kernel missing: call cuModuleGetFunction: CUDA_ERROR_NOT_FOUND (500): named symbol not found"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestLaunchFails(t *testing.T) {
	f := newFake(t)
	dev := f.open(cuda.DeviceOptions{})
	_, fns := loaded(t, dev, "fill", "none")
	one := [3]uint32{1, 1, 1}
	fill := cuda.NewParams(8, 4, 1)
	for _, c := range []struct {
		name string
		code int
		run  func(*cuda.Context) error
	}{
		{"no such kernel", 400, func(c *cuda.Context) error { return c.Launch(99, one, one, 0, 0, nil) }},
		{"no such stream", 400, func(c *cuda.Context) error { return c.Launch(fns[1], one, one, 0, 99, nil) }},
		{"no block", 1, func(c *cuda.Context) error { return c.Launch(fns[1], [3]uint32{1, 1, 0}, one, 0, 0, nil) }},
		{"too many threads", 1, func(c *cuda.Context) error { return c.Launch(fns[1], one, [3]uint32{1024, 1, 2}, 0, 0, nil) }},
		{"too much shared memory", 1, func(c *cuda.Context) error { return c.Launch(fns[1], one, one, 48<<10+1, 0, nil) }},
		{"more shared memory than there is", 1, func(c *cuda.Context) error { return c.AllowShared(fns[1], 1<<20) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := dev.Do(t.Context(), "launch", c.run); cuda.Code(err) != c.code || cuda.Sticky(err) {
				t.Errorf("error %v, want code %d", err, c.code)
			}
		})
	}

	// A kernel that goes astray is told by a later call, and ends the device.
	do(t, dev, func(c *cuda.Context) error {
		cuda.Set(fill, 1, uint32(1)) // at address 0
		return c.Launch(fns[0], one, one, 0, 0, fill)
	})
	err := dev.Do(t.Context(), "infer", func(c *cuda.Context) error { return c.Wait(0) })
	wantLost(t, err, "gpu lost: infer: call cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered", "Xid")
}

func TestParamsMisused(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func()
		text string
	}{
		{"no size", func() { cuda.NewParams(8, 0) }, "cuda: kernel argument 1 of 0 bytes"},
		{"too large", func() { cuda.Set(cuda.NewParams(8, 4), 1, uint64(1)) }, "cuda: kernel argument 1 has 4 bytes: uint64 has 8"},
		{"too small", func() { cuda.At[int32](cuda.NewParams(8), 0) }, "cuda: kernel argument 0 has 8 bytes: int32 has 4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer func() {
				if got := recover(); got != c.text {
					t.Errorf("panic %v, want %s", got, c.text)
				}
			}()
			c.run()
		})
	}
}
