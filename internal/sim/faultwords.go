package sim

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// The words of faults.
const (
	faultRefuse      = "refuse"
	faultSilent      = "silent"
	faultHalfOpen    = "half-open"
	faultClose       = "close"
	faultReset       = "reset-every"
	faultAuth        = "auth"
	faultNonce       = "nonce-rotate"
	faultSHA256      = "digest-sha256"
	faultBothAuth    = "basic+digest"
	faultNotFound    = "notfound"
	faultBusy        = "busy"
	faultLost        = "session-lost"
	faultRedirect    = "redirect"
	faultLoop        = "redirect-loop"
	faultUDPOnly     = "udp-only"
	faultTCPOnly     = "tcp-only"
	faultSlowSDP     = "slow-describe"
	faultSlowStart   = "slow-start"
	faultRequests    = "server-requests"
	faultBadSDP      = "bad-sdp"
	faultNoVideo     = "novideo"
	faultSecondAudio = "audio-only-second-time"
	faultCodec       = "codec"
	faultNoSprop     = "no-sprop"
	faultH265        = "h265"
	faultMJPEG       = "mjpeg"
	faultResChange   = "res-change"
	faultStall       = "stall"
	faultRTCPOnly    = "rtcp-only"
	faultMetadata    = "metadata-only"
	faultNoKey       = "no-key"
	faultBurst       = "burst"
	faultDrift       = "drift"
	faultLoss        = "loss"
	faultReorder     = "reorder"
	faultDup         = "dup"
	faultCorrupt     = "corrupt"
	faultGarbage     = "garbage"
	faultSSRC        = "ssrc-change"
	faultSeq         = "seq-restart"
	faultJump        = "ts-jump"
	faultSame        = "ts-same"
	faultNoMarker    = "no-marker"
	faultMarkers     = "marker-every-nal"
	faultNoParams    = "no-params"
	faultNoSR        = "no-sr"
	faultBadNTP      = "bad-ntp"
	faultFlap        = "flap"
)

// kind is what a fault's value is.
type kind int

const (
	noValue kind = iota
	after        // frames ("25") or a time ("5s") of the session
	frames       // a number of frames
	period       // a time
	percent
	packets // a number of packets
	text    // a file or a URL
	maybeText
)

// word is one fault that can be asked for.
type word struct {
	name     string
	kind     kind
	standard string // value where none is given; "" = one must be
	standing bool   // belongs to a session's start: a session ends where it begins or ends
	login    bool   // needs a camera that asks for a login
	help     string
	other    []string // spellings
}

