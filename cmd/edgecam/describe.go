package main

import (
	"runtime"

	"edgecam/framepool"
	"edgecam/internal/config"
	"edgecam/platform"
	"edgecam/web"
)

// describe is what the API says of the machine: all that does not change while
// the appliance runs.
func describe(box platform.Platform, cfg *config.Config, in *inference, limitWhy string) web.System {
	s := web.System{
		Version: version,
		Platform: web.Platform{
			Kind: string(box.Kind), Why: box.Why, CPU: box.CPU.Model, Cores: box.CPU.Cores,
			OS: runtime.GOOS, Arch: runtime.GOARCH, Driver: box.Driver, CUDA: box.CUDA, Notes: []string{},
		},
		Memory: web.Memory{Strategy: "heap", LimitWhy: limitWhy, Notes: []string{}},
	}
	if j := box.Jetson; j != nil {
		s.Platform.Jetson = &web.Jetson{Model: j.Model, SoC: j.SoC, L4T: j.L4T, JetPack: j.JetPack, PowerMode: j.PowerMode}
	}
	if len(in.gpus) > 0 {
		strategy, why := in.gpus[0].Strategy()
		s.Memory.Strategy, s.Memory.Notes = strategy, []string{why}
	}
	if in.note != "" {
		s.Platform.Notes = append(s.Platform.Notes, in.note)
	}
	if len(box.GPUs) > 0 {
		if cards, err := cardsMeant(cfg.GPU.Device, box); err == nil {
			s.Platform.GPU = cards[0].Name
		}
	}
	for _, p := range box.Problems {
		s.Platform.Notes = append(s.Platform.Notes, p.What+". "+p.Hint)
	}
	return s
}

// memoryLimit is the most that all frame pools may take, and why.
func memoryLimit(cfg *config.Config) (int64, string) {
	return framepool.DetectLimit(cfg.Memory.Share, int64(cfg.Memory.Limit))
}
