package cuda

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// loss is how a device ends to serve, once.
type loss struct {
	lost chan struct{} // the device does not answer any more
	hung chan struct{} // it is lost by a call that may still not have returned

	losing, hanging sync.Once
	reason          *LostError // set before lost is closed
}

func newLoss() *loss { return &loss{lost: make(chan struct{}), hung: make(chan struct{})} }

// err is nil, or the reason once lost is closed.
func (l *loss) err() error {
	select {
	case <-l.lost:
		return l.reason
	default:
		return nil
	}
}

func (l *loss) lose(cause error) {
	l.losing.Do(func() {
		l.reason = newLostError(cause)
		close(l.lost)
	})
}

// now is the loss that tasks heed: of a salvaged device the one after that.
func (dev *Device) now() *loss {
	if l := dev.after.Load(); l != nil {
		return l
	}
	return dev.loss
}

// Serves says whether Do is carried out: the device is not lost, or was salvaged.
func (dev *Device) Serves() bool { return dev.now().err() == nil }

// Lost is closed when the device does not answer any more.
func (dev *Device) Lost() <-chan struct{} { return dev.loss.lost }

// Err is nil, or the *LostError once Lost is closed.
func (dev *Device) Err() error { return dev.loss.err() }

// Lose gives the device up for a reason that its calls do not tell.
func (dev *Device) Lose(cause error) { dev.loss.lose(cause) }

// lose marks the device lost, or lost again.
func (dev *Device) lose(cause error) {
	dev.loss.lose(cause)
	dev.now().lose(cause)
}

// hang is the watchdog's word that a task is overdue.
func (dev *Device) hang(cause *TimeoutError) {
	dev.loss.lose(cause)
	l := dev.now()
	l.lose(cause)
	l.hanging.Do(func() { close(l.hung) }) // a call may hang again after the first one came back
}

// ErrContextGone says that a lost device cannot be salvaged: its context serves no more
// calls, so nothing that is open there can be closed. Only the next process can use the
// device again (https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html: "the
// process must be terminated and relaunched").
var ErrContextGone = errors.New("its context is gone")

// Salvage asks a lost device whether its context answers after all, with check, on its
// goroutine: after a call that hung and has returned, or a reason that lies elsewhere. If
// so Do serves again, for whoever closes what is open there: everybody else has been told
// that the device is lost, and Lost and Err stay as they are.
//
// The error is check's, ErrContextGone, ErrDeviceClosed, or ctx's where a call still hangs.
func (dev *Device) Salvage(ctx context.Context, check func(*Context) error) error {
	err := dev.Err()
	switch {
	case err == nil:
		return errors.New("salvage gpu: it is not lost")
	case Sticky(err):
		return fmt.Errorf("salvage gpu: %w: %w", ErrContextGone, err)
	case dev.after.Load() != nil && dev.now().err() == nil:
		return nil // it was, before
	}
	var found error
	t := &task{name: "salvage gpu", limit: dev.timeout, done: make(chan struct{}), run: func(c *Context) error {
		if found = check(c); found == nil {
			dev.after.Store(newLoss())
		}
		return nil
	}}
	select {
	case dev.salvage <- t:
	case <-dev.quit:
		return ErrDeviceClosed
	case <-ctx.Done():
		return fmt.Errorf("salvage gpu: a call still hangs in the driver: %w", ctx.Err())
	}
	select {
	case <-t.done:
	case <-ctx.Done():
		return fmt.Errorf("salvage gpu: a call hangs in the driver: %w", ctx.Err())
	}
	switch {
	case Sticky(found):
		return fmt.Errorf("salvage gpu: %w: %w", ErrContextGone, found)
	case found != nil:
		return fmt.Errorf("salvage gpu: %w", found)
	}
	return nil
}