// words lists all faults in the order of the help.
//
//nolint:gochecknoglobals // constant table
var words = []word{
	{name: faultRefuse, standing: true, help: "the port is closed (for some of the cameras: their connections are reset)"},
	{name: faultSilent, standing: true, help: "connections are accepted and nothing is ever answered"},
	{name: faultHalfOpen, kind: after, standard: "25", help: "does and says nothing any more, and keeps the connection"},
	{name: faultClose, kind: frames, help: "the connection is closed after N frames"},
	{name: faultReset, kind: period, standard: "5s", help: "the connection is reset after this time"},
	{name: faultAuth, standing: true, other: []string{"401"}, help: "every login is refused"},
	{name: faultNonce, kind: period, standard: "0s", standing: true, login: true, help: "digest with a new nonce after this time; without one, after each request"},
	{name: faultSHA256, standing: true, login: true, help: "digest with SHA-256 is the only login"},
	{name: faultBothAuth, standing: true, login: true, help: "Basic and Digest are offered, Basic first"},
	{name: faultNotFound, standing: true, other: []string{"404"}, help: "DESCRIBE is answered with 404"},
	{name: faultBusy, standing: true, other: []string{"453"}, help: "SETUP is answered with 453"},
	{name: faultLost, kind: after, standard: "5s", other: []string{"454"}, help: "the session is forgotten: no more video, and 454 for every request; 0 = from PLAY on"},
	{name: faultRedirect, kind: text, standing: true, help: "DESCRIBE is answered with 302 to this URL"},
	{name: faultLoop, standing: true, help: "DESCRIBE is answered with 302 to the camera itself, for ever"},
	{name: faultUDPOnly, standing: true, other: []string{"udponly"}, help: "SETUP over TCP is answered with 461"},
	{name: faultTCPOnly, standing: true, other: []string{"tcponly"}, help: "SETUP over UDP is answered with 461"},
	{name: faultSlowSDP, kind: period, standard: "12s", standing: true, help: "DESCRIBE is answered after this time"},
	{name: faultSlowStart, kind: period, standard: "20s", standing: true, help: "video begins this long after PLAY"},
	{name: faultRequests, help: "the camera sends requests of its own, one a second"},
	{name: faultBadSDP, kind: maybeText, standard: " ", standing: true, help: "the description is this file; without one, it has an audio track that breaks the rules"},
	{name: faultNoVideo, standing: true, help: "the description holds audio alone"},
	{name: faultSecondAudio, standing: true, help: "every second description holds audio alone"},
	{name: faultCodec, standing: true, help: "the video is MPEG-4 part 2, which edgecam does not decode"},
	{name: faultNoSprop, standing: true, help: "the description has no parameter sets"},
	{name: faultH265, standing: true, help: "the video is H.265"},
	{name: faultMJPEG, standing: true, help: "the video is MJPEG"},
	{name: faultResChange, kind: period, standard: "5s", help: "H.264 of another size, in turn with the clip, within a session"},
	{name: faultStall, kind: after, standard: "25", help: "video stops, RTSP and RTCP go on"},
	{name: faultRTCPOnly, help: "RTSP and RTCP go on without any video"},
	{name: faultMetadata, help: "packets of payload type 107 come in place of video"},
	{name: faultNoKey, kind: after, standard: "25", help: "a picture gets lost, and key frames come no more"},
	{name: faultBurst, kind: period, standard: "5s", help: "video freezes for this time and then comes all at once, again and again"},
	{name: faultDrift, kind: percent, standard: "0.5", help: "the camera's clock is this much faster than ours, or slower (-0.5%)"},
	{name: faultLoss, kind: percent, standard: "2", help: "RTP packets get lost"},
	{name: faultReorder, kind: packets, standard: "3", help: "packets come up to this many packets late, now and then"},
	{name: faultDup, kind: percent, standard: "5", help: "packets come twice"},
	{name: faultCorrupt, kind: percent, standard: "1", help: "a bit of the packet is wrong"},
	{name: faultGarbage, kind: percent, standard: "2", help: "bytes that mean nothing come before the packet"},
	{name: faultSSRC, kind: period, standard: "5s", help: "another SSRC, again and again"},
	{name: faultSeq, kind: period, standard: "5s", help: "sequence numbers start anew, again and again"},
	{name: faultJump, kind: period, standard: "5s", help: "timestamps jump, again and again"},
	{name: faultSame, help: "all pictures have the same timestamp"},
	{name: faultNoMarker, help: "no packet has the marker bit"},
	{name: faultMarkers, help: "the last packet of each NAL unit has the marker bit"},
	{name: faultNoParams, help: "parameter sets are in the description alone"},
	{name: faultNoSR, help: "no sender reports"},
	{name: faultBadNTP, help: "sender reports with a time of another century"},
	{name: faultFlap, kind: period, standard: "10s", help: "all of these in turn, in the order of the seed, each for two thirds of this time"},
}

func findWord(name string) (word, bool) {
	for _, w := range words {
		if w.name == name || slices.Contains(w.other, name) {
			return w, true
		}
	}
	return word{}, false
}

// FaultNames lists the words of all faults.
func FaultNames() []string {
	names := make([]string, 0, len(words))
	for _, w := range words {
		names = append(names, w.name)
	}
	return names
}

// usage is the word with its value, as help shows it.
func (w word) usage() string {
	var value string
	switch w.kind {
	case noValue:
	case text:
		value = "=URL"
	case maybeText:
		value = "[=FILE]"
	case frames:
		value = "=N"
	case percent:
		value = "[=" + w.standard + "%]"
	default:
		value = "[=" + w.standard + "]"
	}
	return strings.Join(append([]string{w.name + value}, w.other...), ", ")
}

// WriteFaultHelp explains all faults.
func WriteFaultHelp(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, w := range words {
		fmt.Fprintf(t, "  %s\t%s\n", w.usage(), w.help)
	}
	return t.Flush()
}

// maxFlap bounds the time of one fault of flap.
const maxFlap = time.Hour
