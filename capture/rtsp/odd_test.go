package rtsp_test

import (
	"fmt"
	"strings"
	"testing"

	"edgecam/capture"
	"edgecam/capture/rtsp"
)

const (
	oddSPS = "Z2QAFqzZQKAv+XARAAADAAEAAAMAFA8WLZY="
	oddPPS = "aOvjyyLA"
)

// Descriptions as cameras of many makes write them, and as they get damaged.
func TestOddDescriptions(t *testing.T) {
	t.Parallel()
	const head = "v=0\r\no=- 1 1 IN IP4 192.0.2.10\r\ns=Media Presentation\r\nt=0 0\r\n"
	h264 := "m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=fmtp:96 sprop-parameter-sets=" + oddSPS + "," + oddPPS + "\r\na=control:trackID=1\r\n"
	long := strings.Repeat("a=x-private:"+strings.Repeat("0", 100)+"\r\n", 1000)
	for _, tt := range []struct {
		name  string
		sdp   string
		words string // of the track
		url   string // of SETUP, behind rtsp://192.0.2.10/s; "" = /trackID=1
		sets  int
	}{
		{
			name: "Hikvision", sdp: head + "b=AS:5050\r\na=control:rtsp://192.0.2.10/s/\r\nm=video 0 RTP/AVP 96\r\nc=IN IP4 0.0.0.0\r\nb=AS:5000\r\na=recvonly\r\n" +
				"a=x-dimensions:1920,1080\r\na=control:rtsp://192.0.2.10/s/trackID=1\r\na=rtpmap:96 H264/90000\r\na=fmtp:96 profile-level-id=420029; packetization-mode=1; sprop-parameter-sets=" +
				oddSPS + "," + oddPPS + "\r\na=Media_header:MEDIAINFO=494D4B48;\r\na=appversion:1.0\r\n" +
				"m=application 0 RTP/AVP 107\r\na=control:rtsp://192.0.2.10/s/trackID=3\r\na=rtpmap:107 vnd.onvif.metadata/90000\r\n",
			words: "video 1 of 1 (H.264), 1 other track left alone", sets: 2,
		},
		{
			name: "Dahua", sdp: "v=0\r\no=- 2251938202 2251938202 IN IP4 0.0.0.0\r\ns=Media Server\r\nc=IN IP4 0.0.0.0\r\nt=0 0\r\na=control:*\r\na=packetization-supported:DH\r\na=range:npt=now-\r\n" +
				"m=video 0 RTP/AVP 98\r\na=control:trackID=1\r\na=framerate:25.000000\r\na=rtpmap:98 H265/90000\r\na=fmtp:98 profile-id=1;sprop-sps=QgEBAWAAAAMAkAAAAwAAAwA/oAUCAWlllZpJMrwFoCAAAAMAIAAAAwCh;sprop-pps=RAHBcrRiQA==;sprop-vps=QAEMAf//AWAAAAMAkAAAAwAAAwA/lZgJ\r\na=recvonly\r\n" +
				"m=audio 0 RTP/AVP 97\r\na=control:trackID=2\r\na=rtpmap:97 MPEG4-GENERIC/16000\r\na=fmtp:97 streamtype=5;profile-level-id=1;mode=AAC-hbr;config=1408\r\na=recvonly\r\n",
			words: "video 1 of 1 (H.265), 1 other track left alone", sets: 3,
		},
		{
			name: "audio first", sdp: head + "m=audio 0 RTP/AVP 104\r\na=rtpmap:104 mpeg4-generic/16000/1\r\na=control:trackID=2\r\n" + h264,
			words: "video 1 of 1 (H.264), 1 other track left alone", sets: 2,
		},
		{
			name: "ONVIF metadata first", sdp: head + "m=application 0 RTP/AVP 98\r\na=rtpmap:98 vnd.onvif.metadata/90000\r\na=control:meta\r\n" + h264,
			words: "video 1 of 1 (H.264), 1 other track left alone", sets: 2,
		},
		{name: "multicast address", sdp: head + "c=IN IP4 239.1.2.3/127\r\n" + strings.Replace(h264, "m=video 0", "m=video 15002", 1), words: "video 1 of 1 (H.264)", sets: 2},
		{name: "two ports", sdp: head + strings.Replace(h264, "m=video 0", "m=video 49170/2", 1), words: "video 1 of 1 (H.264)", sets: 2},
		{name: "lower case codec", sdp: head + strings.Replace(h264, "H264", "h264", 1), words: "video 1 of 1 (H.264)", sets: 2},
		{name: "upper case attributes", sdp: head + strings.NewReplacer("rtpmap", "RTPMAP", "control", "Control", "sprop-parameter-sets", "Sprop-Parameter-Sets").Replace(h264), words: "video 1 of 1 (H.264)", sets: 2},
		{name: "name of HEVC", sdp: head + "m=video 0 RTP/AVP 96\r\na=rtpmap:96 HEVC/90000\r\na=control:trackID=1\r\n", words: "video 1 of 1 (H.265)"},
		{name: "blanks all over", sdp: head + "m=video  0  RTP/AVP  96 \r\na=rtpmap: 96   H264/90000 \r\na=fmtp: 96  sprop-parameter-sets = " + oddSPS + " , " + oddPPS + " ; x = y\r\na=control: trackID=1 \r\n", words: "video 1 of 1 (H.264)", sets: 2},
		{name: "tabs", sdp: head + "m=video\t0\tRTP/AVP\t96\r\na=rtpmap:96\tH264/90000\r\na=fmtp:96\tsprop-parameter-sets=" + oddSPS + "," + oddPPS + "\r\na=control:trackID=1\r\n", words: "video 1 of 1 (H.264)", sets: 2},
		{name: "no semicolons", sdp: head + strings.Replace(h264, "a=fmtp:96 ", "a=fmtp:96 packetization-mode=1 profile-level-id=640016 ", 1), words: "video 1 of 1 (H.264)", sets: 2},
		{name: "commas for semicolons", sdp: head + strings.Replace(h264, "a=fmtp:96 ", "a=fmtp:96 packetization-mode=1,profile-level-id=640016,", 1), words: "video 1 of 1 (H.264)", sets: 2},
		{name: "quoted sets", sdp: head + strings.Replace(h264, oddSPS+","+oddPPS, `"`+oddSPS+","+oddPPS+`"`, 1), words: "video 1 of 1 (H.264)", sets: 2},
		{name: "sets without padding", sdp: head + strings.Replace(h264, oddSPS, strings.TrimRight(oddSPS, "="), 1), words: "video 1 of 1 (H.264)", sets: 2},
		{name: "sets with start codes in one", sdp: head + strings.Replace(h264, oddSPS+","+oddPPS, "AAAAAWdkABas2UCgL/lwEQAAAwABAAADABQPFi2WAAAAAWjr48siwA==", 1), words: "video 1 of 1 (H.264)", sets: 2},
		{name: "two fmtp lines", sdp: head + strings.Replace(h264, "a=fmtp:96 ", "a=fmtp:96 packetization-mode=1\r\na=fmtp:96 ", 1), words: "video 1 of 1 (H.264)", sets: 2},
		{name: "fmtp of another number", sdp: head + strings.Replace(h264, "a=fmtp:96 ", "a=fmtp:97 ", 1), words: "video 1 of 1 (H.264)", sets: 2},
		{name: "rtpmap of another number", sdp: head + strings.Replace(h264, "AVP 96", "AVP 97", 1), words: "video 1 of 1 (H.264)", sets: 2},
		{name: "no rtpmap", sdp: head + strings.Replace(h264, "a=rtpmap:96 H264/90000\r\n", "", 1), words: "video 1 of 1 (H.264)", sets: 2},
		{name: "no number on the m= line", sdp: head + strings.Replace(h264, "AVP 96", "AVP", 1), words: "video 1 of 1 (H.264)", sets: 2},
		{name: "no profile on the m= line", sdp: head + strings.Replace(h264, "RTP/AVP 96", "96", 1), words: "video 1 of 1 (H.264)", sets: 2},
		{name: "no colon behind attributes", sdp: head + strings.NewReplacer("a=control:", "a=control ", "a=rtpmap:", "a=rtpmap ").Replace(h264), words: "video 1 of 1 (H.264)", sets: 2},
		{name: "interleaved units announced", sdp: head + strings.Replace(h264, "a=fmtp:96 ", "a=fmtp:96 packetization-mode=2;", 1), words: "video 1 of 1 (H.264)", sets: 2},
		{name: "feedback profile", sdp: head + strings.Replace(h264, "RTP/AVP", "RTP/AVPF", 1), words: "video 1 of 1 (H.264)", sets: 2},
		{name: "transport in the profile", sdp: head + strings.Replace(h264, "RTP/AVP", "RTP/AVP/TCP", 1), words: "video 1 of 1 (H.264)", sets: 2},
		{name: "encrypted with keys we lack", sdp: head + strings.Replace(h264, "RTP/AVP", "RTP/SAVP", 1) + "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:AAAA\r\n", words: "video 1 of 1 (H.264)", sets: 2},
		{name: "encrypted twin first", sdp: head + "m=video 0 RTP/SAVP 96\r\na=rtpmap:96 H264/90000\r\na=control:secure\r\n" + h264, words: "video 2 of 2 (H.264)", sets: 2},
		{name: "inactive one first", sdp: head + "m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=inactive\r\na=control:off\r\n" + h264, words: "video 2 of 2 (H.264)", sets: 2},
		{name: "port 0 beside one with a port", sdp: head + "m=video 0 RTP/AVP 96\r\na=rtpmap:96 H265/90000\r\na=control:off\r\n" + strings.Replace(h264, "video 0", "video 5004", 1), words: "video 2 of 2 (H.264)", sets: 2},
		{name: "video to the camera first", sdp: head + "m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=sendonly\r\na=control:back\r\n" + h264, words: "video 2 of 2 (H.264)", sets: 2},
		{name: "inactive and alone", sdp: head + h264 + "a=inactive\r\n", words: "video 1 of 1 (H.264)", sets: 2},
		{name: "several codecs in one", sdp: head + strings.Replace(h264, "AVP 96", "AVP 35 34 96", 1), words: "video 1 of 1 (H.264)", sets: 2},
		{name: "JPEG of old cameras", sdp: head + "m=video 0 RTP/AVP 26\r\na=control:trackID=1\r\na=framerate:15.0\r\n", words: "video 1 of 1 (MJPEG)"},
		{name: "control of the session alone", sdp: head + "a=control:trackID=1\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n", words: "video 1 of 1 (H.264)"},
		{name: "absolute control of the session alone", sdp: head + "a=control:rtsp://192.0.2.10/s/all\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n", words: "video 1 of 1 (H.264)", url: "/all"},
		{name: "login in the control", sdp: head + strings.Replace(h264, "trackID=1", "rtsp://admin:secret@192.0.2.10/s/trackID=1", 1), words: "video 1 of 1 (H.264)", sets: 2},
		{name: "control that is no URL", sdp: head + strings.Replace(h264, "trackID=1", "rtsp://[::/s", 1), words: "video 1 of 1 (H.264)", sets: 2, url: "/"},
		{name: "line ends of LF CR", sdp: strings.ReplaceAll(head+h264, "\r\n", "\n\r"), words: "video 1 of 1 (H.264)", sets: 2},
		{name: "line ends of CR", sdp: strings.ReplaceAll(head+h264, "\r\n", "\r"), words: "video 1 of 1 (H.264)", sets: 2},
		{name: "line ends of CR CR LF", sdp: strings.ReplaceAll(head+h264, "\r\n", "\r\r\n"), words: "video 1 of 1 (H.264)", sets: 2},
		{name: "mixed line ends", sdp: strings.ReplaceAll(head, "\r\n", "\n") + h264, words: "video 1 of 1 (H.264)", sets: 2},
		{name: "no line end at the end", sdp: strings.TrimRight(head+h264, "\r\n"), words: "video 1 of 1 (H.264)", sets: 2},
		{name: "byte order mark", sdp: "\ufeff" + h264, words: "video 1 of 1 (H.264)", sets: 2},
		{name: "NUL in the middle", sdp: head + "\x00" + h264 + "\x00\x00", words: "video 1 of 1 (H.264)", sets: 2},
		{name: "Latin-1", sdp: strings.Replace(head, "Media Presentation", "K\xfcche \xe4\xf6\xfc", 1) + "i=\xff\xfe\r\n" + h264, words: "video 1 of 1 (H.264)", sets: 2},
		{name: "indented", sdp: strings.ReplaceAll(head+h264, "\r\n", "\r\n  "), words: "video 1 of 1 (H.264)", sets: 2},
		{name: "upper case keys", sdp: strings.NewReplacer("m=", "M=", "a=", "A=").Replace(head + h264), words: "video 1 of 1 (H.264)", sets: 2},
		{name: "nothing but the track", sdp: h264, words: "video 1 of 1 (H.264)", sets: 2},
		{name: "broken track in front", sdp: head + "m=video\r\na=control:broken\r\na=rtpmap:96 H265/90000\r\n" + h264, words: "video 1 of 1 (H.264)", sets: 2},
		{name: "100 kB", sdp: head + long + h264, words: "video 1 of 1 (H.264)", sets: 2},
		{name: "200 tracks", sdp: head + strings.Repeat("m=audio 0 RTP/AVP 0\r\n", 200) + h264, words: "video 1 of 1 (H.264), 200 other tracks left alone", sets: 2},
		{name: "HTML in front", sdp: "<html>\r\n" + head + h264 + "</html>", words: "video 1 of 1 (H.264)", sets: 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			choice, err := rtsp.Choose([]byte(tt.sdp), "rtsp://192.0.2.10/s", "")
			if err != nil {
				t.Fatal(err)
			}
			if choice.Words != tt.words {
				t.Errorf("chose %q, want %q", choice.Words, tt.words)
			}
			if len(choice.Sets) != tt.sets {
				t.Errorf("%d parameter sets, want %d", len(choice.Sets), tt.sets)
			}
			url := tt.url
			if url == "" {
				url = "/trackID=1"
			}
			if got, _ := parse(t, choice.Rewrite); strings.TrimSuffix(got, "/") != strings.TrimSuffix("rtsp://192.0.2.10/s"+url, "/") {
				t.Errorf("SETUP names %s", got)
			}
		})
	}
}

