//go:build hw && linux && (amd64 || arm64)

package cuda_test

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"edgecam/platform/cuda"
)

// Nothing here provokes the loss of a GPU: that is left to the stand-in.

// echo writes its arguments to where the last one points, in another order.
const echo = `
.version 6.3
.target sm_53
.address_size 64
.visible .entry echo(
	.param .u8 echo_param_0,
	.param .f32 echo_param_1,
	.param .align 8 .b8 echo_param_2[24],
	.param .u16 echo_param_3,
	.param .u64 echo_param_4
)
{
	.reg .b16 	%rs<3>;
	.reg .b32 	%r<3>;
	.reg .f32 	%f<3>;
	.reg .b64 	%rd<4>;
	ld.param.u8 	%rs1, [echo_param_0];
	ld.param.u64 	%rd1, [echo_param_4];
	cvta.to.global.u64 	%rd2, %rd1;
	ld.param.f32 	%f1, [echo_param_1];
	ld.param.u16 	%rs2, [echo_param_3];
	st.global.u8 	[%rd2+26], %rs1;
	ld.param.u64 	%rd3, [echo_param_2];
	st.global.u64 	[%rd2], %rd3;
	ld.param.v2.u32 	{%r1, %r2}, [echo_param_2+8];
	st.global.v2.u32 	[%rd2+8], {%r1, %r2};
	ld.param.f32 	%f2, [echo_param_2+16];
	st.global.v2.f32 	[%rd2+16], {%f2, %f1};
	st.global.u16 	[%rd2+24], %rs2;
	ret;
}
`

