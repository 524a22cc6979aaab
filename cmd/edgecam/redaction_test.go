package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The secrets of all cameras here: a password of its own key, one in a URL, and
// two as makers have users write them into paths and queries.
const (
	keyPassword   = `hunt3r/2 #pw%`
	urlPassword   = `urlS3cret@x`
	pathPassword  = `tlJwpbo6zz`
	queryPassword = `vendorPwd77`
	wrongPassword = `typ0Word9`
)

// mirror is a camera that knows its login, and quotes all that it was ever sent
// wherever it can.
type mirror struct {
	mode string
	said string // all of it in one line
}

// startMirror serves a mode until the test ends.
func startMirror(t *testing.T, l net.Listener, mode string) (addr string) {
	t.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			wg.Go(func() {
				defer conn.Close()
				(&mirror{mode: mode}).talk(conn)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range conns {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return l.Addr().String()
}

func (m *mirror) talk(conn net.Conn) {
	r := textproto.NewReader(bufio.NewReader(conn))
	for {
		line, err := r.ReadLine()
		if err != nil {
			return
		}
		header, err := r.ReadMIMEHeader()
		if err != nil {
			return
		}
		login := header.Get("Authorization")
		plain, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(login, "Basic ")) // none is as good
		_, password, _ := strings.Cut(string(plain), ":")
		m.said = strings.Join([]string{line, login, string(plain), password, url.PathEscape(password), url.QueryEscape(password)}, " ")
		method, _, _ := strings.Cut(line, " ")
		answer := "RTSP/1.0 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\""
		switch {
		case method == "OPTIONS":
			answer = "RTSP/1.0 200 OK\r\nPublic: OPTIONS, DESCRIBE, SETUP, PLAY"
		case login != "":
			answer = m.answer(method)
		}
		head, body, _ := strings.Cut(answer, "\r\n\r\n")
		if body != "" {
			head += fmt.Sprintf("\r\nContent-Length: %d", len(body))
		}
		if _, err := io.WriteString(conn, head+"\r\nCSeq: "+header.Get("CSeq")+"\r\n\r\n"+body); err != nil {
			return
		}
	}
}

const mirrorSDP = "v=0\r\ns=cam\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=control:trackID=0\r\n"

// mirrorAnswers are, by mode, the answers that quote; METHOD: picks a method,
// and SAID is what was sent.
var mirrorAnswers = map[string][]string{ //nolint:gochecknoglobals // a table
	"status":    {"DESCRIBE:RTSP/1.0 404 SAID"},
	"unknown":   {"DESCRIBE:RTSP/1.0 499 SAID"},
	"basic":     {"DESCRIBE:RTSP/1.0 401 SAID\r\nWWW-Authenticate: Basic realm=\"SAID\""},
	"digest":    {"DESCRIBE:RTSP/1.0 401 SAID\r\nWWW-Authenticate: Digest realm=\"SAID\", nonce=\"SAID\", stale=true"},
	"kind":      {"DESCRIBE:RTSP/1.0 401 SAID\r\nWWW-Authenticate: SAID realm=\"x\""},
	"algorithm": {"DESCRIBE:RTSP/1.0 401 SAID\r\nWWW-Authenticate: Digest realm=\"x\", nonce=\"y\", algorithm=\"SAID\""},
	"line":      {"DESCRIBE:SAID"},
	"header":    {"DESCRIBE:RTSP/1.0 200 OK\r\nSAID"},
	"type":      {"DESCRIBE:RTSP/1.0 200 OK\r\nContent-Type: SAID\r\n\r\nSAID"},
	"base":      {"DESCRIBE:RTSP/1.0 200 OK\r\nContent-Base: rtsp://SAID\r\n\r\n" + mirrorSDP, "SETUP:RTSP/1.0 461 SAID"},
	"control":   {"DESCRIBE:RTSP/1.0 200 OK\r\n\r\n" + strings.Replace(mirrorSDP, "trackID=0", "SAID", 1), "SETUP:RTSP/1.0 200 OK\r\nSession: 1\r\nTransport: SAID"},
	"transport": {"DESCRIBE:RTSP/1.0 200 OK\r\n\r\n" + mirrorSDP, "SETUP:RTSP/1.0 200 OK\r\nSession: 1\r\nTransport: RTP/AVP;unicast;SAID;source=SAID"},
	"session":   {"DESCRIBE:RTSP/1.0 200 OK\r\n\r\n" + mirrorSDP, "SETUP:RTSP/1.0 200 OK\r\nSession: SAID;timeout=SAID\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1", "PLAY:RTSP/1.0 454 SAID"},
	"redirect":  {"DESCRIBE:RTSP/1.0 302 Moved\r\nLocation: rtsp://u:SAID@127.0.0.1:1/SAID"},
	"elsewhere": {"DESCRIBE:RTSP/1.0 302 Moved\r\nLocation: http://SAID"},
	"request":   {"DESCRIBE:ANNOUNCE rtsp://SAID RTSP/1.0"},
}

func (m *mirror) answer(method string) string {
	said := strings.NewReplacer("\r", "", "\n", "").Replace(m.said)
	for _, a := range mirrorAnswers[m.mode] {
		if text, ok := strings.CutPrefix(a, method+":"); ok {
			return strings.ReplaceAll(text, "SAID", said)
		}
	}
	return "RTSP/1.0 200 OK"
}

// selfSigned is a certificate that nobody trusts.
func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// failingCameras writes the configuration of cameras that fail in every way,
// and one that works.
func failingCameras(t *testing.T, listen string) (file string, ids []string) {
	t.Helper()
	var b strings.Builder
	camera := func(id, format string, args ...any) {
		ids = append(ids, id)
		fmt.Fprintf(&b, "  %s: {%s}\n", id, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&b, "version: 1\nserver: {listen: %q}\nmemory: {lock: false}\nlog: {level: debug}\ncameras:\n", listen)
	login := strings.ReplaceAll("username: viewer, password: 'PW', connect_timeout: 2s", "PW", strings.ReplaceAll(keyPassword, "%", "%%"))
	const vendor = "/user=admin_password=" + pathPassword + "_channel=1.sdp?user=admin&pwd=" + queryPassword

	good := startProgram(t, nil, "sim", "--listen", "127.0.0.1:0", "--user", "viewer", "--password", keyPassword)
	camera("good", "url: %q, "+login, good.line(t, "rtsp://"))
	for _, fault := range []string{"auth", "silent", "novideo", "codec", "notfound", "nonce-rotate", "redirect-loop", "busy", "session-lost", "bad-sdp", "udp-only", "half-open=1", "close=1"} {
		s := startProgram(t, nil, "sim", "--listen", "127.0.0.1:0", "--user", "viewer", "--password", keyPassword, "--fault", fault)
		id, _, _ := strings.Cut(fault, "=")
		camera("sim-"+id, "url: %q, transport: tcp, first_frame_timeout: 2s, "+login, s.line(t, "rtsp://"))
	}
	for mode := range mirrorAnswers {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := startMirror(t, l, mode)
		camera("quotes-"+mode, "url: %q, transport: tcp, first_frame_timeout: 2s, "+login, "rtsp://"+addr+vendor)
		camera("quotes-"+mode+"-url", "url: %q, transport: udp, first_frame_timeout: 2s, connect_timeout: 2s", "rtsp://viewer:"+url.PathEscape(urlPassword)+"@"+addr+"/x")
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{selfSigned(t)}})
	if err != nil {
		t.Fatal(err)
	}
	safe := startMirror(t, l, "status")
	camera("tls-unknown", "url: %q, "+login, "rtsps://"+safe+vendor)
	camera("tls-unchecked", "url: %q, tls: {verify: false}, "+login, "rtsps://"+safe+vendor)
	camera("tls-missing", "url: %q, "+login, "rtsp://"+safe+vendor)
	camera("refused", "url: %q, "+login, "rtsp://"+freePort(t)+vendor)
	camera("unknown-name", "url: %q, "+login, "rtsp://camera.invalid"+vendor)
	for i, bad := range []string{"%ss", "#s", "/s", "?s", " s", "^[,ä%"} {
		camera(fmt.Sprintf("wrong-%d", i), "url: %q", "rtsp://viewer:"+wrongPassword+bad+"@192.0.2.1/x")
	}
	camera("wrong-port", "url: %q", "rtsp://viewer:"+wrongPassword+"@192.0.2.1:99999"+vendor)
	camera("wrong-word", "url: %q, transport: tpc", "rtsp://viewer:"+wrongPassword+"@192.0.2.1"+vendor)
	return write(t, "edgecam.yaml", b.String()), ids
}

// hear takes what a stream that never ends says within a while.
func hear(ctx context.Context, t *testing.T, address string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body) // ends with the context
	return string(body)
}

// mustHide fails where any form of a secret stands in what came out.
func mustHide(t *testing.T, out string) {
	t.Helper()
	lower := strings.ToLower(out)
	for _, secret := range []string{keyPassword, urlPassword, pathPassword, queryPassword, wrongPassword} {
		forms := []string{secret, url.QueryEscape(secret), url.PathEscape(secret), url.UserPassword("", secret).String()}
		for _, user := range []string{"viewer:", "admin:", ":", ""} {
			for _, code := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding} {
				forms = append(forms, code.EncodeToString([]byte(user+secret)))
			}
		}
		for _, form := range forms {
			if i := strings.Index(lower, strings.ToLower(form)); i >= 0 {
				t.Errorf("%q shows: …%s…", form, out[max(0, i-300):min(len(out), i+100)])
				break
			}
		}
	}
}

