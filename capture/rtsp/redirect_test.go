package rtsp_test

import (
	"errors"
	"net"
	"strings"
	"sync"
	"testing"

	"edgecam/capture"
	"edgecam/capture/rtsp"
)

// Redirects, wherever in the session they come.
func TestRedirects(t *testing.T) {
	t.Parallel()
	moved := func(method, location string, code int) func(*scriptConn, scriptRequest) bool {
		return func(c *scriptConn, req scriptRequest) bool {
			if req.method != method || strings.Contains(req.url, "moved") {
				return false
			}
			c.reply(req, code, "Location: "+location, "")
			return true
		}
	}
	for _, tt := range []struct {
		name, method, location string
		code                   int
		want                   string // request of DESCRIBE at last
	}{
		{"relative path", "DESCRIBE", "/moved", 302, "rtsp://ADDR/moved"},
		{"relative to the directory", "DESCRIBE", "moved?a=1", 301, "rtsp://ADDR/a/moved?a=1"},
		{"up and aside", "DESCRIBE", "../x/./moved?a=../1", 302, "rtsp://ADDR/x/moved?a=../1"},
		{"another query", "DESCRIBE", "?moved=1", 303, "rtsp://ADDR/a/b?moved=1"},
		{"absolute with a login of its own", "DESCRIBE", "rtsp://mallory:x@ADDR/moved", 307, "rtsp://ADDR/moved"},
		{"upper case scheme and an at sign", "DESCRIBE", "RTSP://ADDR/moved@1", 302, "rtsp://ADDR/moved@1"},
		{"without a scheme", "DESCRIBE", "//ADDR/moved", 302, "rtsp://ADDR/moved"},
		{"with a fragment", "DESCRIBE", "/moved#x", 302, "rtsp://ADDR/moved"},
		{"of SETUP", "SETUP", "/moved", 302, "rtsp://ADDR/moved"},
		{"of PLAY", "PLAY", "/moved", 302, "rtsp://ADDR/moved"},
		{"of OPTIONS, to nowhere", "OPTIONS", "rtsp://127.0.0.1:1/", 301, "rtsp://ADDR/a/b?c=1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var mu sync.Mutex
			var addr, described string
			addr = startScript(t, obedient(func(c *scriptConn, req scriptRequest) bool {
				mu.Lock()
				defer mu.Unlock()
				if req.method == "DESCRIBE" {
					described = req.url
				}
				return moved(tt.method, strings.ReplaceAll(tt.location, "ADDR", addr), tt.code)(c, req)
			}))
			mu.Lock() // addr is written by now
			url := "rtsp://" + addr + "/a/b?c=1"
			mu.Unlock()
			receive(t, rtsp.Options{URL: url, Transport: rtsp.TCP}, 3)
			mu.Lock()
			defer mu.Unlock()
			if want := strings.ReplaceAll(tt.want, "ADDR", addr); described != want {
				t.Errorf("DESCRIBE asks for %s, want %s", described, want)
			}
		})
	}
	t.Run("of OPTIONS, by a camera that has nothing else", func(t *testing.T) {
		for _, answer := range []bool{true, false} {
			there := startScript(t, obedient(nil))
			addr := startScript(t, func(c *scriptConn) {
				for {
					req, ok := c.read()
					if !ok || req.method != "OPTIONS" && !answer {
						return
					}
					if req.method == "OPTIONS" {
						c.reply(req, 301, "Location: rtsp://"+there+"/x", "")
					} else {
						c.reply(req, 404, "", "")
					}
				}
			})
			receive(t, rtsp.Options{URL: "rtsp://" + addr + "/x", Transport: rtsp.TCP}, 3)
		}
	})
}

