package main

import (
	"strings"
	"testing"

	"edgecam/capture/rtsp"
	"edgecam/internal/config"
)

// urlForms are URLs as people write them; want is what the session dials, ""
// where the configuration refuses them.
var urlForms = []struct{ url, user, want string }{ //nolint:gochecknoglobals // a table that two tests share
	{"rtsp://192.0.2.10", "", "192.0.2.10:554"},
	{"RTSP://h/v", "", "h:554"},
	{"RtSpS://h/v", "", "h:322"},
	{" rtsp://h/v", "", "h:554"},
	{"rtsp://h/v\n", "", "h:554"},
	{"rtsp://h:/v", "", "h:554"},
	{"rtsp://192.0.2.10:554?x=1", "", "192.0.2.10:554"},
	{"rtsp://@192.0.2.10:554", "", "192.0.2.10:554"},
	{"rtsp://[2001:db8::10]:554/", "", "[2001:db8::10]:554"},
	{"rtsp://[2001:db8::10]", "", "[2001:db8::10]:554"},
	{"rtsp://[fe80::1%25eth0]/v", "", "[fe80::1%eth0]:554"},
	{"rtsp://[fe80::1%eth0]/v", "", "[fe80::1%eth0]:554"},
	{"rtsp://u:p@[fe80::1%eth0]:8554/v", "", "[fe80::1%eth0]:8554"},
	{"rtsp://user:P@ss@192.0.2.10/s", "", "192.0.2.10:554"},
	{"rtsp://user:a^b@192.0.2.10/s", "", "192.0.2.10:554"},
	{"rtsp://user:a[b@192.0.2.10/s", "", "192.0.2.10:554"},
	{"rtsp://user:a,b@192.0.2.10/s", "", "192.0.2.10:554"},
	{"rtsp://user:pässwörd@192.0.2.10/s", "", "192.0.2.10:554"},
	{"rtsp://user:pa%23ss@192.0.2.10/s", "", "192.0.2.10:554"},
	{"rtsp://192.0.2.10:8554/live@main", "", "192.0.2.10:8554"},
	{"rtsp://[2001:db8::10]:8554/live@main", "", "[2001:db8::10]:8554"},
	{"rtsp://nvr:8554/live@main", "admin", "nvr:8554"},
	{"rtsp://h/cam/realmonitor?channel=1&subtype=0", "", "h:554"},
	{"rtsp://xn--kche-0ra.example/v", "", "xn--kche-0ra.example:554"},

	{"", "", ""},
	{"h/v", "", ""},
	{"rtspt://h/v", "", ""},
	{"rtspx://h/v", "", ""},
	{"rtſp://h/v", "", ""},
	{"rtsp:/h/v", "", ""},
	{"rtsp:///v", "", ""},
	{"rtsp://:554/v", "", ""},
	{"rtsp://h:99999/v", "", ""},
	{"rtsp://h:0/v", "", ""},
	{"rtsp://h:+1/v", "", ""},
	{"rtsp://2001:db8::10/v", "", ""},
	{"rtsp://[2001:db8::10/v", "", ""},
	{"rtsp://[2001:db8::10]554/v", "", ""},
	{"rtsp://[192.0.2.10]/v", "", ""},
	{"rtsp://[fe80::1%et h0]/v", "", ""},
	{"rtsp://küche/v", "", ""},
	{"rtsp://-h/v", "", ""},
	{"rtsp://user:pa%ss@192.0.2.10/v", "", ""},
	{"rtsp://user:a b@192.0.2.10/v", "", ""},
	{"rtsp://user:pa#ss@192.0.2.10/v", "", ""},
	{"rtsp://user:pa/ss@192.0.2.10/v", "", ""},
	{"rtsp://user:pa?ss@192.0.2.10/v", "", ""},
	{"rtsp://user:12/34@192.0.2.10/v", "", ""},
	{"rtsp://us%0d%0aer:x@192.0.2.10/v", "", ""},
	{"rtsp://192.0.2.10/v w", "", ""},
	{"rtsp://192.0.2.10/v%zz", "", ""},
	{"rtsp://192.0.2.10/v#x", "", ""},
	{"rtsp://192.0.2.10/v\nx", "", ""},
	{"rtsp://u:p%zz@192.0.2.10/v", "admin", ""},
}

// loads says whether the form alone, without the session's own parser, lets a
// URL into the configuration.
func loads(url, user string) error {
	env := []string{"EDGECAM_CAMERAS_GATE_URL=" + url}
	if user != "" {
		env = append(env, "EDGECAM_CAMERAS_GATE_USERNAME="+user)
	}
	_, err := config.Parse([]byte("cameras: {gate: {url: \"rtsp://192.0.2.1/\"}}"), "edgecam.yaml", config.Options{Env: env})
	return err
}

// A URL that the configuration takes is one that can be dialled, and nothing is
// refused at the first attempt that could have been refused at the start.
func TestURLForms(t *testing.T) {
	for _, tt := range urlForms {
		err := loads(tt.url, tt.user)
		target, dialErr := rtsp.ParseURL(tt.url, tt.user, "")
		if (err == nil) != (tt.want != "") || (dialErr == nil) != (tt.want != "") {
			t.Errorf("%q with user %q: the configuration says %v, the session %v", tt.url, tt.user, err, dialErr)
		}
		if tt.want != "" && dialErr == nil && target.Addr() != tt.want {
			t.Errorf("%q dials %s, want %s", tt.url, target.Addr(), tt.want)
		}
		if err != nil && !strings.Contains(err.Error(), "cameras.gate.url: ") {
			t.Errorf("%q: the error names no camera and key: %v", tt.url, err)
		}
	}
}

func FuzzURLForms(f *testing.F) {
	for _, tt := range urlForms {
		f.Add(tt.url, tt.user)
	}
	f.Fuzz(func(t *testing.T, url, user string) {
		if strings.ContainsRune(url+user, 0) || len(user) > 100 || strings.ContainsFunc(user, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }) {
			return // what no environment and no checked user name holds
		}
		err := loads(url, user)
		_, dialErr := rtsp.ParseURL(url, user, "")
		if (err == nil) != (dialErr == nil) {
			t.Errorf("%q with user %q: the configuration says %v, the session %v", url, user, err, dialErr)
		}
	})
}