// openReal opens the first GPU of the machine.
func openReal(t testing.TB) *cuda.Device {
	t.Helper()
	log, text := journal()
	dev, err := cuda.New(cuda.Options{}).NewDevice(t.Context(), cuda.DeviceOptions{CallTimeout: unhurried, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	if text.Len() > 0 {
		t.Errorf("log: %s", text)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return dev
}

// noise gives bytes that repeat in no power of two.
func noise(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i % 251)
	}
	return b
}

func TestHardwareOpen(t *testing.T) {
	dev := openReal(t)
	g := dev.GPU()
	free, total, err := dev.MemInfo(t.Context())
	t.Logf("%s %s, compute capability %s, PCI %s, %d of %d MiB free", g.Name, g.UUID, g.ComputeCapability, g.PCIAddress, free>>20, total>>20)
	if err != nil || free == 0 || free > total || total > uint64(g.MemoryBytes)+1<<30 || g.Name == "" {
		t.Errorf("%+v, %d of %d bytes free, error %v", g, free, total, err)
	}
	if err := dev.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	again := openReal(t) // the flags of the context are still ours: nothing is logged
	do(t, again, func(c *cuda.Context) error { return c.Synchronize() })
}

func TestHardwareCopies(t *testing.T) {
	dev := openReal(t)
	for _, size := range []int{1, 1001, 64 << 10, 64<<10 + 1, 3 << 20} {
		want := noise(size)
		now, queued := make([]byte, size), make([]byte, size)
		do(t, dev, func(c *cuda.Context) error {
			s, err1 := c.NewStream()
			p, err2 := c.Alloc(size)
			q, err3 := c.Alloc(size)
			h, err4 := c.HostAlloc(size)
			if err := errors.Join(err1, err2, err3, err4); err != nil {
				return err
			}
			err := errors.Join(
				c.CopyInNow(p, want),
				c.CopyWithin(q, p, size, s), // on a stream that does not wait for the default one
				c.CopyOut(at(h.Bytes), q, size, s),
				c.Wait(s),
				c.CopyOutNow(now, p),
			)
			copy(queued, h.Bytes)
			return errors.Join(err, c.HostFree(h), c.Free(q), c.Free(p), c.FreeStream(s))
		})
		if !bytes.Equal(now, want) || !bytes.Equal(queued, want) {
			t.Errorf("%d bytes came back changed", size)
		}
	}
}

// Memory of the process is read and written by the device where it lies.
func TestHardwareRegister(t *testing.T) {
	dev := openReal(t)
	const size = 16 << 20
	mem := pages(t, size)
	copy(mem, noise(size))
	m := cuda.NewMapper(dev)
	p, err := m.Map(at(mem), size)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("host %#x, device %#x", at(mem), p)
	got := make([]byte, size)
	do(t, dev, func(c *cuda.Context) error {
		q, err := c.Alloc(size)
		if err != nil {
			return err
		}
		return errors.Join(
			c.CopyWithin(q, cuda.DevicePtr(p), size, 0),
			c.Fill(cuda.DevicePtr(p)+4096, 0xee, 1000, 0),
			c.Wait(0),
			c.CopyOutNow(got, q),
			c.Free(q),
		)
	})
	if !bytes.Equal(got, noise(size)) {
		t.Error("the device reads other bytes")
	}
	if !bytes.Equal(mem[4096:5096], bytes.Repeat([]byte{0xee}, 1000)) || mem[4095] != byte(4095%251) || mem[5096] != byte(5096%251) {
		t.Error("the device writes elsewhere")
	}
	if _, err := m.Map(at(mem), size); cuda.Code(err) != cuda.CodeAlreadyRegistered {
		t.Errorf("mapped twice: %v", err)
	}
	if err := m.Unmap(at(mem)); err != nil {
		t.Error(err)
	}
	if dev.Err() != nil {
		t.Errorf("lost: %v", dev.Err())
	}
}

func TestHardwareEvents(t *testing.T) {
	dev := openReal(t)
	do(t, dev, func(c *cuda.Context) error {
		const size = 256 << 20
		s, err1 := c.NewStream()
		other, err2 := c.NewStream()
		from, err3 := c.NewEvent(true)
		to, err4 := c.NewEvent(true)
		p, err5 := c.Alloc(size)
		if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
			return err
		}
		err := errors.Join(c.Record(from, s), c.Fill(p, 1, size, s), c.Record(to, s), c.After(other, to), c.Wait(other))
		if ok, err := c.Reached(to); !ok || err != nil { // as other has waited for it
			t.Errorf("reached %v, error %v", ok, err)
		}
		ms, elapsed := c.ElapsedMS(from, to)
		t.Logf("256 MiB filled in %.3f ms", ms)
		if ms <= 0 || math.IsNaN(float64(ms)) || ms > 10_000 {
			t.Errorf("elapsed %v ms", ms)
		}
		return errors.Join(err, elapsed, c.WaitEvent(to), c.Free(p), c.FreeEvent(from), c.FreeEvent(to), c.FreeStream(s), c.FreeStream(other))
	})
}

func TestHardwareKernel(t *testing.T) {
	dev := openReal(t)
	type image struct {
		data          uint64
		width, height uint32
		scale         float32
		_             uint32
	}
	type answer struct {
		data          uint64
		width, height uint32
		scale, f      float32
		h             uint16
		b             byte
	}
	want := answer{data: 0x1122334455667788, width: 1920, height: 1080, scale: -0.5, f: 114, h: 0xbeef, b: 0x5a}
	var got answer
	do(t, dev, func(c *cuda.Context) error {
		m, err := c.Load([]byte(echo))
		if err != nil {
			return err
		}
		fn, err := c.Function(m, "echo")
		if err != nil {
			return err
		}
		h, err := c.HostAlloc(int(unsafe.Sizeof(got)))
		if err != nil {
			return err
		}
		p := cuda.NewParams(1, 4, 24, 2, 8)
		cuda.Set(p, 0, want.b)
		cuda.Set(p, 1, want.f)
		cuda.Set(p, 2, image{data: want.data, width: want.width, height: want.height, scale: want.scale})
		cuda.Set(p, 3, want.h)
		cuda.Set(p, 4, h.Device)
		err = errors.Join(
			c.AllowShared(fn, 1<<10),
			c.Launch(fn, [3]uint32{1, 1, 1}, [3]uint32{1, 1, 1}, 1<<10, 0, p),
			c.Wait(0))
		got = *(*answer)(unsafe.Pointer(unsafe.SliceData(h.Bytes)))
		return errors.Join(err, c.HostFree(h), c.Unload(m))
	})
	if got != want {
		t.Errorf("arguments arrived as %+v, want %+v", got, want)
	}
}

