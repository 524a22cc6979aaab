package rtsp_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bluenviron/gortsplib/v4/pkg/base"
	"github.com/bluenviron/gortsplib/v4/pkg/description"
	"github.com/bluenviron/gortsplib/v4/pkg/sdp"

	"edgecam/capture"
	"edgecam/capture/rtsp"
)

// parse has gortsplib read a description and gives what it would set up.
func parse(t *testing.T, body []byte) (control string, codec string) {
	t.Helper()
	var text sdp.SessionDescription
	if err := text.Unmarshal(body); err != nil {
		t.Fatalf("gortsplib does not read\n%s\n%v", body, err)
	}
	var session description.Session
	if err := session.Unmarshal(&text); err != nil {
		t.Fatalf("gortsplib does not take\n%s\n%v", body, err)
	}
	if len(session.Medias) != 1 || len(session.Medias[0].Formats) != 1 {
		t.Fatalf("gortsplib sees more than one track in\n%s", body)
	}
	global, ok := text.Attribute("control")
	if !ok {
		t.Fatalf("no session control in\n%s", body)
	}
	baseURL, err := base.ParseURL(global)
	if err != nil {
		t.Fatal(err)
	}
	u, err := session.Medias[0].URL(baseURL)
	if err != nil {
		t.Fatal(err)
	}
	return u.String(), session.Medias[0].Formats[0].Codec()
}

// Every description of the field that has a video track must play, and the
// others must say what they lack.
func TestDescriptionsOfTheField(t *testing.T) {
	table, err := os.ReadFile("testdata/sdp/expected.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(strings.TrimSpace(string(table)), "\n") {
		name, want, _ := strings.Cut(line, "\t")
		t.Run(name, func(t *testing.T) {
			body, err := os.ReadFile(filepath.Join("testdata/sdp", name+".sdp"))
			if err != nil {
				t.Fatal(err)
			}
			choice, err := rtsp.Choose(body, "rtsp://192.0.2.10/s", "")
			if !strings.HasPrefix(want, "VIDEO") {
				if err == nil {
					t.Fatalf("chose %+v", choice)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			control, codec := parse(t, choice.Rewrite)
			if want := map[capture.Codec]string{capture.H264: "H264", capture.H265: "H265", capture.MJPEG: "M-JPEG"}[choice.Codec]; codec != want {
				t.Errorf("gortsplib reads codec %s, want %s", codec, want)
			}
			if strings.Contains(strings.TrimPrefix(control, "rtsp://"), "//") {
				t.Errorf("SETUP would name %s", control)
			}
		})
	}
}

func TestChoice(t *testing.T) {
	sps, _ := base64.StdEncoding.DecodeString("Z2QAFqzZQKAv+XARAAADAAEAAAMAFA8WLZY=")
	pps, _ := base64.StdEncoding.DecodeString("aOvjyyLA")
	both := [][]byte{sps, pps}
	tests := []struct {
		file  string
		codec capture.Codec
		sets  [][]byte
		words string
	}{
		{"00_good", capture.H264, both, "video 1 of 1 (H.264)"},
		{"01_no_sprop_pm0", capture.H264, nil, "video 1 of 1 (H.264)"},
		{"03_sprop_pps_empty", capture.H264, nil, "video 1 of 1 (H.264)"},
		{"04_sprop_bad_base64", capture.H264, nil, "video 1 of 1 (H.264)"},
		{"05_sprop_swapped", capture.H264, both, "video 1 of 1 (H.264)"},
		{"12_backchannel_many_aac", capture.H264, both, "video 1 of 1 (H.264), 2 other tracks left alone"},
		{"55_jpeg_pt26_no_rtpmap", capture.MJPEG, nil, "video 1 of 1 (MJPEG)"},
		{"60_h265_no_fmtp", capture.H265, nil, "video 1 of 1 (H.265)"},
		{"72_two_videos_h265_then_h264", capture.H265, nil, "video 1 of 2 (H.265)"},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			body, err := os.ReadFile("testdata/sdp/" + tt.file + ".sdp")
			if err != nil {
				t.Fatal(err)
			}
			got, err := rtsp.Choose(body, "rtsp://192.0.2.10/s", "")
			if err != nil {
				t.Fatal(err)
			}
			if got.Codec != tt.codec || got.Words != tt.words {
				t.Errorf("got %s %q, want %s %q", got.Codec, got.Words, tt.codec, tt.words)
			}
			if len(got.Sets) != len(tt.sets) {
				t.Fatalf("got %d parameter sets, want %d", len(got.Sets), len(tt.sets))
			}
			for i := range got.Sets {
				if !bytes.Equal(got.Sets[i], tt.sets[i]) {
					t.Errorf("parameter set %d is %x", i, got.Sets[i])
				}
			}
		})
	}
}

func TestNoChoice(t *testing.T) {
	tests := []struct{ file, want string }{
		{"70_audio_only", "no video track: the camera offers audio (PCMU)"},
		{"71_no_media", "no video track: the camera offers no track"},
		{"73_video_mp4v_only", "unsupported codec MPEG-4 part 2: set the camera's stream to H.264, H.265 or MJPEG"},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			body, err := os.ReadFile("testdata/sdp/" + tt.file + ".sdp")
			if err != nil {
				t.Fatal(err)
			}
			_, err = rtsp.Choose(body, "rtsp://192.0.2.10/s", "")
			var failure capture.Failure
			if !errors.As(err, &failure) || err.Error() != tt.want {
				t.Errorf("error is %v, want %q", err, tt.want)
			}
		})
	}
}

