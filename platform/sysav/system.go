package sysav

import (
	"errors"
	"fmt"
	"sync"

	"edgecam/platform"
	"edgecam/platform/avcodec"
)

// EnvPath names the libavcodec to use, in place of those that are looked for.
const EnvPath = "EDGECAM_LIBAVCODEC"

const hintInstall = "install FFmpeg (on a Jetson NVIDIA's build of it), or name its libavcodec in " + EnvPath

// System is what this machine has of FFmpeg. Nothing is opened before it is asked
// for. It is safe for concurrent use.
type System struct {
	paths []string

	mu        sync.Mutex
	tried     int // of paths
	libraries []*Library
	why       *platform.UnavailableError // of the path that says most
}

// New looks for libraries where they usually are, or at $EDGECAM_LIBAVCODEC.
func New() *System { return At(candidates()...) }

// At looks at these paths alone, in this order.
func At(paths ...string) *System { return &System{paths: paths} }

// Find gives the first library that has the decoder. The error is a
// *platform.UnavailableError where there is no library, and an *avcodec.OpenError
// where none has it.
func (s *System) Find(decoder string) (*Library, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := 0; ; i++ {
		for i == len(s.libraries) && s.tried < len(s.paths) {
			s.openNextLocked()
		}
		if i == len(s.libraries) {
			return nil, s.lacksLocked(decoder)
		}
		if _, ok := s.libraries[i].Decoder(decoder); ok {
			return s.libraries[i], nil
		}
	}
}

func (s *System) openNextLocked() {
	path := s.paths[s.tried]
	s.tried++
	l, err := Open(path)
	if err != nil {
		var ue *platform.UnavailableError
		// A file that is there and does not serve says more than one that is not.
		if errors.As(err, &ue) && (s.why == nil || errors.Is(s.why, errAbsent) && !errors.Is(ue, errAbsent)) {
			s.why = ue
		}
		return
	}
	for _, have := range s.libraries {
		if have.path == l.path {
			return
		}
	}
	s.libraries = append(s.libraries, l)
}

func (s *System) lacksLocked(decoder string) error {
	if len(s.libraries) == 0 {
		if s.why == nil {
			s.why = &platform.UnavailableError{Lib: "libavcodec", Err: errAbsent, Hint: hintInstall}
		}
		return s.why
	}
	l := s.libraries[0]
	return &avcodec.OpenError{
		Decoder: decoder,
		Why:     fmt.Sprintf("neither edgecam's FFmpeg nor the system's (libavcodec %s at %s) has it", l.version, l.path),
	}
}
