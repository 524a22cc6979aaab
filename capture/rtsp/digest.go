package rtsp

import (
	"crypto/md5" //nolint:gosec // what the protocol asks for; cameras know little else
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"strings"

	"github.com/bluenviron/gortsplib/v4/pkg/base"

	"edgecam/capture"
)

// maxNonces is how many nonces in a row a camera may refuse for one request,
// beyond the one that was answered first. A camera that calls a nonce stale
// says that the password was right.
const maxNonces = 2

// login answers a camera's questions for user and password. gortsplib's own
// answers but once a connection, which cameras that change their nonces do not
// stand; it sends Basic to whom it is redirected, and echoes no opaque.
type login struct {
	user, password string
	configured     bool
	stranger       string // host:port that a redirect led to; "" = the camera of the URL

	answering *challenge // nil = nothing was asked yet
	uses      int        // of its nonce
	proven    bool       // an answer was taken in this session: the password is right
	refused   int        // answers, for the request under way
	otherWay  bool       // the realm's backslashes are taken the less likely way
}

// verdict is what a 401 means.
type verdict struct {
	again bool // send the request again, it will carry another answer
	err   error
}

// authorize puts the answer, if there is one, into a request.
func (l *login) authorize(req *base.Request) {
	if l.answering == nil {
		return
	}
	l.uses++
	uri := "*"
	if req.URL != nil {
		uri = req.URL.CloneWithoutCredentials().String()
	}
	req.Header["Authorization"] = base.HeaderValue{l.answer(string(req.Method), uri, req.Body)}
}

// accepted notes that a request was not refused.
func (l *login) accepted(answered bool) {
	l.refused = 0
	l.proven = l.proven || answered
}

// challenged decides what to do after a 401 to method. answered says whether
// the request carried an answer.
func (l *login) challenged(method string, lines []string, answered bool) verdict {
	if !l.configured {
		return verdict{err: &capture.AuthError{Method: method}}
	}
	offered := readChallenges(lines)
	best, why := l.choose(offered)
	if best == nil {
		if why == "" { // the camera forgot to ask: an answer that it refused
			return verdict{err: &capture.AuthError{User: l.user, Method: method}}
		}
		return verdict{err: &capture.AuthError{User: l.user, Method: method, Why: why}}
	}
	old := l.answering
	l.answering, l.uses = best, 0
	if !answered {
		return verdict{again: true}
	}
	rotated := best.scheme == "digest" && (old == nil || old.nonce != best.nonce)
	if escapes, _ := best.escapes(); escapes && !best.stale && !l.proven && !l.otherWay {
		l.otherWay = true
		return verdict{again: true}
	}
	if !rotated || !best.stale && !l.proven {
		return verdict{err: &capture.AuthError{User: l.user, Method: method}}
	}
	if l.refused++; l.refused > maxNonces {
		return verdict{err: &capture.ProtocolError{Op: "log in", Detail: "the camera refuses every nonce that it gives out"}}
	}
	return verdict{again: true}
}

// choose takes the best of what is offered, or says why there is none. Basic
// would hand the password to whoever a redirect leads to.
func (l *login) choose(offered []challenge) (best *challenge, why string) {
	var foreign []string
	for i := range offered {
		c := &offered[i]
		switch {
		case !c.usable():
			foreign = append(foreign, c.words())
		case c.scheme == "basic" && l.stranger != "":
			why = "the camera redirects to " + l.stranger + ", which asks for the password as it is (Basic); it was not sent there: set the URL to the camera's own address"
		case best == nil || c.rank() > best.rank():
			best = c
		}
	}
	if best == nil && why == "" && len(foreign) > 0 {
		why = "the camera asks for a kind of login that edgecam does not have (" + strings.Join(foreign, ", ") + "): allow digest or basic"
	}
	return best, why
}

// words name a challenge that cannot be answered.
func (c challenge) words() string {
	name := c.scheme
	if c.scheme == "digest" && c.hash() == nil {
		name += " " + c.algorithm
	}
	return strings.Map(func(r rune) rune {
		if r == ' ' || r == '-' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return -1
	}, name[:min(len(name), 40)])
}

// hash is what the algorithm is made of; nil = unknown.
func (c challenge) hash() func() hash.Hash {
	switch strings.TrimSuffix(strings.ToUpper(c.algorithm), "-SESS") {
	case "", "MD5":
		return md5.New
	case "SHA-256":
		return sha256.New
	case "SHA-512-256":
		return sha512.New512_256
	default:
		return nil
	}
}

// realm is what is hashed for it.
func (l *login) realm() string {
	if _, odd := l.answering.escapes(); odd != l.otherWay {
		return l.answering.rawRealm
	}
	return l.answering.realm
}

// answer makes the value of an Authorization header.
func (l *login) answer(method, uri string, body []byte) string {
	c := l.answering
	if c.scheme == "basic" {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(l.user+":"+l.password))
	}
	digest := func(parts ...string) string {
		h := c.hash()()
		_, _ = h.Write([]byte(strings.Join(parts, ":"))) // a hash's Write never fails
		return hex.EncodeToString(h.Sum(nil))
	}
	cnonce := ""
	session := strings.HasSuffix(strings.ToUpper(c.algorithm), "-SESS")
	if session || c.qop != "" {
		cnonce = strings.ToLower(rand.Text()[:16])
	}
	secret := digest(l.user, l.realm(), l.password)
	if session {
		secret = digest(secret, c.nonce, cnonce)
	}
	fields := []string{
		"username=" + quote(l.user), `realm="` + c.rawRealm + `"`, "nonce=" + quote(c.nonce), "uri=" + quote(uri),
	}
	if c.qop != "" {
		uses := fmt.Sprintf("%08x", l.uses)
		request := digest(method, uri)
		if c.qop == "auth-int" {
			request = digest(method, uri, digest(string(body)))
		}
		fields = append(fields, "qop="+c.qop, "nc="+uses, "response="+quote(digest(secret, c.nonce, uses, cnonce, c.qop, request)))
	} else {
		fields = append(fields, "response="+quote(digest(secret, c.nonce, digest(method, uri))))
	}
	if cnonce != "" {
		fields = append(fields, "cnonce="+quote(cnonce))
	}
	if c.hasOpaque {
		fields = append(fields, "opaque="+quote(c.opaque))
	}
	if c.algorithm != "" { // cameras that name none choke on one
		fields = append(fields, "algorithm="+c.algorithm)
	}
	return "Digest " + strings.Join(fields, ", ")
}

// quote writes a quoted text of RFC 7230.
func quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}
