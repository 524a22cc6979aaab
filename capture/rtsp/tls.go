package rtsp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
	"unicode"

	"edgecam/capture"
)

// TLS says by what a camera behind rtsps:// is known. The zero value is what
// browsers do: a certificate for the host of the URL, signed by an authority
// that this machine trusts.
type TLS struct {
	CA          string // file of PEM certificates that may have signed the camera's, in place of the machine's
	Fingerprint string // "sha256:" and 64 hex digits: the one certificate that is taken, whatever it says
	SkipVerify  bool   // take any certificate
}

// The words of StreamInfo.TLS.
const (
	tlsVerified    = "verified"
	tlsFingerprint = "fingerprint"
	tlsNotVerified = "not verified"
)

var (
	errFingerprint = errors.New(`a fingerprint is "sha256:" and 64 hex digits, with or without colons between them`)
	errNoCA        = errors.New("the file holds no PEM certificate")
)

// words are for StreamInfo.
func (t TLS) words() string {
	switch {
	case t.Fingerprint != "":
		return tlsFingerprint
	case t.SkipVerify:
		return tlsNotVerified
	default:
		return tlsVerified
	}
}

// pin is the digest of the certificate that is taken; nil = any that is valid.
func (t TLS) pin() ([]byte, error) {
	if t.Fingerprint == "" {
		return nil, nil
	}
	kind, digits, _ := strings.Cut(strings.TrimSpace(t.Fingerprint), ":")
	sum, err := hex.DecodeString(strings.ReplaceAll(digits, ":", ""))
	if !strings.EqualFold(kind, "sha256") || err != nil || len(sum) != sha256.Size {
		return nil, errFingerprint
	}
	return sum, nil
}

// handshake encrypts a connection and makes sure that the target is at its
// other end. Nothing but the handshake is sent before that is known. Errors
// are of package capture.
func (t TLS) handshake(ctx context.Context, raw net.Conn, target Target) (net.Conn, error) {
	config, err := t.config(target)
	if err != nil {
		return nil, err
	}
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, handshakeFailure(target, err)
	}
	return conn, nil
}

func (t TLS) config(target Target) (*tls.Config, error) {
	name, _, _ := strings.Cut(target.host, "%") // certificates know no zones
	config := &tls.Config{ServerName: name, MinVersion: tls.VersionTLS12, CipherSuites: cipherSuites()}
	pin, err := t.pin()
	switch {
	case err != nil:
		return nil, &capture.CertificateError{Addr: target.Addr(), Problem: err.Error(), Hint: "check tls.fingerprint"}
	case pin != nil:
		config.InsecureSkipVerify = true // the pin is what counts, not name, date or issuer
		config.VerifyConnection = func(state tls.ConnectionState) error {
			sum := sha256.Sum256(state.PeerCertificates[0].Raw)
			if !bytes.Equal(sum[:], pin) {
				return &pinError{sum: sum}
			}
			return nil
		}
	case t.SkipVerify:
		config.InsecureSkipVerify = true // the user's own word
	case t.CA != "":
		if config.RootCAs, err = readCA(t.CA); err != nil {
			return nil, &capture.CertificateError{
				Addr: target.Addr(), Problem: "tls.ca cannot be read", Hint: err.Error(),
			}
		}
	}
	return config, nil
}

// cipherSuites are Go's, and those without forward secrecy that it leaves out:
// cameras of a few years ago have no others. They do tell who is at the other
// end, and nobody else can read along.
func cipherSuites() []uint16 {
	var ids []uint16
	for _, s := range tls.CipherSuites() {
		ids = append(ids, s.ID)
	}
	return append(ids,
		tls.TLS_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_RSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_RSA_WITH_AES_128_CBC_SHA, tls.TLS_RSA_WITH_AES_256_CBC_SHA)
}

func readCA(name string) (*x509.CertPool, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: %w", name, errNoCA)
	}
	return pool, nil
}

// pinError says that another certificate came than the one that is pinned.
type pinError struct{ sum [sha256.Size]byte }

// Error implements error.
func (e *pinError) Error() string { return "another certificate" }

