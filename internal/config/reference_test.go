package config_test

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"edgecam/internal/config"
)

func TestReferenceEqualsDefault(t *testing.T) {
	got, err := config.Parse(config.Reference(), "edgecam.yaml", config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := config.Default(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// withExamples is the reference with the # of its examples removed.
func withExamples(t *testing.T) []byte {
	t.Helper()
	text := regexp.MustCompile(`(?m)^#(  )`).ReplaceAll(config.Reference(), []byte("$1"))
	// The one file that an example names is not on every machine.
	return []byte(strings.Replace(string(text), "{file: /etc/edgecam/password-hash}", "${HASH}", 1))
}

func TestExamplesOfTheReferenceAreDefaults(t *testing.T) {
	hash := "$argon2id$v=19$m=65536,t=3,p=4$c2FsdHNhbHQ$MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"
	got, err := config.Parse(withExamples(t), "edgecam.yaml", config.Options{Env: []string{"HASH=" + hash}})
	if err != nil {
		t.Fatal(err)
	}
	want := config.Default()
	want.Server.Auth = &config.Auth{User: "admin", PasswordHash: config.NewSecret(hash)}
	gate := config.DefaultCamera()
	gate.URL = config.NewSecret("rtsp://192.0.2.21/stream1")
	want.Cameras = map[string]config.Camera{"gate": gate}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// Every key of the structs stands in the reference, with words above it.
func TestReferenceDocumentsEveryKey(t *testing.T) {
	lines := strings.Split(string(withExamples(t)), "\n")
	var visit func(t reflect.Type, indent int)
	seen := 0
	visit = func(typ reflect.Type, indent int) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Map {
			if typ.Kind() == reflect.Map {
				indent += 2 // the id's level
			}
			typ = typ.Elem()
		}
		switch {
		case typ.Kind() != reflect.Struct, typ == reflect.TypeFor[config.Secret](), typ == reflect.TypeFor[config.Labels]():
			return
		case typ == reflect.TypeFor[config.Model]() && indent != 4:
			return // inference.models takes what inference.model does
		}
		for i := range typ.NumField() {
			f := typ.Field(i)
			key := f.Tag.Get("yaml")
			if key == "" || key == "-" {
				t.Errorf("%s.%s has no yaml key", typ, f.Name)
			}
			seen++
			if !documented(lines, strings.Repeat(" ", indent)+key+":") {
				t.Errorf("%s (%s.%s) is not in the reference, or has no words above it", key, typ, f.Name)
			}
			visit(f.Type, indent+2)
		}
	}
	visit(reflect.TypeFor[config.Config](), 0)
	if seen < 40 {
		t.Errorf("only %d keys visited", seen)
	}
}

// documented says whether a line begins with prefix and comes after a comment,
// or opens a section, whose keys have theirs.
func documented(lines []string, prefix string) bool {
	for i, l := range lines {
		if i > 0 && strings.HasPrefix(l, prefix) && (l == prefix || strings.HasPrefix(strings.TrimSpace(lines[i-1]), "#")) {
			return true
		}
	}
	return false
}
