package cuda

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Mapper shows memory of the process to a device, where kernels read it in
// place: it has the methods of framepool.Mapper. It outlives its device, so that
// pools stay when a lost one is replaced: see Move. Methods are safe for
// concurrent use.
//
// Devices that cannot register memory (older Jetsons) answer with a *MapError;
// what is not mapped is copied to the device instead.
type Mapper struct {
	mu      sync.Mutex
	dev     *Device
	regions map[uintptr]region // by their first byte
	gone    bool               // the context that all was mapped in is
	kept    []func()           // free memory once it is
}

type region struct {
	size   int
	device DevicePtr
}

// NewMapper maps for dev.
func NewMapper(dev *Device) *Mapper {
	return &Mapper{dev: dev, regions: map[uintptr]region{}}
}

// MapError says that the device does not see a piece of memory.
type MapError struct {
	Bytes int
	// Unsupported: neither the device nor its driver can do it, now or later.
	Unsupported bool
	Err         error
}

// Error implements error.
func (e *MapError) Error() string {
	return fmt.Sprintf("show %d bytes of memory to the gpu: %v", e.Bytes, e.Err)
}

// Unwrap gives the cause.
func (e *MapError) Unwrap() error { return e.Err }

// ErrMoved says that a region has another address on a new device than before.
var ErrMoved = errors.New("memory has another address on this gpu than before")

// Map pins size bytes at host, which must lie outside the Go heap, and gives the
// device's address of the first. The error is a *MapError.
func (m *Mapper) Map(host uintptr, size int) (uintptr, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, err := m.registerLocked(context.Background(), m.dev, host, size)
	if err != nil {
		return 0, err
	}
	m.regions[host] = region{size: size, device: p}
	return uintptr(p), nil
}

// Unmap undoes Map. It returns once the device has finished with all that was
// queued; with an error the device may still use the memory, and it must be kept.
func (m *Mapper) Unmap(host uintptr) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gone {
		return nil
	}
	r, ok := m.regions[host]
	if !ok {
		return errors.New("hide memory from the gpu: it was not mapped")
	}
	err := m.dev.DoWithin(context.Background(), "unmap memory", pinTime(m.dev, r.size), func(c *Context) error {
		if err := c.Synchronize(); err != nil {
			return err
		}
		return c.HostUnregister(host)
	})
	if err != nil {
		return fmt.Errorf("hide %d bytes of memory from the gpu: %w", r.size, err)
	}
	delete(m.regions, host)
	return nil
}

// Keep calls free once the context is gone, for memory that Unmap could not hide:
// see Forget. It implements framepool.Keeper.
func (m *Mapper) Keep(free func()) {
	m.mu.Lock()
	gone := m.gone
	if !gone {
		m.kept = append(m.kept, free)
	}
	m.mu.Unlock()
	if gone {
		free()
	}
}

// Forget says that the device is lost and its context gone (DeviceOptions.Reset):
// nothing can use the memory through it any more. Nothing may be mapped afterwards.
func (m *Mapper) Forget() {
	m.mu.Lock()
	kept := m.kept
	m.gone, m.kept = true, nil
	clear(m.regions)
	m.mu.Unlock()
	for _, free := range kept {
		free()
	}
}

// Move maps everything for dev, in place of a device that was lost and whose
// context is gone (DeviceOptions.Reset). ErrMoved means that owners still hold
// addresses which are wrong now: their pools must be made anew. After any error
// Move may be called again with another device.
func (m *Mapper) Move(ctx context.Context, dev *Device) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dev = dev
	for host, r := range m.regions {
		p, err := m.registerLocked(ctx, dev, host, r.size)
		if err != nil {
			return err
		}
		if p != r.device {
			return &MapError{Bytes: r.size, Err: ErrMoved}
		}
	}
	return nil
}

func (m *Mapper) registerLocked(ctx context.Context, dev *Device, host uintptr, size int) (DevicePtr, error) {
	p := new(DevicePtr) // its own, as a call that is given up on may still write
	err := dev.DoWithin(ctx, "map memory", pinTime(dev, size), func(c *Context) (err error) {
		*p, err = c.HostRegister(host, size)
		return err
	})
	if err != nil {
		return 0, &MapError{Bytes: size, Unsupported: Code(err) == CodeNotSupported, Err: err}
	}
	return *p, nil
}

// pinTime allows a second for each GiB: the kernel pins a page at a time.
func pinTime(dev *Device, size int) time.Duration {
	return dev.timeout + time.Duration(size>>30)*time.Second
}
