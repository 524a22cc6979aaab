package rtsp_test

import (
	"cmp"
	"crypto/md5"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"edgecam/capture"
	"edgecam/capture/rtsp"
)

// guard asks for a login as a camera does, and says what came.
type guard struct {
	user, password string
	offer          []string // WWW-Authenticate lines; NONCE is filled in
	perRequest     bool     // a nonce is good for one request
	strict         bool     // it must not carry an algorithm
	realm          string   // as it is hashed; "" = "cam, 1"
	tries          int      // how often it may be asked; 0 = once

	mu      sync.Mutex
	nonces  int
	used    map[string]bool
	refused []string // methods that were answered with 401
	wrong   []string // why answers were refused for good
	taken   []string // methods that were let through with an answer
}

var authParameter = regexp.MustCompile(`(\w+)=(?:"((?:[^"\\]|\\.)*)"|([^", ]*))`)

// change is for obedient: it refuses what is not logged in.
func (g *guard) change(c *scriptConn, req scriptRequest) (done bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	header := req.header.Get("Authorization")
	if header != "" {
		why, stale := g.verify(req, header)
		if why == "" {
			g.taken = append(g.taken, req.method)
			return false
		}
		if !stale {
			g.wrong = append(g.wrong, req.method+": "+why)
		}
	}
	g.nonces++
	g.refused = append(g.refused, req.method)
	var lines []string
	for _, o := range g.offer {
		lines = append(lines, "WWW-Authenticate: "+strings.ReplaceAll(o, "NONCE", "n"+strconv.Itoa(g.nonces)))
	}
	c.reply(req, 401, strings.Join(lines, "\r\n"), "")
	return true
}

func (g *guard) verify(req scriptRequest, header string) (why string, stale bool) {
	scheme, rest, _ := strings.Cut(header, " ")
	if scheme != "Digest" {
		return "it is " + scheme, false
	}
	p := map[string]string{}
	for _, m := range authParameter.FindAllStringSubmatch(rest, -1) {
		p[m[1]] = strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(m[2] + m[3])
	}
	var h func() hash.Hash
	switch strings.TrimSuffix(strings.ToUpper(p["algorithm"]), "-SESS") {
	case "", "MD5":
		h = md5.New
	case "SHA-256":
		h = sha256.New
	case "SHA-512-256":
		h = sha512.New512_256
	default:
		return "algorithm " + p["algorithm"], false
	}
	digest := func(parts ...string) string {
		d := h()
		d.Write([]byte(strings.Join(parts, ":")))
		return hex.EncodeToString(d.Sum(nil))
	}
	secret := digest(g.user, cmp.Or(g.realm, "cam, 1"), g.password)
	if strings.HasSuffix(strings.ToUpper(p["algorithm"]), "-SESS") {
		secret = digest(secret, p["nonce"], p["cnonce"])
	}
	want := digest(secret, p["nonce"], digest(req.method, req.url))
	if p["qop"] != "" {
		request := digest(req.method, req.url)
		if p["qop"] == "auth-int" {
			request = digest(req.method, req.url, digest("")) // no request has a body
		}
		want = digest(secret, p["nonce"], p["nc"], p["cnonce"], p["qop"], request)
	}
	offered := strings.Join(g.offer, " ")
	switch {
	case p["username"] != g.user || p["response"] != want || p["uri"] != req.url:
		return fmt.Sprintf("user %q, response %s for %s, want %s", p["username"], p["response"], p["uri"], want), false
	case strings.Contains(offered, "opaque=") && p["opaque"] != "o p=q":
		return "opaque " + p["opaque"], false
	case strings.Contains(offered, "qop=") && !strings.HasPrefix(p["qop"], "auth"):
		return "no qop", false
	case g.strict && p["algorithm"] != "":
		return "algorithm " + p["algorithm"] + " without being asked", false
	case g.perRequest && (p["nonce"] != "n"+strconv.Itoa(g.nonces) || g.used[p["nonce"]]):
		return "stale nonce", true
	}
	if g.used == nil {
		g.used = map[string]bool{}
	}
	g.used[p["nonce"]] = true
	return "", false
}

