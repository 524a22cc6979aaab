package rtsp_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"edgecam/capture/rtsp"
)

func TestParseURL(t *testing.T) {
	tests := []struct {
		name               string
		url                string
		username, password string
		addr, shown        string
		user, pass         string
	}{
		{"plain", "rtsp://192.0.2.10/s", "", "", "192.0.2.10:554", "rtsp://192.0.2.10:554/…", "", ""},
		{"no path", "rtsp://192.0.2.10", "", "", "192.0.2.10:554", "rtsp://192.0.2.10:554", "", ""},
		{"query without path", "rtsp://192.0.2.10:8554?x=1", "", "", "192.0.2.10:8554", "rtsp://192.0.2.10:8554/…", "", ""},
		{"upper case scheme", "RTSP://cam/v", "", "", "cam:554", "rtsp://cam:554/…", "", ""},
		{"tls", "rtsps://cam/v", "", "", "cam:322", "rtsps://cam:322/…", "", ""},
		{"blanks around", " \trtsp://cam/v\r\n", "", "", "cam:554", "rtsp://cam:554/…", "", ""},
		{"at sign in password", "rtsp://user:P@ss@192.0.2.10/s", "", "", "192.0.2.10:554", "rtsp://192.0.2.10:554/…", "user", "P@ss"},
		{"escaped at sign", "rtsp://user:P%40ss@192.0.2.10/s", "", "", "192.0.2.10:554", "rtsp://192.0.2.10:554/…", "user", "P@ss"},
		{"escaped hash", "rtsp://user:pa%23ss@cam/v", "", "", "cam:554", "rtsp://cam:554/…", "user", "pa#ss"},
		{"caret", "rtsp://user:a^b@cam/v", "", "", "cam:554", "rtsp://cam:554/…", "user", "a^b"},
		{"at sign in a path behind an address", "rtsp://192.0.2.10:8554/v@1", "", "", "192.0.2.10:8554", "rtsp://192.0.2.10:8554/…", "", ""},
		{"bracket in password", "rtsp://user:a[b@cam/v", "", "", "cam:554", "rtsp://cam:554/…", "user", "a[b"},
		{"other letters in password", "rtsp://user:pässwörd@cam/v", "", "", "cam:554", "rtsp://cam:554/…", "user", "pässwörd"},
		{"colon in password", "rtsp://user:a:b@cam/v", "", "", "cam:554", "rtsp://cam:554/…", "user", "a:b"},
		{"empty password", "rtsp://admin:@cam/v", "", "", "cam:554", "rtsp://cam:554/…", "admin", ""},
		{"user alone", "rtsp://admin@cam/v", "", "", "cam:554", "rtsp://cam:554/…", "admin", ""},
		{"empty login", "rtsp://@192.0.2.10:554", "", "", "192.0.2.10:554", "rtsp://192.0.2.10:554", "", ""},
		{"separate login is literal", "rtsp://192.0.2.10/v", "a@b", "50%25#x", "192.0.2.10:554", "rtsp://192.0.2.10:554/…", "a@b", "50%25#x"},
		{"separate login wins", "rtsp://old:older@cam/v", "new", "newer", "cam:554", "rtsp://cam:554/…", "new", "newer"},
		{"separate password for the URL's user", "rtsp://admin@cam/v", "", "a/b", "cam:554", "rtsp://cam:554/…", "admin", "a/b"},
		{"separate user without password", "rtsp://cam/v", "admin", "", "cam:554", "rtsp://cam:554/…", "admin", ""},
		{"at sign in path", "rtsp://cam/v@1", "", "", "cam:554", "rtsp://cam:554/…", "", ""},
		{"IPv6", "rtsp://[2001:db8::10]:8554/v", "", "", "[2001:db8::10]:8554", "rtsp://[2001:db8::10]:8554/…", "", ""},
		{"IPv6 without port", "rtsp://[2001:db8::10]/v", "", "", "[2001:db8::10]:554", "rtsp://[2001:db8::10]:554/…", "", ""},
		{"IPv6 with zone", "rtsp://[fe80::1%25eth0]/v", "", "", "[fe80::1%eth0]:554", "rtsp://[fe80::1%eth0]:554/…", "", ""},
		{"IPv6 with raw zone", "rtsp://u:p@[fe80::1%eth0]:554/v", "", "", "[fe80::1%eth0]:554", "rtsp://[fe80::1%eth0]:554/…", "u", "p"},
		{"password in the path is not shown", "rtsp://cam/user=admin_password=tlJwpbo6_channel=1.sdp", "", "", "cam:554", "rtsp://cam:554/…", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := rtsp.ParseURL(tt.url, tt.username, tt.password)
			if err != nil {
				t.Fatal(err)
			}
			if got.Addr() != tt.addr || got.Username() != tt.user || rtsp.Password(got) != tt.pass {
				t.Errorf("got %s user %q password %q, want %s %q %q", got.Addr(), got.Username(), rtsp.Password(got), tt.addr, tt.user, tt.pass)
			}
			for _, shown := range []string{got.String(), fmt.Sprintf("%v", got), fmt.Sprintf("%+v", got), fmt.Sprintf("%#v", got)} {
				if shown != tt.shown {
					t.Errorf("shown as %s, want %s", shown, tt.shown)
				}
			}
		})
	}
}

