//go:build linux && (amd64 || arm64)

package cuda_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"edgecam/platform"
	"edgecam/platform/cuda"
)

// pages gives memory outside the Go heap.
func pages(t testing.TB, size int) []byte {
	t.Helper()
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(b) })
	return b
}

func at(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

func TestCopies(t *testing.T) {
	f := newFake(t)
	dev := f.open(cuda.DeviceOptions{})
	do(t, dev, func(c *cuda.Context) error {
		s, err1 := c.NewStream()
		p, err2 := c.Alloc(100)
		q, err3 := c.Alloc(100)
		h, err4 := c.HostAlloc(100)
		if err := errors.Join(err1, err2, err3, err4); err != nil {
			return err
		}
		if len(h.Bytes) != 100 || uint64(h.Device) == uint64(at(h.Bytes)) {
			t.Errorf("host memory of %d bytes at %#x, for the device %#x", len(h.Bytes), at(h.Bytes), h.Device)
		}
		var in, out [100]byte // on this goroutine's stack, as far as its writer can tell
		for i := range in {
			in[i] = byte(i)
		}
		err := errors.Join(
			c.CopyInNow(p, in[:]),
			c.CopyWithin(q+50, p, 50, s),
			c.CopyWithin(h.Device, q+50, 50, s), // into host memory, by its device address
			c.Fill(h.Device+50, 7, 50, s),
			c.CopyIn(q, at(h.Bytes[40:]), 20, s),
			c.CopyOut(at(h.Bytes[80:]), q, 20, s),
			c.Wait(s),
			c.CopyOutNow(out[:], p),
			c.CopyInNow(p, nil), c.CopyOutNow(nil, p),
		)
		if err != nil {
			return err
		}
		if out != in {
			t.Errorf("came back as %v", out)
		}
		want := append(append(append([]byte{}, in[:50]...), bytes.Repeat([]byte{7}, 30)...), in[40:50]...)
		want = append(want, bytes.Repeat([]byte{7}, 10)...)
		if !bytes.Equal(h.Bytes, want) {
			t.Errorf("host memory\n%v, want\n%v", h.Bytes, want)
		}
		if free, total, err := c.MemInfo(); free != 12<<30-200 || total != 12<<30 || err != nil {
			t.Errorf("memory %d of %d, error %v", free, total, err)
		}
		if n := f.calls("cuStreamSynchronize"); n != 2 {
			t.Errorf("%d waits, want one for the stream and one for the copy of pageable memory", n)
		}
		return errors.Join(c.HostFree(h), c.Free(q), c.Free(p), c.FreeStream(s))
	})
	if f.live() != 0 {
		t.Errorf("%d objects left", f.live())
	}
}

// The driver sees every argument: what is out of bounds by one is refused.
func TestCopyBounds(t *testing.T) {
	f := newFake(t)
	dev := f.open(cuda.DeviceOptions{})
	do(t, dev, func(c *cuda.Context) error {
		p, err := c.Alloc(64)
		if err != nil {
			return err
		}
		h, err := c.HostAlloc(128)
		if err != nil {
			return err
		}
		for _, r := range []struct {
			name string
			code int
			err  error
		}{
			{"in, one too long", 1, c.CopyIn(p, at(h.Bytes), 65, 0)},
			{"in, to a host address", 1, c.CopyIn(cuda.DevicePtr(at(h.Bytes)), at(h.Bytes), 1, 0)},
			{"in, from a device address", 1, c.CopyIn(p, uintptr(h.Device), 1, 0)},
			{"in, on no stream", 400, c.CopyIn(p, at(h.Bytes), 1, 99)},
			{"now, one too far", 1, c.CopyInNow(p+1, make([]byte, 64))},
			{"out, one too long", 1, c.CopyOut(at(h.Bytes), p, 65, 0)},
			{"out now, one too long", 1, c.CopyOutNow(make([]byte, 65), p)},
			{"within, one too far", 1, c.CopyWithin(p+1, h.Device, 64, 0)},
			{"fill, one too far", 1, c.Fill(p+1, 0, 64, 0)},
			{"free of the middle", 1, c.Free(p + 1)},
			{"unregister of nothing", 713, c.HostUnregister(at(h.Bytes))},
		} {
			if cuda.Code(r.err) != r.code {
				t.Errorf("%s: %v, want code %d", r.name, r.err, r.code)
			}
		}
		return errors.Join(c.CopyIn(p, at(h.Bytes), 64, 0), c.Fill(p, 0, 64, 0), c.HostFree(h), c.Free(p))
	})
}

func TestMemoryRefused(t *testing.T) {
	f := newFake(t)
	f.memory(1 << 20)
	mem := pages(t, 8<<20)
	dev := f.open(cuda.DeviceOptions{})
	for _, c := range []struct {
		name string
		run  func(*cuda.Context) error
		code int
		text string
	}{
		{
			"more than there is", func(c *cuda.Context) error { _, err := c.Alloc(1<<20 + 1); return err }, 2,
			"allocate 1048577 bytes of gpu memory: call cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory",
		},
		{"nothing", func(c *cuda.Context) error { _, err := c.Alloc(0); return err }, 0, "0 bytes asked for: at least one is needed"},
		{"less than nothing", func(c *cuda.Context) error { _, err := c.HostAlloc(-1); return err }, 0, "-1 bytes asked for: at least one is needed"},
		{"no locked memory", func(c *cuda.Context) error {
			f.fail("cuMemHostAlloc", 2, 0)
			_, err := c.HostAlloc(5)
			return err
		}, 2, "allocate 5 bytes of locked memory: call cuMemHostAlloc: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory"},
		{"locked memory that is not mapped", func(c *cuda.Context) error {
			f.fail("cuMemHostGetDevicePointer_v2", 1, 0)
			_, err := c.HostAlloc(5)
			return err
		}, 1, "find the gpu's address of host memory: call cuMemHostGetDevicePointer_v2: CUDA_ERROR_INVALID_VALUE (1): invalid argument"},
		{"registered memory that is not mapped", func(c *cuda.Context) error {
			f.fail("cuMemHostGetDevicePointer_v2", 1, 0)
			_, err := c.HostRegister(at(mem), len(mem))
			return err
		}, 1, "find the gpu's address of host memory: call cuMemHostGetDevicePointer_v2: CUDA_ERROR_INVALID_VALUE (1): invalid argument"},
		{"register nothing", func(c *cuda.Context) error { _, err := c.HostRegister(at(mem), 0); return err }, 0, "0 bytes asked for: at least one is needed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := dev.Do(t.Context(), "test", c.run)
			if err == nil || err.Error() != c.text || cuda.Code(err) != c.code {
				t.Errorf("got  %v\nwant %s", err, c.text)
			}
			if f.live() != 0 {
				t.Errorf("%d objects left", f.live())
			}
		})
	}
	if dev.Err() != nil {
		t.Errorf("lost: %v", dev.Err())
	}
}