func TestChallengesOfTheField(t *testing.T) {
	t.Parallel()
	const digest = `Digest realm="cam, 1", nonce="NONCE"`
	tests := []struct {
		name           string
		url            string // of ADDR
		user, password string // keys of their own
		g              *guard
	}{
		{name: "at sign in the password", url: "rtsp://user:P@ss@ADDR/s", g: &guard{user: "user", password: "P@ss", offer: []string{digest}}},
		{name: "the same escaped", url: "rtsp://user:P%40ss@ADDR/s", g: &guard{user: "user", password: "P@ss", offer: []string{digest}}},
		{name: "empty password", url: "rtsp://admin:@ADDR/v", g: &guard{user: "admin", offer: []string{digest}}},
		{name: "user alone", url: "rtsp://admin@ADDR/v", g: &guard{user: "admin", offer: []string{digest}}},
		{
			name: "keys of their own", url: "rtsp://ADDR/v", user: "a@b", password: "50%25#x",
			g: &guard{user: "a@b", password: "50%25#x", offer: []string{digest}},
		},
		{
			name: "keys of their own win", url: "rtsp://old:older@ADDR/v", user: `q"u\o`, password: `te"`,
			g: &guard{user: `q"u\o`, password: `te"`, offer: []string{digest}},
		},
		{name: "SHA-256 alone", url: "rtsp://u:p@ADDR/", g: &guard{user: "u", password: "p", offer: []string{digest + `, algorithm="SHA-256"`}}},
		{name: "SHA-512-256", url: "rtsp://u:p@ADDR/", g: &guard{user: "u", password: "p", offer: []string{digest + `, algorithm=SHA-512-256`}}},
		{name: "MD5-sess", url: "rtsp://u:p@ADDR/", g: &guard{user: "u", password: "p", offer: []string{digest + `, algorithm=MD5-sess, qop="auth"`}}},
		{name: "Basic first", url: "rtsp://u:p@ADDR/", g: &guard{user: "u", password: "p", offer: []string{`Basic realm="cam, 1"`, digest}}},
		{name: "both in one line", url: "rtsp://u:p@ADDR/", g: &guard{user: "u", password: "p", offer: []string{`Basic realm="x, y", ` + digest}}},
		{name: "no algorithm", url: "rtsp://u:p@ADDR/", g: &guard{user: "u", password: "p", strict: true, offer: []string{digest}}},
		{name: "qop, opaque and lower case", url: "rtsp://u:p@ADDR/", g: &guard{
			user: "u", password: "p", offer: []string{`digest qop="auth-int, auth",opaque="o p=q",nonce="NONCE",realm="cam, 1"`},
		}},
		{name: "integrity alone", url: "rtsp://u:p@ADDR/", g: &guard{user: "u", password: "p", offer: []string{digest + `, qop="auth-int"`}}},
		{name: "an escaped realm", url: "rtsp://u:p@ADDR/", g: &guard{
			user: "u", password: "p", realm: `a "b" \ c`, offer: []string{`Digest realm="a \"b\" \\ c", nonce="NONCE"`},
		}},
		{name: "an escaped realm that is taken as it is", url: "rtsp://u:p@ADDR/", g: &guard{
			user: "u", password: "p", realm: `a \"b\" \\ c`, tries: 2, offer: []string{`Digest realm="a \"b\" \\ c", nonce="NONCE"`},
		}},
		{name: "a realm with a backslash", url: "rtsp://u:p@ADDR/", g: &guard{
			user: "u", password: "p", realm: `IP\Cam`, offer: []string{`Digest realm="IP\Cam", nonce="NONCE"`},
		}},
		{name: "a realm with a backslash that is taken out", url: "rtsp://u:p@ADDR/", g: &guard{
			user: "u", password: "p", realm: `IPCam`, tries: 2, offer: []string{`Digest realm="IP\Cam", nonce="NONCE"`},
		}},
		{name: "a kind of its own first", url: "rtsp://u:p@ADDR/", g: &guard{user: "u", password: "p", offer: []string{`Negotiate`, digest + `, algorithm=XY`, digest}}},
		{name: "a nonce for every request", url: "rtsp://u:p@ADDR/", g: &guard{
			user: "u", password: "p", perRequest: true, offer: []string{digest + `, stale=TRUE`},
		}},
		{name: "a nonce for every request, without a word", url: "rtsp://u:p@ADDR/", g: &guard{
			user: "u", password: "p", perRequest: true, offer: []string{digest},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := tt.g
			addr := startScript(t, obedient(g.change))
			receive(t, rtsp.Options{
				URL: strings.ReplaceAll(tt.url, "ADDR", addr), Username: tt.user, Password: tt.password, Transport: rtsp.TCP,
			}, 3)
			g.mu.Lock()
			defer g.mu.Unlock()
			if len(g.wrong) >= cmp.Or(g.tries, 1) {
				t.Errorf("the camera saw wrong answers: %q", g.wrong)
			}
			if got := strings.Join(g.taken, " "); !strings.HasPrefix(got, "OPTIONS DESCRIBE SETUP PLAY") {
				t.Errorf("let through: %s", got)
			}
			if most := cmp.Or(g.tries, 1); !g.perRequest && len(g.refused) > most {
				t.Errorf("asked %d times: %v", len(g.refused), g.refused)
			}
		})
	}
}

