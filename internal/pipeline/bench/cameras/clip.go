package cameras

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"edgecam/capture"
	"edgecam/internal/sim"
)

// Video is what a simulated camera sends.
type Video struct {
	Width, Height int
	FPS           float64
	Codec         capture.Codec // H264 or H265
	Bitrate       int           // bits a second; 0 = usual for the size and codec
}

// ParseSize reads "1080p", "4k" and the like, or "1280x720".
func ParseSize(s string) (width, height int, err error) {
	named := map[string][2]int{"480p": {854, 480}, "720p": {1280, 720}, "1080p": {1920, 1080}, "1440p": {2560, 1440}, "4k": {3840, 2160}}
	if n, ok := named[strings.ToLower(s)]; ok {
		return n[0], n[1], nil
	}
	w, h, ok := strings.Cut(strings.ToLower(s), "x")
	width, err1 := strconv.Atoi(w)
	height, err2 := strconv.Atoi(h)
	if !ok || err1 != nil || err2 != nil || width < 64 || height < 64 || width > 8192 || height > 8192 || width%2 != 0 || height%2 != 0 {
		return 0, 0, fmt.Errorf("size %q: use 480p, 720p, 1080p, 1440p, 4k, or even numbers such as 1280x720", s)
	}
	return width, height, nil
}

// bits is the bit rate: cameras send 1080p30 with about 4 Mb/s in H.264 and half
// of that in H.265.
func (v Video) bits() int {
	if v.Bitrate > 0 {
		return v.Bitrate
	}
	const reference, of = 1920 * 1080 * 30, 4_000_000
	n := of * float64(v.Width*v.Height) * v.FPS / reference
	if v.Codec == capture.H265 {
		n /= 2
	}
	return int(n)
}

// String says it in words.
func (v Video) String() string {
	return fmt.Sprintf("%dx%d, %g frames/s, %s, %.1f Mb/s", v.Width, v.Height, v.FPS, v.Codec, float64(v.bits())/1e6)
}

// MissingEncoderError says that a clip cannot be made here.
type MissingEncoderError struct {
	Video   Video
	Command string // that makes it elsewhere
}

// Error implements error.
func (e *MissingEncoderError) Error() string {
	return fmt.Sprintf("make a clip of %s: there is no ffmpeg here", e.Video)
}

// Hint says what to do.
func (e *MissingEncoderError) Hint() string {
	return "install ffmpeg, or make the clip elsewhere, from any video, and name it with --clip: " + e.Command
}

// Make gives the file of a clip with this video, made from the built-in clip in
// dir unless it is there already.
func (v Video) Make(ctx context.Context, dir string) (string, error) {
	name := fmt.Sprintf("%dx%d-%g-%s-%d.mp4", v.Width, v.Height, v.FPS, v.Codec, v.bits())
	out := filepath.Join(dir, name)
	if _, err := os.Stat(out); err == nil {
		return out, nil
	}
	args := v.arguments("VIDEO", name)
	ffmpeg, err := exec.LookPath("ffmpeg")
	if errors.Is(err, exec.ErrNotFound) {
		return "", &MissingEncoderError{Video: v, Command: "ffmpeg " + strings.Join(args, " ")}
	}
	if err != nil {
		return "", fmt.Errorf("make a clip: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make a clip: %w", err)
	}
	work, err := os.MkdirTemp(dir, "making-")
	if err != nil {
		return "", fmt.Errorf("make a clip: %w", err)
	}
	defer os.RemoveAll(work) //nolint:errcheck // what stays is scratch
	source, made := filepath.Join(work, "source.mp4"), filepath.Join(work, name)
	if err := os.WriteFile(source, sim.Clip(), 0o600); err != nil {
		return "", fmt.Errorf("make a clip: %w", err)
	}
	var text bytes.Buffer
	cmd := exec.CommandContext(ctx, ffmpeg, v.arguments(source, made)...)
	cmd.Stderr = &text
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("make a clip of %s with ffmpeg: %w: %s", v, err, lastLine(text.String()))
	}
	if err := os.Rename(made, out); err != nil {
		return "", fmt.Errorf("make a clip: %w", err)
	}
	return out, nil
}

// arguments of ffmpeg. The source plays at the rate that is asked for, so that
// every picture differs from the one before; there are no B frames and a key
// frame every two seconds, as cameras send it.
func (v Video) arguments(source, out string) []string {
	rate, bits := strconv.FormatFloat(v.FPS, 'f', -1, 64), strconv.Itoa(v.bits())
	args := []string{
		"-v", "error", "-y", "-r", rate, "-stream_loop", "-1", "-i", source, "-t", "10", "-an",
		"-vf", fmt.Sprintf("scale=%d:%d", v.Width, v.Height), "-pix_fmt", "yuv420p",
	}
	gop := strconv.Itoa(max(int(2*v.FPS), 1))
	if v.Codec == capture.H265 {
		args = append(args, "-c:v", "libx265", "-preset", "superfast", "-x265-params",
			"log-level=error:bframes=0:scenecut=0:keyint="+gop+":min-keyint="+gop, "-tag:v", "hvc1")
	} else {
		args = append(args, "-c:v", "libx264", "-preset", "superfast", "-bf", "0", "-g", gop, "-keyint_min", gop, "-sc_threshold", "0")
	}
	return append(args, "-b:v", bits, "-maxrate", bits, "-bufsize", bits, out)
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}

// Rate is the frames a second of a clip.
func Rate(clip *sim.ClipData) float64 {
	if clip.Duration <= 0 {
		return 0
	}
	return float64(len(clip.Samples)) / clip.Duration.Seconds()
}
