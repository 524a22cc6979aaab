package rtsp

import (
	"slices"
	"strconv"
	"strings"
)

const (
	// maxTracks bounds what one description makes us keep; the most that a
	// camera was seen to have is nine.
	maxTracks = 256

	byteOrderMark = "\ufeff"
)

// mediaText is one m= section of a description, as far as we look at it.
type mediaText struct {
	kind      string // "video", "audio", "application", …
	port      string
	proto     string // "RTP/AVP", …, upper case
	formats   []formatText
	control   string
	direction string // "inactive", "sendonly", …; "" = none is given
	keyMgmt   string // for SRTP, e.g. "mikey …"
	crypto    bool   // it has keys of another kind for SRTP (RFC 4568)
}

// formatText is one payload type of a section.
type formatText struct {
	payload uint8
	listed  bool   // on the m= line
	rtpmap  string // e.g. "H264/90000"; "" = none is given
	fmtp    string
}

// sessionText is what a camera's description says about its tracks.
type sessionText struct {
	control string
	keyMgmt string
	medias  []*mediaText
}

// readSDP reads a description leniently: lines that are not understood are
// skipped, in any order, with any line ending. It never fails; a text that is
// no description has no tracks.
func readSDP(body []byte) sessionText {
	var s sessionText
	var cur *mediaText
	for line := range strings.FieldsFuncSeq(string(body), isLineEnd) {
		key, value, ok := strings.Cut(strings.TrimPrefix(line, byteOrderMark), "=")
		if !ok {
			continue
		}
		switch strings.ToLower(strings.TrimSpace(key)) {
		case "m":
			// One that cannot be read keeps its attributes from the track before.
			cur = readMediaLine(value)
			if cur.kind != "" && len(s.medias) < maxTracks {
				s.medias = append(s.medias, cur)
			}
		case "a":
			name, arg := splitAttribute(value)
			switch {
			case cur != nil:
				cur.attribute(name, arg)
			case name == "control":
				s.control = arg
			case name == "key-mgmt":
				s.keyMgmt = arg
			}
		}
	}
	return s
}

func isLineEnd(r rune) bool { return r == '\r' || r == '\n' || r == 0 }

// splitAttribute takes "name:value" apart, and "name value", which some
// cameras write.
func splitAttribute(text string) (name, arg string) {
	text = strings.TrimSpace(text)
	if i := strings.IndexAny(text, ": \t"); i >= 0 {
		text, arg = text[:i], strings.TrimLeft(text[i:], ": \t")
	}
	return strings.ToLower(text), arg
}

func readMediaLine(value string) *mediaText {
	m := &mediaText{}
	fields := strings.FieldsFunc(value, func(r rune) bool { return r == ' ' || r == '\t' || r == ',' })
	if len(fields) < 2 {
		return m
	}
	m.kind, m.port = strings.ToLower(fields[0]), fields[1]
	for _, word := range fields[2:] {
		if p, ok := readPayload(word); ok {
			m.format(p).listed = true
		} else if m.proto == "" {
			m.proto = strings.ToUpper(word)
		}
	}
	return m
}

func readPayload(word string) (uint8, bool) {
	n, err := strconv.ParseUint(word, 10, 7)
	return uint8(n), err == nil
}

// format gives the place of a payload type, and makes it if need be.
func (m *mediaText) format(payload uint8) *formatText {
	i := slices.IndexFunc(m.formats, func(f formatText) bool { return f.payload == payload })
	if i < 0 {
		i = len(m.formats)
		m.formats = append(m.formats, formatText{payload: payload})
	}
	return &m.formats[i]
}