const (
	pinHint   = "check that it is the camera's and set tls.fingerprint to it, or give the camera a certificate that this machine or tls.ca trusts"
	plainHint = "if the network is trusted write rtsp:// in the URL, else use the camera's port for rtsps://"
)

// handshakeFailure puts into words why no encrypted connection came about.
func handshakeFailure(target Target, err error) error {
	addr := target.Addr()
	var pin *pinError
	var cert *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	var alert *net.OpError
	switch {
	case errors.As(err, &pin):
		return &capture.CertificateError{
			Addr: addr, Problem: "it is not the one with tls.fingerprint", Fingerprint: fingerprint(pin.sum),
			Hint: "if the camera was given a new one set tls.fingerprint to it, else somebody is between",
		}
	case errors.As(err, &cert):
		return certificateFailure(target, cert)
	case errors.As(err, &plain):
		speaks := "no TLS"
		for _, text := range []string{"RTSP", "HTTP"} {
			if bytes.HasPrefix(plain.RecordHeader[:], []byte(text)) {
				speaks = text + " without encryption"
			}
		}
		return &capture.ForeignError{Addr: addr, Speaks: speaks, Hint: plainHint}
	case errors.As(err, &alert) && alert.Op == "remote error":
		return &capture.UnsupportedError{
			What: "encryption of the camera (" + strings.TrimPrefix(alert.Err.Error(), "tls: ") + ")",
			Hint: "edgecam wants TLS 1.2 or newer: update the camera's firmware",
		}
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return &capture.ForeignError{Addr: addr, Speaks: "no TLS (it closes the connection)", Hint: plainHint, Guess: true}
	case isTimeout(err), errors.Is(err, context.DeadlineExceeded):
		return &capture.ForeignError{Addr: addr, Speaks: "no TLS (it does not answer)", Hint: plainHint, Guess: true}
	case errors.Is(err, net.ErrClosed), errors.Is(err, context.Canceled):
		return &capture.ClosedError{}
	}
	return &capture.ProtocolError{Op: "TLS handshake", Detail: target.scrub(strings.TrimPrefix(err.Error(), "tls: "))}
}

func certificateFailure(target Target, err *tls.CertificateVerificationError) error {
	failure := &capture.CertificateError{Addr: target.Addr(), Hint: pinHint}
	var leaf *x509.Certificate
	if len(err.UnverifiedCertificates) > 0 {
		leaf = err.UnverifiedCertificates[0]
		failure.Fingerprint = fingerprint(sha256.Sum256(leaf.Raw))
	}
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case leaf == nil:
		failure.Problem = "there is none"
	case errors.As(err, &name):
		failure.Problem = fmt.Sprintf("it is for %s, not for %s", certificateNames(leaf), target.host)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		failure.Problem = "it expired on " + leaf.NotAfter.UTC().Format("2006-01-02")
		if now := time.Now(); now.Before(leaf.NotBefore) {
			failure.Problem = "it is not valid before " + leaf.NotBefore.UTC().Format("2006-01-02") + "; this machine's clock says " + now.UTC().Format("2006-01-02")
		}
	case errors.As(err, &unknown) && bytes.Equal(leaf.RawIssuer, leaf.RawSubject):
		failure.Problem = "it is signed by itself"
	case errors.As(err, &unknown):
		failure.Problem = "it is signed by nobody that is trusted"
	default:
		failure.Problem = target.scrub(strings.TrimPrefix(err.Err.Error(), "x509: "))
	}
	return failure
}

// certificateNames are a few of the names in a certificate, which anybody may
// have written.
func certificateNames(c *x509.Certificate) string {
	var names []string
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	for _, name := range c.DNSNames {
		if len(name) <= 100 && !strings.ContainsFunc(name, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsPrint(r) }) {
			names = append(names, name)
		}
	}
	switch {
	case len(names) == 0:
		return "no address"
	case len(names) > 3:
		names = append(names[:3], "…")
	}
	return strings.Join(names, ", ")
}

func fingerprint(sum [sha256.Size]byte) string { return "sha256:" + hex.EncodeToString(sum[:]) }
