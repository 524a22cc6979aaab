package onnxruntime

import (
	"fmt"
	"sync"
	"unsafe"
)

// SessionOptions steer how a model is run.
type SessionOptions struct {
	// Threads is the number of threads that one Run may use. It defaults to 1:
	// the calling thread alone, so that concurrent runs share the cores fairly.
	Threads int
	// Config holds session configuration entries beside the ones that are
	// always set, e.g. "session.disable_prepacking": "1".
	Config map[string]string
	// Providers run what they can, the first one first. None: the CPU.
	Providers []Provider
	// Profile is the beginning of the path of a file that notes every node that
	// runs until EndProfile. Empty: none is written.
	Profile string
}

// Session is a loaded model. Its methods are safe for concurrent use.
type Session struct {
	library  *Library
	inputs   []Port
	outputs  []Port
	metadata map[string]string

	close  sync.Once
	handle uintptr // OrtSession
}

// NewSession loads a model from memory. The bytes are not needed afterwards.
func (l *Library) NewSession(model []byte, opts SessionOptions) (*Session, error) {
	if len(model) == 0 {
		return nil, fmt.Errorf("load model: %w", &StatusError{Call: fnCreateSessionFromArray.name(), Code: CodeInvalidProtobuf, Text: "no bytes"})
	}
	return l.newSession(opts, func(options uintptr, out *uintptr) error {
		return l.call(fnCreateSessionFromArray, l.env, uintptr(unsafe.Pointer(&model[0])), uintptr(len(model)), options, uintptr(unsafe.Pointer(out)))
	})
}

// NewSessionFromFile loads a model from a file, which may refer to others
// beside it for its weights.
func (l *Library) NewSessionFromFile(path string, opts SessionOptions) (*Session, error) {
	name := cString(path)
	return l.newSession(opts, func(options uintptr, out *uintptr) error {
		return l.call(fnCreateSession, l.env, uintptr(unsafe.Pointer(name)), options, uintptr(unsafe.Pointer(out)))
	})
}

func (l *Library) newSession(opts SessionOptions, create func(options uintptr, out *uintptr) error) (*Session, error) {
	if err := l.hold(); err != nil {
		return nil, fmt.Errorf("load model: %w", err)
	}
	options, err := l.sessionOptions(opts)
	if err != nil {
		l.drop()
		return nil, fmt.Errorf("load model: %w", err)
	}
	defer l.release(fnReleaseSessionOptions, options)
	s := &Session{library: l}
	if err := create(options, &s.handle); err != nil {
		l.drop()
		return nil, fmt.Errorf("load model: %w", err)
	}
	if err := s.describe(); err != nil {
		s.Close()
		return nil, fmt.Errorf("describe model: %w", err)
	}
	return s, nil
}

// sessionOptions makes an OrtSessionOptions.
func (l *Library) sessionOptions(opts SessionOptions) (uintptr, error) {
	var options uintptr
	if err := l.call(fnCreateSessionOptions, uintptr(unsafe.Pointer(&options))); err != nil {
		return 0, err
	}
	const enableAll = 99
	numbers := []struct {
		f     function
		value int
	}{
		{fnSetSessionGraphOptimizationLevel, enableAll},
		{fnSetIntraOpNumThreads, max(opts.Threads, 1)},
		{fnSetInterOpNumThreads, 1},
		{fnSetSessionLogSeverityLevel, logFatal},
	}
	for _, n := range numbers {
		if err := l.call(n.f, options, uintptr(n.value)); err != nil {
			l.release(fnReleaseSessionOptions, options)
			return 0, err
		}
	}
	if err := l.extendOptions(options, opts); err != nil {
		l.release(fnReleaseSessionOptions, options)
		return 0, err
	}
	// Idle pool threads would spin on a core that decoding needs.
	entries := map[string]string{"session.intra_op.allow_spinning": "0", "session.inter_op.allow_spinning": "0"}
	for key, value := range opts.Config {
		entries[key] = value
	}
	for key, value := range entries {
		k, v := cString(key), cString(value)
		if err := l.call(fnAddSessionConfigEntry, options, uintptr(unsafe.Pointer(k)), uintptr(unsafe.Pointer(v))); err != nil {
			l.release(fnReleaseSessionOptions, options)
			return 0, err
		}
	}
	return options, nil
}

// extendOptions adds what only some sessions have.
func (l *Library) extendOptions(options uintptr, opts SessionOptions) error {
	for _, p := range opts.Providers {
		if err := l.appendProvider(options, p); err != nil {
			return err
		}
	}
	if opts.Profile == "" {
		return nil
	}
	prefix := cString(opts.Profile)
	return l.call(fnEnableProfiling, options, uintptr(unsafe.Pointer(prefix)))
}

// Inputs and Outputs are the model's ports, in its own order.
func (s *Session) Inputs() []Port  { return s.inputs }
func (s *Session) Outputs() []Port { return s.outputs }

// Metadata is the model's metadata_props.
func (s *Session) Metadata() map[string]string { return s.metadata }

// Close unloads the model. No Run may be going on or begin. It may be called twice.
func (s *Session) Close() {
	s.close.Do(func() {
		s.library.release(fnReleaseSession, s.handle)
		s.handle = 0
		s.library.drop()
	})
}
