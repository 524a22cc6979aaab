//go:build linux && (amd64 || arm64)

package sysav

import (
	"errors"
	"runtime"
	"time"
	"unsafe"
)

// job is a call into a decoder that may wait for hardware, and so for ever.
type job int

const (
	jobOpen job = iota
	jobSend
	jobEnd // of the stream
	jobReceive
	jobClose
)

// errHung says that a call was given up.
var errHung = errors.New("a call did not come back")

// setting is an AVOption by its name.
type setting struct{ name, value string }

// session is one AVCodecContext, with a goroutine of its own that makes the calls
// which may hang. What they leave behind is read while no call is under way.
//
// A call that hangs is given up: its thread and its memory stay with it, and if it
// ever comes back the goroutine tidies up. Nothing that belongs to others, above
// all no slot of a pool, is touched by that goroutine.
type session struct {
	lib      *Library
	codec    uintptr
	settings []setting
	timeout  time.Duration

	context, packet, frame uintptr
	loaded                 bool // packet holds a unit

	// in
	jobs chan job
	quit chan struct{} // closed when the call was given up
	// out
	done  chan int32
	timer *time.Timer
	lost  bool
}

func (l *Library) newSession(decoder string, settings []setting, timeout time.Duration) (*session, error) {
	s := &session{
		lib: l, settings: settings, timeout: timeout,
		jobs: make(chan job), quit: make(chan struct{}), done: make(chan int32), timer: time.NewTimer(time.Hour),
	}
	s.codec = l.call(fnFindDecoder, uintptr(unsafe.Pointer(cString(decoder))))
	s.timer.Stop()
	go s.work()
	code, err := s.do(jobOpen)
	if err == nil && code < 0 {
		err = l.errorOf(code)
	}
	if err != nil {
		return s, err
	}
	return s, nil
}

// do has the goroutine make a call, and waits for it no longer than the timeout.
func (s *session) do(j job) (int32, error) {
	if s.lost {
		return 0, errHung
	}
	s.timer.Reset(s.timeout)
	s.jobs <- j
	select {
	case code := <-s.done:
		s.timer.Stop()
		return code, nil
	case <-s.timer.C:
		s.lost = true
		s.lib.gaveUp(1)
		close(s.quit)
		return 0, errHung
	}
}

func (s *session) work() {
	for {
		j := <-s.jobs
		code := s.perform(j)
		select {
		case s.done <- code:
			if j == jobClose {
				return
			}
		case <-s.quit:
			s.free()
			s.lib.gaveUp(-1)
			return
		}
	}
}

func (s *session) perform(j job) int32 {
	switch j {
	case jobOpen:
		return s.open()
	case jobSend:
		code := int32(s.lib.call(fnSend, s.context, s.packet))
		if code != tryAgain {
			s.lib.call(fnUnrefPacket, s.packet)
			s.loaded = false
		}
		return code
	case jobEnd:
		return int32(s.lib.call(fnSend, s.context, 0))
	case jobReceive:
		s.lib.call(fnUnrefFrame, s.frame) // may give a buffer back to the hardware
		return int32(s.lib.call(fnReceive, s.context, s.frame))
	}
	s.free()
	return 0
}

func (s *session) open() int32 {
	l := s.lib
	s.packet, s.frame = l.call(fnAllocPacket), l.call(fnAllocFrame)
	if s.context = l.call(fnAllocContext, s.codec); s.context == 0 || s.packet == 0 || s.frame == 0 {
		return noMemory
	}
	logs.open(s.context, l)
	for _, o := range s.settings {
		// What a version does not know it does not need.
		l.call(fnSetOption, s.context, uintptr(unsafe.Pointer(cString(o.name))), uintptr(unsafe.Pointer(cString(o.value))), 0)
	}
	return int32(l.call(fnOpen, s.context, s.codec, 0))
}

func (s *session) free() {
	context := s.context
	if s.frame != 0 {
		s.lib.call(fnFreeFrame, uintptr(unsafe.Pointer(&s.frame)))
	}
	if s.packet != 0 {
		s.lib.call(fnFreePacket, uintptr(unsafe.Pointer(&s.packet)))
	}
	if s.context != 0 {
		s.lib.call(fnFreeContext, uintptr(unsafe.Pointer(&s.context)))
	}
	logs.close(context)
	runtime.KeepAlive(s)
}

// load copies a unit into the packet: Go's memory is nothing that a decoder which
// hangs may keep.
func (s *session) load(parts [][]byte, startCodes bool, pts int64) int32 {
	n := 0
	for _, p := range parts {
		n += len(p)
		if startCodes {
			n += len(startCode)
		}
	}
	if n >= 1<<30 {
		return noMemory
	}
	if code := int32(s.lib.call(fnNewPacket, s.packet, uintptr(n))); code < 0 {
		return code
	}
	out := view(*at[uintptr](s.packet, packetData), n)[:0]
	for _, p := range parts {
		if startCodes {
			out = append(out, startCode[:]...)
		}
		out = append(out, p...)
	}
	*at[int64](s.packet, packetPTS), *at[int64](s.packet, packetDTS) = pts, pts
	s.loaded = true
	return 0
}

var startCode = [4]byte{0, 0, 0, 1} //nolint:gochecknoglobals // a constant

func (s *session) strict(on bool) {
	flags := uintptr(0)
	if on {
		flags = explode
	}
	s.lib.call(fnSetInt, s.context, uintptr(unsafe.Pointer(cString("err_detect"))), flags, 0)
}

// close gives all back, if the decoder lets it.
func (s *session) close() { _, _ = s.do(jobClose) }

// maxStuck is how many calls may hang before the library is asked for nothing any
// more: each keeps a thread and what the decoder holds.
const maxStuck = 4

func (l *Library) gaveUp(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stuck += n
}

// hanging counts the calls that were given up and have not come back.
func (l *Library) hanging() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stuck
}