// Giving back nothing is no call, so that clean-up after half a set-up is plain.
func TestFreeNothing(t *testing.T) {
	dev := newFake(t).open(cuda.DeviceOptions{})
	do(t, dev, func(c *cuda.Context) error {
		return errors.Join(c.Free(0), c.FreeStream(0), c.FreeEvent(0), c.Unload(0), c.HostFree(cuda.Host{}))
	})
}

func TestUrgentStreams(t *testing.T) {
	f := newFake(t)
	do(t, f.open(cuda.DeviceOptions{}), func(c *cuda.Context) error {
		s, err := c.NewUrgentStream()
		if err != nil {
			return err
		}
		return c.FreeStream(s)
	})
	if got := f.priority(); got != -5 || f.live() != 0 {
		t.Errorf("priority %d, want -5; %d objects left", got, f.live())
	}
}

// A library that captures a graph on another thread, and so on another card, has the
// driver refuse nothing here.
func TestOthersCapture(t *testing.T) {
	f := newFake(t)
	dev := f.open(cuda.DeviceOptions{})
	f.capture(1)
	defer f.capture(0)
	do(t, dev, func(c *cuda.Context) error {
		e, err := c.NewEvent(false)
		if err != nil {
			return err
		}
		if _, err := c.Reached(e); err != nil {
			t.Error(err)
		}
		return c.FreeEvent(e)
	})
}

