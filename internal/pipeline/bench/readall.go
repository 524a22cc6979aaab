package bench

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"edgecam/platform/cuda"
	"edgecam/preprocess"
)

//go:embed readall.ptx
var readallPTX []byte

const (
	linkBytes     = 16 << 20
	readallBlocks = 1056 // eight on each multiprocessor of the largest card
	readallThread = 256
)

// link reads 16 MiB once from each kind of memory.
type link struct {
	module   cuda.Module
	kernel   cuda.Function
	args     *cuda.Params
	locked   cuda.Host
	pageable []byte
	onDevice cuda.DevicePtr
	ring     cuda.DevicePtr
	sum      cuda.DevicePtr
	stream   cuda.Stream
	from, to cuda.Event
	want     uint32
}

func newLink(c *cuda.Context) (*link, error) {
	l := &link{args: cuda.NewParams(8, 4, 8), pageable: make([]byte, linkBytes)}
	for i := 0; i < linkBytes; i += 4 {
		v := uint32(i) * 2654435761 // no two words alike
		binary.NativeEndian.PutUint32(l.pageable[i:], v)
		l.want += v
	}
	if err := l.open(c); err != nil {
		return nil, errors.Join(fmt.Errorf("prepare to read %d bytes: %w", linkBytes, err), l.close(c))
	}
	return l, nil
}

func (l *link) open(c *cuda.Context) (err error) {
	if l.module, err = c.Load(readallPTX); err != nil {
		return err
	}
	if l.kernel, err = c.Function(l.module, "readall"); err != nil {
		return err
	}
	if l.locked, err = c.HostAlloc(linkBytes); err != nil {
		return err
	}
	copy(l.locked.Bytes, l.pageable)
	if l.sum, err = c.Alloc(4); err != nil {
		return err
	}
	for _, p := range []*cuda.DevicePtr{&l.onDevice, &l.ring} {
		if *p, err = c.Alloc(linkBytes); err != nil {
			return err
		}
	}
	if err = c.CopyInNow(l.onDevice, l.pageable); err != nil {
		return err
	}
	if l.stream, err = c.NewStream(); err != nil {
		return err
	}
	for _, e := range []*cuda.Event{&l.from, &l.to} {
		if *e, err = c.NewEvent(true); err != nil {
			return err
		}
	}
	return nil
}

// run reads the bytes once and checks that all were read.
func (l *link) run(c *cuda.Context, s preprocess.Strategy) (time.Duration, error) {
	took, err := l.read(c, s)
	if err != nil {
		return 0, fmt.Errorf("read %d bytes by strategy %s: %w", linkBytes, s, err)
	}
	return took, nil
}

func (l *link) read(c *cuda.Context, s preprocess.Strategy) (time.Duration, error) {
	err := errors.Join(c.Fill(l.sum, 0, 4, l.stream), c.Record(l.from, l.stream))
	if err != nil {
		return 0, err
	}
	at := l.ring
	switch s {
	case preprocess.Shared, preprocess.Mapped:
		at = l.locked.Device
	case preprocess.Device:
		at = l.onDevice
	case preprocess.Staged:
		err = c.CopyInBytes(at, l.locked.Bytes, l.stream)
	case preprocess.Heap:
		err = c.CopyInBytes(at, l.pageable, l.stream)
	}
	if err != nil {
		return 0, err
	}
	cuda.Set(l.args, 0, uint64(at))
	cuda.Set(l.args, 1, int32(linkBytes/16))
	cuda.Set(l.args, 2, uint64(l.sum))
	if err := c.Launch(l.kernel, [3]uint32{readallBlocks, 1, 1}, [3]uint32{readallThread, 1, 1}, 4*readallThread, l.stream, l.args); err != nil {
		return 0, err
	}
	if err := errors.Join(c.Record(l.to, l.stream), c.WaitEvent(l.to)); err != nil {
		return 0, err
	}
	var sum [4]byte
	if err := c.CopyOutNow(sum[:], l.sum); err != nil {
		return 0, err
	}
	if got := binary.NativeEndian.Uint32(sum[:]); got != l.want {
		return 0, fmt.Errorf("the sum of what was read is %#x, want %#x", got, l.want)
	}
	ms, err := c.ElapsedMS(l.from, l.to)
	return time.Duration(float64(ms) * float64(time.Millisecond)), err
}

// copy has the copy engine bring the bytes, and nobody read them.
func (l *link) copy(c *cuda.Context) (time.Duration, error) {
	err := errors.Join(
		c.Record(l.from, l.stream), c.CopyInBytes(l.ring, l.locked.Bytes, l.stream), c.Record(l.to, l.stream), c.WaitEvent(l.to),
	)
	if err != nil {
		return 0, fmt.Errorf("copy %d bytes: %w", linkBytes, err)
	}
	ms, err := c.ElapsedMS(l.from, l.to)
	return time.Duration(float64(ms) * float64(time.Millisecond)), err
}

func (l *link) close(c *cuda.Context) error {
	var errs []error
	if l.stream != 0 {
		errs = append(errs, c.Wait(l.stream), c.FreeStream(l.stream))
	}
	for _, e := range []cuda.Event{l.from, l.to} {
		if e != 0 {
			errs = append(errs, c.FreeEvent(e))
		}
	}
	for _, p := range []cuda.DevicePtr{l.onDevice, l.ring, l.sum} {
		if p != 0 {
			errs = append(errs, c.Free(p))
		}
	}
	if l.locked.Bytes != nil {
		errs = append(errs, c.HostFree(l.locked))
	}
	if l.module != 0 {
		errs = append(errs, c.Unload(l.module))
	}
	return errors.Join(errs...)
}
