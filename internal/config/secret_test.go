package config_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"edgecam/internal/config"
)

func TestSecretNeverPrints(t *testing.T) {
	const text = "hunter2"
	s := config.NewSecret(text)
	cam := config.DefaultCamera()
	cam.URL, cam.Password = s, s
	cfg := config.Default()
	cfg.Server.Auth = &config.Auth{User: "admin", PasswordHash: s}
	cfg.Cameras = map[string]config.Camera{"gate": cam}
	hidden := struct{ c config.Camera }{cam} // fmt does not ask methods of unexported fields

	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%10.3s", "%T %[1]v"} {
		for _, v := range []any{s, &s, []config.Secret{s}, map[string]config.Secret{"a": s}, cam, cfg, *cfg, hidden, fmt.Errorf("wrapped %v", s)} {
			if got := fmt.Sprintf(verb, v); leaks(got, text) {
				t.Errorf("%s of %T: %s", verb, v, got)
			}
		}
		if verb == "%T %[1]v" {
			continue
		}
		if got := fmt.Sprintf(verb, s); got != "***" {
			t.Errorf("%s: got %s, want ***", verb, got)
		}
	}
	for name, marshal := range map[string]func(any) ([]byte, error){"json": json.Marshal, "xml": xml.Marshal, "yaml": yaml.Marshal} {
		for _, v := range []any{s, cam} {
			if name == "xml" && reflect.TypeOf(v) == reflect.TypeOf(cam) {
				continue // xml has no maps
			}
			b, err := marshal(v)
			if err != nil || leaks(string(b), text) || !bytes.Contains(b, []byte("***")) {
				t.Errorf("%s of %T: %s, %v", name, v, b, err)
			}
		}
	}
	for _, h := range []func(*bytes.Buffer) slog.Handler{
		func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
		func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
	} {
		var b bytes.Buffer
		slog.New(h(&b)).Info("x", "secret", s, "camera", cam, "config", cfg, "list", []config.Secret{s})
		if leaks(b.String(), text) || !strings.Contains(b.String(), "***") {
			t.Errorf("log: %s", &b)
		}
	}
}

// leaks says whether a text holds the secret, also in the hexadecimal of %x.
func leaks(got, secret string) bool {
	return strings.Contains(got, secret) || strings.Contains(strings.ToLower(got), fmt.Sprintf("%x", secret))
}

func TestSecretMethods(t *testing.T) {
	s := config.NewSecret("hunter2")
	if s.String() != "***" || s.GoString() != "***" || s.LogValue().String() != "***" {
		t.Error(s.String(), s.GoString(), s.LogValue())
	}
}

func TestSecretEquality(t *testing.T) {
	a, b := config.NewSecret("x"), config.NewSecret("x")
	if !reflect.DeepEqual(a, b) || a.Reveal() != "x" || a.IsZero() {
		t.Error("equal secrets differ")
	}
	if zero := (config.Secret{}); !reflect.DeepEqual(zero, config.NewSecret("")) || zero.Reveal() != "" || !zero.IsZero() || fmt.Sprint(zero) != "***" {
		t.Error("empty secrets differ")
	}
}
