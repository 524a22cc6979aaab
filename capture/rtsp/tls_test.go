package rtsp_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bluenviron/gortsplib/v4"
	"github.com/bluenviron/gortsplib/v4/pkg/base"
	"github.com/bluenviron/gortsplib/v4/pkg/description"
	"github.com/bluenviron/gortsplib/v4/pkg/format"
	"github.com/pion/rtp"

	"edgecam/capture"
	"edgecam/capture/rtsp"
	"edgecam/internal/testkit"
)

// authority signs certificates of cameras.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{key: key, file: filepath.Join(t.TempDir(), "ca.pem")}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(a.file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return a
}

// issue makes a certificate, signed by a, or by itself where a is nil.
func (a *authority) issue(t *testing.T, change func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048) // what cameras have
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "camera"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
	}
	if change != nil {
		change(template)
	}
	parent, signer := template, any(key)
	if a != nil {
		parent, signer = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func fingerprintOf(c tls.Certificate) string {
	sum := sha256.Sum256(c.Certificate[0])
	return "sha256:" + hex.EncodeToString(sum[:])
}

// startTLS is a camera behind TLS.
func startTLS(t *testing.T, config *tls.Config, talk func(*scriptConn)) (addr string) {
	t.Helper()
	return startTLSAt(t, "127.0.0.1:0", config, talk)
}

func startTLSAt(t *testing.T, at string, config *tls.Config, talk func(*scriptConn)) (addr string) {
	t.Helper()
	l, err := tls.Listen("tcp", at, config)
	if err != nil {
		t.Fatal(err)
	}
	return serveScript(t, l, talk)
}

// What is known of a camera decides whether a word is said to it.
func TestCertificates(t *testing.T) {
	t.Parallel()
	ours := newAuthority(t)
	good := ours.issue(t, nil)
	own := (*authority)(nil).issue(t, nil)
	expired := ours.issue(t, func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = time.Date(2023, 5, 1, 0, 0, 0, 0, time.UTC), time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)
	})
	early := ours.issue(t, func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = time.Date(2123, 5, 1, 0, 0, 0, 0, time.UTC), time.Date(2124, 5, 1, 0, 0, 0, 0, time.UTC)
	})
	named := ours.issue(t, func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"gate.example", "bad\x01name"} })
	nameless := ours.issue(t, func(c *x509.Certificate) { c.IPAddresses = nil })
	const hint = ": check that it is the camera's and set tls.fingerprint to it, or give the camera a certificate that this machine or tls.ca trusts. Its fingerprint is "
	tests := []struct {
		name string
		cert tls.Certificate
		tls  rtsp.TLS
		want string // StreamInfo.TLS, or the reason
	}{
		{"signed by our authority", good, rtsp.TLS{CA: ours.file}, "verified"},
		{"pinned", own, rtsp.TLS{Fingerprint: fingerprintOf(own)}, "fingerprint"},
		{"pinned, in capitals", own, rtsp.TLS{Fingerprint: "SHA256:" + strings.ToUpper(fingerprintOf(own)[7:])}, "fingerprint"},
		{"pinned, though expired and without a name", expired, rtsp.TLS{Fingerprint: fingerprintOf(expired)}, "fingerprint"},
		{"not checked", own, rtsp.TLS{SkipVerify: true}, "not verified"},
		{"signed by itself", own, rtsp.TLS{}, "it is signed by itself" + hint + fingerprintOf(own)},
		{"signed by nobody known", good, rtsp.TLS{}, "it is signed by nobody that is trusted" + hint + fingerprintOf(good)},
		{"signed by another authority", own, rtsp.TLS{CA: ours.file}, "it is signed by itself" + hint + fingerprintOf(own)},
		{"expired", expired, rtsp.TLS{CA: ours.file}, "it expired on 2024-05-01" + hint + fingerprintOf(expired)},
		{"not yet valid", early, rtsp.TLS{CA: ours.file}, "it is not valid before 2123-05-01; this machine's clock says " + time.Now().UTC().Format("2006-01-02") + hint + fingerprintOf(early)},
		{"for another host", named, rtsp.TLS{CA: ours.file}, "it is for gate.example, not for 127.0.0.1" + hint + fingerprintOf(named)},
		{"for no host", nameless, rtsp.TLS{CA: ours.file}, "it is for no address, not for 127.0.0.1" + hint + fingerprintOf(nameless)},
		{
			"another than the pinned one", good,
			rtsp.TLS{Fingerprint: fingerprintOf(own)},
			"it is not the one with tls.fingerprint: if the camera was given a new one set tls.fingerprint to it, else somebody is between. Its fingerprint is " + fingerprintOf(good),
		},
		{"with an authority that is gone", good, rtsp.TLS{CA: "/nonexistent/ca.pem"}, "tls.ca cannot be read: open /nonexistent/ca.pem: no such file or directory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var mu sync.Mutex
			var heard []string
			addr := startTLS(t, &tls.Config{Certificates: []tls.Certificate{tt.cert}}, obedient(func(c *scriptConn, req scriptRequest) bool {
				mu.Lock()
				defer mu.Unlock()
				heard = append(heard, req.method)
				return false
			}))
			log := &testkit.Journal{}
			r, err := attempt(t, rtsp.Options{
				URL: "rtsps://" + addr + "/x", Username: "admin", Password: secret, TLS: tt.tls, Transport: rtsp.TCP,
				Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			}, 3)
			if errors.Is(err, errEnough) {
				if got := r.infos[0].TLS; got != tt.want {
					t.Errorf("TLS is %q, want %q", got, tt.want)
				}
				return
			}
			var failure *capture.CertificateError
			if !errors.As(err, &failure) {
				t.Fatalf("error is %v", err)
			}
			if want := "The certificate of " + addr + " is not accepted: " + tt.want; failure.Reason() != want {
				t.Errorf("reason is\n%s, want\n%s", failure.Reason(), want)
			}
			if failure.Temporary() {
				t.Error("it is tried again as if the network were down")
			}
			mu.Lock()
			defer mu.Unlock()
			if len(heard) > 0 {
				t.Errorf("the stranger heard %v", heard)
			}
			mustNotLeak(t, err.Error()+failure.Reason()+log.String())
		})
	}
}

