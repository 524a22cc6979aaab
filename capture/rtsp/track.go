package rtsp

import (
	"fmt"
	"strings"

	"edgecam/capture"
)

// clockRate is the RTP clock of H.264, H.265 and JPEG (RFC 6184, 7798, 2435).
const clockRate = 90000

// track is the video that a session plays.
type track struct {
	info    capture.TrackInfo
	payload uint8
	codec   capture.Codec
	rtpmap  string
	proto   string // "RTP/AVP" or "RTP/SAVP"
	control string
	keyMgmt string   // for SRTP; may be empty
	maxDON  int      // H.265: sprop-max-don-diff
	sets    [][]byte // parameter sets of the description that can be read, maybe not all kinds
	odd     string   // what of the description may keep it from playing; "" = nothing
}

// choose takes the video track with the number that the user wants, or, with
// 0, the first one that edgecam decodes and that is switched on. Errors are
// *capture.NoVideoError and *capture.UnsupportedError.
func (s sessionText) choose(want int) (*track, error) {
	var chosen *track
	var offers, codecs []string
	videos, worst := 0, 0
	ports := s.videoPorts()
	for _, m := range s.medias {
		offers = append(offers, m.words())
		if m.kind != "video" {
			continue
		}
		videos++
		if want != 0 && want != videos {
			continue
		}
		t := m.decodable()
		if t == nil {
			codecs = append(codecs, m.codecWords())
			continue
		}
		if h := m.handicap(ports); chosen == nil || h < worst {
			chosen, worst = t, h
			chosen.info.Index = videos
		}
	}
	switch {
	case videos == 0 || want > videos:
		return nil, &capture.NoVideoError{Tracks: shorten(offers), Want: want}
	case chosen == nil:
		return nil, unsupportedCodec(codecs, want)
	}
	s.complete(chosen, videos)
	return chosen, nil
}

// complete adds what the session as a whole says of the chosen track.
func (s sessionText) complete(t *track, videos int) {
	t.info.Of, t.info.Others, t.info.Codec = videos, len(s.medias)-videos, t.codec
	if t.control == "" && !isAbsolute(s.control) && !strings.HasPrefix(s.control, "/") {
		t.control = s.control
	}
	if !isAbsolute(t.control) {
		t.info.Control = printable(t.control, 64)
	}
	if t.keyMgmt == "" && t.proto == protoSecure {
		t.keyMgmt = usableKey(s.keyMgmt)
	}
}

func unsupportedCodec(codecs []string, want int) error {
	e := &capture.UnsupportedError{
		What: "codec " + strings.Join(shorten(codecs), ", "),
		Hint: "set the camera's stream to H.264, H.265 or MJPEG",
	}
	if want != 0 {
		e.What += fmt.Sprintf(" of video track %d", want)
		e.Hint += ", or video_track to another one"
	}
	return e
}

// handicap ranks tracks that edgecam decodes: the first one with the least is
// taken. ports says that some video names a port.
func (m *mediaText) handicap(ports bool) int {
	h := 0
	if m.direction == "inactive" {
		h += 8
	}
	if m.proto != "" && strings.Contains(m.proto, "SAVP") {
		h += 4 // encrypted twin of another track
	}
	if m.direction == "sendonly" {
		h += 2 // ONVIF's word for what the client sends, though some cameras mean themselves
	}
	if ports && m.port == "0" {
		h++ // RFC 4566: not in use. Alone it means nothing: with RTSP ports are mostly 0.
	}
	return h
}

// videoPorts says whether a video names its port.
func (s sessionText) videoPorts() bool {
	for _, m := range s.medias {
		if m.kind == "video" && m.port != "0" {
			return true
		}
	}
	return false
}

// The profiles of RTP that gortsplib knows.
const (
	protoPlain  = "RTP/AVP"
	protoSecure = "RTP/SAVP"
)

// decodable gives the media's first payload type that edgecam decodes, or nil.
func (m *mediaText) decodable() *track {
	for _, f := range m.formats {
		t := &track{payload: f.payload, proto: protoPlain, control: m.control}
		fmtp := m.parameters(f)
		switch m.encoding(f) {
		case "H264":
			t.codec, t.rtpmap = capture.H264, "H264/90000"
			t.sets = decodeSets(parameter(fmtp, "sprop-parameter-sets"))
		case "H265":
			t.codec, t.rtpmap = capture.H265, "H265/90000"
			t.maxDON = number(fmtp, "sprop-max-don-diff")
			for _, name := range []string{"sprop-vps", "sprop-sps", "sprop-pps", "sprop-parameter-sets"} {
				t.sets = append(t.sets, decodeSets(parameter(fmtp, name))...)
			}
		case "JPEG":
			t.codec, t.rtpmap = capture.MJPEG, "JPEG/90000"
		default:
			continue
		}
		m.encrypt(t)
		return t
	}
	return nil
}

// encrypt notes how the track is encrypted. Keys of RFC 4568 are none that
// gortsplib takes: it is asked for plain video then, which many cameras give.
func (m *mediaText) encrypt(t *track) {
	if !strings.Contains(m.proto, "SAVP") {
		return
	}
	t.odd = "encrypted media (" + printable(m.proto, 16) + ")"
	if t.keyMgmt = usableKey(m.keyMgmt); t.keyMgmt != "" || !m.crypto {
		t.proto = protoSecure
	}
}

// words names a track for the user, e.g. "audio (PCMU)".
func (m *mediaText) words() string {
	kind := printable(m.kind, 16)
	codec := m.codecWords()
	if codec == "" {
		return kind
	}
	return kind + " (" + codec + ")"
}

func (m *mediaText) codecWords() string {
	names := make([]string, 0, len(m.formats))
	for _, f := range m.formats {
		switch name := m.encoding(f); {
		case name != "":
			names = append(names, encodingWords(name))
		case f.listed:
			names = append(names, fmt.Sprintf("payload type %d without rtpmap", f.payload))
		}
	}
	return strings.Join(shorten(names), ", ")
}

// maxWords is how many things a sentence for the user lists.
const maxWords = 8

// shorten keeps a list that a camera made from filling pages.
func shorten(list []string) []string {
	if len(list) <= maxWords {
		return list
	}
	return append(list[:maxWords:maxWords], fmt.Sprintf("and %d more", len(list)-maxWords))
}

// printable is a word of a camera that may be shown: what is no plain ASCII
// becomes "?".
func printable(text string, limit int) string {
	var b strings.Builder
	for _, r := range text {
		if b.Len() == limit {
			break
		}
		if r < ' ' || r > '~' {
			r = '?'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// encodingWords gives the name that people know an encoding by.
func encodingWords(encoding string) string {
	switch encoding {
	case "H264":
		return "H.264"
	case "H265":
		return "H.265"
	case "JPEG":
		return "MJPEG"
	case "MP4V-ES":
		return "MPEG-4 part 2"
	case "H261":
		return "H.261"
	case "H263", "H263-1998", "H263-2000":
		return "H.263"
	case "MPV":
		return "MPEG-1/2 video"
	case "MP2T":
		return "MPEG-TS"
	case "MPEG4-GENERIC":
		return "AAC"
	default:
		return printable(encoding, 24)
	}
}
