package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Clip is a stream as a camera would send it, and what ffmpeg makes of it.
type Clip struct {
	Codec string     // "h264", "hevc" or "mjpeg"
	Units [][][]byte // access units: NAL units without start codes, or one JPEG file each
	Raw   []byte     // the decoded pictures in display order, planes without padding
}

// Encode makes a clip of a moving picture, size as in "640x360", in an FFmpeg
// pixel format, ten frames a second. args are ffmpeg's, for the encoder.
func Encode(t testing.TB, codec, format, size string, frames int, args ...string) Clip {
	t.Helper()
	return EncodeAs(t, codec, format, format, size, frames, args...)
}

// EncodeAs is Encode for streams that decode to another format, out.
func EncodeAs(t testing.TB, codec, format, out, size string, frames int, args ...string) Clip {
	t.Helper()
	// The picture is drawn in 4:4:4, since sources of other formats round odd
	// sizes.
	all := []string{
		"-f", "lavfi", "-i", fmt.Sprintf("testsrc2=size=%s:rate=10,format=yuv444p", size),
		"-frames:v", fmt.Sprint(frames), "-pix_fmt", format,
	}
	switch codec {
	case "h264":
		all = append(all, "-c:v", "libx264", "-preset", "ultrafast", "-bsf:v", "h264_metadata=aud=insert")
	case "hevc":
		all = append(all, "-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none:aud=1")
	case "mjpeg":
		all = append(all, "-c:v", "mjpeg", "-strict", "-1", "-q:v", "3", "-f", "mjpeg")
	}
	return LoadClip(t, codec, FFmpegFile(t, "in."+codec, append(all, args...)...), out)
}

// LoadClip reads a stream that has access unit delimiters. An empty format
// leaves Raw empty.
func LoadClip(t testing.TB, codec, path, format string) Clip {
	t.Helper()
	c := Clip{Codec: codec}
	b := stream(t, codec, path)
	switch codec {
	case "h264":
		c.Units = AccessUnitsH264(b)
	case "hevc":
		c.Units = AccessUnitsH265(b)
	case "mjpeg":
		for _, j := range JPEGs(b) {
			c.Units = append(c.Units, [][]byte{j})
		}
	}
	if format != "" {
		// The format is the decoder's own: a conversion would not be the truth.
		c.Raw = FFmpeg(t, "out.raw", "-flags", "unaligned", "-i", path,
			"-f", "rawvideo", "-pix_fmt", format, "-vsync", "passthrough")
	}
	return c
}

// stream reads a raw stream, or takes it out of a container.
func stream(t testing.TB, codec, path string) []byte {
	t.Helper()
	if filepath.Ext(path) != "."+codec {
		return FFmpeg(t, "copy."+codec, "-i", path, "-c", "copy", "-f", codec)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