// Whatever goes wrong with cameras, nothing that the program says, at any level
// of the log, to anybody who asks, or when it dies, holds a login.
func TestNothingShowsASecret(t *testing.T) {
	listen := freePort(t)
	file, ids := failingCameras(t, listen)
	_, stdout, stderr := run(t, "check", file)
	everything := stdout + stderr
	p := startProgram(t, nil, "run", "--config", file)
	var mu sync.Mutex
	var log strings.Builder
	ready, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		told := false
		for l := range p.lines {
			mu.Lock()
			log.WriteString(l + "\n")
			mu.Unlock()
			if !told && strings.Contains(l, "msg=dashboard") {
				told = true
				close(ready)
			}
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	select {
	case <-ready:
	case <-ended:
		t.Fatalf("the program ended: %s", log.String())
	}
	base := "http://" + listen
	tried := map[string]bool{}
	for len(tried) < len(ids) {
		answer := get(ctx, t, base+"/api/v1/cameras")
		everything += answer
		var cameras []struct {
			ID, State string
			Attempts  int
		}
		if err := json.Unmarshal([]byte(answer), &cameras); err != nil {
			t.Fatalf("%v in %s", err, answer)
		}
		for _, c := range cameras {
			if c.State != "connecting" || c.Attempts > 1 {
				tried[c.ID] = true
			}
		}
		if ctx.Err() != nil {
			t.Fatalf("%d of %d cameras were tried: %s", len(tried), len(ids), answer)
		}
	}
	for _, path := range []string{"/", "/healthz", "/readyz", "/metrics", "/api/v1/system", "/api/v1/openapi.yaml", "/api/v1/cameras", "/api/v1/nothing"} {
		everything += get(ctx, t, base+path)
	}
	for _, id := range ids {
		everything += get(ctx, t, base+"/api/v1/cameras/"+id)
	}
	for _, path := range []string{"/api/v1/detections", "/api/v1/cameras/good/stream.mjpeg", "/api/v1/cameras/good/snapshot.jpg", "/api/v1/cameras/quotes-status/snapshot.jpg", "/api/v1/cameras/quotes-status/stream.mjpeg", "/api/v1/live"} {
		everything += hear(ctx, t, base+path)
	}
	// A reload says what is wrong, and a crash what was going on.
	if err := os.WriteFile(file, []byte("version: 1\ncameras: {gate: {url: \"rtsp://viewer:"+wrongPassword+"@h:99999"+"/\", password: '"+keyPassword+"', x: y}}\nx: \""+keyPassword+"\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGQUIT} {
		if err := p.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		everything += hear(ctx, t, base+"/api/v1/detections") // a moment for it
	}
	<-ended
	everything += log.String()
	if !strings.Contains(everything, "goroutine ") || !strings.Contains(everything, "x: unknown key") {
		t.Error("the crash or the reload said nothing")
	}
	for _, sign := range []string{"rtsp response", "camera auth_failed", "camera unsupported", "camera backoff"} {
		if !strings.Contains(everything, sign) {
			t.Errorf("the log has no %q", sign)
		}
	}
	mustHide(t, everything)
}
