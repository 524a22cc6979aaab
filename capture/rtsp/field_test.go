//go:build cgo

package rtsp_test

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"edgecam/capture"
	"edgecam/capture/decode"
	"edgecam/capture/rtsp"
	"edgecam/framepool"
	"edgecam/platform/avcodec"
)

// viewing is a supervisor whose pictures are really decoded.
type viewing struct {
	*supervised
	mu    sync.Mutex
	sizes []string // of pictures, in order
}

// view watches a camera with all that the product has between its URL and its
// pictures.
func view(t *testing.T, o rtsp.Options, change func(*capture.Options)) *viewing {
	t.Helper()
	library, err := avcodec.Open()
	if err != nil {
		t.Fatal(err)
	}
	v := &viewing{}
	v.supervised = supervise(t, o, func(c *capture.Options) {
		c.NewDecoder = func(info capture.StreamInfo) (capture.Decoder, error) {
			return decode.New(decode.Options{Camera: "gate", Info: info, Library: library, Node: -1, Logger: slog.New(slog.DiscardHandler)})
		}
		c.Emit = func(f *framepool.Frame) {
			v.mu.Lock()
			v.sizes = append(v.sizes, fmt.Sprintf("%dx%d", f.Meta().Width, f.Meta().Height))
			v.mu.Unlock()
			f.Release()
		}
		if change != nil {
			change(c)
		}
	})
	return v
}

// pictures waits until n more pictures have come, and gives the size of the last.
func (v *viewing) pictures(t *testing.T, n int) string {
	t.Helper()
	count := func() (int, string) {
		v.mu.Lock()
		defer v.mu.Unlock()
		if len(v.sizes) == 0 {
			return 0, ""
		}
		return len(v.sizes), v.sizes[len(v.sizes)-1]
	}
	before, _ := count()
	for limit := time.Now().Add(patience); time.Now().Before(limit); waitTick() {
		if now, size := count(); now >= before+n {
			return size
		}
	}
	t.Fatalf("%d pictures did not come; the camera is %+v", n, v.Status())
	return ""
}

// Every description of the field, with real video behind it: it plays, and
// nothing but the video is set up; or the state tells what is wrong.
func TestFieldDescriptionsPlay(t *testing.T) {
	t.Parallel()
	all := makeFilms(t)
	table, err := os.ReadFile("testdata/sdp/expected.tsv")
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{
		"70_audio_only":      "No video track: the camera offers audio (PCMU); check the path of the URL and the camera's stream settings",
		"71_no_media":        "No video track: the camera offers no track; check the path of the URL and the camera's stream settings",
		"73_video_mp4v_only": "Unsupported codec MPEG-4 part 2: set the camera's stream to H.264, H.265 or MJPEG",
	}
	for line := range strings.SplitSeq(strings.TrimSpace(string(table)), "\n") {
		name, want, _ := strings.Cut(line, "\t")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body, err := os.ReadFile("testdata/sdp/" + name + ".sdp")
			if err != nil {
				t.Fatal(err)
			}
			camera := (&fieldCamera{t: t, sdp: string(body), film: all.of(string(body))}).start()
			v := view(t, rtsp.Options{URL: camera.url()}, nil)
			if !strings.HasPrefix(want, "VIDEO") {
				for st := range v.states {
					if st.State != capture.Connecting {
						if st.Reason != reasons[name] {
							t.Errorf("reason is %q, want %q", st.Reason, reasons[name])
						}
						break
					}
				}
				if asked := camera.asked("SETUP"); len(asked) != 0 {
					t.Errorf("set up: %v", asked)
				}
				return
			}
			v.await(t, capture.Live)
			f, _ := camera.film("")
			if size, want := v.pictures(t, 3), sizeOf(f); size != want {
				t.Errorf("pictures are %s, want %s", size, want)
			}
			if asked := camera.asked("SETUP"); len(asked) != 1 {
				t.Errorf("set up: %v", asked)
			}
		})
	}
}

// of gives the film that fits the first video of a description.
func (a films) of(sdp string) func(string) (film, uint8) {
	_, video, _ := strings.Cut(sdp, "m=video")
	head, _, _ := strings.Cut(video, "m=")
	f, payload := a.h264, uint8(96)
	switch {
	case strings.Contains(head, "H265"):
		f = a.h265
	case strings.Contains(strings.SplitN(head, "\n", 2)[0], "AVP 26"):
		f, payload = a.jpeg, 26
	}
	if strings.Contains(strings.SplitN(head, "\n", 2)[0], "97") {
		payload = 97
	}
	return func(string) (film, uint8) { return f, payload }
}

func sizeOf(f film) string {
	switch f.codec {
	case capture.H264:
		return "320x240"
	case capture.H265:
		return "416x240"
	default:
		return "256x160"
	}
}

