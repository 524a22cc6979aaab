package rtsp

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h264"
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h265"

	"edgecam/capture"
)

// clockRate is the RTP clock of H.264, H.265 and JPEG (RFC 6184, 7798, 2435).
const clockRate = 90000

// track is the video that a session plays.
type track struct {
	media   *mediaText
	payload uint8
	codec   capture.Codec
	rtpmap  string
	mode    int    // H.264: packetization mode
	maxDON  int    // H.265: sprop-max-don-diff
	words   string // which one of how many
	sets    [][]byte
}

// choose takes the first video track that edgecam decodes. Errors are
// *capture.NoVideoError and *capture.UnsupportedError.
func (s sessionText) choose() (*track, error) {
	var offers, codecs []string
	var chosen *track
	videos := 0
	for _, m := range s.medias {
		offers = append(offers, m.words())
		if m.kind != "video" {
			continue
		}
		videos++
		t := m.decodable()
		switch {
		case t == nil:
			codecs = append(codecs, m.codecWords())
		case chosen == nil:
			chosen = t
			chosen.words = strconv.Itoa(videos)
		}
	}
	switch {
	case videos == 0:
		return nil, &capture.NoVideoError{Tracks: offers}
	case chosen == nil:
		return nil, &capture.UnsupportedError{
			What: "codec " + strings.Join(codecs, ", "),
			Hint: "set the camera's stream to H.264, H.265 or MJPEG",
		}
	}
	chosen.words = fmt.Sprintf("video %s of %d (%s)", chosen.words, videos, encodingWords(chosen.media.encoding(strconv.Itoa(int(chosen.payload)))))
	if others := len(s.medias) - videos; others > 0 {
		chosen.words += fmt.Sprintf(", %d other tracks left alone", others)
	}
	return chosen, nil
}

// decodable gives the media's first payload type that edgecam decodes, or nil.
func (m *mediaText) decodable() *track {
	for _, p := range m.payloads {
		n, err := strconv.ParseUint(p, 10, 7)
		if err != nil {
			continue
		}
		t := &track{media: m, payload: uint8(n)}
		switch m.encoding(p) {
		case "H264":
			t.codec, t.rtpmap = capture.H264, "H264/90000"
			t.mode = m.number(p, "packetization-mode")
			t.sets = orderSets(decodeSets(m.parameter(p, "sprop-parameter-sets")), h264SetRank)
			if t.mode > 1 { // interleaved: RFC 6184 6.4; nothing sends it
				continue
			}
		case "H265", "HEVC":
			t.codec, t.rtpmap = capture.H265, "H265/90000"
			t.maxDON = m.number(p, "sprop-max-don-diff")
			var sets [][]byte
			for _, name := range []string{"sprop-vps", "sprop-sps", "sprop-pps"} {
				sets = append(sets, decodeSets(m.parameter(p, name))...)
			}
			t.sets = orderSets(sets, h265SetRank)
		case "JPEG":
			t.codec, t.rtpmap = capture.MJPEG, "JPEG/90000"
		default:
			continue
		}
		return t
	}
	return nil
}

// orderSets keeps what are parameter sets, in the order in which a decoder
// wants them: some cameras swap them. A list that lacks a kind is no use to a
// decoder, which then takes them from the stream.
func orderSets(sets [][]byte, rank func([]byte) (rank, kinds int)) [][]byte {
	var ordered [][]byte
	_, kinds := rank(nil)
	for want := range kinds {
		found := false
		for _, set := range sets {
			if r, _ := rank(set); r == want {
				ordered = append(ordered, set)
				found = true
			}
		}
		if !found {
			return nil
		}
	}
	return ordered
}

func h264SetRank(set []byte) (rank, kinds int) {
	if len(set) > 1 {
		switch h264.NALUType(set[0] & 0x1f) {
		case h264.NALUTypeSPS:
			var sps h264.SPS
			if sps.Unmarshal(set) == nil {
				return 0, 2
			}
		case h264.NALUTypePPS:
			return 1, 2
		}
	}
	return -1, 2
}

func h265SetRank(set []byte) (rank, kinds int) {
	if len(set) > 2 {
		switch h265.NALUType((set[0] >> 1) & 0x3f) {
		case h265.NALUType_VPS_NUT:
			return 0, 3
		case h265.NALUType_SPS_NUT:
			var sps h265.SPS
			if sps.Unmarshal(set) == nil {
				return 1, 3
			}
		case h265.NALUType_PPS_NUT:
			return 2, 3
		}
	}
	return -1, 3
}

// words names a track for the user, e.g. "audio (PCMU)".
func (m *mediaText) words() string {
	if len(m.payloads) == 0 {
		return m.kind
	}
	return m.kind + " (" + m.codecWords() + ")"
}

func (m *mediaText) codecWords() string {
	names := make([]string, 0, len(m.payloads))
	for _, p := range m.payloads {
		names = append(names, encodingWords(m.encoding(p)))
	}
	return strings.Join(names, ", ")
}

// encodingWords gives the name that people know an encoding by.
func encodingWords(encoding string) string {
	switch encoding {
	case "H264":
		return "H.264"
	case "H265", "HEVC":
		return "H.265"
	case "JPEG":
		return "MJPEG"
	case "MP4V-ES":
		return "MPEG-4 part 2"
	case "H263", "H263-1998", "H263-2000":
		return "H.263"
	case "MPV":
		return "MPEG-1/2 video"
	case "MP2T":
		return "MPEG-TS"
	case "MPEG4-GENERIC":
		return "AAC"
	default:
		return encoding
	}
}
