package config_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"edgecam/internal/config"
)

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	writeCA(t, filepath.Join(dir, "ca.pem"))
	digits := strings.Repeat("0a", 32)
	colons := "SHA256:" + strings.TrimSuffix(strings.Repeat("0A:", 32), ":")
	text := fmt.Sprintf(`cameras:
  plain: {url: "rtsp://192.0.2.1/"}
  usual: {url: "rtsps://192.0.2.2/"}
  ours: {url: "rtsps://192.0.2.3/", tls: {ca: ca.pem}}
  pinned: {url: "rtsps://192.0.2.4/", tls: {fingerprint: "sha256:%s"}}
  colons: {url: "rtsps://192.0.2.5/", tls: {fingerprint: " %s "}}
  skip: {url: "RTSPS://192.0.2.6/", tls: {verify: false}}
`, digits, colons)
	cfg, err := config.Parse([]byte(text), filepath.Join(dir, "edgecam.yaml"), config.Options{Env: []string{"EDGECAM_CAMERAS_USUAL_TLS_VERIFY=false"}})
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]config.TLS{
		"plain":  {Verify: true},
		"usual":  {Verify: false}, // by the environment
		"ours":   {Verify: true, CA: filepath.Join(dir, "ca.pem")},
		"pinned": {Verify: true, Fingerprint: "sha256:" + digits},
		"colons": {Verify: true, Fingerprint: colons},
		"skip":   {Verify: false},
	} {
		if got := cfg.Cameras[id].TLS; got != want {
			t.Errorf("%s: %+v, want %+v", id, got, want)
		}
	}
}

func writeCA(t *testing.T, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
