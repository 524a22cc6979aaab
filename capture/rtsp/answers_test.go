package rtsp_test

import (
	"strings"
	"testing"

	"edgecam/capture/rtsp"
)

// obedient answers everything as a camera should, and lets change answer first
// where it wants to.
func obedient(change func(c *scriptConn, req scriptRequest) (done bool)) func(*scriptConn) {
	return func(c *scriptConn) {
		stop := make(chan struct{})
		ended := make(chan struct{})
		flooding := false
		defer func() {
			close(stop)
			if flooding {
				<-ended
			}
		}()
		for {
			req, ok := c.read()
			if !ok {
				return
			}
			if change != nil && change(c, req) {
				continue
			}
			switch req.method {
			case "DESCRIBE":
				c.reply(req, 200, "Content-Type: application/sdp", goodSDP)
			case "SETUP":
				c.reply(req, 200, "Session: 1234;timeout=60\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1", "")
			case "PLAY":
				c.reply(req, 200, "Session: 1234", "")
				flooding = true
				go func() {
					defer close(ended)
					c.flood(stop)
				}()
			default:
				c.reply(req, 200, "Public: OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN", "")
			}
		}
	}
}

// Answers that are not quite right must not cost the video.
func TestAnswersOfTheField(t *testing.T) {
	t.Parallel()
	describe := func(header, body string) func(*scriptConn, scriptRequest) bool {
		return func(c *scriptConn, req scriptRequest) bool {
			if req.method != "DESCRIBE" {
				return false
			}
			c.reply(req, 200, header, body)
			return true
		}
	}
	options := func(code int, header string) func(*scriptConn, scriptRequest) bool {
		return func(c *scriptConn, req scriptRequest) bool {
			if req.method != "OPTIONS" {
				return false
			}
			c.reply(req, code, header, "")
			return true
		}
	}
	tests := []struct {
		name   string
		change func(*scriptConn, scriptRequest) bool
	}{
		{"as it should be", nil},
		{"OPTIONS is unknown", options(405, "")},
		{"OPTIONS is not implemented", options(501, "")},
		{"OPTIONS is moved", options(301, "Location: rtsp://127.0.0.1:1/")},
		{"no Content-Type", describe("X-Nothing: 1", goodSDP)},
		{"upper case Content-Type", describe("Content-Type: Application/SDP", goodSDP)},
		{"Content-Type with a character set", describe("Content-Type: application/sdp; charset=utf-8", goodSDP)},
		{"empty Content-Base", describe("Content-Type: application/sdp\r\nContent-Base: ", goodSDP)},
		{"Content-Base without a scheme", describe("Content-Type: application/sdp\r\nContent-Base: 127.0.0.1/x/", goodSDP)},
		{"Content-Base of a private address", describe("Content-Type: application/sdp\r\nContent-Base: rtsp://10.255.255.1/x/", goodSDP)},
		{"broken audio track", describe("Content-Type: application/sdp", goodSDP+"m=audio 0 RTP/AVP 97\r\na=rtpmap:97 MPEG4-GENERIC/16000\r\na=control:trackID=1\r\n")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			addr := startScript(t, obedient(tt.change))
			receive(t, rtsp.Options{URL: "rtsp://" + addr + "/x", Transport: rtsp.TCP}, 5)
		})
	}
}

// SETUP asks for the video alone, at the URL that players would use.
func TestOnlyVideoIsSetUp(t *testing.T) {
	t.Parallel()
	var asked []string
	addr := startScript(t, obedient(func(c *scriptConn, req scriptRequest) bool {
		switch req.method {
		case "DESCRIBE":
			c.reply(req, 200, "Content-Type: application/sdp", strings.Replace(goodSDP, "m=video",
				"m=audio 0 RTP/AVP 8\r\na=control:trackID=7\r\na=sendonly\r\nm=video", 1))
			return true
		case "SETUP":
			asked = append(asked, req.url)
		}
		return false
	}))
	receive(t, rtsp.Options{URL: "rtsp://" + addr + "/cam/realmonitor?channel=1&subtype=0", Transport: rtsp.TCP}, 3)
	if want := "rtsp://" + addr + "/cam/realmonitor?channel=1&subtype=0/trackID=0"; len(asked) != 1 || asked[0] != want {
		t.Errorf("SETUP asks for %v, want %s", asked, want)
	}
}

// What a camera says must not carry a secret into a message.
func TestScrub(t *testing.T) {
	t.Parallel()
	target, err := rtsp.ParseURL("rtsp://cam/x", "admin", secret)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"no stream at rtsp://admin:" + secret + "@cam/x",
		"no stream at rtsp://admin:Sw%25rd%2Ff%40sh%20%C3%A4%3F%23@cam/x",
		"Authorization: Basic YWRtaW46U3clcmQvZkBzaCDDpD8j",
	} {
		mustNotLeak(t, rtsp.Scrub(target, text))
	}
	if got := rtsp.Scrub(target, "invalid header"); got != "invalid header" {
		t.Errorf("a text without the password becomes %q", got)
	}
	for _, tt := range []struct{ url, text string }{
		{"rtsp://cam/cgi?user=admin&pwd=hunter2", "invalid URL (rtsp://cam/cgi?user=admin&pwd=hunter2)"},
		{"rtsp://cam/cgi?user=admin&pwd=hunter2", "bad parameter HUNTER2"},
		{"rtsp://cam/cgi?user=admin&pwd=hunter%232", "bad parameter hunter#2"},
		{"rtsp://cam/user=admin_password=tlJwpbo6_channel=1.sdp", "no file user=admin_password=tlJwpbo6_channel=1.sdp"},
		{"rtsp://cam/user=admin_password=tlJwpbo6_channel=1.sdp", "login with tlJwpbo6"},
		{"rtsp://cam/live/admin/hunter2", "no stream /live/admin/hunter2"},
		{"rtsp://cam/v?token=hunter2", "invalid Content-Base: '[rtsp://cam/v?token=hunter2/]'"},
	} {
		target, err := rtsp.ParseURL(tt.url, "", "")
		if err != nil {
			t.Fatal(err)
		}
		if got := rtsp.Scrub(target, tt.text); got != "(text withheld: it quoted the login)" {
			t.Errorf("%s: %s", tt.url, got)
		}
		if got := rtsp.Scrub(target, "invalid header"); got != "invalid header" {
			t.Errorf("%s: a text without a secret becomes %q", tt.url, got)
		}
	}
}
