//go:build linux

package sysavtest

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ebitengine/purego"
)

//go:embed testdata/nvv4l2.c
var source string

// Library is the stand-in.
type Library struct {
	Path string // of its libavcodec

	tb  testing.TB
	get func(string) int32
	set func(string, int32)
}

// Build builds the stand-in. At the end of the test nothing of it may be alive.
func Build(tb testing.TB) *Library {
	tb.Helper()
	real := installed(tb)
	dir := tb.TempDir()
	l := &Library{Path: filepath.Join(dir, filepath.Base(real)), tb: tb}
	// Each test has a copy, since the loader gives each file its own state.
	built.Do(func() { compile(tb, real) })
	if err := os.WriteFile(l.Path, built.content, 0o700); err != nil { //nolint:gosec // programs are loaded from it
		tb.Fatal(err)
	}
	handle, err := purego.Dlopen(l.Path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		tb.Fatal(err)
	}
	purego.RegisterLibFunc(&l.get, handle, "nv_get")
	purego.RegisterLibFunc(&l.set, handle, "nv_set")
	tb.Cleanup(func() {
		if n := l.Get("alive"); n != 0 {
			tb.Errorf("%d decoders of the stand-in are alive", n)
		}
		if n := l.Get("overflows"); n != 0 {
			tb.Errorf("%d pictures were larger than a decoder's memory", n)
		}
	})
	return l
}

// What was compiled in this process: that takes longer than many a test.
var built struct { //nolint:gochecknoglobals // it only saves time
	sync.Once

	content []byte
}

func compile(tb testing.TB, real string) {
	tb.Helper()
	dir := tb.TempDir()
	file, out := filepath.Join(dir, "nvv4l2.c"), filepath.Join(dir, "out.so")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		tb.Fatal(err)
	}
	cmd := exec.CommandContext(tb.Context(), "gcc", "-shared", "-fPIC", "-O1", "-Wall", "-DREAL_CODEC=\""+real+"\"",
		"-o", out, file, "-Wl,--no-as-needed", real, "-lavutil", "-lpthread", "-ldl")
	if text, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("build a libavcodec: %v\n%s", err, text)
	}
	var err error
	if built.content, err = os.ReadFile(out); err != nil {
		tb.Fatal(err)
	}
}

// installed is the libavcodec of the headers that gcc finds.
func installed(tb testing.TB) string {
	tb.Helper()
	out, err := exec.CommandContext(tb.Context(), "gcc", "-print-file-name=libavcodec.so").Output()
	path := strings.TrimSpace(string(out))
	if err != nil || !filepath.IsAbs(path) {
		tb.Fatalf("libavcodec.so is %q (%v): install libavcodec-dev", path, err)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		tb.Fatal(err)
	}
	// libavcodec.so.59.37.100 goes by libavcodec.so.59.
	name, version, _ := strings.Cut(filepath.Base(path), ".so.")
	major, _, _ := strings.Cut(version, ".")
	return filepath.Join(filepath.Dir(path), name+".so."+major)
}

// Calls that can hang, for Set("hang", …).
const (
	HangOpen = 1 << iota
	HangSend
	HangReceive
	HangClose
)

// Set changes how the stand-in behaves: "delay" is how many pictures it holds back,
// "hang" which calls do not come back until it is 0 again, "silent" means that no
// picture ever comes, "fail" is the code that units are refused with, "version" a
// major version to pretend, "squeeze" that full range becomes limited, "odd_times"
// that pictures lose their time, "refuse" that the device cannot be opened, and
// "hidden" that the decoders are not there.
func (l *Library) Set(name string, value int) { l.set(name, int32(value)) }

// Get gives what was set, or how many decoders are "alive", have been "opened", how
// many calls are "hanging", and how many pictures "overflows" had.
func (l *Library) Get(name string) int { return int(l.get(name)) }
