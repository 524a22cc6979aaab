//go:build linux

package sysav_test

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edgecam/platform"
	"edgecam/platform/avcodec"
	"edgecam/platform/sysav"
	"edgecam/platform/sysavtest"
)

// What a program shows the loader would be taken for a part of a libavcodec that it
// opens later.
func TestTheProgramShowsNoFFmpeg(t *testing.T) {
	name, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := f.DynamicSymbols()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		t.Fatal(err)
	}
	for _, s := range all {
		if s.Section != elf.SHN_UNDEF && strings.HasPrefix(s.Name, "av") {
			t.Errorf("shows %s", s.Name)
		}
	}
}

func TestOpen(t *testing.T) {
	for _, path := range everyVersion(t) {
		l := open(t, path)
		// It works with the libavutil that lies beside it, and not with another one.
		if filepath.Dir(l.Util()) != filepath.Dir(l.Path()) || !strings.HasPrefix(filepath.Base(l.Util()), "libavutil") {
			t.Errorf("%s works with %s", l.Path(), l.Util())
		}
		d, ok := l.Decoder("h264")
		if !ok || d.Codec != "h264" || d.Hardware || !d.Direct || d.LongName == "" {
			t.Errorf("%s: %+v, %v", l.Path(), d, ok)
		}
		if major, _, _ := strings.Cut(l.Version(), "."); major != fmt.Sprint(l.Major()) {
			t.Errorf("version %s, major %d", l.Version(), l.Major())
		}
		if n := l.Stuck(); n != 0 {
			t.Errorf("%d calls hang", n)
		}
	}
}

func TestLibrariesThatDoNotServe(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "libavcodec.so.58")
	if err := os.WriteFile(text, bytes.Repeat([]byte("no library"), 100), 0o600); err != nil {
		t.Fatal(err)
	}
	nv := sysavtest.Build(t)
	for _, c := range []struct {
		name, path string
		version    int
		want       string
	}{
		{"absent", filepath.Join(dir, "libavcodec.so.60"), 0, "is not installed"},
		{"absent by name", "libavcodec.so.1", 0, "is not installed"},
		{"no library", text, 0, "invalid ELF header"},
		{"another library", "libc.so.6", 0, "is no libavcodec: it lacks avcodec_version"},
		{"too old", nv.Path, 57, "is version 57 of libavcodec; edgecam knows 58 to 62"},
		{"too new", nv.Path, 63, "is version 63 of libavcodec; edgecam knows 58 to 62"},
		{"with another libavutil", nv.Path, 58, "but works with version"},
	} {
		t.Run(c.name, func(t *testing.T) {
			nv.Set("version", c.version)
			defer nv.Set("version", 0)
			_, err := sysav.Open(c.path)
			var ue *platform.UnavailableError
			if !errors.As(err, &ue) || !strings.Contains(ue.Err.Error(), c.want) || ue.Hint == "" {
				t.Errorf("error %v, want *platform.UnavailableError with %q", err, c.want)
			}
		})
	}
}

func TestFind(t *testing.T) {
	nv := sysavtest.Build(t)
	plain := installed(t)
	s := sysav.At("libavcodec.so.1", plain, nv.Path, nv.Path)
	for _, c := range []struct{ decoder, path string }{
		{"h264", plain}, {"h264_nvv4l2dec", nv.Path}, {"hevc_nvv4l2dec", nv.Path}, {"mjpeg", plain},
	} {
		l, err := s.Find(c.decoder)
		if err != nil {
			t.Fatal(err)
		}
		want, err := filepath.EvalSymlinks(c.path)
		if err != nil {
			t.Fatal(err)
		}
		if l.Path() != want {
			t.Errorf("%s is of %s, want %s", c.decoder, l.Path(), want)
		}
	}
	_, err := s.Find("h264_none")
	var oe *avcodec.OpenError
	if !errors.As(err, &oe) || !strings.Contains(oe.Why, "neither edgecam's FFmpeg nor the system's") {
		t.Errorf("error %v", err)
	}
	var ue *platform.UnavailableError
	if _, err := sysav.At().Find("h264"); !errors.As(err, &ue) {
		t.Errorf("error %v", err)
	}
}

// The variable stands in for the search.
func TestTheVariableNamesTheLibrary(t *testing.T) {
	nv := sysavtest.Build(t)
	t.Setenv(sysav.EnvPath, nv.Path)
	l, err := sysav.New().Find("h264_nvv4l2dec")
	if err != nil || l.Path() != nv.Path {
		t.Errorf("%v, %v", l, err)
	}
	t.Setenv(sysav.EnvPath, nv.Path+"x")
	if _, err := sysav.New().Find("h264"); err == nil || !strings.Contains(err.Error(), nv.Path+"x") {
		t.Errorf("error %v", err)
	}
}

func TestAnotherCodec(t *testing.T) {
	nv := sysavtest.Build(t)
	l := open(t, nv.Path)
	_, err := l.NewDecoder(sysav.Options{Decoder: "h264_nvv4l2dec", Codec: "hevc", Allocate: newRings(t, 1).allocate})
	if want := "open decoder h264_nvv4l2dec: it does not decode hevc"; fmt.Sprint(err) != want {
		t.Errorf("error %v", err)
	}
}