func TestHardwareLoadFails(t *testing.T) {
	dev := openReal(t)
	for _, c := range []struct {
		name, ptx string
		codes     []int
		said      string
	}{
		{"not PTX", "hello", []int{cuda.CodeInvalidPTX, 200}, ""},
		{"a bad instruction", strings.Replace(echo, "cvta.to.global.u64", "cvta.to.moon.u64", 1), []int{cuda.CodeInvalidPTX}, "ptxas"},
		{"newer than any driver", strings.Replace(echo, ".version 6.3", ".version 99.0", 1), []int{cuda.CodeUnsupportedPTX, cuda.CodeInvalidPTX}, ""},
		{"for a GPU that is not there", strings.Replace(echo, "sm_53", "sm_999", 1), []int{cuda.CodeInvalidPTX, cuda.CodeNoBinaryForGPU, cuda.CodeUnsupportedPTX}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := dev.Do(t.Context(), "load", func(ctx *cuda.Context) error { _, err := ctx.Load([]byte(c.ptx)); return err })
			t.Logf("%v", err)
			known := false
			for _, code := range c.codes {
				known = known || cuda.Code(err) == code
			}
			if !known {
				t.Fatalf("error %v, want one of the codes %v", err, c.codes)
			}
			contains(t, "error", err.Error(), c.said)
		})
	}
	if dev.Err() != nil {
		t.Errorf("lost: %v", dev.Err())
	}
}

// Refusals that are the caller's fault leave the device well.
func TestHardwareRefusals(t *testing.T) {
	dev := openReal(t)
	for _, c := range []struct {
		name string
		code int
		run  func(*cuda.Context) error
	}{
		{"more memory than there is", cuda.CodeOutOfMemory, func(c *cuda.Context) error { _, err := c.Alloc(1 << 50); return err }},
		{"unregister of nothing", 713, func(c *cuda.Context) error { return c.HostUnregister(at(pages(t, 4096))) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := dev.Do(t.Context(), "test", c.run); cuda.Code(err) != c.code {
				t.Errorf("error %v, want code %d", err, c.code)
			}
		})
	}
	do(t, dev, func(c *cuda.Context) error { return c.Synchronize() })
}

// BenchmarkHardwareBatch is the frame of a batch with 1 ms of work on the GPU or
// so: what handing it over and waiting cost, in time and in processor time.
func BenchmarkHardwareBatch(b *testing.B) {
	dev := openReal(b)
	const size = 1 << 30
	var p cuda.DevicePtr
	var s cuda.Stream
	var e cuda.Event
	do(b, dev, func(c *cuda.Context) (err error) {
		if p, err = c.Alloc(size); err != nil {
			return err
		}
		if s, err = c.NewStream(); err != nil {
			return err
		}
		e, err = c.NewEvent(false)
		return err
	})
	defer do(b, dev, func(c *cuda.Context) error { return errors.Join(c.Free(p), c.FreeEvent(e), c.FreeStream(s)) })
	for _, bytes := range []int{0, size} {
		b.Run(map[int]string{0: "idle", size: "fill 1 GiB"}[bytes], func(b *testing.B) {
			b.ReportAllocs()
			start := processorTime(b)
			for b.Loop() {
				do(b, dev, func(c *cuda.Context) error {
					if bytes > 0 {
						if err := c.Fill(p, 1, bytes, s); err != nil {
							return err
						}
					}
					if err := c.Record(e, s); err != nil {
						return err
					}
					return c.WaitEvent(e)
				})
			}
			b.ReportMetric(float64((processorTime(b)-start).Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
	}
}

// processorTime is what the process has used, all threads.
func processorTime(t testing.TB) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
