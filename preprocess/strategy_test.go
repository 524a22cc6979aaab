package preprocess_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"edgecam/platform"
	"edgecam/preprocess"
)

func jetson(name, cc string, coherent, register bool) platform.GPU {
	return platform.GPU{
		Name: name, UUID: "GPU-1", ComputeCapability: cc, Integrated: true, CanMapHost: true, UnifiedAddressing: true,
		HostRegisterSupported: register, IOCoherent: coherent,
	}
}

func card(name, uuid string) platform.GPU {
	return platform.GPU{
		Name: name, UUID: uuid, ComputeCapability: "8.9", CanMapHost: true, UnifiedAddressing: true,
		HostRegisterSupported: true, SameHostPointer: true, IOCoherent: true,
	}
}

// fixtures are the attributes that the devices report.
func fixtures() map[string]platform.GPU {
	noMap, noRegister := card("GRID vGPU", "GPU-4"), card("old driver", "GPU-5")
	noMap.CanMapHost = false
	noRegister.HostRegisterSupported = false
	return map[string]platform.GPU{
		"nano":        jetson("NVIDIA Tegra X1", "5.3", false, false),
		"tx2":         jetson("NVIDIA Tegra X2", "6.2", false, false),
		"xavier":      jetson("Xavier", "7.2", true, true),
		"orin":        jetson("Orin", "8.7", true, true),
		"thor":        jetson("NVIDIA Thor", "11.0", true, true),
		"xavier old":  jetson("Xavier", "7.2", true, false),
		"card":        card("NVIDIA GeForce RTX 4070", "GPU-2"),
		"mig":         card("NVIDIA H200 MIG 1g.18gb", "MIG-3"),
		"no mapping":  noMap,
		"no register": noRegister,
	}
}

func TestRulesFor(t *testing.T) {
	tests := []struct {
		gpu      string
		want     string
		register bool
		why      string
	}{
		{"nano", "heap", false, "the integrated GPU (compute capability 5.3) is not I/O coherent"},
		{"tx2", "heap", false, "the integrated GPU (compute capability 6.2) is not I/O coherent"},
		{"xavier", "shared", true, "GPU and processor share the DRAM"},
		{"orin", "shared", true, "GPU and processor share the DRAM"},
		{"thor", "shared", true, "GPU and processor share the DRAM"},
		{"xavier old", "heap", false, "the driver cannot register existing memory"},
		{"card", "mapped staged", true, "the card has memory of its own"},
		{"mig", "mapped staged", true, "the MIG instance has memory of its own"},
		{"no mapping", "heap", false, "the device cannot map host memory"},
		{"no register", "heap", false, "the driver cannot register existing memory"},
	}
	for _, tt := range tests {
		t.Run(tt.gpu, func(t *testing.T) {
			r := preprocess.RulesFor(fixtures()[tt.gpu])
			if got := join(r.Candidates); got != tt.want || r.Register != tt.register || !strings.HasPrefix(r.Why, tt.why) || r.OnDevice {
				t.Errorf("%q, register %v, on device %v, because %q", got, r.Register, r.OnDevice, r.Why)
			}
		})
	}
}

func join(s []preprocess.Strategy) string {
	var words []string
	for _, v := range s {
		words = append(words, string(v))
	}
	return strings.Join(words, " ")
}

func TestForce(t *testing.T) {
	const shares = `use gpu memory strategy "shared" on NVIDIA GeForce RTX 4070: the card has memory of its own and shares none`
	tests := []struct {
		gpu, configured string
		want            string // candidates, or the error
		onDevice        bool
	}{
		{"card", "", "mapped staged", false},
		{"card", "auto", "mapped staged", false},
		{"card", "mapped", "mapped", false},
		{"card", "staged", "staged", false},
		{"card", "device", "mapped staged", true},
		{"card", "heap", "heap", false},
		{"card", "shared", shares, false},
		{"card", "fast", `use gpu memory strategy "fast" on NVIDIA GeForce RTX 4070: there is no such strategy`, false},
		{"mig", "mapped", "mapped", false},
		{"orin", "auto", "shared", false},
		{"orin", "mapped", "shared", false},
		{"orin", "shared", "shared", false},
		{"orin", "staged", "staged", false},
		{"orin", "heap", "heap", false},
		{"orin", "device", `use gpu memory strategy "device" on Orin: an integrated GPU has no memory of its own, and its decoder writes to the shared DRAM`, false},
		{"nano", "heap", "heap", false},
		{"nano", "mapped", `use gpu memory strategy "mapped" on NVIDIA Tegra X1: the integrated GPU (compute capability 5.3) is not I/O coherent: memory that it sees is uncached for the processor, so pictures are decoded to ordinary memory and copied once`, false},
		{"nano", "staged", `use gpu memory strategy "staged" on NVIDIA Tegra X1: the integrated GPU (compute capability 5.3) is not I/O coherent: memory that it sees is uncached for the processor, so pictures are decoded to ordinary memory and copied once`, false},
		{"no register", "mapped", `use gpu memory strategy "mapped" on old driver: the driver cannot register existing memory: pictures are copied by the driver`, false},
		{"no register", "staged", `use gpu memory strategy "staged" on old driver: the driver cannot register existing memory: pictures are copied by the driver`, false},
	}
	for _, tt := range tests {
		t.Run(tt.gpu+" "+tt.configured, func(t *testing.T) {
			g := fixtures()[tt.gpu]
			rules := preprocess.RulesFor(g)
			before := slices.Clone(rules.Candidates)
			got, err := rules.Force(tt.configured, g)
			text := join(got.Candidates)
			var refused *preprocess.StrategyError
			if errors.As(err, &refused) {
				text = err.Error()
				if refused.Hint == "" {
					t.Error("no hint")
				}
			} else if err != nil {
				t.Fatal(err)
			}
			if text != tt.want || got.OnDevice != tt.onDevice {
				t.Errorf("%q, on device %v; want %q", text, got.OnDevice, tt.want)
			}
			if (text == "heap") == got.Register && err == nil {
				t.Errorf("candidates %q, register %v", text, got.Register)
			}
			if !slices.Equal(before, rules.Candidates) {
				t.Error("the device's own rules changed")
			}
		})
	}
}