// Parameter sets may be in the description, in the stream, or divided between
// both. Decoding works in any case, and again in each later session.
func TestParameterSetsFromAnywhere(t *testing.T) {
	t.Parallel()
	all := makeFilms(t)
	h264 := func(sets ...string) string {
		if len(sets) == 0 {
			return "m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n"
		}
		var codes []string
		for _, kind := range sets {
			codes = append(codes, all.h264.set(t, kind))
		}
		return "m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=fmtp:96 sprop-parameter-sets=" + strings.Join(codes, ",") + "\r\n"
	}
	h265 := func(sets ...string) string {
		text := "m=video 0 RTP/AVP 96\r\na=rtpmap:96 H265/90000\r\na=fmtp:96 x=y"
		for _, kind := range sets {
			text += ";sprop-" + strings.ToLower(kind) + "=" + all.h265.set(t, kind)
		}
		return text + "\r\n"
	}
	for _, tt := range []struct {
		name string
		sdp  string
		film film
	}{
		{"H.264 in the stream", h264(), all.h264},
		{"H.264 in the description", h264("SPS", "PPS"), all.h264.without("SPS", "PPS")},
		{"H.264 in both", h264("SPS", "PPS"), all.h264},
		{"H.264 swapped", h264("PPS", "SPS"), all.h264.without("SPS", "PPS")},
		{"H.264 SPS described, PPS sent", h264("SPS"), all.h264.without("SPS")},
		{"H.264 PPS described, SPS sent", h264("PPS"), all.h264.without("PPS")},
		{"H.264 of another size in the description", strings.Replace(h264("SPS", "PPS"), all.h264.set(t, "SPS"), all.small.set(t, "SPS"), 1), all.h264},
		{"H.265 in the stream", h265(), all.h265},
		{"H.265 in the description", h265("VPS", "SPS", "PPS"), all.h265.without("VPS", "SPS", "PPS")},
		{"H.265 VPS sent", h265("SPS", "PPS"), all.h265.without("SPS", "PPS")},
		{"H.265 SPS sent", h265("VPS", "PPS"), all.h265.without("VPS", "PPS")},
		{"H.265 VPS and PPS sent", h265("SPS"), all.h265.without("SPS")},
		{"H.265 without VPS in the description", h265("SPS", "PPS"), all.h265},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var closed atomic.Bool
			camera := &fieldCamera{t: t, sdp: "v=0\r\n" + tt.sdp, film: func(string) (film, uint8) { return tt.film, 96 }}
			camera.change = func(c *scriptConn, req scriptRequest) bool {
				if req.method == "GET_PARAMETER" && closed.CompareAndSwap(false, true) {
					c.Close()
				}
				return false
			}
			camera.session = "1;timeout=1" // the first sign of life ends the first session
			camera.start()
			v := view(t, rtsp.Options{URL: camera.url()}, nil)
			for range 2 {
				v.await(t, capture.Live)
				if size := v.pictures(t, 12); size != sizeOf(tt.film) {
					t.Errorf("pictures are %s", size)
				}
				if dropped := v.Status().Dropped[capture.DropDamaged]; dropped > 0 {
					t.Errorf("%d pictures were damaged", dropped)
				}
			}
		})
	}
}

// A decoder that begins anew after a loss finds the sets that are in the
// description alone.
func TestDescribedSetsAfterLoss(t *testing.T) {
	t.Parallel()
	all := makeFilms(t)
	for _, tt := range []struct {
		name string
		film film
		sdp  string
	}{
		{"H.264", all.h264.without("SPS", "PPS"), "m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=fmtp:96 sprop-parameter-sets=" +
			all.h264.set(t, "SPS") + "," + all.h264.set(t, "PPS") + "\r\n"},
		{"H.265", all.h265.without("VPS", "SPS", "PPS"), "m=video 0 RTP/AVP 96\r\na=rtpmap:96 H265/90000\r\na=fmtp:96 sprop-vps=" +
			all.h265.set(t, "VPS") + ";sprop-sps=" + all.h265.set(t, "SPS") + ";sprop-pps=" + all.h265.set(t, "PPS") + "\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			camera := &fieldCamera{t: t, sdp: "v=0\r\n" + tt.sdp, film: func(string) (film, uint8) { return tt.film, 96 }}
			camera.gap = 31 // one packet in so many does not arrive
			camera.start()
			v := view(t, rtsp.Options{URL: camera.url()}, nil)
			v.await(t, capture.Live)
			v.pictures(t, 20)
			if st := v.Status(); st.Attempts != 1 {
				t.Errorf("%d sessions", st.Attempts)
			}
		})
	}
}

