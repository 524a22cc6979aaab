package main

import (
	"testing"

	"edgecam/platform"
)

func TestLinkBytes(t *testing.T) {
	for _, c := range []struct {
		link platform.PCIe
		want float64 // GB/s
	}{
		{platform.PCIe{}, 0},
		{platform.PCIe{MaxGen: 3}, 0},
		{platform.PCIe{Gen: 1, MaxGen: 2, Width: 4, MaxWidth: 16}, 2},
		{platform.PCIe{Gen: 1, MaxGen: 3, Width: 16, MaxWidth: 16}, 15.75},
		{platform.PCIe{Gen: 5, MaxGen: 5, Width: 16, MaxWidth: 16}, 63},
	} {
		if got := linkBytes(c.link) / 1e9; got < c.want*0.99 || got > c.want*1.01 {
			t.Errorf("%+v: %.2f GB/s, want %.2f", c.link, got, c.want)
		}
	}
}
