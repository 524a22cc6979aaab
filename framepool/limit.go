package framepool

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

const (
	defaultShare = 0.7
	// blindLimit is the budget where the system does not tell its memory.
	blindLimit = 1 << 30
	capIPCLock = 14 // bit of CAP_IPC_LOCK, which lifts RLIMIT_MEMLOCK
)

// DetectLimit gives the bytes that the pools of this process may take together
// and says in words how it came to that: share (0..1, 0 meaning 0.7) of the
// smaller of RAM and the memory cgroups around the process. explicit, if
// positive, takes the place of the share but never exceeds RAM and cgroup:
// beyond them waits the OOM killer. Where memory is scarce the limit is what it
// leaves beside the program itself: ask when the program has all that it needs
// beside pools, such as its model.
//
// RLIMIT_MEMLOCK is named where it is the smaller, and does not lower the
// limit: a pool that may not be locked works unlocked, which is slower, while
// a smaller budget would refuse cameras.
func DetectLimit(share float64, explicit int64) (limit int64, why string) {
	return DetectLimitFS(os.DirFS("/"), share, explicit)
}

// DetectLimitFS is DetectLimit over the root of another file system.
func DetectLimitFS(root fs.FS, share float64, explicit int64) (limit int64, why string) {
	if !(share > 0 && share <= 1) {
		share = defaultShare
	}
	limit, why = memoryLimit(root, share, explicit)
	if lock := lockLimit(root); lock < limit {
		why += fmt.Sprintf("; only %s of it may be locked (RLIMIT_MEMLOCK): set LimitMEMLOCK=infinity in the unit to lock all", FormatBytes(lock))
	}
	return limit, why
}

func memoryLimit(root fs.FS, share float64, explicit int64) (int64, string) {
	all, where := ram(root)
	if n, group := cgroupLimit(root); n < all {
		all, where = n, group
	}
	room, own := roomFor(root, all)
	switch {
	case all == math.MaxInt64 && explicit > 0:
		return explicit, fmt.Sprintf("%s as configured", FormatBytes(explicit))
	case all == math.MaxInt64:
		return blindLimit, fmt.Sprintf("%s, as the system does not tell its memory: set memory.limit", FormatBytes(blindLimit))
	case room < int64(float64(all)*share) && (explicit <= 0 || room < explicit):
		return room, fmt.Sprintf("%s, what %s (%s) leaves beside the program's own %s and its decoders", FormatBytes(room), FormatBytes(all), where, FormatBytes(own))
	case explicit > all:
		return all, fmt.Sprintf("%s (%s), less than the %s configured", FormatBytes(all), where, FormatBytes(explicit))
	case explicit > 0:
		return explicit, fmt.Sprintf("%s as configured", FormatBytes(explicit))
	}
	limit := int64(float64(all) * share)
	return limit, fmt.Sprintf("%s, %.0f %% of %s (%s)", FormatBytes(limit), share*100, FormatBytes(all), where)
}

// The program needs memory beside its pools: what it has now, some for packets,
// pictures for viewers and Go's own, and about a third of a pool for what a
// decoder keeps beside its pictures (31 MB of 126 at 4K with H.264).
const (
	headroom   = 32 << 20
	poolsShare = 0.75 // of what remains
)

// roomFor is what all bytes of memory leave for pools (at least 1: 0 would mean
// no limit), and what the program has now; MaxInt64 where that cannot be read.
func roomFor(root fs.FS, all int64) (room, own int64) {
	f := field(root, "proc/self/status", "VmRSS:")
	if len(f) == 0 || all == math.MaxInt64 {
		return math.MaxInt64, 0
	}
	kb, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil || kb <= 0 || kb >= math.MaxInt64>>10 {
		return math.MaxInt64, 0
	}
	own = kb << 10
	return max(1, int64(float64(all-own-headroom)*poolsShare)), own
}

// ram is MemTotal, or MaxInt64 where it cannot be read.
func ram(root fs.FS) (int64, string) {
	if f := field(root, "proc/meminfo", "MemTotal:"); len(f) > 0 {
		if kb, err := strconv.ParseInt(f[0], 10, 64); err == nil && kb > 0 && kb < math.MaxInt64>>10 {
			return kb << 10, "RAM"
		}
	}
	return math.MaxInt64, ""
}

// lockLimit is RLIMIT_MEMLOCK, or MaxInt64 where it does not bind or cannot be
// read.
func lockLimit(root fs.FS) int64 {
	if f := field(root, "proc/self/status", "CapEff:"); len(f) > 0 {
		if caps, err := strconv.ParseUint(f[0], 16, 64); err == nil && caps>>capIPCLock&1 == 1 {
			return math.MaxInt64
		}
	}
	if f := field(root, "proc/self/limits", "Max locked memory"); len(f) > 0 {
		if n, err := strconv.ParseInt(f[0], 10, 64); err == nil {
			return n
		}
	}
	return math.MaxInt64 // "unlimited", or not told
}

// field gives the words after a prefix in the first line that has it.
func field(root fs.FS, name, prefix string) []string {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return nil
	}
	for sc := bufio.NewScanner(bytes.NewReader(b)); sc.Scan(); {
		if rest, ok := strings.CutPrefix(sc.Text(), prefix); ok {
			return strings.Fields(rest)
		}
	}
	return nil
}

// cgroupLimit is the smallest limit of the memory cgroups around the process,
// version 1 or 2, and its name; MaxInt64 where there is none.
func cgroupLimit(root fs.FS) (int64, string) {
	b, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return math.MaxInt64, ""
	}
	limit, where := int64(math.MaxInt64), ""
	for sc := bufio.NewScanner(bytes.NewReader(b)); sc.Scan(); {
		// hierarchy:controllers:path, of which the path may hold colons.
		f := strings.SplitN(sc.Text(), ":", 3)
		if len(f) != 3 {
			continue
		}
		var mounts, files []string
		switch {
		case f[0] == "0" && f[1] == "":
			mounts, files = []string{"sys/fs/cgroup", "sys/fs/cgroup/unified"}, []string{"memory.max", "memory.high"}
		case slices.Contains(strings.Split(f[1], ","), "memory"):
			mounts, files = []string{"sys/fs/cgroup/memory"}, []string{"memory.limit_in_bytes"}
		}
		for _, m := range mounts {
			if n, name := groupLimit(root, m, f[2], files); n < limit {
				limit, where = n, name
			}
		}
	}
	return limit, where
}

// groupLimit walks from a group up to the mount: the limits of all ancestors
// hold. In a container without a cgroup namespace the path names groups that
// are not mounted; the walk then ends at the mount, which is the container's.
func groupLimit(root fs.FS, mount, group string, files []string) (int64, string) {
	limit, where := int64(math.MaxInt64), ""
	for dir := path.Join("/", group); ; dir = path.Dir(dir) {
		for _, file := range files {
			b, err := fs.ReadFile(root, path.Join(mount, dir, file))
			if err != nil {
				continue
			}
			// "max" does not parse; version 1 says no limit by a number near 2⁶³,
			// more than any RAM.
			n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
			if err == nil && n > 0 && n < limit {
				limit, where = n, fmt.Sprintf("%s of cgroup %s", file, dir)
			}
		}
		if dir == "/" {
			return limit, where
		}
	}
}

// lockText is RLIMIT_MEMLOCK in words.
func lockText() string {
	if n := lockLimit(os.DirFS("/")); n < math.MaxInt64 {
		return FormatBytes(n)
	}
	return "unlimited"
}
