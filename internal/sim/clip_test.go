package sim_test

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"edgecam/capture"
	"edgecam/internal/sim"
	"edgecam/internal/testkit"
)

func TestBuiltinClip(t *testing.T) {
	clip, err := sim.BuiltinClip()
	if err != nil {
		t.Fatal(err)
	}
	if clip.Codec != capture.H264 || len(clip.Samples) != 200 || clip.Duration != 20*time.Second || len(clip.ParameterSets()) != 2 {
		t.Errorf("the clip has %d samples of %s in %v and %d parameter sets", len(clip.Samples), clip.Codec, clip.Duration, len(clip.ParameterSets()))
	}
	random := 0
	for i, s := range clip.Samples {
		if s.RandomAccess {
			random++
			if s.NALUs[len(s.NALUs)-1][0]&0x1f != 5 {
				t.Errorf("sample %d is marked as a key frame and is none", i)
			}
		}
		if want := time.Duration(i) * 100 * time.Millisecond; s.DTS != want || s.PTS != want {
			t.Errorf("sample %d is at %v and %v, want %v", i, s.DTS, s.PTS, want)
		}
	}
	if random != 10 {
		t.Errorf("%d key frames, want 10", random)
	}
}

func TestClipsOfFFmpeg(t *testing.T) {
	for _, tt := range []struct {
		encoder string
		more    []string
		codec   capture.Codec
		sets    int
		reorder bool
	}{
		{encoder: "libx264", codec: capture.H264, sets: 2},
		{encoder: "libx264", more: []string{"-tune", "film", "-bf", "3"}, codec: capture.H264, sets: 2, reorder: true},
		{encoder: "libx265", codec: capture.H265, sets: 3},
		{encoder: "mjpeg", codec: capture.MJPEG},
	} {
		t.Run(tt.encoder+strings.Join(tt.more, ""), func(t *testing.T) {
			clip, err := sim.OpenClip(testkit.MP4(t, tt.encoder, "64x48", 10, 2, tt.more...))
			if err != nil {
				t.Fatal(err)
			}
			if clip.Codec != tt.codec || len(clip.ParameterSets()) != tt.sets || len(clip.Samples) != 20 || clip.Duration != 2*time.Second {
				t.Errorf("got %s, %d sets, %d samples, %v", clip.Codec, len(clip.ParameterSets()), len(clip.Samples), clip.Duration)
			}
			reordered := false
			for i, s := range clip.Samples {
				reordered = reordered || i > 0 && s.PTS < clip.Samples[i-1].PTS
			}
			if reordered != tt.reorder {
				t.Errorf("display order differs from decoding order: %v", reordered)
			}
		})
	}
}

func TestOpenClipRefuses(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		path := dir + "/" + name
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cut := write("cut.mp4", sim.Clip()[:len(sim.Clip())/2])
	text := write("text.mp4", []byte("this is no video, and quite a long text"))
	empty := write("empty.mp4", nil)
	for _, tt := range []struct{ name, path, want string }{
		{"no file", dir + "/none.mp4", "open clip: open " + dir + "/none.mp4: no such file or directory"},
		{"empty", empty, "open clip " + empty + ": read MP4: the file is empty or cut off; make one with: ffmpeg -i FILE -c copy clip.mp4"},
		{"bare H.264", write("bare.h264", []byte("\x00\x00\x00\x01\x67\x64\x00\x0a")), "open clip " + dir + "/bare.h264: read MP4: the file is no MP4 file; make"},
		{"in fragments", testkit.MP4(t, "libx264", "64x48", 10, 1, "-movflags", "frag_keyframe+empty_moov"), "open clip "},
		{"no video", write("audio.mp4", []byte("\x00\x00\x00\x08moov")), "open clip " + dir + "/audio.mp4: read MP4: it has no H.264, H.265 or MJPEG track"},
		{"text", text, "open clip " + text + ": read MP4: the file is no MP4 file"},
		{"cut off", cut, "open clip " + cut + ": read MP4"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := sim.OpenClip(tt.path)
			if tt.name == "in fragments" && err != nil && !strings.Contains(err.Error(), "the file is in fragments") {
				t.Errorf("error is %v", err)
			}
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("error is %v,\nwant      %s…", err, tt.want)
			}
		})
	}
}

func FuzzReadClip(f *testing.F) {
	// The clip's head with its tables, and as little of the pictures as the
	// first ones need: a small seed changes more often where it matters.
	f.Add(sim.Clip()[:20000])
	f.Add([]byte("\x00\x00\x00\x08moov"))
	f.Fuzz(func(t *testing.T, b []byte) {
		clip, err := sim.ReadClip(bytes.NewReader(b))
		if err != nil {
			return
		}
		if len(clip.Samples) == 0 || clip.Duration <= 0 || !clip.Samples[0].RandomAccess {
			t.Fatal("a clip that cannot be played was accepted")
		}
		size := 0
		for _, s := range clip.Samples {
			for _, n := range s.NALUs {
				size += len(n)
			}
		}
	})
}
