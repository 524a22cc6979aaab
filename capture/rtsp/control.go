package rtsp

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/bluenviron/gortsplib/v4/pkg/mikey"
)

// writeSDP writes the description of one track alone, for gortsplib to parse.
// The library refuses a whole session for one line that it does not like, such
// as an audio track without its configuration, so it gets to see nothing but
// what it needs to set up the video that we chose.
func writeSDP(t *track, base *url.URL) []byte {
	payload := strconv.Itoa(int(t.payload))
	lines := []string{
		"v=0", "o=- 1 1 IN IP4 127.0.0.1", "s=-", "c=IN IP4 0.0.0.0", "t=0 0",
		"a=control:" + base.String(),
		"m=video 0 " + t.proto + " " + payload,
		"a=rtpmap:" + payload + " " + t.rtpmap,
		"a=control:" + controlURL(base, t.control),
	}
	if t.keyMgmt != "" {
		lines = append(lines, "a=key-mgmt:"+t.keyMgmt)
	}
	return []byte(strings.Join(lines, "\r\n") + "\r\n")
}

// usableKey gives a key-mgmt attribute back if gortsplib can read it, else "".
func usableKey(text string) string {
	method, code, _ := strings.Cut(text, " ")
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(code))
	if err != nil || !strings.EqualFold(method, "mikey") || new(mikey.Message).Unmarshal(raw) != nil {
		return ""
	}
	return "mikey " + base64.StdEncoding.EncodeToString(raw)
}

// controlURL is the URL that SETUP names: what VLC and live555 send. A
// relative control goes to the end of the base, even behind a query
// (s?a=1/trackID=0).
func controlURL(base *url.URL, control string) string {
	text := base.String()
	full := text
	switch scheme, rest, absolute := strings.Cut(control, "://"); {
	case control == "" || control == "*":
	case absolute && isScheme(scheme):
		if scheme = strings.ToLower(scheme); scheme != "rtsp" && scheme != "rtsps" {
			scheme = base.Scheme
		}
		full = scheme + "://" + rest
	case strings.HasPrefix(control, "?"):
		full = text + control
	default:
		full = strings.TrimSuffix(text, "/") + "/" + strings.TrimPrefix(control, "/")
	}
	u, err := url.Parse(strings.ReplaceAll(escapeBlanks(full), "#", "%23"))
	if err != nil || u.Host == "" {
		return text
	}
	u.User = nil
	return u.String()
}

// escapeBlanks makes a text fit for a line of a request, where a blank ends the
// URL.
func escapeBlanks(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c == 0x7f {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// isScheme says whether text can stand before "://" (RFC 3986 3.1), so that a
// relative control with a URL in its query is not taken for an absolute one.
func isScheme(text string) bool {
	for _, r := range text {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("+-.", r)) {
			return false
		}
	}
	return text != ""
}

// baseURL is what relative controls extend: the session's own control where it
// is absolute, else Content-Base where that makes sense, else the URL that was
// asked for.
func baseURL(request *url.URL, sessionControl, contentBase string) *url.URL {
	for _, text := range []string{escapeBlanks(sessionControl), escapeBlanks(contentBase)} {
		switch {
		case isAbsolute(text):
			if u, err := url.Parse(text); err == nil && u.Host != "" {
				return plain(u)
			}
		case strings.HasPrefix(text, "/"):
			if u, err := request.Parse(text); err == nil && u.Host != "" {
				return plain(u)
			}
		}
	}
	return plain(request)
}

// plain is u without what no request may carry.
func plain(u *url.URL) *url.URL {
	c := *u
	c.User, c.Fragment, c.RawFragment, c.RawQuery = nil, "", "", escapeBlanks(u.RawQuery)
	return &c
}

func isAbsolute(text string) bool {
	scheme, _, ok := strings.Cut(text, "://")
	return ok && (strings.EqualFold(scheme, "rtsp") || strings.EqualFold(scheme, "rtsps"))
}