func TestParseURLRefuses(t *testing.T) {
	const (
		scheme    = "the URL must begin with rtsp:// or rtsps://"
		control   = "the URL holds a line break or another control character"
		noHost    = "the URL names no host"
		hostChar  = "the host of the URL holds a character that no host name has; if the password holds one of / ? # write it %-encoded, or use the keys username and password"
		port      = "the port of the URL is not a number from 1 to 65535; if the password holds one of / ? # write it %-encoded, or use the keys username and password"
		brackets  = "an IPv6 address in the URL needs brackets: rtsp://[2001:db8::10]:554/"
		ipv6      = "the text between the brackets of the URL is not an IPv6 address"
		ambiguous = "the URL has an @ after the host: if the password holds one of / ? # write it %-encoded, or use the keys username and password; in a path write @ as %40"
		fragment  = "the URL holds a #: if it belongs to the password write it as %23, or use the keys username and password"
		escape    = "the login in the URL holds a % that is not followed by two hex digits: write % as %25, or use the keys username and password"
		path      = "the path of the URL holds a % that is not followed by two hex digits: write % as %25"
		password  = "a password is set and no username"
	)
	tests := []struct {
		name, url, password, want string
	}{
		{"empty", "", "", scheme},
		{"no scheme", "admin:hunter2@cam/v", "", scheme},
		{"another scheme", "rtspt://cam/v", "", scheme},
		{"web address", "http://cam/v", "", scheme},
		{"line break inside", "rtsp://cam/\nv", "", control},
		{"no host", "rtsp:///v", "", noHost},
		{"port too large", "rtsp://cam:99999/v", "", port},
		{"port zero", "rtsp://cam:0/v", "", port},
		{"port that is a word", "rtsp://cam:hunter2/v", "", port},
		{"bare IPv6", "rtsp://2001:db8::10/v", "", brackets},
		{"broken IPv6", "rtsp://[2001:zz::10]/v", "", ipv6},
		{"IPv4 in brackets", "rtsp://[192.0.2.1]/v", "", ipv6},
		{"text behind brackets", "rtsp://[2001:db8::10]x/v", "", port},
		{"open bracket", "rtsp://[2001:db8::10/v", "", ipv6},
		{"hash in password", "rtsp://user:hunter2#ss@192.0.2.10/v", "", ambiguous},
		{"slash in password", "rtsp://user:hunter2/ss@192.0.2.10/v", "", ambiguous},
		{"blank in password", "rtsp://user:hunter2 b@cam/v", "", "the login in the URL holds a blank: write it as %20, or use the keys username and password"},
		{"blank in path", "rtsp://cam/a b", "", "the path of the URL holds a blank: write %20"},
		{"slash in a password of digits", "rtsp://user:12/34@192.0.2.10/v", "", ambiguous},
		{"question mark in password", "rtsp://user:hunter2?ss@192.0.2.10/v", "", ambiguous},
		{"percent in password", "rtsp://user:hunter2%ss@cam/v", "", escape},
		{"percent in path", "rtsp://cam/%zz", "", path},
		{"fragment", "rtsp://cam/v#hunter2", "", fragment},
		{"blank in host", "rtsp://my cam/v", "", hostChar},
		{"password alone", "rtsp://cam/v", "hunter2", password},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := rtsp.ParseURL(tt.url, "", tt.password)
			if err == nil {
				t.Fatal("accepted")
			}
			if err.Error() != tt.want {
				t.Errorf("error is %q,\nwant        %q", err, tt.want)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Error("the error holds the password")
			}
		})
	}
}

var zone = regexp.MustCompile(`%.*\]`)

func FuzzParseURL(f *testing.F) {
	for _, s := range []string{
		"rtsp://cam/v", "rtsps://u:p@[::1%25lo]:322/a?b=c", "rtsp://user:P@ss@192.0.2.10/s", "rtsp://user:pa%ss@h", "rtsp://h:0", "rtsp://@", "rtsp://[", "rtsp://%zz@%/",
	} {
		f.Add(s, "", "")
		f.Add(s, "user", "pw")
	}
	f.Fuzz(func(t *testing.T, raw, username, password string) {
		target, err := rtsp.ParseURL(raw, username, password)
		if err != nil {
			return
		}
		u, err := rtsp.Request(target)
		if err != nil {
			t.Fatalf("accepted and then refused: %v", err)
		}
		if u.Host == "" || u.Hostname() == "" {
			t.Fatalf("%q gives no host to dial", raw)
		}
		if u.User != nil {
			t.Fatalf("%q: the request holds the login", raw)
		}
		// The marks of a login survive only inside the login; a zone is ours alone.
		if again, err := rtsp.ParseURL(u.String(), "user", ""); err != nil {
			t.Fatalf("the request's URL %s is not accepted again: %v", u, err)
		} else if want := zone.ReplaceAllString(target.Addr(), "]"); again.Addr() != want {
			t.Fatalf("%q dials %s, and written again %s", raw, want, again.Addr())
		}
	})
}
