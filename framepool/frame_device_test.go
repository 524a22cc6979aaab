package framepool_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"edgecam/framepool"
)

func deviceMeta() framepool.Meta {
	return framepool.Meta{
		Camera: "gate", Seq: 7, Format: framepool.NV12, Width: 61, Height: 37,
		Offset: [3]int{1, 2, 3}, Stride: [3]int{256, 256},
	}
}

func TestDeviceFrame(t *testing.T) {
	var gone int
	f := framepool.NewDeviceFrame(deviceMeta(), [3]uintptr{0x7000, 0x9000}, func() { gone++ })
	if f.Memory() != framepool.MemoryDevice {
		t.Errorf("memory %v", f.Memory())
	}
	if got := f.Meta().Offset; got != [3]int{} {
		t.Errorf("offsets %v of a frame whose addresses are given", got)
	}
	second := f.Retain()
	for i, want := range []uintptr{0x7000, 0x9000} {
		for name, h := range map[string]*framepool.Frame{"first": f, "second": second} {
			if p, ok := h.DevicePlane(i); p != want || !ok {
				t.Errorf("%s handle: plane %d at %#x, %v", name, i, p, ok)
			}
			if h.Plane(i) != nil {
				t.Errorf("%s handle: plane %d has bytes on the host", name, i)
			}
		}
	}
	for _, i := range []int{-1, 2, 3} {
		if p, ok := f.DevicePlane(i); ok {
			t.Errorf("plane %d of two at %#x", i, p)
		}
	}
	f.Release()
	if gone != 0 {
		t.Error("surface given back while a handle lives")
	}
	if p, ok := second.DevicePlane(1); p != 0x9000 || !ok {
		t.Errorf("the handle that is left: plane 1 at %#x, %v", p, ok)
	}
	second.Release()
	if gone != 1 {
		t.Errorf("surface given back %d times", gone)
	}
	for name, use := range map[string]func(){
		"release": second.Release,
		"plane":   func() { second.DevicePlane(0) },
		"retain":  func() { f.Retain() },
	} {
		if panicText(use) == "" {
			t.Errorf("%s after the release: no panic", name)
		}
	}
	if gone != 1 {
		t.Errorf("surface given back %d times", gone)
	}
}

func panicText(f func()) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprint(v)
		}
	}()
	f()
	return ""
}

// Handles come and go on many goroutines; the surface goes back once, and only
// when none is left.
func TestDeviceFrameConcurrently(t *testing.T) {
	var gone atomic.Int64
	f := framepool.NewDeviceFrame(deviceMeta(), [3]uintptr{1, 1}, func() { gone.Add(1) })
	var wg sync.WaitGroup
	for range 8 {
		h := f.Retain()
		wg.Go(func() {
			for range 1000 {
				next := h.Retain()
				h.Release()
				h = next
				if gone.Load() != 0 {
					t.Error("surface given back while a handle lives")
					break
				}
			}
			h.Release()
		})
	}
	f.Release()
	wg.Wait()
	if gone.Load() != 1 {
		t.Errorf("surface given back %d times", gone.Load())
	}
}

func TestDeviceFrameRefusals(t *testing.T) {
	tests := []struct {
		name   string
		change func(*framepool.Meta)
		planes [3]uintptr
		free   func()
		want   string
	}{
		{"no format", func(m *framepool.Meta) { m.Format = 0 }, [3]uintptr{1, 1}, func() {}, "framepool: device frame of 61x37 in format unknown(0) (release true)"},
		{"empty", func(m *framepool.Meta) { m.Height = 0 }, [3]uintptr{1, 1}, func() {}, "framepool: device frame of 61x0 in format nv12 (release true)"},
		{"no release", func(*framepool.Meta) {}, [3]uintptr{1, 1}, nil, "framepool: device frame of 61x37 in format nv12 (release false)"},
		{"no plane", func(*framepool.Meta) {}, [3]uintptr{1}, func() {}, "framepool: device frame: plane 1 at 0x0 with rows of 62 bytes, 256 apart"},
		{"short stride", func(m *framepool.Meta) { m.Stride[1] = 61 }, [3]uintptr{1, 1}, func() {}, "framepool: device frame: plane 1 at 0x1 with rows of 62 bytes, 61 apart"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := deviceMeta()
			tt.change(&m)
			if got := panicText(func() { framepool.NewDeviceFrame(m, tt.planes, tt.free) }); got != tt.want {
				t.Errorf("panic %q, want %q", got, tt.want)
			}
		})
	}
}

func TestMailboxReleasesDeviceFrames(t *testing.T) {
	var gone []int
	put := func(m *framepool.Mailbox, n int) {
		m.Put(framepool.NewDeviceFrame(deviceMeta(), [3]uintptr{1, 1}, func() { gone = append(gone, n) }))
	}
	m := framepool.NewMailbox()
	put(m, 1)
	put(m, 2)
	m.Close()
	put(m, 3)
	if fmt.Sprint(gone) != "[1 2 3]" {
		t.Errorf("surfaces given back: %v", gone)
	}
}
