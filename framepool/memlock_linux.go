package framepool

import "golang.org/x/sys/unix"

// memlockText is RLIMIT_MEMLOCK in words.
func memlockText() string {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &l); err != nil {
		return "unknown"
	}
	if l.Cur >= 1<<62 {
		return "unlimited"
	}
	return FormatBytes(int64(l.Cur))
}
