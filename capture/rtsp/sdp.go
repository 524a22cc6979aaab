package rtsp

import (
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"
)

// mediaText is one m= section of a description, as far as we look at it.
type mediaText struct {
	kind     string // "video", "audio", "application", …
	proto    string // "RTP/AVP", …
	payloads []string
	rtpmap   map[string]string // payload type → encoding, e.g. "H264/90000"
	fmtp     map[string]string
	control  string
}

// sessionText is what a camera's description says about its tracks.
type sessionText struct {
	control string
	medias  []*mediaText
}

// readSDP reads a description leniently: lines that are not understood are
// skipped, in any order, with any line ending. It never fails; a text that is
// no description has no tracks.
func readSDP(body []byte) sessionText {
	var s sessionText
	var cur *mediaText
	for line := range strings.FieldsFuncSeq(string(body), isLineEnd) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok {
			continue
		}
		switch key {
		case "m":
			if cur = readMediaLine(value); cur != nil {
				s.medias = append(s.medias, cur)
			}
		case "a":
			name, arg, _ := strings.Cut(value, ":")
			name, arg = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(arg)
			if cur != nil {
				cur.attribute(name, arg)
			} else if name == "control" {
				s.control = arg
			}
		}
	}
	return s
}

func isLineEnd(r rune) bool { return r == '\r' || r == '\n' || r == 0 }

func readMediaLine(value string) *mediaText {
	fields := strings.Fields(value)
	if len(fields) < 3 {
		return nil
	}
	return &mediaText{
		kind: strings.ToLower(fields[0]), proto: fields[2], payloads: fields[3:],
		rtpmap: map[string]string{}, fmtp: map[string]string{},
	}
}

func (m *mediaText) attribute(name, arg string) {
	switch name {
	case "rtpmap", "fmtp":
		payload, text, ok := strings.Cut(arg, " ")
		if !ok {
			return
		}
		if name == "rtpmap" {
			m.rtpmap[payload] = strings.TrimSpace(text)
		} else {
			m.fmtp[payload] = strings.TrimSpace(text)
		}
	case "control":
		m.control = arg
	}
}

// encoding is the codec's name of a payload type, upper case and without the
// clock rate, e.g. "H264". RFC 3551 gives the static ones.
func (m *mediaText) encoding(payload string) string {
	if text, ok := m.rtpmap[payload]; ok {
		name, _, _ := strings.Cut(text, "/")
		return strings.ToUpper(strings.TrimSpace(name))
	}
	switch payload {
	case "0":
		return "PCMU"
	case "8":
		return "PCMA"
	case "26":
		return "JPEG"
	case "32":
		return "MPV"
	case "33":
		return "MP2T"
	default:
		return "payload type " + payload
	}
}

// parameter gives a value of the payload type's fmtp line; "" where absent.
func (m *mediaText) parameter(payload, name string) string {
	for part := range strings.SplitSeq(m.fmtp[payload], ";") {
		key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if strings.EqualFold(strings.TrimSpace(key), name) {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// number is parameter for a count; broken or absent ones are 0.
func (m *mediaText) number(payload, name string) int {
	n, err := strconv.ParseUint(m.parameter(payload, name), 10, 16)
	if err != nil {
		return 0
	}
	return int(n)
}

// writeSDP writes the description of one track alone, for gortsplib to parse.
// The library refuses a whole session for one line that it does not like, such
// as an audio track without its configuration, so it gets to see nothing but
// what it needs to set up the video that we chose.
func writeSDP(t *track, base *url.URL) []byte {
	proto := "RTP/AVP"
	if strings.Contains(strings.ToUpper(t.media.proto), "SAVP") {
		proto = "RTP/SAVP" // encrypted, with rtsps
	}
	payload := strconv.Itoa(int(t.payload))
	lines := []string{
		"v=0", "o=- 1 1 IN IP4 127.0.0.1", "s=-", "c=IN IP4 0.0.0.0", "t=0 0",
		"a=control:" + base.String(),
		"m=video 0 " + proto + " " + payload,
		"a=rtpmap:" + payload + " " + t.rtpmap,
		"a=control:" + controlURL(base, t.media.control),
	}
	return []byte(strings.Join(lines, "\r\n") + "\r\n")
}

// controlURL is the URL that SETUP names: what VLC and live555 send. A
// relative control goes to the end of the base, even behind a query
// (s?a=1/trackID=0).
func controlURL(base *url.URL, control string) string {
	text := base.String()
	switch {
	case control == "" || control == "*":
		return text
	case isAbsolute(control):
		scheme, rest, _ := strings.Cut(control, "://")
		return strings.ToLower(scheme) + "://" + rest
	case strings.HasPrefix(control, "?"):
		return text + control
	default:
		return strings.TrimSuffix(text, "/") + "/" + strings.TrimPrefix(control, "/")
	}
}

// baseURL is what relative controls extend: the session's own control where it
// is absolute, else Content-Base where that makes sense, else the URL that was
// asked for.
func baseURL(request *url.URL, sessionControl, contentBase string) *url.URL {
	for _, text := range []string{sessionControl, contentBase} {
		switch {
		case isAbsolute(text):
			if u, err := url.Parse(text); err == nil && u.Host != "" {
				u.User, u.Fragment = nil, ""
				return u
			}
		case strings.HasPrefix(text, "/"):
			if u, err := request.Parse(text); err == nil {
				u.User = nil
				return u
			}
		}
	}
	u := *request
	u.User = nil
	return &u
}

func isAbsolute(text string) bool {
	scheme, _, ok := strings.Cut(text, "://")
	return ok && (strings.EqualFold(scheme, "rtsp") || strings.EqualFold(scheme, "rtsps"))
}

// decodeSets reads comma separated base64 parameter sets and leaves out what
// is none. Some cameras put an Annex B start code before each.
func decodeSets(value string) [][]byte {
	var sets [][]byte
	for text := range strings.SplitSeq(value, ",") {
		set, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
		if err != nil {
			continue
		}
		if len(set) > 4 && set[0] == 0 && set[1] == 0 && set[2] == 0 && set[3] == 1 {
			set = set[4:]
		}
		if len(set) > 0 {
			sets = append(sets, set)
		}
	}
	return sets
}
