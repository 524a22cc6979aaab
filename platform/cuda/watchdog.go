package cuda

import (
	"sync"
	"sync/atomic"
	"time"
)

// watchdog calls late for a task that does not end in time. One timer serves all
// tasks of a device, one after another.
type watchdog struct {
	late  func(cause *TimeoutError)
	stuck *atomic.Int64 // tasks that are overdue now

	mu      sync.Mutex
	timer   *time.Timer
	armed   bool
	name    string
	limit   time.Duration
	end     time.Time
	overdue bool
}

// arm starts the watch over a task that may take limit.
func (w *watchdog) arm(name string, limit time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.name, w.limit, w.armed, w.end = name, limit, true, time.Now().Add(limit)
	if w.timer == nil {
		w.timer = time.AfterFunc(limit, w.expire)
		return
	}
	w.timer.Reset(limit)
}

// disarm ends the watch: the task is over.
func (w *watchdog) disarm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Stop()
	w.armed = false
	if w.overdue {
		w.overdue = false
		w.stuck.Add(-1)
	}
}

// expire runs on the timer's own goroutine and may come late: for a task that
// has ended, while the next is on.
func (w *watchdog) expire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.armed || time.Now().Before(w.end) {
		return
	}
	w.overdue = true
	w.stuck.Add(1)
	w.late(&TimeoutError{Name: w.name, Limit: w.limit})
}
