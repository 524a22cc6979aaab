package testkit

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// MP4 has ffmpeg make an MP4 file of a moving test picture and gives its
// path: codec is libx264, libx265 or mjpeg; size like 320x240; a key frame
// comes each second. More arguments go to the encoder.
func MP4(t testing.TB, codec, size string, fps, seconds int, encoder ...string) string {
	t.Helper()
	// A directory that a program without privileges can read.
	path := filepath.Join(PublicDir(t), "clip.mp4")
	args := []string{
		"-f", "lavfi", "-i", fmt.Sprintf("testsrc2=size=%s:rate=%d:duration=%d", size, fps, seconds),
		"-c:v", codec, "-g", fmt.Sprint(fps), "-pix_fmt", "yuv420p",
	}
	switch codec {
	case "libx264":
		args = append(args, "-preset", "ultrafast", "-tune", "zerolatency")
	case "libx265":
		args = append(args, "-preset", "ultrafast", "-tag:v", "hvc1", "-x265-params", "log-level=error:bframes=0")
	case "mjpeg":
		// RTP carries JPEG's own default Huffman tables and nothing else
		// (RFC 2435 3.1.5).
		args = append(args, "-pix_fmt", "yuvj420p", "-huffman", "default", "-q:v", "5")
	}
	args = append(args, encoder...)
	args = append([]string{"-hide_banner", "-loglevel", "error", "-nostdin", "-y"}, append(args, path)...)
	cmd := exec.CommandContext(t.Context(), RequireProgram(t, "ffmpeg", "ffmpeg"), args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("ffmpeg %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return path
}
