package platform

import (
	"path"
	"regexp"
	"strconv"
	"strings"
)

// memory reads sizes and limits.
func (t tree) memory() Memory {
	m := Memory{CgroupBytes: -1, MemlockBytes: t.memlock()}
	for _, line := range t.lines("proc/meminfo") {
		key, value, _ := field(line)
		digits, unit, _ := strings.Cut(value, " ")
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			continue
		}
		if unit == "kB" { // the kernel's kB are 1024 bytes
			n *= 1024
		}
		switch key {
		case "MemTotal":
			m.TotalBytes = n
		case "MemAvailable":
			m.AvailableBytes = n
		case "HugePages_Total":
			m.HugePagesTotal = n
		case "HugePages_Free":
			m.HugePagesFree = n
		case "Hugepagesize":
			m.HugePageBytes = n
		}
	}
	for _, dir := range t.cgroups("memory") {
		for _, file := range []string{"memory.max", "memory.limit_in_bytes"} {
			n, ok := t.number(dir + "/" + file)
			// v1 writes "no limit" as a number near 2^63: more than there is, is none.
			if ok && n < m.TotalBytes && (m.CgroupBytes < 0 || n < m.CgroupBytes) {
				m.CgroupBytes = n
			}
		}
	}
	m.TransparentHuge = chosen(t.text("sys/kernel/mm/transparent_hugepage/enabled"))
	return m
}

// capIPCLock is the bit of CAP_IPC_LOCK, which lifts RLIMIT_MEMLOCK.
const capIPCLock = 1 << 14

// memlock is how much this process may lock, by its soft RLIMIT_MEMLOCK and its
// capabilities; -1 = without limit.
func (t tree) memlock() int64 {
	for _, line := range t.lines("proc/self/status") {
		if key, value, _ := field(line); key == "CapEff" {
			if caps, err := strconv.ParseUint(value, 16, 64); err == nil && caps&capIPCLock != 0 {
				return -1
			}
		}
	}
	for _, line := range t.lines("proc/self/limits") {
		rest, ok := strings.CutPrefix(line, "Max locked memory")
		if !ok {
			continue
		}
		f := strings.Fields(rest) // soft, hard, unit
		if len(f) == 0 {
			break
		}
		if n, err := strconv.ParseInt(f[0], 10, 64); err == nil {
			return n
		}
		break // "unlimited"
	}
	return -1
}

// cgroups gives the directories that may limit a controller for this process:
// its own and every parent, v2 first, then v1.
func (t tree) cgroups(controller string) []string {
	var dirs []string
	up := func(base, group string) {
		for g := path.Clean("/" + group); ; g = path.Dir(g) {
			dirs = append(dirs, path.Join(base, g))
			if g == "/" {
				return
			}
		}
	}
	for _, line := range t.lines("proc/self/cgroup") { // "0::/a/b" or "4:cpu,cpuacct:/a"
		f := strings.SplitN(line, ":", 3)
		if len(f) != 3 {
			continue
		}
		if f[0] == "0" && f[1] == "" {
			up("sys/fs/cgroup", f[2])
			continue
		}
		for _, c := range strings.Split(f[1], ",") {
			if c == controller {
				up("sys/fs/cgroup/"+c, f[2])
			}
		}
	}
	return dirs
}

// chosen gives the word in brackets of "always [madvise] never".
func chosen(s string) string {
	_, rest, ok := strings.Cut(s, "[")
	if !ok {
		return ""
	}
	word, _, _ := strings.Cut(rest, "]")
	return word
}

var nodeName = regexp.MustCompile(`^node\d+$`)

// nodes counts NUMA nodes.
func (t tree) nodes() int {
	n := 0
	for _, name := range t.list("sys/devices/system/node") {
		if nodeName.MatchString(name) {
			n++
		}
	}
	return max(n, 1)
}
