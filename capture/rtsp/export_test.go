package rtsp

import (
	"net/url"
	"time"

	"github.com/bluenviron/gortsplib/v4/pkg/base"
	"github.com/pion/rtcp"
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

// Upkeep lets tests and fuzzing see what is made of requests and answers.
type Upkeep struct{ u upkeep }

// Sent hands a request in.
func (u *Upkeep) Sent(req *base.Request) { u.u.sent(req) }

// Answered hands an answer to the request in.
func (u *Upkeep) Answered(method string, res *base.Response) bool { return u.u.answered(method, res) }

// Retry is when the camera said to come back.
func (u *Upkeep) Retry() time.Duration { return u.u.retry }

// Timeout is what the camera said of its sessions.
func (u *Upkeep) Timeout() time.Duration { return u.u.timeout }

// Reception lets tests count packets.
type Reception struct{ r reception }

// Packet counts one.
func (r *Reception) Packet(pkt *rtp.Packet, now time.Time) { r.r.packet(pkt, now) }

// Sender notes a sender report.
func (r *Reception) Sender(report *rtcp.SenderReport, now time.Time) { r.r.sender(report, now) }

// Report makes the next report.
func (r *Reception) Report(now time.Time) *rtcp.ReceiverReport {
	return (*r.r.report(now).(*rtcp.CompoundPacket))[0].(*rtcp.ReceiverReport)
}

// Arrival and Assembler let tests hand NAL units in as a camera would.
type (
	Arrival   = arrival
	Assembler = assembler
	Timeline  = timeline
)

// NewArrival makes the facts of one packet.
func NewArrival(rtpTime uint32, marker bool) Arrival {
	return Arrival{rtpTime: rtpTime, marker: marker}
}

// NewAssembler makes one that hands its units to emit.
func NewAssembler(codec capture.Codec, emit func(*capture.AccessUnit)) *Assembler {
	return &Assembler{codec: codec, emit: emit}
}

// Packet hands a packet's NAL units in.
func (a *Assembler) Packet(at Arrival, lost bool, nalus ...[]byte) { a.packet(at, nalus, lost) }

// At maps an RTP time.
func (t *Timeline) At(rtpTime uint32) (nanoseconds int64) { return int64(t.at(rtpTime)) }

// ReadNAL is the classification of one unit.
func ReadNAL(codec capture.Codec, nalu []byte) (random bool) { return readNAL(codec, nalu).random }

// First is what the next session would begin with.
func (m *TransportMemory) First() Transport { return m.order(Auto)[0] }

// Answer is what a WWW-Authenticate line is answered with; "" = nothing.
func Answer(line, user, password, method, uri string) string {
	l := login{user: user, password: password, configured: true}
	if v := l.challenged(method, []string{line}, false); !v.again {
		return ""
	}
	return l.answer(method, uri)
}

// Begin makes the next session begin with a transport.
func (m *TransportMemory) Begin(t Transport) { m.set(t) }

// TransportText is what is made of an answer to SETUP.
func TransportText(header string) string {
	a := readTransport(header, UDP)
	a.source = "192.0.2.1"
	return a.text()
}