// A name, and an IPv6 address, are checked as they stand in the URL.
func TestCertificateNames(t *testing.T) {
	t.Parallel()
	ours := newAuthority(t)
	cert := ours.issue(t, func(c *x509.Certificate) { c.DNSNames = []string{"localhost"} })
	for at, host := range map[string]string{"127.0.0.1:0": "localhost", "[::1]:0": "[::1]"} {
		t.Run(host, func(t *testing.T) {
			addr := startTLSAt(t, at, &tls.Config{Certificates: []tls.Certificate{cert}}, obedient(nil))
			_, port, err := net.SplitHostPort(addr)
			if err != nil {
				t.Fatal(err)
			}
			receive(t, rtsp.Options{URL: "rtsps://" + host + ":" + port + "/x", TLS: rtsp.TLS{CA: ours.file}, Transport: rtsp.TCP}, 3)
		})
	}
}

// Cameras of a few years ago have TLS 1.2 without forward secrecy.
func TestOldCiphers(t *testing.T) {
	t.Parallel()
	own := (*authority)(nil).issue(t, nil)
	pin := rtsp.TLS{Fingerprint: fingerprintOf(own)}
	addr := startTLS(t, &tls.Config{
		Certificates: []tls.Certificate{own}, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_RSA_WITH_AES_128_CBC_SHA},
	}, obedient(nil))
	receive(t, rtsp.Options{URL: "rtsps://" + addr + "/x", TLS: pin, Transport: rtsp.TCP}, 3)

	addr = startTLS(t, &tls.Config{Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, obedient(nil))
	_, err := attempt(t, rtsp.Options{URL: "rtsps://" + addr + "/x", TLS: pin, Transport: rtsp.TCP}, 1)
	var unsupported *capture.UnsupportedError
	if !errors.As(err, &unsupported) {
		t.Fatalf("error is %v", err)
	}
	want := "Unsupported encryption of the camera (protocol version not supported): edgecam wants TLS 1.2 or newer: update the camera's firmware"
	if unsupported.Reason() != want {
		t.Errorf("reason is %s", unsupported.Reason())
	}
}

