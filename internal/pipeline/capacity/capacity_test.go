package capacity_test

import (
	"fmt"
	"testing"
	"time"

	"edgecam/internal/pipeline/capacity"
)

func cameras(n int, k capacity.Kind) (out []capacity.Kind) {
	for range n {
		out = append(out, k)
	}
	return out
}

func TestAsk(t *testing.T) {
	hd := capacity.Kind{Width: 1920, Height: 1080, FPS: 30, DetectFPS: 30, Codec: "h264", GPU: true}
	uhd, hevc, rarely := hd, hd, hd
	uhd.Width, uhd.Height = 3840, 2160
	hevc.Codec = "h265"
	rarely.DetectFPS = 3
	soft := hd
	soft.GPU, soft.DetectFPS = false, 5
	slow := soft
	slow.DetectFPS = 1
	card := map[capacity.Resource]capacity.Use{
		capacity.NVDEC: {Total: 0.5, Cameras: 0.5}, capacity.GPU: {Total: 0.2, Cameras: 0.2}, capacity.CPU: {Total: 0.3, Cameras: 0.2},
		capacity.Memory: {Total: 0.1, Cameras: 0.1}, capacity.Link: {Total: 0.01, Cameras: 0.01},
	}
	for _, c := range []struct {
		name  string
		load  capacity.Load
		kind  capacity.Kind
		more  int
		limit capacity.Resource
	}{
		{"the decoders are first", capacity.Load{Cameras: cameras(90, hd), Uses: card}, hd, 72, capacity.NVDEC},
		{"four times the pixels", capacity.Load{Cameras: cameras(90, hd), Uses: card}, uhd, 18, capacity.NVDEC},
		{"a codec that costs less", capacity.Load{Cameras: cameras(90, hd), Uses: card}, hevc, 128, capacity.NVDEC},
		{"analysis does not matter to decoders", capacity.Load{Cameras: cameras(90, hd), Uses: card}, rarely, 72, capacity.NVDEC},
		{"no live camera", capacity.Load{Uses: card}, hd, 0, ""},
		{"nothing measured", capacity.Load{Cameras: cameras(3, hd)}, hd, 0, ""},
		{
			"full", capacity.Load{Cameras: cameras(10, hd), Uses: map[capacity.Resource]capacity.Use{capacity.CPU: {Total: 0.95, Cameras: 0.9}}}, hd, 0, capacity.CPU,
		},
		{
			"a processor that decodes and infers",
			capacity.Load{Cameras: cameras(2, soft), Uses: map[capacity.Resource]capacity.Use{capacity.CPU: {Total: 0.4, Cameras: 0.4, Engine: 0.3}}},
			soft, 2, capacity.CPU,
		},
		{
			"the same, analysed less",
			capacity.Load{Cameras: cameras(2, soft), Uses: map[capacity.Resource]capacity.Use{capacity.CPU: {Total: 0.4, Cameras: 0.4, Engine: 0.3}}},
			slow, 6, capacity.CPU,
		},
		{
			"somebody else works on the machine",
			capacity.Load{Cameras: cameras(2, soft), Uses: map[capacity.Resource]capacity.Use{capacity.CPU: {Total: 0.8, Cameras: 0.1}}},
			soft, 2, capacity.CPU,
		},
		{
			"memory",
			capacity.Load{Cameras: cameras(4, hd), Uses: map[capacity.Resource]capacity.Use{capacity.Memory: {Total: 0.7, Cameras: 0.7}, capacity.CPU: {Total: 0.1, Cameras: 0.1}}},
			hd, 1, capacity.Memory,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := c.load.Ask(c.kind)
			if a.More != c.more || a.LimitedBy != c.limit || a.Known != (c.limit != "") {
				t.Errorf("got %+v, want %d by %q", a, c.more, c.limit)
			}
		})
	}
}

func TestMean(t *testing.T) {
	if _, ok := capacity.Mean(nil); ok {
		t.Error("nothing has a mean")
	}
	m, ok := capacity.Mean([]capacity.Kind{
		{Width: 1920, Height: 1080, FPS: 30, DetectFPS: 10, Codec: "h265", GPU: true},
		{Width: 3840, Height: 2160, FPS: 20, DetectFPS: 5, Codec: "h264"},
		{Width: 1920, Height: 1080, FPS: 25, DetectFPS: 15, Codec: "h264", GPU: true},
	})
	want := capacity.Kind{Width: 2716, Height: 1528, FPS: 25, DetectFPS: 10, Codec: "h264", GPU: true}
	if !ok || m != want {
		t.Errorf("got %+v, want %+v", m, want)
	}
}

// A warning comes when a share has been high for the whole of the time, once, and
// goes when it has been low for as long.
func TestWatch(t *testing.T) {
	w := capacity.Watch{After: time.Minute}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var told []string
	look := func(seconds int, share float64) {
		for range seconds / 5 {
			now = now.Add(5 * time.Second)
			for _, n := range w.Look(now, map[capacity.Resource]capacity.Use{capacity.CPU: {Total: share}}) {
				told = append(told, fmt.Sprintf("%s %.2f %v", n.Resource, n.Share, n.Short))
			}
		}
	}
	look(55, 0.9)
	look(5, 0.5)
	look(55, 0.9)
	if len(told) != 0 || w.Short() != nil {
		t.Fatalf("told too early: %v", told)
	}
	look(300, 0.95)
	look(300, 0.83) // neither high nor over
	if fmt.Sprint(told) != "[cpu 0.95 true]" || fmt.Sprint(w.Short()) != "[cpu]" {
		t.Fatalf("told %v, short %v", told, w.Short())
	}
	look(50, 0.7)
	look(5, 0.9)
	look(300, 0.7)
	if fmt.Sprint(told) != "[cpu 0.95 true cpu 0.70 false]" || w.Short() != nil {
		t.Errorf("told %v, short %v", told, w.Short())
	}
}