// twoVideos is a camera with a visible and a thermal picture, and a third one
// that nobody decodes.
const twoVideos = "v=0\r\nm=audio 0 RTP/AVP 0\r\na=control:audio\r\n" +
	"m=video 0 RTP/AVP 96\r\na=rtpmap:96 MP4V-ES/90000\r\na=control:old\r\n" +
	"m=video 0 RTP/AVP 97\r\na=rtpmap:97 H265/90000\r\na=control:visible\r\n" +
	"m=video 0 RTP/AVP 98\r\na=rtpmap:98 H264/90000\r\na=control:thermal\r\n"

// The configuration says which video plays; else it is the first that can.
func TestVideoTrack(t *testing.T) {
	t.Parallel()
	all := makeFilms(t)
	start := func(t *testing.T) *fieldCamera {
		return (&fieldCamera{t: t, sdp: twoVideos, film: func(url string) (film, uint8) {
			if strings.HasSuffix(url, "/visible") {
				return all.h265, 97
			}
			return all.h264, 98
		}}).start()
	}
	for _, tt := range []struct {
		track int
		info  capture.TrackInfo
		words string
		size  string
	}{
		{0, capture.TrackInfo{Index: 2, Of: 3, Codec: capture.H265, Control: "visible", Others: 1}, "video 2 of 3 (H.265), 1 other track left alone", "416x240"},
		{2, capture.TrackInfo{Index: 2, Of: 3, Codec: capture.H265, Control: "visible", Others: 1}, "video 2 of 3 (H.265), 1 other track left alone", "416x240"},
		{3, capture.TrackInfo{Index: 3, Of: 3, Codec: capture.H264, Control: "thermal", Others: 1}, "video 3 of 3 (H.264), 1 other track left alone", "320x240"},
	} {
		t.Run(fmt.Sprint(tt.track), func(t *testing.T) {
			t.Parallel()
			camera := start(t)
			v := view(t, rtsp.Options{URL: camera.url(), VideoTrack: tt.track}, nil)
			st := v.await(t, capture.Live)
			if st.Track != tt.info || st.Track.String() != tt.words {
				t.Errorf("track is %+v, %q", st.Track, st.Track.String())
			}
			if size := v.pictures(t, 3); size != tt.size {
				t.Errorf("pictures are %s, want %s", size, tt.size)
			}
			if asked := camera.asked("SETUP"); len(asked) != 1 || asked[0] != "rtsp://ADDR/s/"+tt.info.Control {
				t.Errorf("set up: %v", asked)
			}
			if !strings.Contains(v.log.String(), `track="`+tt.words+`"`) {
				t.Error("the log does not tell the track")
			}
		})
	}
	for track, reason := range map[int]string{
		1: "Unsupported codec MPEG-4 part 2 of video track 1: set the camera's stream to H.264, H.265 or MJPEG, or video_track to another one",
		4: "No video track number 4: the camera offers audio (PCMU), video (MPEG-4 part 2), video (H.265), video (H.264); set video_track to auto or to one of these",
	} {
		t.Run(fmt.Sprint(track), func(t *testing.T) {
			t.Parallel()
			v := view(t, rtsp.Options{URL: start(t).url(), VideoTrack: track}, nil)
			for st := range v.states {
				if st.State != capture.Connecting {
					if st.Reason != reason {
						t.Errorf("reason is %q, want %q", st.Reason, reason)
					}
					break
				}
			}
		})
	}
}

// A camera that leaves the video out after a reconnect is asked again.
func TestVideoIsMissingForAWhile(t *testing.T) {
	t.Parallel()
	all := makeFilms(t)
	var describes atomic.Int64
	camera := &fieldCamera{t: t, sdp: goodSDP, film: func(string) (film, uint8) { return all.h264, 96 }}
	camera.session = "1;timeout=1"
	camera.change = func(c *scriptConn, req scriptRequest) bool {
		switch {
		case req.method == "DESCRIBE":
			if describes.Add(1) == 2 {
				c.reply(req, 200, "Content-Type: application/sdp", "v=0\r\nm=audio 0 RTP/AVP 0\r\na=control:audio\r\n")
				return true
			}
		case req.method == "GET_PARAMETER" && describes.Load() == 1:
			c.Close()
		}
		return false
	}
	camera.start()
	v := view(t, rtsp.Options{URL: camera.url()}, nil)
	v.await(t, capture.Live)
	v.await(t, capture.Backoff) // the connection was cut
	if st := v.await(t, capture.Backoff); !strings.HasPrefix(st.Reason, "No video track: the camera offers audio (PCMU)") {
		t.Errorf("reason is %q", st.Reason)
	}
	v.await(t, capture.Live)
	v.pictures(t, 3)
}
