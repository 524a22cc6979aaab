package decode

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"edgecam/platform/avcodec"
)

const (
	linesEvery = time.Minute      // the first period
	linesLong  = 10 * time.Minute // the longest
	linesMax   = 8                // different lines a period
)

// lineLimiter passes FFmpeg's log on: each kind of line once a period, with the
// number of its likes at the period's end. Lines that differ in numbers only are
// of one kind, since FFmpeg names positions and counters. Periods of a stream
// that stays damaged grow: what was told need not be told each minute for days.
type lineLimiter struct {
	log   *slog.Logger
	now   func() time.Time
	start time.Time
	every time.Duration
	kinds []lineKind
	other int // lines of kinds beyond linesMax
}

type lineKind struct {
	key, text string
	level     slog.Level
	repeated  int
}

func (l *lineLimiter) line(n avcodec.Line) {
	if t := l.now(); t.Sub(l.start) >= l.every {
		busy := len(l.kinds) > 0 && t.Sub(l.start) < 2*l.every // the trouble lasts
		l.flush()
		l.start = t
		if l.every = min(2*l.every, linesLong); !busy {
			l.every = linesEvery
		}
	}
	key := strings.Map(digitsToHash, n.Text)
	for i := range l.kinds {
		if l.kinds[i].key == key {
			l.kinds[i].repeated += 1 + n.Repeated
			return
		}
	}
	if len(l.kinds) >= linesMax {
		l.other += 1 + n.Repeated
		return
	}
	k := lineKind{key: key, text: n.Text, level: slogLevel(n.Level), repeated: n.Repeated}
	l.kinds = append(l.kinds, k)
	l.log.Log(context.Background(), k.level, "ffmpeg: "+n.Text)
}

// flush says how often the period's lines came again and forgets them.
func (l *lineLimiter) flush() {
	for _, k := range l.kinds {
		if k.repeated > 0 {
			l.log.Log(context.Background(), k.level, "ffmpeg: "+k.text, "repeated", k.repeated)
		}
	}
	if l.other > 0 {
		l.log.Warn("ffmpeg: other lines", "repeated", l.other)
	}
	l.kinds, l.other = l.kinds[:0], 0
}

func digitsToHash(r rune) rune {
	if r >= '0' && r <= '9' {
		return '#'
	}
	return r
}

// slogLevel: FFmpeg's errors are the camera's damage, not ours.
func slogLevel(l avcodec.Level) slog.Level {
	if l < avcodec.LevelError {
		return slog.LevelError
	}
	return slog.LevelWarn
}
