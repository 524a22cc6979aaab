package rtsp_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bluenviron/gortsplib/v4/pkg/base"
	"github.com/bluenviron/gortsplib/v4/pkg/headers"

	"edgecam/capture/rtsp"
)

func TestSessionHeader(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		header  string
		want    string        // what gortsplib reads
		period  time.Duration // of signs of life, which come after 8/10 of that
		timeout time.Duration
	}{
		{"12345678", "12345678;timeout=37", 29600 * time.Millisecond, 0},
		{"A;timeout=60", "A;timeout=37", 29600 * time.Millisecond, time.Minute},
		{"A;timeout=5", "A;timeout=3", 2400 * time.Millisecond, 5 * time.Second},
		{"A;timeout=1", "A;timeout=1", 800 * time.Millisecond, time.Second},
		{"A ; Timeout = 10s", "A;timeout=6", 4800 * time.Millisecond, 10 * time.Second},
		{"A;timeout=0", "A;timeout=37", 29600 * time.Millisecond, 0},
		{"A;timeout=-5", "A;timeout=37", 29600 * time.Millisecond, 0},
		{"A;timeout=", "A;timeout=37", 29600 * time.Millisecond, 0},
		{"A;timeout=99999999999999999999", "A;timeout=37", 29600 * time.Millisecond, 10 * time.Minute},
		{"A;x=y;timeout=30;z", "A;timeout=18", 14400 * time.Millisecond, 30 * time.Second},
		{";timeout=5", "", 0, 0},
	} {
		var u rtsp.Upkeep
		res := &base.Response{StatusCode: base.StatusOK, Header: base.Header{"Session": {tt.header}}}
		u.Answered("SETUP", res)
		if got := strings.Join(res.Header["Session"], "|"); got != tt.want || u.Timeout() != tt.timeout {
			t.Errorf("%q becomes %q with %v, want %q with %v", tt.header, got, u.Timeout(), tt.want, tt.timeout)
		}
		if tt.period == 0 {
			continue
		}
		var s headers.Session
		if err := s.Unmarshal(res.Header["Session"]); err != nil {
			t.Fatal(err)
		}
		if got := time.Duration(*s.Timeout) * time.Second * 8 / 10; got != tt.period {
			t.Errorf("%q: signs of life every %v, want %v", tt.header, got, tt.period)
		}
	}
}

// Headers of a camera never make gortsplib give up, whatever is in them.
func FuzzAnswerHeaders(f *testing.F) {
	f.Add(200, "1", "A;timeout=60", "OPTIONS, GET_PARAMETER", "5")
	f.Add(200, "0", "A ; Timeout = 10s", "get_parameter", "-1")
	f.Add(100, "", ";;;=", "", "99999999999999999999")
	f.Add(453, "x", "A;timeout=-1", ",,,", "Fri, 31 Dec 1999 23:59:59 GMT")
	f.Fuzz(func(t *testing.T, code int, cseq, session, public, retry string) {
		var u rtsp.Upkeep
		for n, method := range []string{"OPTIONS", "DESCRIBE", "SETUP", "PLAY", "GET_PARAMETER", "GET_PARAMETER"} {
			req := &base.Request{Method: base.Method(method), Header: base.Header{"CSeq": {strconv.Itoa(n)}}}
			u.Sent(req)
			if method == "GET_PARAMETER" && req.Method != base.Options && req.Method != base.GetParameter && req.Method != base.SetParameter {
				t.Errorf("%s is no sign of life", req.Method)
			}
			res := &base.Response{StatusCode: base.StatusCode(code), Header: base.Header{
				"CSeq": {fmt.Sprint(cseq, n)}, "Session": {session, "another"}, "Public": {public, "PLAY"}, "Retry-After": {retry},
			}}
			done := u.Answered(string(req.Method), res)
			if done != (code < 200) {
				t.Errorf("an answer of %d is interim: %v", code, done)
			}
			if method == "GET_PARAMETER" || done {
				continue
			}
			if v := res.Header["Session"]; len(v) > 0 {
				if err := new(headers.Session).Unmarshal(v); err != nil {
					t.Errorf("gortsplib refuses %q: %v", v, err)
				}
			}
			if got := res.Header["CSeq"][0]; got != strconv.Itoa(n) {
				t.Errorf("answer %q to request %d is left alone", got, n)
			}
		}
		if r := u.Retry(); r < 0 || r > 10*time.Minute {
			t.Errorf("comes back after %v", r)
		}
	})
}
