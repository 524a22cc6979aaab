package onnxruntime

import (
	"fmt"
	"sync"
	"unsafe"
)

// Binding connects tensors with the inputs and outputs of a session, so that
// Run reads and writes them where they lie.
type Binding struct {
	session *Session
	close   sync.Once
	handle  uintptr  // OrtIoBinding
	anySize []string // outputs that the library makes room for
}

// NewBinding makes a binding without tensors.
func (s *Session) NewBinding() (*Binding, error) {
	b := &Binding{session: s}
	if err := s.library.call(fnCreateIoBinding, s.handle, uintptr(unsafe.Pointer(&b.handle))); err != nil {
		return nil, fmt.Errorf("make binding: %w", err)
	}
	return b, nil
}

// Input binds an input of the session. The tensor stays the caller's and must
// outlive the binding's last Run.
func (b *Binding) Input(name string, t *Tensor) error {
	return b.bind(fnBindInput, name, t)
}

// Output binds an output of the session, whose shape the tensor must have.
func (b *Binding) Output(name string, t *Tensor) error {
	return b.bind(fnBindOutput, name, t)
}

func (b *Binding) bind(f function, name string, t *Tensor) error {
	text := cString(name)
	if err := b.session.library.call(f, b.handle, uintptr(unsafe.Pointer(text)), t.handle); err != nil {
		return fmt.Errorf("bind %s: %w", name, err)
	}
	return nil
}

// Run infers once. The calling thread does the work.
func (b *Binding) Run() error { return b.run(0) }

// RunWith is Run with options.
func (b *Binding) RunWith(o *RunOptions) error { return b.run(o.handle) }

func (b *Binding) run(options uintptr) error {
	if b.handle == 0 || b.session.handle == 0 {
		return fmt.Errorf("run model: %w", ErrClosed)
	}
	// The binding keeps what a run made room for, and would want the next one's
	// outputs to have that size.
	for _, name := range b.anySize {
		if err := b.bindAnySize(name); err != nil {
			return fmt.Errorf("run model: %w", err)
		}
	}
	if err := b.session.library.call(fnRunWithBinding, b.session.handle, options, b.handle); err != nil {
		return fmt.Errorf("run model: %w", err)
	}
	return nil
}

// Close frees the binding, not the tensors. It may be called twice.
func (b *Binding) Close() {
	b.close.Do(func() {
		b.session.library.release(fnReleaseIoBinding, b.handle)
		b.handle = 0
	})
}
