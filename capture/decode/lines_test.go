package decode

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"edgecam/platform/avcodec"
)

func TestLinesAreFew(t *testing.T) {
	var out bytes.Buffer
	h := slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	l := lineLimiter{log: slog.New(h), now: func() time.Time { return now }}
	for i := range 3000 {
		l.line(avcodec.Line{Level: avcodec.LevelError, Text: "error while decoding MB " + string(rune('0'+i%10)), Repeated: 1})
		now = now.Add(10 * time.Millisecond)
	}
	l.line(avcodec.Line{Level: avcodec.LevelFatal, Text: "out of luck"})
	now = now.Add(time.Hour)
	for r := range 12 {
		l.line(avcodec.Line{Level: avcodec.LevelWarning, Text: "odd " + string(rune('a'+r))})
	}
	l.flush()
	const want = `level=WARN msg="ffmpeg: error while decoding MB 0"
level=ERROR msg="ffmpeg: out of luck"
level=WARN msg="ffmpeg: error while decoding MB 0" repeated=5999
level=WARN msg="ffmpeg: odd a"
level=WARN msg="ffmpeg: odd b"
level=WARN msg="ffmpeg: odd c"
level=WARN msg="ffmpeg: odd d"
level=WARN msg="ffmpeg: odd e"
level=WARN msg="ffmpeg: odd f"
level=WARN msg="ffmpeg: odd g"
level=WARN msg="ffmpeg: odd h"
level=WARN msg="ffmpeg: other lines" repeated=4
`
	if out.String() != want {
		t.Errorf("got:\n%swant:\n%s", out.String(), want)
	}
}

// A stream that is damaged for a day has a bounded log.
func TestLinesOfALongTrouble(t *testing.T) {
	var out strings.Builder
	now := time.Unix(1, 0)
	l := lineLimiter{log: slog.New(slog.NewTextHandler(&out, nil)), now: func() time.Time { return now }}
	for i := range 24 * 3600 {
		now = now.Add(time.Second)
		l.line(avcodec.Line{Level: avcodec.LevelError, Text: fmt.Sprintf("error while decoding MB %d", i)})
	}
	if n := strings.Count(out.String(), "\n"); n < 24 || n > 2*(24*6+10) {
		t.Errorf("%d lines in a day", n)
	}
}
