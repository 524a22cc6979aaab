package decode

import (
	"fmt"
	"testing"
	"time"

	"edgecam/capture"
	"edgecam/platform/avcodec"
)

func TestGateJudges(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	waiting := gate{codec: capture.H264, from: 10, since: at}
	open := gate{codec: capture.H264, open: true}
	for _, c := range []struct {
		name string
		gate gate
		pic  avcodec.Picture
		unit unit
		want string
		open bool
	}{
		{"open, whole", open, avcodec.Picture{}, unit{key: 20}, "", true},
		{"open, parts made up", open, avcodec.Picture{Damaged: true}, unit{key: 20}, DropDamaged, true},
		{"open, unit refused", open, avcodec.Picture{}, unit{key: 20, damaged: true}, DropDamaged, true},
		{"open, not recovered", open, avcodec.Picture{Corrupt: true}, unit{key: 20}, DropDamaged, true},
		{"open, decoded while it waited", open, avcodec.Picture{Corrupt: true}, unit{key: 20, waiting: true}, DropWaiting, true},
		{"waiting, not recovered", waiting, avcodec.Picture{Corrupt: true}, unit{key: 12, received: at}, DropWaiting, false},
		{"waiting, recovered", waiting, avcodec.Picture{}, unit{key: 12, received: at}, "", true},
		{"waiting, key picture with parts made up", waiting, avcodec.Picture{Key: true, Damaged: true}, unit{key: 12, received: at}, DropDamaged, false},
		{"waiting, recovered with parts made up", waiting, avcodec.Picture{Damaged: true}, unit{key: 12, received: at}, DropWaiting, false},
		{"waiting, from before the loss", waiting, avcodec.Picture{}, unit{key: 9, received: at}, "", false},
		{"waiting, damaged before the loss", waiting, avcodec.Picture{Damaged: true}, unit{key: 9, received: at}, DropDamaged, false},
		{"waiting for long", waiting, avcodec.Picture{Corrupt: true}, unit{key: 12, received: at.Add(patience)}, "", true},
		{"waiting for long, parts made up", waiting, avcodec.Picture{Corrupt: true, Damaged: true}, unit{key: 12, received: at.Add(patience)}, DropWaiting, false},
		{"h265 waits for a key picture", gate{codec: capture.H265, since: at}, avcodec.Picture{}, unit{received: at.Add(time.Hour)}, DropWaiting, false},
		{"h265 key picture", gate{codec: capture.H265, since: at}, avcodec.Picture{Key: true}, unit{received: at}, "", true},
		{"emptied, from the time of waiting", gate{codec: capture.H264, draining: true}, avcodec.Picture{}, unit{key: 12, waiting: true}, DropWaiting, false},
		{"emptied, from before", gate{codec: capture.H264, draining: true, from: 10}, avcodec.Picture{}, unit{key: 9}, "", false},
		{"on the gpu, not emptied", gate{codec: capture.H264, strict: true, since: at}, avcodec.Picture{}, unit{key: 12, received: at}, DropWaiting, false},
		{"on the gpu, not emptied, random access", gate{codec: capture.H264, strict: true, since: at}, avcodec.Picture{Key: true}, unit{key: 12, received: at, randomAccess: true}, "", true},
		{"on the gpu, shown after the random access", gate{codec: capture.H264, strict: true, open: true}, avcodec.Picture{}, unit{key: 12, waiting: true}, DropWaiting, true},
		{"on the gpu, not emptied, for long", gate{codec: capture.H264, strict: true, since: at}, avcodec.Picture{}, unit{key: 12, received: at.Add(patience)}, "", true},
		{"mjpeg", gate{codec: capture.MJPEG, open: true}, avcodec.Picture{Damaged: true}, unit{}, DropDamaged, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := c.gate
			if got := g.judge(&c.pic, &c.unit); got != c.want || g.open != c.open {
				t.Errorf("got %q, open %v; want %q, open %v", got, g.open, c.want, c.open)
			}
		})
	}
}

// TestGateGetsLenient: the checks give way only to an H.264 stream that
// breaks them in every group of pictures, with no packet lost.
func TestGateGetsLenient(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name   string
		codec  capture.Codec
		groups string // d damaged, l damaged after a loss, w whole
		want   bool
	}{
		{"always damaged", capture.H264, "dddd", true},
		{"whole in between", capture.H264, "dddwdddw", false},
		{"lost packets", capture.H264, "lllllllld", false},
		{"h265", capture.H265, "dddddd", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := gate{codec: c.codec}
			for i, kind := range fmt.Sprint(c.groups, "w") {
				key := unit{key: int64(10 * i), randomAccess: true, received: at}
				g.arrive(&key)
				g.open = true
				if kind == 'l' {
					g.shut(key.key+1, at)
				}
				if kind != 'w' {
					g.damage(&unit{key: key.key + 1, received: at})
				}
			}
			if g.lenient != c.want {
				t.Errorf("lenient %v, want %v", g.lenient, c.want)
			}
		})
	}
}

// TestGateSuspects: an H.265 stream that is damaged in two groups in a row, with
// no packet lost, must show a whole one before its pictures pass again.
func TestGateSuspects(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name, groups string // d damaged, l damaged after a loss, w whole
		want         string // of each group's key picture: p passes
	}{
		{"whole", "wwww", "pppp"},
		{"one damaged", "wdww", "pppp"},
		{"two damaged", "ddwww", "pp.pp"},
		{"ever damaged", "dddddww", "pp....p"},
		{"lost packets", "llllw", "ppppp"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := gate{codec: capture.H265, open: true}
			got := ""
			for i, kind := range c.groups {
				key := unit{key: int64(10 * i), randomAccess: true, received: at}
				g.arrive(&key)
				if g.judge(&avcodec.Picture{Key: true}, &key) == "" {
					got += "p"
				} else {
					got += "."
				}
				if kind == 'l' {
					g.shut(key.key+1, at)
				}
				if kind != 'w' {
					g.damage(&unit{key: key.key + 1, received: at})
				}
			}
			if got != c.want {
				t.Errorf("key pictures %s, want %s", got, c.want)
			}
		})
	}
}
