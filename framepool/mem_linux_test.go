//go:build linux && !race

package framepool_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"edgecam/framepool"
)

// smap is one mapping of /proc/self/smaps: addresses and named numbers in kB.
type smap struct {
	from, to uint64
	perms    string
	kb       map[string]int
	flags    string
}

// smapsAt are the mappings that lie in [base, base+size).
func smapsAt(t *testing.T, base uintptr, size int) (out []smap) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	inside := false
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if a, z, ok := strings.Cut(f[0], "-"); ok && !strings.HasSuffix(f[0], ":") {
			from, err1 := strconv.ParseUint(a, 16, 64)
			to, err2 := strconv.ParseUint(z, 16, 64)
			if err1 != nil || err2 != nil {
				t.Fatal(line)
			}
			inside = from < uint64(base)+uint64(size) && to > uint64(base)
			if inside {
				out = append(out, smap{from: from, to: to, perms: f[1], kb: map[string]int{}})
			}
			continue
		}
		if !inside {
			continue
		}
		m := &out[len(out)-1]
		if f[0] == "VmFlags:" {
			m.flags = " " + strings.Join(f[1:], " ") + " "
		} else if len(f) == 3 {
			m.kb[strings.TrimSuffix(f[0], ":")], _ = strconv.Atoi(f[1])
		}
	}
	return out
}

func bigPool(t *testing.T, o framepool.Options) *framepool.Pool {
	o.Layout = layout(t, framepool.I420, 1280, 720) // 1.3 MiB a slot
	o.Slots = 4
	return newPool(t, o)
}

func TestRegionIsAlignedResidentAndPrivate(t *testing.T) {
	p := bigPool(t, framepool.Options{HugePages: true, Lock: true})
	c, s := p.Control(), p.Stats()
	if c.Base%(2<<20) != 0 {
		t.Errorf("base %#x is not on a 2 MiB boundary", c.Base)
	}
	if !s.Pinned || s.Node < 0 {
		t.Skipf("this host does not lock memory: %+v", s)
	}
	if s.HugeBytes == s.Bytes {
		t.Skip("the pool lies in reserved huge pages: see TestReservedHugePages")
	}
	var rss, huge, locked, guard int
	for _, m := range smapsAt(t, c.Base, int(s.Bytes)) {
		if strings.HasPrefix(m.perms, "---") {
			guard++
			continue
		}
		rss += m.kb["Rss"] << 10
		huge += m.kb["AnonHugePages"] << 10
		locked += m.kb["Locked"] << 10
		if !strings.Contains(m.flags, " dc ") || !strings.Contains(m.flags, " dd ") {
			t.Errorf("flags %q: want dc (not inherited by forks) and dd (not in core dumps)", m.flags)
		}
	}
	pixels := c.Slots * c.SlotStride
	if rss < pixels || locked < pixels || guard != 1 {
		t.Errorf("%d bytes resident, %d locked, %d guards for %d bytes of pixels", rss, locked, guard, pixels)
	}
	if int64(huge) != s.HugeBytes || s.HugePages != (huge > 0) {
		t.Errorf("stats say %d bytes in huge pages, the kernel %d", s.HugeBytes, huge)
	}
	f := get(t, p).Seal(meta(p, 1))
	if f.Memory() != framepool.MemoryPinned {
		t.Errorf("memory %v, want pinned", f.Memory())
	}
	f.Release()
}

func TestMappingIsGoneAtTheEnd(t *testing.T) {
	p := bigPool(t, framepool.Options{HugePages: true, Lock: true})
	c, size := p.Control(), int(p.Stats().Bytes)
	f := get(t, p).Seal(meta(p, 1))
	p.Close()
	if len(smapsAt(t, c.Base, size)) == 0 {
		t.Error("mapping gone under a frame")
	}
	f.Release()
	if m := smapsAt(t, c.Base, size); len(m) != 0 {
		t.Errorf("mapping still there: %+v", m)
	}
}