func TestEvents(t *testing.T) {
	f := newFake(t)
	dev := f.open(cuda.DeviceOptions{})
	do(t, dev, func(c *cuda.Context) error {
		s, err1 := c.NewStream()
		from, err2 := c.NewEvent(true)
		to, err3 := c.NewEvent(true)
		plain, err4 := c.NewEvent(false)
		if err := errors.Join(err1, err2, err3, err4, c.Record(from, s), c.Record(plain, s), c.After(s, plain), c.Record(to, s)); err != nil {
			return err
		}
		f.pending(1)
		for _, want := range []bool{false, true} {
			if got, err := c.Reached(to); got != want || err != nil {
				t.Errorf("reached %v, error %v, want %v", got, err, want)
			}
		}
		if ms, err := c.ElapsedMS(from, to); ms != 0.5 || err != nil {
			t.Errorf("elapsed %v, error %v", ms, err)
		}
		if ms, err := c.ElapsedMS(from, plain); ms != 0 || cuda.Code(err) != 400 {
			t.Errorf("elapsed without timing %v, error %v", ms, err)
		}
		if ok, err := c.Reached(99); ok || err == nil || err.Error() != "call cuEventQuery: CUDA_ERROR_INVALID_HANDLE (400): invalid resource handle" {
			t.Errorf("no event: %v, error %v", ok, err)
		}
		return errors.Join(c.WaitEvent(to), c.FreeEvent(from), c.FreeEvent(to), c.FreeEvent(plain), c.FreeStream(s))
	})
	if f.live() != 0 {
		t.Errorf("%d objects left", f.live())
	}
}

// Every code that these calls can give comes with the driver's words and a hint.
func TestHints(t *testing.T) {
	f := newFake(t)
	for _, c := range []struct {
		code int32
		name string
		hint string
	}{
		{1, "CUDA_ERROR_INVALID_VALUE", "report"},
		{2, "CUDA_ERROR_OUT_OF_MEMORY", "nvidia-smi"},
		{3, "CUDA_ERROR_3", "report"},
		{4, "CUDA_ERROR_4", "restart edgecam"},
		{34, "CUDA_ERROR_34", "stubs"},
		{46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "exclusive"},
		{100, "CUDA_ERROR_NO_DEVICE", "/dev/nvidia"},
		{101, "CUDA_ERROR_INVALID_DEVICE", "CUDA_VISIBLE_DEVICES"},
		{200, "CUDA_ERROR_INVALID_IMAGE", "install edgecam again"},
		{201, "CUDA_ERROR_INVALID_CONTEXT", "restart edgecam"},
		{209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "update the driver"},
		{214, "CUDA_ERROR_ECC_UNCORRECTABLE", "ECC"},
		{218, "CUDA_ERROR_INVALID_PTX", "install edgecam again"},
		{220, "CUDA_ERROR_220", "xid"},
		{221, "CUDA_ERROR_221", "libnvidia-ptxjitcompiler"},
		{222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "too old"},
		{223, "CUDA_ERROR_223", "CUDA_DISABLE_PTX_JIT"},
		{226, "CUDA_ERROR_226", "xid"},
		{300, "CUDA_ERROR_300", "install edgecam again"},
		{301, "CUDA_ERROR_301", "install edgecam again"},
		{304, "CUDA_ERROR_304", "dmesg"},
		{400, "CUDA_ERROR_INVALID_HANDLE", "report"},
		{500, "CUDA_ERROR_NOT_FOUND", "report"},
		{700, "CUDA_ERROR_ILLEGAL_ADDRESS", "Xid"},
		{701, "CUDA_ERROR_701", "registers"},
		{702, "CUDA_ERROR_702", "display"},
		{709, "CUDA_ERROR_709", "restart edgecam"},
		{712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "report"},
		{713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "report"},
		{719, "CUDA_ERROR_LAUNCH_FAILED", "Xid"},
		{800, "CUDA_ERROR_800", "rights"},
		{801, "CUDA_ERROR_NOT_SUPPORTED", "another way"},
		{802, "CUDA_ERROR_802", "fabricmanager"},
		{803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "reboot"},
		{804, "CUDA_ERROR_804", "cuda-compat"},
		{805, "CUDA_ERROR_805", "MPS"},
		{810, "CUDA_ERROR_810", "MPS"},
		{999, "CUDA_ERROR_UNKNOWN", "dmesg"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f.fail("cuDeviceGet", c.code, 0) // needs no context that a sick code would end
			_, err := f.lib.NewDevice(t.Context(), cuda.DeviceOptions{})
			var refusal *platform.DriverError
			if !errors.As(err, &refusal) {
				t.Fatalf("error %v", err)
			}
			if refusal.Call != "cuDeviceGet" || refusal.Code != int(c.code) || refusal.Name != c.name || refusal.Text == "" || !strings.Contains(refusal.Hint, c.hint) {
				t.Errorf("%+v, want %s and a hint with %q", refusal, c.name, c.hint)
			}
		})
	}
}
