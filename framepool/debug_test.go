//go:build framedebug

package framepool_test

import (
	"bytes"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"

	"edgecam/framepool"
)

func profile(t *testing.T) string {
	var b bytes.Buffer
	if err := pprof.Lookup("edgecam/framepool.Frame").WriteTo(&b, 1); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestProfileShowsLiveHandles(t *testing.T) {
	p := newPool(t, framepool.Options{})
	b := get(t, p)
	if s := profile(t); !strings.Contains(s, "total 1") || !strings.Contains(s, "TestProfileShowsLiveHandles") {
		t.Errorf("profile of one buffer:\n%s", s)
	}
	f := b.Seal(meta(p, 1))
	g := f.Retain()
	if s := profile(t); !strings.Contains(s, "total 2") {
		t.Errorf("profile of two frames:\n%s", s)
	}
	f.Release()
	g.Release()
	if s := profile(t); !strings.Contains(s, "total 0") {
		t.Errorf("profile at the end:\n%s", s)
	}
}

func TestLastReleasePoisons(t *testing.T) {
	p := newPool(t, framepool.Options{})
	f := get(t, p).Seal(meta(p, 1))
	stale := f.Plane(0)
	g := f.Retain()
	f.Release()
	if stale[5] == 0xdb {
		t.Error("poisoned while a handle lives")
	}
	g.Release()
	if stale[5] != 0xdb {
		t.Errorf("sample %#x after the last release, want 0xdb", stale[5])
	}
}

func TestCollectedHandleIsReported(t *testing.T) {
	before := framepool.Leaks()
	func() {
		m := framepool.Meta{Camera: "leak", Format: framepool.Gray8, Width: 1, Height: 1, Stride: [3]int{1}}
		framepool.NewHeapFrame(m, [][]byte{{1}})
	}()
	for framepool.Leaks() == before { // ends with the test's time limit if no leak is ever seen
		runtime.GC()
	}
	framepool.Forget()
}
