package framepool

import "sync"

// Mailbox passes the newest frame between two stages: depth one, the latest
// wins. A reader that is slow loses frames, never time. It is safe for
// concurrent use.
type Mailbox struct {
	ready chan struct{} // out; capacity 1

	mu     sync.Mutex
	frame  *Frame // guarded by mu
	closed bool   // guarded by mu
}

// NewMailbox makes an empty mailbox.
func NewMailbox() *Mailbox { return &Mailbox{ready: make(chan struct{}, 1)} }

// Put consumes f and releases the frame that it replaces, which it reports.
// After Close f itself is the one released.
func (m *Mailbox) Put(f *Frame) (replaced bool) {
	m.mu.Lock()
	old := f
	if !m.closed {
		old, m.frame = m.frame, f
	}
	m.mu.Unlock()
	m.wake()
	if old == nil {
		return false
	}
	old.Release()
	return true
}

// TryTake gives the frame to the caller, who releases it; false if there is
// none.
func (m *Mailbox) TryTake() (*Frame, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.frame
	m.frame = nil
	return f, f != nil
}

// Ready gives a value after a Put or Close. It may come once too often, when
// the frame was taken before the value was read; it never fails to come.
func (m *Mailbox) Ready() <-chan struct{} { return m.ready }

// Close releases what lies in the mailbox; later frames are released by Put.
// It may be called again.
func (m *Mailbox) Close() {
	m.mu.Lock()
	f := m.frame
	m.frame, m.closed = nil, true
	m.mu.Unlock()
	m.wake()
	if f != nil {
		f.Release()
	}
}

func (m *Mailbox) wake() {
	select {
	case m.ready <- struct{}{}:
	default:
	}
}
