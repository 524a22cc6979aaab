package capture

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	// journalPeriod is the time that the lines of a camera are bounded for, and
	// between two summaries of a trouble that lasts.
	journalPeriod = 10 * time.Minute
	// journalLines is how many changes of a period have a line of their own.
	journalLines = 10
	// journalKinds bounds the failures of a trouble that are told apart.
	journalKinds = 8
)

// journal decides what of a camera goes into the log. Each change of state is a
// line; the same failure again is none, but a summary every ten minutes says
// that it lasts. A camera that comes and goes has so many lines a period, and
// then a summary too. It is guarded by the supervisor's mutex.
type journal struct {
	period   time.Time // begin of the period
	lines    int       // in it
	hidden   int       // changes in it that got no line
	attempts uint64    // at its begin
	since    time.Time // begin of the trouble; zero = none
	told     map[string]int
}

// entry is a line for the log; none where text is "".
type entry struct {
	level slog.Level
	text  string
	args  []any
}

// live notes that pictures come, after so many attempts.
func (j *journal) live(now time.Time, attempts uint64) (entry, entry) {
	summary := j.turn(now, attempts, "unsteady")
	away := time.Duration(0)
	if !j.since.IsZero() {
		away = now.Sub(j.since)
	}
	j.since, j.told = time.Time{}, nil
	if !j.take() {
		return summary, entry{}
	}
	line := entry{level: slog.LevelInfo, text: "camera live"}
	if away > 0 {
		line.args = []any{"away", away.Round(time.Millisecond)}
	}
	return summary, line
}

// failure notes that an attempt or a session failed.
func (j *journal) failure(now time.Time, state State, err error, attempts uint64) (entry, entry) {
	summary := j.turn(now, attempts, "still "+string(state))
	if j.since.IsZero() {
		j.since = now
	}
	if j.told == nil {
		j.told = map[string]int{}
	}
	key := string(state) + ": " + kindOf(err.Error())
	if _, known := j.told[key]; !known && len(j.told) >= journalKinds {
		key = "other failures"
	}
	j.told[key]++
	if j.told[key] > 1 || !j.take() {
		return summary, entry{}
	}
	return summary, entry{level: slog.LevelWarn, text: "camera " + string(state), args: []any{"err", err}}
}

// take takes a line of the period's.
func (j *journal) take() bool {
	if j.lines >= journalLines {
		j.hidden++
		return false
	}
	j.lines++
	return true
}

// turn begins a new period when the old one is over, and sums that one up where
// there was more than its lines told.
func (j *journal) turn(now time.Time, attempts uint64, what string) entry {
	if j.period.IsZero() {
		j.period, j.attempts = now, attempts-1 // the one that is told of now counts
		return entry{}
	}
	if now.Sub(j.period) < journalPeriod {
		return entry{}
	}
	var line entry
	if !j.since.IsZero() || j.hidden > 0 {
		line = entry{level: slog.LevelWarn, text: "camera " + what, args: []any{
			"attempts", attempts - j.attempts, "in_the_last", now.Sub(j.period).Round(time.Second),
		}}
		if !j.since.IsZero() {
			line.args = append(line.args, "for", now.Sub(j.since).Round(time.Second))
		}
		if j.hidden > 0 {
			line.args = append(line.args, "changes_not_told", j.hidden)
		}
		if kinds := slices.Sorted(maps.Keys(j.told)); len(kinds) > 0 {
			line.args = append(line.args, "failures", strings.Join(kinds, "; "))
		}
	}
	j.period, j.lines, j.hidden, j.attempts = now, 0, 0, attempts
	return line
}

// kindOf makes texts alike that differ in numbers only.
func kindOf(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return '#'
		}
		return r
	}, text)
}