func TestRedirectsThatAreNotFollowed(t *testing.T) {
	t.Parallel()
	redirect := func(c *scriptConn, req scriptRequest, location string) bool {
		if req.method != "DESCRIBE" {
			return false
		}
		c.reply(req, 302, "Location: "+location, "")
		return true
	}
	for _, tt := range []struct{ name, location, want string }{
		{"for ever", "/x", "The camera's redirect to rtsp://ADDR/… is not followed: that is redirect 6 in a row"},
		{"to a web page", "http://192.0.2.1/user=admin_password=hunter2", "The camera's redirect is not followed: it names no rtsp:// or rtsps:// address that can be read"},
		{"to nonsense", "rtsp://[::1/", "The camera's redirect is not followed: it names no rtsp:// or rtsps:// address that can be read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var mu sync.Mutex
			n := 0
			addr := startScript(t, obedient(func(c *scriptConn, req scriptRequest) bool {
				mu.Lock()
				defer mu.Unlock()
				if req.method == "DESCRIBE" {
					n++
				}
				return redirect(c, req, tt.location)
			}))
			_, err := attempt(t, rtsp.Options{URL: "rtsp://" + addr + "/x", Transport: rtsp.TCP}, 1)
			var failure *capture.RedirectError
			if !errors.As(err, &failure) || failure.Reason() != strings.ReplaceAll(tt.want, "ADDR", addr) {
				t.Errorf("error is %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			if n > 6 {
				t.Errorf("%d requests", n)
			}
		})
	}
	t.Run("without a Location", func(t *testing.T) {
		addr := startScript(t, obedient(func(c *scriptConn, req scriptRequest) bool {
			if req.method == "DESCRIBE" {
				c.reply(req, 302, "", "")
			}
			return req.method == "DESCRIBE"
		}))
		_, err := attempt(t, rtsp.Options{URL: "rtsp://" + addr + "/x", Transport: rtsp.TCP}, 1)
		var status *capture.StatusError
		if !errors.As(err, &status) || status.Code != 302 {
			t.Errorf("error is %v", err)
		}
	})
}

// The host that a redirect leads to gets no password: not as Basic, and not by
// another name or port of the same machine.
func TestRedirectDoesNotCarryThePassword(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"localhost", "127.0.0.1", "127.0.0.2"} {
		t.Run(host, func(t *testing.T) {
			var mu sync.Mutex
			var given []string
			thief := startScript(t, obedient(func(c *scriptConn, req scriptRequest) bool {
				mu.Lock()
				defer mu.Unlock()
				if a := req.header.Get("Authorization"); a != "" {
					given = append(given, a)
				}
				if req.method == "DESCRIBE" {
					c.reply(req, 401, `WWW-Authenticate: Basic realm="x"`, "")
				}
				return req.method == "DESCRIBE"
			}))
			_, port, err := net.SplitHostPort(thief)
			if err != nil {
				t.Fatal(err)
			}
			thief = net.JoinHostPort(host, port)
			if host == "127.0.0.2" {
				thief = startScriptAt(t, host+":0", obedient(func(c *scriptConn, req scriptRequest) bool {
					if req.method == "DESCRIBE" {
						c.reply(req, 401, `WWW-Authenticate: Basic realm="x"`, "")
					}
					return req.method == "DESCRIBE"
				}))
			}
			// The camera itself asks for Basic first, and gets it.
			addr := startScript(t, obedient(func(c *scriptConn, req scriptRequest) bool {
				switch {
				case req.method != "DESCRIBE":
					return false
				case req.header.Get("Authorization") == "":
					c.reply(req, 401, `WWW-Authenticate: Basic realm="x"`, "")
				default:
					c.reply(req, 302, "Location: rtsp://"+thief+"/x", "")
				}
				return true
			}))
			_, err = attempt(t, rtsp.Options{URL: "rtsp://" + addr + "/x", Username: "admin", Password: secret, Transport: rtsp.TCP}, 1)
			var auth *capture.AuthError
			if !errors.As(err, &auth) {
				t.Fatalf("error is %v, want an AuthError", err)
			}
			want := "Not logged in: the camera redirects to " + thief + ", which asks for the password as it is (Basic); it was not sent there: set the URL to the camera's own address"
			if auth.Reason() != want {
				t.Errorf("reason is %s", auth.Reason())
			}
			mu.Lock()
			defer mu.Unlock()
			if len(given) > 0 {
				t.Errorf("the other host was given %q", given)
			}
		})
	}
	t.Run("a digest is given", func(t *testing.T) {
		g := &guard{user: "admin", password: secret, offer: []string{`Basic realm="cam, 1"`, `Digest realm="cam, 1", nonce="NONCE"`}}
		there := startScript(t, obedient(g.change))
		addr := startScript(t, obedient(func(c *scriptConn, req scriptRequest) bool {
			if req.method == "DESCRIBE" {
				c.reply(req, 302, "Location: rtsp://"+there+"/x", "")
			}
			return req.method == "DESCRIBE"
		}))
		receive(t, rtsp.Options{URL: "rtsp://" + addr + "/x", Username: "admin", Password: secret, Transport: rtsp.TCP}, 3)
		if len(g.wrong) > 0 {
			t.Errorf("%q", g.wrong)
		}
	})
}