// A camera that changes its nonce in mid-session asks a keepalive for the new
// one; the keepalive is given at once, or the camera would forget the session.
func TestNonceThatChangesDuringKeepalive(t *testing.T) {
	t.Parallel()
	g := &guard{user: "admin", password: secret, perRequest: true, offer: []string{`Digest realm="cam, 1", nonce="NONCE", stale=TRUE`}}
	var mu sync.Mutex
	var keepalives []string // what became of each request while playing, with its number
	numbers := map[string]bool{}
	playing := false
	var pictures sync.WaitGroup
	defer pictures.Wait()
	ctx, cancel := contextWithPatience(t)
	defer cancel()
	addr := startScript(t, obedient(func(c *scriptConn, req scriptRequest) bool {
		mu.Lock()
		defer mu.Unlock()
		n := req.header.Get("CSeq")
		if numbers[n] {
			t.Errorf("request number %s came twice", n)
		}
		numbers[n] = true
		refused := g.change(c, req)
		if playing && req.method != "TEARDOWN" {
			keepalives = append(keepalives, fmt.Sprintf("%s %v", req.method, refused))
		}
		if refused {
			return true
		}
		switch req.method {
		case "OPTIONS":
			c.reply(req, 200, "Public: OPTIONS, DESCRIBE, SETUP, PLAY, GET_PARAMETER, TEARDOWN", "")
		case "SETUP":
			c.reply(req, 200, "Session: 1234;timeout=1\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1", "")
		case "PLAY":
			playing = true
			c.reply(req, 200, "Session: 1234", "")
			pictures.Go(func() { sendPictures(ctx, c.sendInterleaved) })
		default:
			return false
		}
		return true
	}))
	src, err := rtsp.New(rtsp.Options{URL: "rtsp://" + addr + "/x", Username: "admin", Password: secret, Transport: rtsp.TCP})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- src.Run(ctx, &recorder{}) }()
	for enough := false; !enough; {
		select {
		case err := <-done:
			t.Fatalf("the session ended with %v", err)
		case <-time.After(10 * time.Millisecond):
		}
		mu.Lock()
		enough = len(keepalives) >= 4
		mu.Unlock()
	}
	cancel()
	<-done
	mu.Lock()
	defer mu.Unlock()
	if got, want := strings.Join(keepalives[:4], ", "), "GET_PARAMETER true, GET_PARAMETER false, GET_PARAMETER true, GET_PARAMETER false"; got != want {
		t.Errorf("keepalives went\n%s, want\n%s", got, want)
	}
}

func TestChallengesWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		offer string
		want  string
		most  int // DESCRIBE requests
	}{
		{"wrong password", `Digest realm="cam, 1", nonce="NONCE"`, `The camera did not accept the login of user "admin": check username and password`, 2},
		{"the same nonce again and again", `Digest realm="cam, 1", nonce="x"`, `The camera did not accept the login of user "admin": check username and password`, 2},
		{"basic refused", `Basic realm="cam, 1"`, `The camera did not accept the login of user "admin": check username and password`, 2},
		{"always stale", `Digest realm="cam, 1", nonce="NONCE", stale=true`, "The camera's answer could not be understood (log in: the camera refuses every nonce that it gives out)", 4},
		{
			"a kind that nobody has", `Digest realm="cam, 1", nonce="NONCE", algorithm=SHA-3`,
			"Not logged in: the camera asks for a kind of login that edgecam does not have (digest SHA-3): allow digest or basic", 1,
		},
		{"a protection that nobody has", `Digest realm="cam, 1", nonce="NONCE", qop="auth-conf"`, "Not logged in: the camera asks for a kind of login that edgecam does not have (digest): allow digest or basic", 1},
		{"nothing readable", `"`, `The camera did not accept the login of user "admin": check username and password`, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := &guard{user: "admin", password: "other", offer: []string{tt.offer}}
			addr := startScript(t, obedient(func(c *scriptConn, req scriptRequest) bool {
				return req.method == "DESCRIBE" && g.change(c, req)
			}))
			_, err := attempt(t, rtsp.Options{URL: "rtsp://" + addr + "/x", Username: "admin", Password: secret}, 1)
			var failure capture.Failure
			if !errors.As(err, &failure) || failure.Reason() != tt.want {
				t.Errorf("error is %v (%v),\nwant %s", err, failure, tt.want)
			}
			var auth *capture.AuthError
			if stale := strings.Contains(tt.name, "stale"); errors.As(err, &auth) == stale {
				t.Errorf("%T", err)
			}
			if len(g.refused) > tt.most {
				t.Errorf("%d requests, want at most %d", len(g.refused), tt.most)
			}
			mustNotLeak(t, err.Error()+failure.Reason())
		})
	}
}

// A line break in a login would end a line of the request.
func TestLoginCannotEndALine(t *testing.T) {
	t.Parallel()
	if _, err := rtsp.ParseURL("rtsp://u%0d%0aX-Injected:1:p@192.0.2.1/", "", ""); err == nil {
		t.Error("a line break in the user name was taken")
	}
}

func FuzzChallenges(f *testing.F) {
	for _, seed := range []string{
		`Digest realm="cam", nonce="abc", stale=TRUE, algorithm=MD5, qop="auth,auth-int", opaque="x"`,
		`Basic realm="a, b", Digest realm="a\"b", nonce=x==`,
		`Negotiate`, `digest`, `Digest realm="open`, `=,"`, `a=b`, ``,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		answer := rtsp.Answer(line, "admin", secret, "DESCRIBE", "rtsp://192.0.2.1/x")
		if strings.ContainsAny(answer, "\r\n") && !strings.ContainsAny(line, "\r\n") {
			t.Errorf("%q is answered with a line break: %q", line, answer)
		}
		if !strings.HasPrefix(answer, "Basic ") && strings.Contains(answer, secret) {
			t.Errorf("%q is answered with the password", line)
		}
	})
}