func (m *mediaText) attribute(name, arg string) {
	switch name {
	case "rtpmap", "fmtp":
		word, text, _ := strings.Cut(strings.ReplaceAll(arg, "\t", " "), " ")
		payload, ok := readPayload(word)
		if text = strings.TrimSpace(text); !ok || text == "" {
			return
		}
		if f := m.format(payload); name == "rtpmap" {
			f.rtpmap = text
		} else {
			f.fmtp = strings.TrimPrefix(f.fmtp+";"+text, ";")
		}
	case "control":
		m.control = arg
	case "inactive", "sendonly", "recvonly", "sendrecv":
		m.direction = name
	case "key-mgmt":
		m.keyMgmt = arg
	case "crypto":
		m.crypto = true
	}
}

// parameters is the fmtp text of a format. Where the camera gave it the number
// of no track, it can only be meant for the one there is.
func (m *mediaText) parameters(f formatText) string {
	if f.fmtp != "" {
		return f.fmtp
	}
	var stray string
	for _, other := range m.formats {
		switch {
		case other.payload == f.payload:
		case other.listed || other.rtpmap != "" || stray != "":
			return ""
		default:
			stray = other.fmtp
		}
	}
	return stray
}

// encoding is the codec's name of a format, upper case and without the clock
// rate, e.g. "H264"; "" where the description does not tell.
func (m *mediaText) encoding(f formatText) string {
	if f.rtpmap != "" {
		name, _, _ := strings.Cut(f.rtpmap, "/")
		return canonicalEncoding(strings.ToUpper(strings.TrimSpace(name)))
	}
	if name := staticEncoding(f.payload); name != "" {
		return name
	}
	fmtp := m.parameters(f)
	switch {
	case parameter(fmtp, "sprop-vps") != "" || parameter(fmtp, "sprop-sps") != "":
		return "H265"
	case parameter(fmtp, "sprop-parameter-sets") != "" || parameter(fmtp, "packetization-mode") != "":
		return "H264"
	default:
		return ""
	}
}

// canonicalEncoding gives the registered name of what cameras call otherwise.
func canonicalEncoding(name string) string {
	switch strings.TrimPrefix(name, "X-") {
	case "H264", "H.264", "AVC", "AVC1":
		return "H264"
	case "H265", "H.265", "HEVC", "HVC1", "HEV1":
		return "H265"
	case "JPEG", "MJPEG", "MJPG", "M-JPEG":
		return "JPEG"
	default:
		return name
	}
}

// staticEncoding gives the payload types that need no rtpmap (RFC 3551).
func staticEncoding(payload uint8) string {
	return map[uint8]string{
		0: "PCMU", 3: "GSM", 4: "G723", 8: "PCMA", 9: "G722", 10: "L16", 11: "L16", 14: "MPA", 18: "G729",
		25: "CELB", 26: "JPEG", 28: "NV", 31: "H261", 32: "MPV", 33: "MP2T", 34: "H263",
	}[payload]
}

// parameter finds a value in an fmtp text; "" where absent. Cameras leave out
// semicolons, put commas in their place, and blanks anywhere.
func parameter(fmtp, name string) string {
	for start := 0; start+len(name) < len(fmtp); start++ {
		end := start + len(name)
		if start > 0 && !strings.ContainsRune("; \t,", rune(fmtp[start-1])) || !strings.EqualFold(fmtp[start:end], name) {
			continue
		}
		if rest := strings.TrimLeft(fmtp[end:], " \t"); strings.HasPrefix(rest, "=") {
			return parameterValue(rest[1:])
		}
	}
	return ""
}

// parameterValue is the text up to the next semicolon or blank, but for blanks
// beside commas: lists of parameter sets have some.
func parameterValue(text string) string {
	text, _, _ = strings.Cut(text, ";")
	var value string
	for word := range strings.FieldsSeq(text) {
		if value != "" && !strings.HasSuffix(value, ",") && !strings.HasPrefix(word, ",") {
			break
		}
		value += word
	}
	return strings.Trim(value, `"'`)
}

// number is parameter for a count; broken or absent ones are 0.
func number(fmtp, name string) int {
	value, _, _ := strings.Cut(parameter(fmtp, name), ",")
	n, err := strconv.ParseUint(value, 10, 16)
	if err != nil {
		return 0
	}
	return int(n)
}
