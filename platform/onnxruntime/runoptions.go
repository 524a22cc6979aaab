package onnxruntime

import (
	"fmt"
	"sync"
	"unsafe"
)

// The run configuration entries that edgecam sets.
const (
	// RunWithoutWaiting "1" lets Run return once the work is queued on the
	// provider's stream: whoever needs the outputs waits for the stream. On CUDA the
	// host memory that such runs take is kept until the session's next run without it,
	// which there must be before the session is closed.
	RunWithoutWaiting = "disable_synchronize_execution_providers"
	// RunGraph numbers the CUDA graph that a run captures or replays, -1 = none.
	RunGraph = "gpu_graph_id"
)

// RunOptions steer runs. They may be shared by bindings.
type RunOptions struct {
	library *Library
	close   sync.Once
	handle  uintptr // OrtRunOptions
}

// NewRunOptions makes run options from configuration entries.
func (l *Library) NewRunOptions(entries map[string]string) (*RunOptions, error) {
	if err := l.hold(); err != nil {
		return nil, fmt.Errorf("make run options: %w", err)
	}
	o := &RunOptions{library: l}
	if err := l.call(fnCreateRunOptions, uintptr(unsafe.Pointer(&o.handle))); err != nil {
		l.drop()
		return nil, fmt.Errorf("make run options: %w", err)
	}
	for key, value := range entries {
		k, v := cString(key), cString(value)
		if err := l.call(fnAddRunConfigEntry, o.handle, uintptr(unsafe.Pointer(k)), uintptr(unsafe.Pointer(v))); err != nil {
			o.Close()
			return nil, fmt.Errorf("make run options: set %s: %w", key, err)
		}
	}
	return o, nil
}

// Close frees the options once no Run uses them. It may be called twice.
func (o *RunOptions) Close() {
	o.close.Do(func() {
		o.library.release(fnReleaseRunOptions, o.handle)
		o.handle = 0
		o.library.drop()
	})
}