// The URL of SETUP is what VLC sends.
func TestControlURL(t *testing.T) {
	tests := []struct{ name, file, request, contentBase, want string }{
		{"relative", "00_good", "rtsp://192.0.2.10/s", "", "rtsp://192.0.2.10/s/trackID=0"},
		{"base with slash", "00_good", "rtsp://192.0.2.10/s", "rtsp://192.0.2.10/s/", "rtsp://192.0.2.10/s/trackID=0"},
		{"base with query", "00_good", "rtsp://192.0.2.10/s?a=1", "", "rtsp://192.0.2.10/s?a=1/trackID=0"},
		{"leading slash, base with slash", "83_control_lead_slash", "rtsp://192.0.2.10/s/", "", "rtsp://192.0.2.10/s/trackID=0"},
		{"leading slash", "83_control_lead_slash", "rtsp://192.0.2.10/s", "", "rtsp://192.0.2.10/s/trackID=0"},
		{"none", "80_no_media_control", "rtsp://192.0.2.10/s", "", "rtsp://192.0.2.10/s"},
		{"star", "82_control_star_media", "rtsp://192.0.2.10/s", "", "rtsp://192.0.2.10/s"},
		{"private address", "84_control_abs_private_ip", "rtsp://192.0.2.10/s", "", "rtsp://192.0.2.10/s/trackID=0"},
		{"upper case scheme", "85_control_upper_scheme", "rtsp://192.0.2.10/s", "", "rtsp://192.0.2.10/s/trackID=0"},
		{"query", "86_control_query", "rtsp://192.0.2.10/s", "", "rtsp://192.0.2.10/s?ctype=video"},
		{"empty Content-Base", "00_good", "rtsp://192.0.2.10/s", " ", "rtsp://192.0.2.10/s/trackID=0"},
		{"Content-Base without scheme", "00_good", "rtsp://192.0.2.10/s", "192.0.2.10/s", "rtsp://192.0.2.10/s/trackID=0"},
		{"Content-Base that is a path", "00_good", "rtsp://192.0.2.10/s", "/t/", "rtsp://192.0.2.10/t/trackID=0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body, err := os.ReadFile("testdata/sdp/" + tt.file + ".sdp")
			if err != nil {
				t.Fatal(err)
			}
			choice, err := rtsp.Choose(body, tt.request, strings.TrimSpace(tt.contentBase))
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := parse(t, choice.Rewrite); got != tt.want {
				t.Errorf("SETUP names %s, want %s", got, tt.want)
			}
		})
	}
}

// Whatever a camera sends, gortsplib gets a description of one track that it can
// set up, and words for people stay short and plain.
func FuzzDescription(f *testing.F) {
	files, err := filepath.Glob("testdata/sdp/*.sdp")
	if err != nil || len(files) == 0 {
		f.Fatal("no descriptions", err)
	}
	for _, name := range files {
		body, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body, 0)
	}
	f.Fuzz(func(t *testing.T, body []byte, track int) {
		choice, err := rtsp.ChooseTrack(body, "rtsp://192.0.2.10/s?a=1", "", track&15)
		if err != nil {
			mustBePlain(t, err.Error(), 2000)
			return
		}
		mustBePlain(t, choice.Words+choice.Info.Control, 200)
		if n := bytes.Count(choice.Rewrite, []byte("\r\nm=")); n != 1 {
			t.Fatalf("%d tracks in %q", n, choice.Rewrite)
		}
		parse(t, choice.Rewrite)
	})
}

// FuzzSetupURL: whatever a camera calls its track, SETUP has a URL.
func FuzzSetupURL(f *testing.F) {
	for _, control := range []string{"trackID=0", "*", "", "/a", "?x=y", "rtsp://u:p@h/x#y", "RTSP://h", "http://x/", "a b", "//", "rtsp://[::1", "%zz"} {
		f.Add(control, "*", "rtsp://192.0.2.10/t/")
		f.Add("trackID=0", control, control)
	}
	f.Fuzz(func(t *testing.T, control, session, contentBase string) {
		body := "a=control:" + session + "\r\nm=video 0 RTP/AVP 26\r\na=control:" + control + "\r\n"
		choice, err := rtsp.Choose([]byte(body), "rtsp://192.0.2.10/s", contentBase)
		if err != nil {
			return // a control with a line end can take the track away
		}
		parse(t, choice.Rewrite)
		u, err := base.ParseURL(choice.Control)
		if err != nil || u.Host == "" || u.User != nil {
			t.Errorf("SETUP would name %q: %v", choice.Control, err)
		}
		if strings.ContainsAny(choice.Control, " \t\r\n\x00") {
			t.Errorf("SETUP would name %q", choice.Control)
		}
	})
}

// mustBePlain fails on a text that a terminal or a page would stumble over.
func mustBePlain(t *testing.T, text string, limit int) {
	t.Helper()
	if len(text) > limit {
		t.Errorf("%d bytes: %q", len(text), text)
	}
	for _, r := range text {
		if r < ' ' || r > '~' {
			t.Errorf("%q has %q", text, r)
		}
	}
}
