package main

import (
	"testing"

	"edgecam/internal/config"
	"edgecam/platform"
	"edgecam/web"
)

func TestDescribeJetson(t *testing.T) {
	board := &platform.Jetson{Model: "NVIDIA Jetson AGX Orin Developer Kit", SoC: "tegra234", L4T: "36.4.3", JetPack: "6.2", PowerMode: "MODE_30W"}
	want := web.Jetson{Model: board.Model, SoC: "tegra234", L4T: "36.4.3", JetPack: "6.2", PowerMode: "MODE_30W"}
	s := describe(platform.Platform{Kind: platform.KindJetson, Jetson: board}, config.Default(), &inference{}, "")
	if s.Platform.Jetson == nil || *s.Platform.Jetson != want {
		t.Errorf("got %+v, want %+v", s.Platform.Jetson, want)
	}
	if s := describe(platform.Platform{Kind: platform.KindCPU}, config.Default(), &inference{}, ""); s.Platform.Jetson != nil {
		t.Errorf("another machine: %+v", s.Platform.Jetson)
	}
}
