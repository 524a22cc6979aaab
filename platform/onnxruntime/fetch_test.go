package onnxruntime_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"edgecam/internal/testkit"
)

// fetch runs scripts/fetch-onnxruntime.sh with npm replaced by a shell script,
// or by nothing.
func fetch(t *testing.T, dest, npm string) (output string, ok bool) {
	t.Helper()
	bin := t.TempDir()
	for _, tool := range []string{
		"bash", "env", "uname", "sha256sum", "sha512sum", "cut", "dirname", "mkdir", "mktemp", "rm", "df", "awk",
		"sleep", "du", "sed", "tail", "find", "head", "tar", "gzip", "chmod", "cat", "mv", "stat", "cp",
	} {
		path, err := exec.LookPath(tool)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(bin, tool)); err != nil {
			t.Fatal(err)
		}
	}
	if npm != "" {
		if err := os.WriteFile(filepath.Join(bin, "npm"), []byte("#!/bin/sh\n"+npm), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(testkit.Root(t), "scripts/fetch-onnxruntime.sh"), dest)
	cmd.Env = []string{"PATH=" + bin}
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

// packTo is a shell line that finds npm pack's destination.
const packTo = `while [ $# -gt 0 ]; do [ "$1" = --pack-destination ] && to=$2; shift; done; `

func TestFetchScript(t *testing.T) {
	tests := []struct {
		name, npm, library string
		want               string
	}{
		{"no npm", "", "", "fetch-onnxruntime: npm is missing: install Node.js 18 or newer"},
		{"no network", "echo 'npm error network timeout' >&2; exit 1", "", "npm: npm error network timeout"},
		{"no network says what to do", "exit 1", "", "cannot download onnxruntime-node@1.30.0: is the network up"},
		{"another tarball", packTo + "echo changed > $to/onnxruntime-node-1.30.0.tgz", "", "has another sha512 than expected"},
		{"no tarball", "exit 0", "", "left no tarball"},
		{"damaged library is not kept for good", "exit 1", "damaged", "has another sum than expected: fetching it again"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dest := filepath.Join(t.TempDir(), "a b")
			if tt.library != "" {
				if err := os.MkdirAll(dest, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dest, "libonnxruntime.so.1"), []byte(tt.library), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			out, ok := fetch(t, dest, tt.npm)
			if ok || !strings.Contains(out, tt.want) {
				t.Errorf("ended well: %v, output %q, want %q in it", ok, out, tt.want)
			}
			left, err := filepath.Glob(filepath.Join(dest, ".fetch*"))
			if err != nil || len(left) != 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// TestFetchScriptIsDoneOnce has the library in place: neither npm nor the
// network is asked.
func TestFetchScriptIsDoneOnce(t *testing.T) {
	source := filepath.Join(testkit.Root(t), ".cache/onnxruntime/1.30.0/libonnxruntime.so.1")
	if _, err := os.Stat(source); err != nil {
		t.Fatalf("%v: run make build, or scripts/fetch-onnxruntime.sh", err)
	}
	dest := t.TempDir()
	if err := os.Symlink(source, filepath.Join(dest, "libonnxruntime.so.1")); err != nil {
		t.Fatal(err)
	}
	out, ok := fetch(t, dest, "echo npm was asked; exit 1")
	if want := "fetch-onnxruntime: " + dest + "/libonnxruntime.so.1 is there and its sum is right\n"; !ok || out != want {
		t.Errorf("ended well: %v, output %q, want %q", ok, out, want)
	}
}