// Encrypted where we are not, not encrypted where we are, or no RTSP at all.
func TestForeignServers(t *testing.T) {
	t.Parallel()
	own := (*authority)(nil).issue(t, nil)
	const plain = ": if the network is trusted write rtsp:// in the URL, else use the camera's port for rtsps://"
	says := func(text string) func(*scriptConn) {
		return func(c *scriptConn) {
			b := make([]byte, 1)
			if _, err := c.Read(b); err == nil {
				_, _ = c.Write([]byte(text))
				_, _ = c.Read(b) // the other side hangs up
			}
		}
	}
	hangsUp := func(c *scriptConn) {
		b := make([]byte, 1000)
		_, _ = c.Read(b)
	}
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	safeWeb := httptest.NewTLSServer(http.NotFoundHandler())
	safeWeb.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	t.Cleanup(safeWeb.Close)
	tests := []struct {
		name, scheme, addr string
		want               string
		temporary          bool
	}{
		{
			name: "rtsp to TLS", scheme: "rtsp", addr: startScript(t, says("\x15\x03\x01\x00\x02\x02\x46")), // what OpenSSL says
			want: "ADDR speaks TLS: write rtsps:// in the URL, or use the camera's port for rtsp://",
		},
		{
			name: "rtsp to a TLS that says nothing", scheme: "rtsp", temporary: true,
			addr: startTLS(t, &tls.Config{Certificates: []tls.Certificate{own}}, obedient(nil)),
			want: "The camera closed the session (before any answer: check that ADDR is its RTSP port, and not one for rtsps://)",
		},
		{name: "rtsp to HTTP", scheme: "rtsp", addr: web.Listener.Addr().String(), want: "ADDR speaks HTTP, not RTSP: check the port of the URL"},
		{name: "rtsp to HTTPS", scheme: "rtsp", addr: safeWeb.Listener.Addr().String(), want: "ADDR speaks HTTP, not RTSP: check the port of the URL"},
		{name: "rtsp to SSH", scheme: "rtsp", addr: startScript(t, says("SSH-2.0-OpenSSH_9.2\r\n")), want: "ADDR speaks SSH, not RTSP: check the port of the URL"},
		{
			name: "rtsp to one that hangs up", scheme: "rtsp", addr: startScript(t, hangsUp), temporary: true,
			want: "The camera closed the session (before any answer: check that ADDR is its RTSP port, and not one for rtsps://)",
		},
		{name: "rtsps to RTSP", scheme: "rtsps", addr: startScript(t, says("RTSP/1.0 400 Bad Request\r\n\r\n")), want: "ADDR speaks RTSP without encryption" + plain},
		{name: "rtsps to HTTP", scheme: "rtsps", addr: web.Listener.Addr().String(), want: "ADDR speaks HTTP without encryption" + plain},
		{name: "rtsps to something", scheme: "rtsps", addr: startScript(t, says("220 mail\r\n")), want: "ADDR speaks no TLS" + plain},
		{name: "rtsps to one that hangs up", scheme: "rtsps", addr: startScript(t, hangsUp), want: "ADDR speaks no TLS (it closes the connection)" + plain, temporary: true},
		{
			name: "rtsps to one that waits", scheme: "rtsps", temporary: true, want: "ADDR speaks no TLS (it does not answer)" + plain,
			addr: startScript(t, func(c *scriptConn) {
				for b := make([]byte, 1000); ; {
					if _, err := c.Read(b); err != nil {
						return
					}
				}
			}),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := attempt(t, rtsp.Options{
				URL: tt.scheme + "://" + tt.addr + "/x", Username: "admin", Password: secret, Transport: rtsp.TCP, ReadTimeout: time.Second,
			}, 1)
			var failure capture.Failure
			if !errors.As(err, &failure) {
				t.Fatalf("error is %v", err)
			}
			if want := strings.ReplaceAll(tt.want, "ADDR", tt.addr); failure.Reason() != want {
				t.Errorf("reason is\n%s, want\n%s", failure.Reason(), want)
			}
			if failure.Temporary() != tt.temporary {
				t.Errorf("temporary: %v", failure.Temporary())
			}
		})
	}
}