// What cannot play is told by name, in a sentence that stays short whatever the
// camera sends.
func TestOddDescriptionsThatCannotPlay(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, sdp, want string }{
		{"no rtpmap at all", "m=video 0 RTP/AVP 96\r\n", "unsupported codec payload type 96 without rtpmap: set the camera's stream to H.264, H.265 or MJPEG"},
		{"transport stream", "m=video 0 RTP/AVP 33\r\n", "unsupported codec MPEG-TS: set the camera's stream to H.264, H.265 or MJPEG"},
		{"H.263", "m=video 0 RTP/AVP 34\r\n", "unsupported codec H.263: set the camera's stream to H.264, H.265 or MJPEG"},
		{"two codecs", "m=video 0 RTP/AVP 96\r\na=rtpmap:96 VP8/90000\r\nm=video 0 RTP/AVP 97\r\na=rtpmap:97 AV1/90000\r\n", "unsupported codec VP8, AV1: set the camera's stream to H.264, H.265 or MJPEG"},
		{"control characters", "m=video 0 RTP/AVP 96\r\na=rtpmap:96 \x1b[31mÄ/90000\r\n", "unsupported codec ?[31M?: set the camera's stream to H.264, H.265 or MJPEG"},
		{"endless name", "m=video 0 RTP/AVP 96\r\na=rtpmap:96 " + strings.Repeat("X", 50000) + "/90000\r\n", "unsupported codec " + strings.Repeat("X", 24) + ": set the camera's stream to H.264, H.265 or MJPEG"},
		{"endless list", strings.Repeat("m=audio 0 RTP/AVP 0\r\n", 5000), "no video track: the camera offers " + strings.Repeat("audio (PCMU), ", 8) + "and 248 more"},
		{"metadata alone", "m=application 0 RTP/AVP 107\r\na=rtpmap:107 vnd.onvif.metadata/90000\r\n", "no video track: the camera offers application (VND.ONVIF.METADATA)"},
		{"empty", "", "no video track: the camera offers no track"},
		{"no description", "<html><body>login</body></html>", "no video track: the camera offers no track"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := rtsp.Choose([]byte(tt.sdp), "rtsp://192.0.2.10/s", "")
			if err == nil || err.Error() != tt.want {
				t.Errorf("error is %v,\nwant     %s", err, tt.want)
			}
		})
	}
}

func TestTrackInfo(t *testing.T) {
	for _, tt := range []struct {
		info capture.TrackInfo
		want string
	}{
		{capture.TrackInfo{}, ""},
		{capture.TrackInfo{Index: 1, Of: 1, Codec: capture.H264}, "video 1 of 1 (H.264)"},
		{capture.TrackInfo{Index: 2, Of: 3, Codec: capture.MJPEG, Others: 1}, "video 2 of 3 (MJPEG), 1 other track left alone"},
	} {
		if got := fmt.Sprint(tt.info); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
