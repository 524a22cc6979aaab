//go:build linux && (amd64 || arm64)

package cuda_test

import (
	"errors"
	"testing"

	"edgecam/framepool"
	"edgecam/platform/cuda"
)

var _ framepool.Mapper = (*cuda.Mapper)(nil)

func TestMapper(t *testing.T) {
	f := newFake(t)
	dev := f.open(cuda.DeviceOptions{})
	m := cuda.NewMapper(dev)
	mem := pages(t, 1<<20)
	p, err := m.Map(at(mem), len(mem))
	if err != nil || p == at(mem) {
		t.Fatalf("mapped at %#x, error %v", p, err)
	}
	mem[len(mem)-1] = 42
	do(t, dev, func(c *cuda.Context) error { // the device reads the very bytes
		var last [1]byte
		err := c.CopyOutNow(last[:], cuda.DevicePtr(p)+cuda.DevicePtr(len(mem)-1))
		if last[0] != 42 {
			t.Errorf("the device sees %d", last[0])
		}
		return err
	})
	_, err = m.Map(at(mem[4096:]), 4096)
	var refused *cuda.MapError
	if !errors.As(err, &refused) || refused.Unsupported || refused.Bytes != 4096 || cuda.Code(err) != cuda.CodeAlreadyRegistered {
		t.Errorf("mapped twice: %v", err)
	}
	waits := f.calls("cuCtxSynchronize")
	if err := m.Unmap(at(mem)); err != nil || f.live() != 0 || f.calls("cuCtxSynchronize") != waits+1 {
		t.Errorf("unmap: %v, %d objects left, waited %d times", err, f.live(), f.calls("cuCtxSynchronize")-waits)
	}
	if err := m.Unmap(at(mem)); err == nil || err.Error() != "hide memory from the gpu: it was not mapped" {
		t.Errorf("unmapped twice: %v", err)
	}
}

func TestMapperUnsupported(t *testing.T) {
	for _, c := range []struct {
		name  string
		limit int64
		size  int
		text  string // "" = mapped
	}{
		{
			"no register call, as on older Jetsons", 0, 4096,
			"show 4096 bytes of memory to the gpu: register 4096 bytes of host memory: call cuMemHostRegister_v2: CUDA_ERROR_NOT_SUPPORTED (801): operation not supported",
		},
		{"at the limit", 4 << 20, 4 << 20, ""},
		{
			"over the limit", 4 << 20, 4<<20 + 4096,
			"show 4198400 bytes of memory to the gpu: register 4198400 bytes of host memory: call cuMemHostRegister_v2: CUDA_ERROR_NOT_SUPPORTED (801): operation not supported",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t)
			f.registerLimit(c.limit)
			dev := f.open(cuda.DeviceOptions{})
			_, err := cuda.NewMapper(dev).Map(at(pages(t, c.size)), c.size)
			var refused *cuda.MapError
			if got := errors.As(err, &refused); got != (c.text != "") || got && (err.Error() != c.text || !refused.Unsupported || refused.Bytes != c.size) {
				t.Errorf("got  %v\nwant %s", err, c.text)
			}
			if dev.Err() != nil {
				t.Errorf("lost: %v", dev.Err())
			}
		})
	}
}

// A pool of frames goes through the mapper, and does without where it must.
func TestMapperWithPool(t *testing.T) {
	for _, c := range []struct {
		name   string
		limit  int64
		mapped bool
	}{{"mapped", -1, true}, {"unsupported", 0, false}} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t)
			f.registerLimit(c.limit)
			dev := f.open(cuda.DeviceOptions{})
			layout, err := framepool.NewLayout(framepool.NV12, 64, 64)
			if err != nil {
				t.Fatal(err)
			}
			p, err := framepool.New(framepool.Options{Name: "gate", Layout: layout, Slots: 2, Mapper: cuda.NewMapper(dev)})
			if err != nil {
				t.Fatal(err)
			}
			if d, ok := p.Device(); ok != c.mapped || ok == (d == 0) {
				t.Errorf("device address %#x, %v", d, ok)
			}
			p.Close()
			if f.live() != 0 {
				t.Errorf("%d objects left", f.live())
			}
		})
	}
}

var _ framepool.Keeper = (*cuda.Mapper)(nil)

// Memory that a lost device could not hide is hidden and freed once another one has its
// place, and what pools still use stays mapped until they give it back.
func TestMapperPasses(t *testing.T) {
	f := newFake(t)
	first := f.open(cuda.DeviceOptions{})
	m := cuda.NewMapper(first)
	early, late := pages(t, 4096), pages(t, 4096)
	for _, mem := range [][]byte{early, late} {
		if _, err := m.Map(at(mem), len(mem)); err != nil {
			t.Fatal(err)
		}
	}
	first.Lose(errors.New("taken away"))
	if err := m.Unmap(at(early)); !errors.As(err, new(*cuda.LostError)) { // the memory must be kept
		t.Errorf("unmapped from a lost device: %v", err)
	}
	if _, err := m.Map(at(early), 1); !errors.As(err, new(*cuda.LostError)) || !errors.As(err, new(*cuda.MapError)) {
		t.Errorf("map on a lost device: %v", err)
	}
	freed := 0
	m.Keep(at(early), func() { freed++ })
	if freed > 0 {
		t.Error("freed while the device may use it")
	}
	if err := first.Salvage(t.Context(), (*cuda.Context).Synchronize); err != nil {
		t.Fatal(err)
	}
	next := f.open(cuda.DeviceOptions{})
	f.fail("cuMemHostUnregister", cuda.CodeInvalidValue, 0)
	if err := m.Pass(next); cuda.Code(err) != cuda.CodeInvalidValue || freed != 0 {
		t.Errorf("refused: %v, freed %d times", err, freed)
	}
	f.fail("", 0, 0)
	for range 2 {
		if err := m.Pass(next); err != nil {
			t.Error(err)
		}
	}
	if err := first.Close(); err != nil || freed != 1 {
		t.Errorf("close: %v, freed %d times", err, freed)
	}
	if err := m.Unmap(at(late)); err != nil || f.live() != 0 {
		t.Errorf("unmap afterwards: %v, %d objects left", err, f.live())
	}
}

// Memory that is kept only after the other device has come is hidden at once.
func TestMapperKeepsLate(t *testing.T) {
	f := newFake(t)
	m := cuda.NewMapper(f.open(cuda.DeviceOptions{}))
	mem := pages(t, 4096)
	if _, err := m.Map(at(mem), len(mem)); err != nil {
		t.Fatal(err)
	}
	freed := 0
	if m.Keep(at(mem), func() { freed++ }); freed != 1 || f.live() != 0 {
		t.Errorf("freed %d times, %d objects left", freed, f.live())
	}
}