// No redirect leads out of the encryption, and one into it is checked.
func TestRedirectsAndTLS(t *testing.T) {
	t.Parallel()
	ours := newAuthority(t)
	cert := &tls.Config{Certificates: []tls.Certificate{ours.issue(t, nil)}}
	redirect := func(to string) func(*scriptConn) {
		return obedient(func(c *scriptConn, req scriptRequest) bool {
			if req.method == "DESCRIBE" {
				c.reply(req, 302, "Location: "+to, "")
			}
			return req.method == "DESCRIBE"
		})
	}
	asked := make(chan string, 10)
	open := startScript(t, obedient(func(_ *scriptConn, req scriptRequest) bool {
		asked <- req.method
		return false
	}))
	addr := startTLS(t, cert, redirect("rtsp://"+open+"/x"))
	_, err := attempt(t, rtsp.Options{URL: "rtsps://" + addr + "/x", TLS: rtsp.TLS{CA: ours.file}, Transport: rtsp.TCP}, 1)
	var failure *capture.RedirectError
	if !errors.As(err, &failure) || failure.Reason() != "The camera's redirect to rtsp://"+open+"/… is not followed: it leads from rtsps to rtsp, which is not encrypted" {
		t.Errorf("error is %v", err)
	}
	if len(asked) > 0 {
		t.Errorf("the open server was asked %s", <-asked)
	}

	safe := startTLS(t, cert, obedient(nil))
	addr = startScript(t, redirect("rtsps://"+safe+"/x"))
	r := receive(t, rtsp.Options{URL: "rtsp://" + addr + "/x", TLS: rtsp.TLS{CA: ours.file}, Transport: rtsp.TCP}, 3)
	if r.infos[0].TLS != "verified" {
		t.Errorf("TLS is %q", r.infos[0].TLS)
	}
	_, err = attempt(t, rtsp.Options{URL: "rtsp://" + addr + "/x", Transport: rtsp.TCP}, 1)
	var certificate *capture.CertificateError
	if !errors.As(err, &certificate) || certificate.Addr != safe {
		t.Errorf("error is %v", err)
	}
}

// secureServer is a gortsplib server behind TLS; secure has it encrypt packets
// as well.
type secureServer struct {
	t      *testing.T
	stream *gortsplib.ServerStream
	media  *description.Media
}

func (s *secureServer) OnDescribe(*gortsplib.ServerHandlerOnDescribeCtx) (*base.Response, *gortsplib.ServerStream, error) {
	return &base.Response{StatusCode: base.StatusOK}, s.stream, nil
}

func (s *secureServer) OnSetup(*gortsplib.ServerHandlerOnSetupCtx) (*base.Response, *gortsplib.ServerStream, error) {
	return &base.Response{StatusCode: base.StatusOK}, s.stream, nil
}

func (s *secureServer) OnPlay(*gortsplib.ServerHandlerOnPlayCtx) (*base.Response, error) {
	return &base.Response{StatusCode: base.StatusOK}, nil
}

