package rtsp_test

import (
	"bufio"
	"bytes"
	"net"
	"strings"
	"testing"

	"github.com/bluenviron/gortsplib/v4/pkg/base"

	"edgecam/capture/rtsp"
)

func TestHeads(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3000)
	for _, tt := range []struct{ name, head, want string }{
		{"good", "RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n", "RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n"},
		{"line feeds", "RTSP/1.0 200 OK\nCSeq: 1\n\n", "RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n"},
		{"no words", "RTSP/1.0 200\r\nCSeq: 1\r\n\r\n", "RTSP/1.0 200 -\r\nCSeq: 1\r\n\r\n"},
		{"no words but a blank", "RTSP/1.0 200 \r\nCSeq: 1\r\n\r\n", "RTSP/1.0 200 -\r\nCSeq: 1\r\n\r\n"},
		{"blanks", "RTSP/1.0  200  OK \r\nCSeq :\t1 \r\n\r\n", "RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n"},
		{"line without a colon", "RTSP/1.0 200 OK\r\nhello\r\nCSeq: 1\r\n\r\n", "RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n"},
		{"folded", "RTSP/1.0 200 OK\r\nPublic: OPTIONS,\r\n DESCRIBE\r\nCSeq: 1\r\n\r\n", "RTSP/1.0 200 OK\r\nPublic: OPTIONS, DESCRIBE\r\nCSeq: 1\r\n\r\n"},
		{"endless value", "RTSP/1.0 200 OK\r\nX: " + long + "\r\nCSeq: 1\r\n\r\n", "RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n"},
		{"two lengths", "RTSP/1.0 200 OK\r\nContent-length: 3 \r\nContent-Length: 4\r\n\r\n", "RTSP/1.0 200 OK\r\nContent-length: 3\r\n\r\n"},
		{"length in words", "RTSP/1.0 200 OK\r\nContent-Length: three\r\n\r\n", "RTSP/1.0 200 OK\r\n\r\n"},
		{"two logins", "RTSP/1.0 401 No\r\nWWW-Authenticate: Basic realm=\"a\"\r\nWWW-Authenticate: Digest realm=\"a\", nonce=\"b\"\r\n\r\n", "RTSP/1.0 401 No\r\nWWW-Authenticate: Basic realm=\"a\"\r\nWWW-Authenticate: Digest realm=\"a\", nonce=\"b\"\r\n\r\n"},
		{"request", "OPTIONS rtsp://192.0.2.1/s RTSP/1.0\r\nCSeq: 1\r\n\r\n", "OPTIONS rtsp://192.0.2.1/s RTSP/1.0\r\nCSeq: 1\r\n\r\n"},
		{"request of a path", "SET_PARAMETER /s RTSP/1.0\r\nCSeq: 1\r\n\r\n", "SET_PARAMETER * RTSP/1.0\r\nCSeq: 1\r\n\r\n"},
		{"request of nothing", "OPTIONS RTSP/1.0\r\nCSeq: 1\r\n\r\n", "OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(rtsp.RepairHead([]byte(tt.head))); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

// A camera whose answers are all written oddly plays.
func TestOddHeadsPlay(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(string) string{
		"line feeds": func(s string) string {
			head, body, _ := strings.Cut(s, "\r\n\r\n")
			return strings.ReplaceAll(head, "\r\n", "\n") + "\n\n" + body
		},
		"no words": func(s string) string { return strings.Replace(s, " Words", "", 1) },
		"lines of rubbish": func(s string) string {
			return strings.Replace(s, "\r\n", "\r\nrubbish\r\nX: "+strings.Repeat("y", 4000)+"\r\n", 1)
		},
		"twice the length": func(s string) string {
			if _, length, ok := strings.Cut(s, "Content-Length:"); ok {
				length, _, _ = strings.Cut(length, "\r\n")
				return strings.Replace(s, "\r\n", "\r\nContent-Length:"+length+"\r\n", 1)
			}
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			addr := startScript(t, func(c *scriptConn) {
				c.Conn = rewriting{c.Conn, write}
				obedient(nil)(c)
			})
			receive(t, rtsp.Options{URL: "rtsp://" + addr + "/x", Transport: rtsp.TCP}, 3)
		})
	}
}

// rewriting is a connection whose answers are written in another way.
type rewriting struct {
	net.Conn
	write func(string) string
}

func (r rewriting) Write(b []byte) (int, error) {
	if bytes.HasPrefix(b, []byte("RTSP/")) {
		if _, err := r.Conn.Write([]byte(r.write(string(b)))); err != nil {
			return 0, err
		}
		return len(b), nil
	}
	return r.Conn.Write(b)
}

// FuzzHead: once repaired, a head is one that stays as it is, and gortsplib
// reads it if it has a status or a method at all.
func FuzzHead(f *testing.F) {
	f.Add([]byte("RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n"))
	f.Add([]byte("RTSP/1.0 200\nContent-Length: 3 \nx\n y\n\n"))
	f.Add([]byte("SET_PARAMETER /s RTSP/1.0\r\nCSeq:1\r\n\r\n"))
	f.Add([]byte(" : : \r\n\t\r\n"))
	f.Add([]byte(" RTSP/2 a b\r\n\r\n"))
	f.Add([]byte("RTSP/1.0 200 " + strings.Repeat("x", 199) + " y\r\n\r\n"))
	f.Add([]byte("RTSP/1.0\u0085\r\n\r\n"))
	f.Fuzz(func(t *testing.T, head []byte) {
		once := rtsp.RepairHead(head)
		if twice := rtsp.RepairHead(once); !bytes.Equal(once, twice) {
			t.Errorf("%q becomes %q", once, twice)
		}
		if !bytes.HasSuffix(once, []byte("\r\n\r\n")) {
			t.Errorf("%q has no end", once)
		}
		if rest, ok := bytes.CutPrefix(once, []byte("RTSP/1.0 200 ")); ok && !bytes.ContainsRune(rest, 0) {
			body := bytes.Repeat([]byte{'x'}, 128<<10)
			var res base.Response
			if err := res.Unmarshal(bufio.NewReader(bytes.NewReader(append(once, body...)))); err != nil && !strings.Contains(err.Error(), "Content-Length") {
				t.Errorf("gortsplib refuses %q: %v", once, err)
			}
		}
	})
}
