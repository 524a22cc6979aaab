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
	watch    *cuda.Stopwatch
	ran      bool
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
	l.watch, err = c.NewStopwatch()
	return err
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
	if err := c.Fill(l.sum, 0, 4, l.stream); err != nil {
		return 0, err
	}
	measure := l.watch.TimeHeld
	if s == preprocess.Heap || !l.ran { // as in preprocess.Trial
		measure = l.watch.Time
	}
	took, err := measure(c, l.stream, func() error { return l.queue(c, s) })
	if err != nil {
		return 0, err
	}
	l.ran = true
	var sum [4]byte
	if err := c.CopyOutNow(sum[:], l.sum); err != nil {
		return 0, err
	}
	if got := binary.NativeEndian.Uint32(sum[:]); got != l.want {
		return 0, fmt.Errorf("the sum of what was read is %#x, want %#x", got, l.want)
	}
	return took, nil
}

func (l *link) queue(c *cuda.Context, s preprocess.Strategy) error {
	at, err := l.ring, error(nil)
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
		return err
	}
	cuda.Set(l.args, 0, uint64(at))
	cuda.Set(l.args, 1, int32(linkBytes/16))
	cuda.Set(l.args, 2, uint64(l.sum))
	return c.Launch(l.kernel, [3]uint32{readallBlocks, 1, 1}, [3]uint32{readallThread, 1, 1}, 4*readallThread, l.stream, l.args)
}

// copy has the copy engine bring the bytes, and nobody read them.
func (l *link) copy(c *cuda.Context) (time.Duration, error) {
	took, err := l.watch.TimeHeld(c, l.stream, func() error { return c.CopyInBytes(l.ring, l.locked.Bytes, l.stream) })
	if err != nil {
		return 0, fmt.Errorf("copy %d bytes: %w", linkBytes, err)
	}
	return took, nil
}

func (l *link) close(c *cuda.Context) error {
	var errs []error
	if l.stream != 0 {
		errs = append(errs, c.Wait(l.stream), c.FreeStream(l.stream))
	}
	if l.watch != nil {
		errs = append(errs, l.watch.Close(c))
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