// play sends pictures of one slice until ctx ends.
func (s *secureServer) play(ctx context.Context) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		pkt := &rtp.Packet{
			Header:  rtp.Header{Version: 2, PayloadType: 96, SequenceNumber: uint16(i), Timestamp: uint32(i) * 900, SSRC: 7, Marker: true},
			Payload: append([]byte{0x65, 0x80}, make([]byte, 100)...),
		}
		if err := s.stream.WritePacketRTP(s.media, pkt); err != nil {
			s.t.Errorf("write packet: %v", err)
			return
		}
	}
}

func TestGortsplibBehindTLS(t *testing.T) {
	t.Parallel()
	ours := newAuthority(t)
	for _, tt := range []struct {
		name      string
		secure    bool // of packets
		transport rtsp.Transport
		want      string
	}{
		{"packets as they are", false, rtsp.TCP, "tcp"},
		{"encrypted packets over tcp", true, rtsp.TCP, "tcp"},
		{"encrypted packets over udp", true, rtsp.UDP, "udp"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			media := &description.Media{
				Type: description.MediaTypeVideo, Secure: tt.secure,
				Formats: []format.Format{&format.H264{PayloadTyp: 96, PacketizationMode: 1}},
			}
			h := &secureServer{t: t, media: media}
			server := &gortsplib.Server{
				Handler: h, RTSPAddress: "127.0.0.1:0", TLSConfig: &tls.Config{Certificates: []tls.Certificate{ours.issue(t, nil)}},
			}
			if tt.transport == rtsp.UDP {
				server.UDPRTPAddress, server.UDPRTCPAddress = udpPair(t)
			}
			var listener net.Listener
			server.Listen = func(network, address string) (l net.Listener, err error) {
				listener, err = net.Listen(network, address)
				return listener, err
			}
			if err := server.Start(); err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			h.stream = &gortsplib.ServerStream{Server: server, Desc: &description.Session{Medias: []*description.Media{media}}}
			if err := h.stream.Initialize(); err != nil {
				t.Fatal(err)
			}
			defer h.stream.Close()
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			defer wg.Wait()
			defer cancel()
			wg.Go(func() { h.play(ctx) })

			o := rtsp.Options{URL: "rtsps://" + listener.Addr().String() + "/x", TLS: rtsp.TLS{CA: ours.file}, Transport: tt.transport}
			if r := receive(t, o, 5); r.infos[0].Transport != tt.want || r.infos[0].TLS != "verified" {
				t.Errorf("stream is %+v", r.infos[0])
			}
		})
	}
}

// What the URL wants encrypted does not come in the open.
func TestNoOpenPacketsBehindTLS(t *testing.T) {
	t.Parallel()
	own := (*authority)(nil).issue(t, nil)
	addr := startTLS(t, &tls.Config{Certificates: []tls.Certificate{own}}, obedient(func(c *scriptConn, req scriptRequest) bool {
		if req.method == "SETUP" {
			c.reply(req, 461, "", "")
		}
		return req.method == "SETUP"
	}))
	for _, transport := range []rtsp.Transport{rtsp.UDP, rtsp.Auto} {
		_, err := attempt(t, rtsp.Options{URL: "rtsps://" + addr + "/x", TLS: rtsp.TLS{SkipVerify: true}, Transport: transport}, 1)
		var unsupported *capture.UnsupportedError
		if !errors.As(err, &unsupported) || unsupported.Reason() != "Unsupported transport udp: behind rtsps:// this camera sends UDP without encryption: set transport to tcp, or use rtsp:// in a network that you trust" {
			t.Errorf("%s: error is %v", transport, err)
		}
	}
}

// udpPair gives two free ports, the first of them even.
func udpPair(t *testing.T) (rtpAddr, rtcpAddr string) {
	t.Helper()
	for range 100 {
		a, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := a.LocalAddr().(*net.UDPAddr).Port
		a.Close()
		if port%2 != 0 {
			continue
		}
		at := func(p int) string { return (&net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: p}).String() }
		b, err := net.ListenPacket("udp", at(port+1))
		if err != nil {
			continue
		}
		b.Close()
		return at(port), at(port + 1)
	}
	t.Fatal("no two free ports")
	return "", ""
}
