package config

import (
	"crypto/x509"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var fingerprintPattern = regexp.MustCompile(`^(?i)sha256:[0-9a-f]{2}(:?[0-9a-f]{2}){31}$`)

// maxCA is more than a system's whole list of authorities.
const maxCA = 4 << 20

// checkTLS wants one way to know the camera, and an encrypted connection that
// it can be used on.
func (d *decoder) checkTLS(path string, c *Camera) {
	t := &c.TLS
	t.Fingerprint = strings.TrimSpace(t.Fingerprint)
	path += ".tls"
	if *t == DefaultCamera().TLS {
		return
	}
	if scheme, _, _ := strings.Cut(c.URL.Reveal(), "://"); strings.EqualFold(scheme, "rtsp") {
		d.failAt(path, "", errors.New("is for rtsps:// alone: nothing of rtsp:// is encrypted"))
		return
	}
	if t.Fingerprint != "" && !fingerprintPattern.MatchString(t.Fingerprint) {
		d.failAt(path+".fingerprint", t.Fingerprint, errors.New("want sha256: and 64 hex digits, with or without colons between them"))
	}
	switch {
	case !t.Verify && (t.CA != "" || t.Fingerprint != ""):
		d.failAt(path+".verify", "", errors.New("false takes any certificate: leave out ca and fingerprint, or verify"))
	case t.CA != "" && t.Fingerprint != "":
		d.failAt(path+".fingerprint", "", errors.New("is the one certificate that is taken: leave out ca, or fingerprint"))
	case t.CA != "":
		t.CA = d.resolvePath(t.CA)
		if err := checkCA(t.CA); err != nil {
			d.failAt(path+".ca", "", fmt.Errorf("read certificates %s: %w", t.CA, err))
		}
	}
}

func checkCA(name string) error {
	text, err := readFile(name, maxCA)
	if err != nil {
		return err
	}
	if !x509.NewCertPool().AppendCertsFromPEM(text) {
		return errors.New("holds no PEM certificate")
	}
	return nil
}
