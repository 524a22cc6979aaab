package testkit

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// RequireFFmpeg skips the test where there is no ffmpeg program.
func RequireFFmpeg(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("ffmpeg"); err != nil {
		t.Skip("needs the ffmpeg program (Debian: apt install ffmpeg)")
	}
}

// FFmpeg runs ffmpeg with args and gives the bytes of the file that it wrote,
// whose name (in a directory of the test's own) is put behind args.
func FFmpeg(t testing.TB, name string, args ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(FFmpegFile(t, name, args...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// FFmpegFile is FFmpeg for callers that want the file's path.
func FFmpegFile(t testing.TB, name string, args ...string) string {
	t.Helper()
	RequireFFmpeg(t)
	path := filepath.Join(t.TempDir(), name)
	all := slices.Concat([]string{"-nostdin", "-hide_banner", "-loglevel", "error", "-y"}, args, []string{path})
	if out, err := exec.CommandContext(t.Context(), "ffmpeg", all...).CombinedOutput(); err != nil {
		t.Fatalf("ffmpeg %q: %v\n%s", all, err, out)
	}
	return path
}

// FFprobe gives a value per packet (or frame, or stream) of a file, as in
// "packet=pts".
func FFprobe(t testing.TB, path, entry string) []string {
	t.Helper()
	RequireFFmpeg(t)
	cmd := exec.CommandContext(t.Context(), "ffprobe", "-loglevel", "error", "-select_streams", "v:0",
		"-show_entries", entry, "-of", "csv=print_section=0", path)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("ffprobe %s: %v", path, err)
	}
	return strings.Fields(strings.ReplaceAll(string(out), ",", " "))
}

// File writes b to a file of the test's own and returns its path.
func File(t testing.TB, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// NALUs splits an Annex B stream into its NAL units, without start codes.
func NALUs(b []byte) [][]byte {
	var out [][]byte
	for start := nextStart(b, 0); start < len(b); {
		end := nextStart(b, start)
		// A four-byte start code, and trailing zeros, belong to no unit.
		to := end
		if end < len(b) || bytes.HasSuffix(b[:to], []byte{0, 0, 1}) {
			to -= 3
		}
		if n := bytes.TrimRight(b[start:to], "\x00"); len(n) > 0 {
			out = append(out, n)
		}
		start = end
	}
	return out
}

// nextStart is the index behind the next start code at or after from.
func nextStart(b []byte, from int) int {
	i := bytes.Index(b[from:], []byte{0, 0, 1})
	if i < 0 {
		return len(b)
	}
	return from + i + 3
}

// The NAL unit types of access unit delimiters.
const (
	audH264 = 9
	audH265 = 35
)

// AccessUnitsH264 splits an Annex B stream at its access unit delimiters
// (bitstream filter h264_metadata=aud=insert), which are left out.
func AccessUnitsH264(b []byte) [][][]byte {
	return split(b, func(n []byte) bool { return n[0]&31 == audH264 })
}

// AccessUnitsH265 is AccessUnitsH264 for H.265 (hevc_metadata=aud=insert).
func AccessUnitsH265(b []byte) [][][]byte {
	return split(b, func(n []byte) bool { return n[0]>>1&63 == audH265 })
}

func split(b []byte, delimits func([]byte) bool) [][][]byte {
	var out [][][]byte
	for _, n := range NALUs(b) {
		if delimits(n) {
			out = append(out, nil)
			continue
		}
		if len(out) == 0 {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], n)
	}
	return slices.DeleteFunc(out, func(au [][]byte) bool { return len(au) == 0 })
}

// JPEGs splits a stream of JPEG files (ffmpeg -f mjpeg) into the files.
func JPEGs(b []byte) [][]byte {
	var out [][]byte
	soi := []byte{0xff, 0xd8, 0xff}
	for len(b) > 0 {
		end := bytes.Index(b[1:], soi)
		if end < 0 {
			return append(out, b)
		}
		out = append(out, b[:end+1])
		b = b[end+1:]
	}
	return out
}
