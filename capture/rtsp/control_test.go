package rtsp_test

import (
	"os"
	"strings"
	"testing"

	"edgecam/capture/rtsp"
)

// The URL of SETUP is base, slash, control, as live555 and with it VLC make it,
// also behind a query; and never has two slashes in a row, a star or a blank.
func TestSetupURLs(t *testing.T) {
	t.Parallel()
	edit := func(file, old, new string) string {
		t.Helper()
		b, err := os.ReadFile("testdata/sdp/" + file + ".sdp")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(b), old) {
			t.Fatalf("%s has no %q", file, old)
		}
		return strings.Replace(string(b), old, new, 1)
	}
	good := edit("00_good", "", "")
	for _, tt := range []struct {
		name, path, base, sdp string // ADDR in base and sdp is the camera's
		want                  string
	}{
		{name: "relative", path: "/s", sdp: good, want: "/s/trackID=0"},
		{name: "path with a slash", path: "/s/", sdp: good, want: "/s/trackID=0"},
		{name: "query", path: "/s?a=1", sdp: good, want: "/s?a=1/trackID=0"},
		{name: "query with a slash", path: "/s?a=1/", sdp: good, want: "/s?a=1/trackID=0"},
		{name: "Dahua", path: "/cam/realmonitor?channel=1&subtype=0", sdp: good, want: "/cam/realmonitor?channel=1&subtype=0/trackID=0"},
		{name: "no path", path: "", sdp: good, want: "/trackID=0"},
		{name: "Content-Base", path: "/s", base: "rtsp://ADDR/t/", sdp: good, want: "/t/trackID=0"},
		{name: "Content-Base without a slash", path: "/s", base: "rtsp://ADDR/t", sdp: good, want: "/t/trackID=0"},
		{name: "no control", path: "/s", sdp: edit("80_no_media_control", "", ""), want: "/s"},
		{name: "no session control", path: "/s", sdp: edit("81_no_session_control", "", ""), want: "/s/trackID=0"},
		{name: "star", path: "/s", sdp: edit("82_control_star_media", "", ""), want: "/s"},
		{name: "slash in front", path: "/s", sdp: edit("83_control_lead_slash", "", ""), want: "/s/trackID=0"},
		{name: "two slashes", path: "/s/", sdp: edit("83_control_lead_slash", "", ""), want: "/s/trackID=0"},
		{name: "absolute", path: "/s", sdp: edit("00_good", "trackID=0", "rtsp://ADDR/other/1?x=y"), want: "/other/1?x=y"},
		{name: "upper case scheme", path: "/s", sdp: edit("85_control_upper_scheme", "192.0.2.10", "ADDR"), want: "/s/trackID=0"},
		{name: "query as control", path: "/s", sdp: edit("86_control_query", "", ""), want: "/s?ctype=video"},
		{name: "session's control is absolute", path: "/s", sdp: edit("00_good", "control:*", "control:rtsp://ADDR/u/"), want: "/u/trackID=0"},
		{name: "session's control names the track", path: "/s", sdp: edit("80_no_media_control", "control:*", "control:trackID=7"), want: "/s/trackID=7"},
		{name: "Axis", path: "/axis-media/media.amp?camera=1", base: "rtsp://ADDR/axis-media/media.amp/", sdp: edit("00_good", "trackID=0", "stream=0?videocodec=h264&url=rtsp://x/y"), want: "/axis-media/media.amp/stream=0?videocodec=h264&url=rtsp://x/y"},
		{name: "blank in the control", path: "/s", sdp: edit("00_good", "trackID=0", "track 0"), want: "/s/track%200"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			setups := make(chan string, 10)
			addr := startScript(t, obedient(func(c *scriptConn, req scriptRequest) bool {
				here := c.LocalAddr().String()
				switch req.method {
				case "DESCRIBE":
					header := "Content-Type: application/sdp"
					if tt.base != "" {
						header += "\r\nContent-Base: " + strings.ReplaceAll(tt.base, "ADDR", here)
					}
					c.reply(req, 200, header, strings.ReplaceAll(tt.sdp, "ADDR", here))
					return true
				case "SETUP":
					setups <- strings.TrimPrefix(req.url, strings.Replace("rtsp://ADDR", "ADDR", here, 1))
				}
				return false
			}))
			receive(t, rtsp.Options{URL: "rtsp://" + addr + tt.path, Transport: rtsp.TCP}, 1)
			if got := <-setups; got != tt.want {
				t.Errorf("SETUP names %s, want %s", got, tt.want)
			}
		})
	}
}
