package cuda

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Mapper shows memory of the process to a device, where kernels read it in
// place: it has the methods of framepool.Mapper. It outlives its device, as pools
// do that still lend frames out when a lost one is replaced: see Pass. Methods are safe
// for concurrent use.
//
// Devices that cannot register memory (older Jetsons) answer with a *MapError;
// what is not mapped is copied to the device instead.
type Mapper struct {
	mu      sync.Mutex
	dev     *Device
	regions map[uintptr]int    // bytes, by their first
	kept    map[uintptr]func() // free memory that could not be hidden, by its first byte
}

// NewMapper maps for dev.
func NewMapper(dev *Device) *Mapper {
	return &Mapper{dev: dev, regions: map[uintptr]int{}, kept: map[uintptr]func(){}}
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

// Map pins size bytes at host, which must lie outside the Go heap, and gives the
// device's address of the first. The error is a *MapError.
func (m *Mapper) Map(host uintptr, size int) (uintptr, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := new(DevicePtr) // its own, as a call that is given up on may still write
	err := m.dev.DoWithin(context.Background(), "map memory", pinTime(m.dev, size), func(c *Context) (err error) {
		*p, err = c.HostRegister(host, size)
		return err
	})
	if err != nil {
		return 0, &MapError{Bytes: size, Unsupported: Code(err) == CodeNotSupported, Err: err}
	}
	m.regions[host] = size
	return uintptr(*p), nil
}

// Unmap undoes Map. It returns once the device has finished with all that was
// queued; with an error the device may still use the memory, and it must be kept.
func (m *Mapper) Unmap(host uintptr) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.unmapLocked(host)
}

func (m *Mapper) unmapLocked(host uintptr) error {
	size, ok := m.regions[host]
	if !ok {
		return errors.New("hide memory from the gpu: it was not mapped")
	}
	err := m.dev.DoWithin(context.Background(), "unmap memory", pinTime(m.dev, size), func(c *Context) error {
		if err := c.Synchronize(); err != nil {
			return err
		}
		return c.HostUnregister(host)
	})
	if err != nil {
		return fmt.Errorf("hide %d bytes of memory from the gpu: %w", size, err)
	}
	delete(m.regions, host)
	return nil
}

// Keep calls free for memory at host that Unmap could not hide, once it is hidden: by
// Pass, or at once where that has been meanwhile. It implements framepool.Keeper.
func (m *Mapper) Keep(host uintptr, free func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.unmapLocked(host) == nil {
		free()
		return
	}
	m.kept[host] = free
}

// Pass has dev make the calls from now on, in place of a lost device that was salvaged
// (Device.Salvage) and that is closed only afterwards: both have the same context, so
// what is mapped stays mapped. Memory that could not be hidden before is hidden now, and
// freed.
func (m *Mapper) Pass(dev *Device) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dev = dev
	var errs []error
	for host, free := range m.kept {
		if err := m.unmapLocked(host); err != nil {
			errs = append(errs, err)
			continue
		}
		delete(m.kept, host)
		free()
	}
	return errors.Join(errs...)
}

// pinTime allows a second for each GiB: the kernel pins a page at a time.
func pinTime(dev *Device, size int) time.Duration {
	return dev.timeout + time.Duration(size>>30)*time.Second
}
