package testkit

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The clip that ships with edgecam.
const (
	ClipWidth, ClipHeight = 768, 576
	clipFile              = "internal/sim/pets-s2l1-20s.mp4"
)

// ClipFrames decodes the frames of the clip that an ffmpeg select expression
// names, as packed BGR.
func ClipFrames(tb testing.TB, sel string) [][]byte {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), "ffmpeg", "-v", "error", "-i", filepath.Join(Root(tb), clipFile),
		"-vf", "select='"+sel+"'", "-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", "bgr24", "-")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	raw, err := cmd.Output()
	if err != nil {
		tb.Fatalf("ffmpeg (Debian: apt-get install ffmpeg): %v\n%s", err, strings.TrimSpace(stderr.String()))
	}
	const size = ClipWidth * ClipHeight * 3
	if len(raw) == 0 || len(raw)%size != 0 {
		tb.Fatalf("ffmpeg gave %d bytes, wanted a multiple of %d", len(raw), size)
	}
	var frames [][]byte
	for ; len(raw) > 0; raw = raw[size:] {
		frames = append(frames, raw[:size])
	}
	return frames
}
