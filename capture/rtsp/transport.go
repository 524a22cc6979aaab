package rtsp

import (
	"fmt"
	"sync"
	"time"

	"github.com/bluenviron/gortsplib/v4"
)

// Transport is how packets travel.
type Transport string

// The transports.
const (
	Auto Transport = "auto" // TCP, and UDP where the camera does not take TCP
	TCP  Transport = "tcp"  // inside the RTSP connection
	UDP  Transport = "udp"
)

// ParseTransport reads a word of the configuration; "" is Auto.
func ParseTransport(text string) (Transport, error) {
	switch t := Transport(text); t {
	case "":
		return Auto, nil
	case Auto, TCP, UDP:
		return t, nil
	default:
		return "", fmt.Errorf("unknown transport %q: use auto, tcp or udp", text)
	}
}

// TransportMemory remembers which transport a camera took, and how long it
// keeps sessions, from one session to the next. The zero value knows nothing. It may be used concurrently.
type TransportMemory struct {
	mu      sync.Mutex
	first   Transport
	timeout time.Duration // of the camera's sessions; 0 = it never told
}

// order lists what to try. A nil memory knows nothing.
func (m *TransportMemory) order(want Transport) []Transport {
	if want != Auto {
		return []Transport{want}
	}
	if m != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.first == UDP {
			return []Transport{UDP, TCP}
		}
	}
	return []Transport{TCP, UDP}
}

// worked notes that packets came; failed that a session played and none did.
func (m *TransportMemory) worked(t Transport) { m.set(t) }

func (m *TransportMemory) failed(t Transport) {
	if t == TCP {
		m.set(UDP)
	} else {
		m.set(TCP)
	}
}

func (m *TransportMemory) set(t Transport) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.first = t
}

// sessionTimeout is how long the camera keeps sessions that it hears nothing
// of; 0 = it never told.
func (m *TransportMemory) sessionTimeout() time.Duration {
	if m == nil {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.timeout
}

func (m *TransportMemory) keepsSessions(timeout time.Duration) {
	if m == nil || timeout == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.timeout = timeout
}

func (t Transport) library() *gortsplib.Transport {
	v := gortsplib.TransportTCP
	if t == UDP {
		v = gortsplib.TransportUDP
	}
	return &v
}
