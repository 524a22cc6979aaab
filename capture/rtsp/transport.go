package rtsp

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bluenviron/gortsplib/v4"
	"github.com/bluenviron/gortsplib/v4/pkg/base"

	"edgecam/capture"
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
// keeps sessions, from one session to the next. The zero value knows nothing.
// It may be used concurrently.
type TransportMemory struct {
	mu      sync.Mutex
	first   Transport
	tcpOnly bool          // the camera has refused UDP, after TCP had played in silence
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
		switch {
		case m.tcpOnly:
			return []Transport{TCP}
		case m.first == UDP:
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

// slow notes whether the camera has TCP alone, and is slow to send: what comes
// late is waited for then, for as long as a first picture may take.
func (m *TransportMemory) slow(tcpOnly bool) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tcpOnly = tcpOnly
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

// transportAnswer is a camera's Transport header, as far as we look at it.
type transportAnswer struct {
	tcp, secure, multicast bool

	source      string
	serverPorts [2]int // 0 = none that anything can be sent to
	interleaved int    // channel of the video; -1 = none was named
}

// readTransport reads a Transport header leniently. asked is the transport of
// the request, for what the camera leaves out.
func readTransport(text string, asked Transport) transportAnswer {
	text, _, _ = strings.Cut(text, ",") // the first of several is the one taken
	a := transportAnswer{interleaved: -1}
	profile := false
	for field := range strings.SplitSeq(text, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		name, value = strings.ToLower(strings.TrimSpace(name)), strings.Trim(strings.TrimSpace(value), `"`)
		switch {
		case strings.HasPrefix(name, "rtp/"):
			profile = true
			a.tcp = strings.HasSuffix(name, "/tcp")
			a.secure = strings.Contains(name, "savp")
		case name == "multicast":
			a.multicast = true
		case name == "source":
			a.source = value
		case name == "server_port":
			a.serverPorts = readPorts(value)
		case name == "interleaved":
			first, _, _ := strings.Cut(value, "-")
			if n, err := strconv.ParseUint(first, 10, 8); err == nil {
				a.interleaved = int(n)
			}
		}
	}
	if !profile {
		a.tcp = asked == TCP
	} else if a.interleaved >= 0 && a.serverPorts[0] == 0 {
		a.tcp = true // RTP/AVP;interleaved=0-1
	}
	return a
}

// discardPort takes whatever is sent to it, where anybody has it at all (RFC 863).
const discardPort = 9

// readPorts reads a pair of UDP ports; cameras that name 0 or 1 mean none.
func readPorts(text string) [2]int {
	first, second, _ := strings.Cut(text, "-")
	n, err := strconv.ParseUint(strings.TrimSpace(first), 10, 16)
	if err != nil || n < 2 {
		return [2]int{}
	}
	m, err := strconv.ParseUint(strings.TrimSpace(second), 10, 16)
	if err != nil || m < 2 {
		m = n + 1
	}
	return [2]int{int(n), int(m)}
}

// text is the header as gortsplib takes it.
func (a transportAnswer) text() string {
	profile := "RTP/AVP"
	if a.secure {
		profile = "RTP/SAVP"
	}
	if a.tcp {
		channel := max(a.interleaved, 0)
		return fmt.Sprintf("%s/TCP;unicast;interleaved=%d-%d", profile, channel, channel+1)
	}
	return fmt.Sprintf("%s;unicast;source=%s;server_port=%d-%d", profile, a.source, a.serverPorts[0], a.serverPorts[1])
}

// repairTransport rewrites the answer to SETUP. Over UDP it leaves nothing that
// could make gortsplib refuse the packets: they are taken from the address that
// the connection goes to, whatever port they come from.
func (s *session) repairTransport(res *base.Response) {
	if res.StatusCode != base.StatusOK {
		return
	}
	text := strings.Join(res.Header["Transport"], ",")
	a := readTransport(text, s.transport)
	if a.multicast {
		return // refused as it is
	}
	if !a.tcp {
		s.repairSource(&a)
		if a.serverPorts[0] == 0 {
			// Without a port to send to, the library's reports would end the
			// session.
			a.serverPorts = [2]int{discardPort, discardPort}
		}
	}
	res.Header["Transport"] = base.HeaderValue{a.text()}
}

// udpEachSource is how long auto waits for the first packet when two addresses
// may send it.
const udpEachSource = 2 * time.Second

// repairSource decides whose packets are taken. Behind NAT, or with several
// networks, cameras name an address of theirs that we never see; but a recorder
// may also have another machine send. The one who answers is believed first.
func (s *session) repairSource(a *transportAnswer) {
	named := net.ParseIP(a.source)
	a.source = "" // names are not looked up: a camera could have us wait
	conn := s.dialer.open()
	if conn == nil {
		return
	}
	peer, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return
	}
	a.source = peer.IP.String()
	if named == nil || named.IsUnspecified() || named.Equal(peer.IP) {
		return
	}
	s.otherSource = true
	if s.believe {
		a.source = named.String()
	}
	if s.fallback || !s.believe {
		s.firstPacket = udpEachSource
	}
}

// mayUse refuses UDP where it would send in the open what the URL wants
// encrypted.
func (s *session) mayUse(secure bool) error {
	if s.transport == UDP && s.target.encrypted() && !secure {
		return &capture.UnsupportedError{
			What: "transport udp",
			Hint: "behind rtsps:// this camera sends UDP without encryption: set transport to tcp, or use rtsp:// in a network that you trust",
		}
	}
	return nil
}

// noPackets says whether a session that played ended without a packet.
func noPackets(err error) bool {
	stalled, ok := err.(*capture.StalledError) //nolint:errorlint // failure gives it as it is
	return ok && stalled.Phase == capture.PhaseFirstFrame
}

// refusedAll is the failure of a camera that takes none of the transports. One
// that plays over a transport and sends nothing has to tell more than the refusal
// of the other.
func refusedAll(errs []error) error {
	last := errs[len(errs)-1]
	for _, err := range errs {
		if noPackets(err) {
			return err
		}
	}
	for _, err := range errs {
		if status, ok := err.(*capture.StatusError); !ok || status.Transport == "" { //nolint:errorlint // as above
			return last
		}
	}
	if len(errs) < 2 {
		return last
	}
	status := *last.(*capture.StatusError) //nolint:errorlint,forcetypeassert // checked above
	status.Transport = "tcp, udp"
	return &status
}