// A decoder that writes past the last slot faults; it does not corrupt the
// control words.
func TestWriteBehindThePixelsFaults(t *testing.T) {
	p := newPool(t, framepool.Options{})
	c := p.Control()
	// The guard is the next page: larger ones hold some bytes more that are nobody's.
	page := os.Getpagesize()
	pixels := (c.Slots*c.SlotStride + page - 1) / page * page
	behind := unsafe.Slice((*byte)(pointer(c.Base)), pixels+1)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if err := fmt.Sprint(recover()); !strings.Contains(err, "invalid memory address") {
			t.Errorf("got %v, want a fault", err)
		}
	}()
	behind[len(behind)-2] = 1 // the last byte of the last page is ours
	behind[len(behind)-1] = 1
}

// lockedOut runs f on a thread that may not lock memory.
func lockedOut(t *testing.T, f func()) {
	t.Helper()
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &old); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: 64 << 10, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &old); err != nil {
			t.Error(err)
		}
	}()
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Capabilities are the thread's: it is never unlocked, so that it ends
		// with this goroutine.
		runtime.LockOSThread()
		h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var caps [2]unix.CapUserData
		if err := unix.Capget(&h, &caps[0]); err != nil {
			t.Error(err)
			return
		}
		caps[0].Effective &^= 1 << unix.CAP_IPC_LOCK
		if err := unix.Capset(&h, &caps[0]); err != nil {
			t.Error(err)
			return
		}
		f()
	}()
	<-done
}

func TestRefusedLockRunsUnlockedWithOneWarning(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	budget := framepool.NewBudget(0)
	lockedOut(t, func() {
		for range 3 {
			p := bigPool(t, framepool.Options{Lock: true, Budget: budget, Logger: logger})
			if s := p.Stats(); s.Pinned {
				t.Errorf("stats %+v of a pool that cannot be locked", s)
			}
			f := get(t, p).Seal(meta(p, 1))
			if f.Memory() != framepool.MemoryHeap {
				t.Errorf("memory %v", f.Memory())
			}
			f.Release()
			p.Close()
		}
	})
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "set LimitMEMLOCK=infinity in the unit") {
		t.Errorf("%d lines of log, want one that names LimitMEMLOCK:\n%s", n, &log)
	}
	if budget.Used() != 0 {
		t.Errorf("%d bytes in use", budget.Used())
	}
}

func TestUnlockedOnRequest(t *testing.T) {
	if s := newPool(t, framepool.Options{}).Stats(); s.Pinned {
		t.Errorf("stats %+v, want unlocked", s)
	}
}

// A node that the host lacks costs nothing but the wish.
func TestNodeThatIsNotThere(t *testing.T) {
	for _, node := range []int{-1, 0, 63, 1000, 5000} {
		p := newPool(t, framepool.Options{Node: node})
		if n := p.Stats().Node; n < -1 || n > 1023 {
			t.Errorf("node %d, asked for %d", n, node)
		}
		p.Close()
	}
}

func TestReservedHugePages(t *testing.T) {
	b, err := os.ReadFile("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
	if n, _ := strconv.Atoi(strings.TrimSpace(string(b))); err != nil || n < 8 {
		t.Skipf("needs 8 reserved huge pages (sysctl vm.nr_hugepages=8), there are %d", n)
	}
	p := bigPool(t, framepool.Options{HugePages: true, Lock: true})
	c, s := p.Control(), p.Stats()
	m := smapsAt(t, c.Base, 1)
	if len(m) != 1 || m[0].kb["KernelPageSize"] != 2048 || s.HugeBytes != s.Bytes || int64(m[0].to-m[0].from) != s.Bytes ||
		!strings.Contains(m[0].flags, " dc ") || !strings.Contains(m[0].flags, " dd ") {
		t.Errorf("mapping %+v, stats %+v", m, s)
	}
	f := get(t, p).Seal(meta(p, 1))
	p.Close()
	f.Release()
	if m := smapsAt(t, c.Base, 1); len(m) != 0 {
		t.Errorf("mapping still there: %+v", m)
	}
}
