//go:build linux && (amd64 || arm64)

package sysav

// Util is the file of the libavutil that the library works with.
func (l *Library) Util() string { return l.util }

// Ours says that it is the libavcodec that this program is linked with.
func (l *Library) Ours() bool { return l.ours }

// Stuck counts the calls that were given up and have not come back.
func (l *Library) Stuck() int { return l.hanging() }
