package rtsp

import (
	"slices"
	"strings"
)

// challenge is one way to log in that a camera offers (RFC 7235, 7616).
type challenge struct {
	scheme    string // lower case: "digest", "basic", …
	realm     string
	rawRealm  string // as it was written, escapes and all
	nonce     string
	opaque    string
	hasOpaque bool
	algorithm string // as it was written; "" = none was
	qop       string // the quality of protection that is taken: "auth", else "auth-int"; "" = neither is offered
	needsQOP  bool   // qop is given at all
	stale     bool
}

// usable says whether we can answer.
func (c challenge) usable() bool {
	switch c.scheme {
	case "basic":
		return true
	case "digest":
		return c.nonce != "" && c.hash() != nil && (c.qop != "" || !c.needsQOP)
	default:
		return false
	}
}

// rank orders what is offered: the larger, the better kept is the password.
func (c challenge) rank() int {
	switch {
	case c.scheme == "basic":
		return 0
	case strings.HasPrefix(strings.ToUpper(c.algorithm), "SHA-"):
		return 2
	default:
		return 1
	}
}

// escapes says whether the realm was written with a backslash: cameras then hash
// it either with or without. odd: the backslash stands where none is needed, so
// that it is mostly meant for itself.
func (c challenge) escapes() (found, odd bool) {
	odd = strings.Contains(strings.NewReplacer("\\\\", "", "\\\"", "").Replace(c.rawRealm), "\\")
	return strings.Contains(c.rawRealm, "\\"), odd
}

// readChallenges reads WWW-Authenticate lines. A line may hold several
// challenges; what cannot be read is left out.
func readChallenges(lines []string) []challenge {
	var all []challenge
	for _, line := range lines {
		s := challengeScanner{rest: line}
		for {
			c, ok := s.next()
			if !ok {
				break
			}
			all = append(all, c)
		}
	}
	return all
}

// challengeScanner reads a list of schemes with parameters, such as
// `Basic realm="a", Digest realm="a, b", nonce=x`.
type challengeScanner struct {
	rest  string
	ahead string // a scheme that was read in search of a parameter
}

func (s *challengeScanner) next() (challenge, bool) {
	c := challenge{scheme: s.ahead}
	s.ahead = ""
	if c.scheme == "" {
		if c.scheme = s.token(); c.scheme == "" {
			return challenge{}, false
		}
	}
	c.scheme = strings.ToLower(c.scheme)
	for {
		name := s.token()
		if name == "" {
			return c, true
		}
		if s.rest = skipBlanks(s.rest); !strings.HasPrefix(s.rest, "=") {
			s.ahead = name // no parameter: the next scheme begins
			return c, true
		}
		s.rest = s.rest[1:]
		value, raw := s.value()
		c.parameter(strings.ToLower(name), value, raw)
	}
}

func skipBlanks(s string) string { return strings.TrimLeft(s, " \t") }

// token reads up to the next separator; "" at the end.
func (s *challengeScanner) token() string {
	s.rest = strings.TrimLeft(s.rest, " \t,;")
	i := strings.IndexAny(s.rest, " \t,;=\"")
	if i < 0 {
		i = len(s.rest)
	}
	token := s.rest[:i]
	s.rest = s.rest[i:]
	if token == "" {
		s.rest = "" // a stray quote or equals sign: nothing behind it makes sense
	}
	return token
}

// value reads a quoted text or a token that may hold equals signs. raw is the
// text before its escapes are taken out.
func (s *challengeScanner) value() (value, raw string) {
	s.rest = skipBlanks(s.rest)
	if !strings.HasPrefix(s.rest, `"`) {
		i := strings.IndexAny(s.rest, " \t,;")
		if i < 0 {
			i = len(s.rest)
		}
		value, s.rest = s.rest[:i], s.rest[i:]
		return value, value
	}
	var b strings.Builder
	for i := 1; i < len(s.rest); i++ {
		switch c := s.rest[i]; {
		case c == '"':
			raw, s.rest = s.rest[1:i], s.rest[i+1:]
			return b.String(), raw
		case c == '\\' && i+1 < len(s.rest):
			i++
			b.WriteByte(s.rest[i])
		default:
			b.WriteByte(c)
		}
	}
	raw, s.rest = s.rest[1:], ""
	return b.String(), raw
}

func (c *challenge) parameter(name, value, raw string) {
	switch name {
	case "realm":
		c.realm, c.rawRealm = value, raw
	case "nonce":
		c.nonce = value
	case "opaque":
		c.opaque, c.hasOpaque = value, true
	case "algorithm":
		c.algorithm = value
	case "stale":
		c.stale = strings.EqualFold(value, "true")
	case "qop":
		c.needsQOP = strings.TrimSpace(value) != ""
		offered := strings.FieldsFunc(strings.ToLower(value), func(r rune) bool { return r == ',' || r == ' ' })
		for _, qop := range []string{"auth-int", "auth"} {
			if slices.Contains(offered, qop) {
				c.qop = qop
			}
		}
	}
}
