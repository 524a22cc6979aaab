package rtsp

import (
	"net/url"
	"time"

	"github.com/bluenviron/gortsplib/v4/pkg/base"
	"github.com/pion/rtp"

	"edgecam/capture"
)

// Password shows tests what would be sent.
func Password(t Target) string { return t.password }

// Request is the URL that requests carry.
func Request(t Target) (*base.URL, error) { return t.request() }

// Patient lets sessions wait as long as a busy machine needs for the answer to
// SETUP.
func (o Options) Patient(settle time.Duration) Options {
	o.settle = settle
	return o
}

// Scrub is what texts from outside pass.
func Scrub(t Target, text string) string { return t.scrub(text) }

// Choice is what is made of a description.
type Choice struct {
	Codec   capture.Codec
	Sets    [][]byte
	Words   string
	Info    capture.TrackInfo
	Rewrite []byte // for gortsplib
	Control string // the URL of SETUP
}

// Choose reads a description that came from request.
func Choose(body []byte, request, contentBase string) (Choice, error) {
	return ChooseTrack(body, request, contentBase, 0)
}

// ChooseTrack is Choose for a track that the user wants.
func ChooseTrack(body []byte, request, contentBase string, want int) (Choice, error) {
	u, err := url.Parse(request)
	if err != nil {
		return Choice{}, err
	}
	text := readSDP(body)
	t, err := text.choose(want)
	if err != nil {
		return Choice{}, err
	}
	b := baseURL(u, text.control, contentBase)
	return Choice{
		Codec: t.codec, Sets: newSetKeeper(t.codec, t.sets).described(), Words: t.info.String(), Info: t.info,
		Rewrite: writeSDP(t, b), Control: controlURL(b, t.control),
	}, nil
}

// First is what the next session would begin with.
func (m *TransportMemory) First() Transport { return m.order(Auto)[0] }

// Answer is what a WWW-Authenticate line is answered with; "" = nothing.
func Answer(line, user, password, method, uri string) string {
	l := login{user: user, password: password, configured: true}
	if v := l.challenged(method, []string{line}, false); !v.again {
		return ""
	}
	return l.answer(method, uri, nil)
}

// Begin makes the next session begin with a transport.
func (m *TransportMemory) Begin(t Transport) { m.set(t) }

// TransportText is what is made of an answer to SETUP.
func TransportText(header string) string {
	a := readTransport(header, UDP)
	a.source = "192.0.2.1"
	return a.text()
}

// NewJPEG takes JPEG packets apart.
func NewJPEG() func(*rtp.Packet) ([][]byte, error) { return new(jpegPackets).decode }

// ErrIncomplete says that a packet completed nothing.
var ErrIncomplete = errIncomplete

// StandardHuffman is the content of the segment that RTP leaves out.
func StandardHuffman() []byte { return standardHuffman[:] }
