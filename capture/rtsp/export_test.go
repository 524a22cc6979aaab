package rtsp

import (
	"net/url"

	"github.com/bluenviron/gortsplib/v4/pkg/base"
	"github.com/pion/rtp"

	"edgecam/capture"
)

// Password shows tests what would be sent.
func Password(t Target) string { return t.password }

// Request is the URL that requests carry.
func Request(t Target) (*base.URL, error) { return t.request() }

// Scrub is what texts from outside pass.
func Scrub(t Target, text string) string { return t.scrub(text) }

// Choice is what is made of a description.
type Choice struct {
	Codec   capture.Codec
	Sets    [][]byte
	Words   string
	Rewrite []byte // for gortsplib
	Control string // the URL of SETUP
}

// Choose reads a description that came from request.
func Choose(body []byte, request, contentBase string) (Choice, error) {
	u, err := url.Parse(request)
	if err != nil {
		return Choice{}, err
	}
	text := readSDP(body)
	t, err := text.choose()
	if err != nil {
		return Choice{}, err
	}
	b := baseURL(u, text.control, contentBase)
	return Choice{Codec: t.codec, Sets: t.sets, Words: t.words, Rewrite: writeSDP(t, b), Control: controlURL(b, t.media.control)}, nil
}

// First is what the next session would begin with.
func (m *TransportMemory) First() Transport { return m.order(Auto)[0] }

// NewJPEG takes JPEG packets apart.
func NewJPEG() func(*rtp.Packet) ([][]byte, error) { return new(jpegPackets).decode }

// ErrIncomplete says that a packet completed nothing.
var ErrIncomplete = errIncomplete

// StandardHuffman is the content of the segment that RTP leaves out.
func StandardHuffman() []byte { return standardHuffman[:] }
