package onnxruntime

import (
	"runtime"
	"slices"
	"strings"
	"testing"
)

func otherArch() string {
	if runtime.GOARCH == "arm64" {
		return "amd64"
	}
	return "arm64"
}

func TestCandidates(t *testing.T) {
	files := []string{
		"/opt/edgecam/.cache/onnxruntime/1.29.0", "/opt/edgecam/.cache/onnxruntime/1.30.0",
		"/opt/edgecam/.cache/onnxruntime/1.30.0-" + otherArch(),
	}
	glob := func(pattern string) ([]string, error) {
		switch pattern {
		case "/opt/edgecam/.cache/onnxruntime/*":
			return slices.Clone(files), nil
		case "/usr/lib/" + triplet() + "/libonnxruntime.so.1.*":
			return []string{"/usr/lib/" + triplet() + "/libonnxruntime.so.1.21"}, nil
		}
		return nil, nil
	}
	env := func(pairs map[string]string) func(string) string {
		return func(key string) string { return pairs[key] }
	}
	tests := []struct {
		name, explicit string
		env            map[string]string
		want           []string // in this order, others may lie between
		absent         string
	}{
		{"configuration wins", "/a/lib.so", map[string]string{EnvPath: "/b/lib.so"}, []string{"/a/lib.so"}, "/b/lib.so"},
		{"environment", "", map[string]string{EnvPath: "/b/lib.so"}, []string{"/b/lib.so"}, "/opt/edgecam/bin/libonnxruntime.so"},
		{"search", "", map[string]string{"LD_LIBRARY_PATH": "/ld::relative"}, []string{
			"/opt/edgecam/bin/libonnxruntime.so",
			"/opt/edgecam/bin/libonnxruntime.so.1",
			"/opt/edgecam/bin/lib/libonnxruntime.so",
			"/opt/edgecam/lib/edgecam/libonnxruntime.so",
			"/opt/edgecam/.cache/onnxruntime/1.30.0/libonnxruntime.so.1",
			"/opt/edgecam/.cache/onnxruntime/1.29.0/libonnxruntime.so.1",
			"/ld/libonnxruntime.so.1",
			"/usr/local/lib/libonnxruntime.so",
			"/usr/lib/" + triplet() + "/libonnxruntime.so.1.21",
		}, "relative/libonnxruntime.so"},
		{"another architecture's", "", nil, []string{
			"/opt/edgecam/.cache/onnxruntime/1.30.0/libonnxruntime.so.1",
		}, "/opt/edgecam/.cache/onnxruntime/1.30.0-" + otherArch() + "/libonnxruntime.so.1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := candidates(tt.explicit, env(tt.env), "/opt/edgecam/bin/edgecam", glob)
			at := 0
			for _, want := range tt.want {
				i := slices.Index(got[at:], want)
				if i < 0 {
					t.Fatalf("no %s after place %d of\n%s", want, at, strings.Join(got, "\n"))
				}
				at += i + 1
			}
			if slices.Contains(got, tt.absent) {
				t.Errorf("%s is among\n%s", tt.absent, strings.Join(got, "\n"))
			}
		})
	}
}

func TestParseVersion(t *testing.T) {
	tests := map[string]int{"1.17.0": 17, "1.30.0": 30, "1.22.0-dev+abc": 22, "1.9": 9}
	for text, want := range tests {
		if got, err := parseVersion(text); err != nil || got != want {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "1", "x.y", "1.-2.0", "1.x.0", "2.1.0"} {
		if v, err := parseVersion(text); err == nil {
			t.Errorf("%q: %d, want an error", text, v)
		}
	}
}
