package platform_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"edgecam/platform"
)

// armCores is /proc/cpuinfo as arm64 kernels write it: numbers and no name.
func armCores(features string, parts ...string) string {
	var b strings.Builder
	for i, part := range parts {
		implementer, part, _ := strings.Cut(part, "/")
		fmt.Fprintf(&b, "processor\t: %d\nBogoMIPS\t: 62.50\nFeatures\t: %s\nCPU implementer\t: %s\nCPU architecture: 8\nCPU variant\t: 0x0\nCPU part\t: %s\nCPU revision\t: 1\n\n",
			i, features, implementer, part)
	}
	return b.String()
}

func TestDetectCPU(t *testing.T) {
	const dot = "fp asimd asimdhp asimddp"
	isa := []string{"asimd", "asimdhp", "asimddp"}
	for _, c := range []struct {
		name, cpuinfo string
		want          platform.CPU
	}{
		{
			"model name that L4T adds", "processor\t: 0\nmodel name\t: ARMv8 Processor rev 0 (v8l)\nFeatures\t: fp asimd asimdhp\nCPU implementer\t: 0x4e\nCPU part\t: 0x004\n",
			platform.CPU{Model: "NVIDIA Carmel", Cores: 1, ISA: []string{"asimd", "asimdhp"}},
		},
		{"cores of two kinds", armCores(dot, "0x41/0xd05", "0x41/0xd05", "0x41/0xd0b"), platform.CPU{Model: "Arm Cortex-A55 + Arm Cortex-A76", Cores: 3, ISA: isa}},
		{"Grace Blackwell", armCores(dot, "0x41/0xd85", "0x41/0xd87"), platform.CPU{Model: "Arm Cortex-X925 + Arm Cortex-A725", Cores: 2, ISA: isa}},
		{"server", armCores("asimd asimddp i8mm sve", "0x41/0xd4f"), platform.CPU{Model: "Arm Neoverse V2", Cores: 1, ISA: []string{"asimd", "asimddp", "i8mm", "sve"}}},
		{"core without a name", armCores("asimd", "0x61/0x022"), platform.CPU{Model: "arm64 implementer 0x61 part 0x022", Cores: 1, ISA: []string{"asimd"}}},
		{"x86", "processor\t: 0\nmodel name\t: AMD EPYC 9454\nflags\t\t: fpu avx2 fma\n", platform.CPU{Model: "AMD EPYC 9454", Cores: 1, ISA: []string{"avx2", "fma"}}},
		{"nothing", "", platform.CPU{Model: "unknown"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := platform.Detect(platform.Options{Root: fstest.MapFS{"proc/cpuinfo": {Data: []byte(c.cpuinfo)}}})
			if !reflect.DeepEqual(p.CPU, c.want) {
				t.Errorf("got  %+v\nwant %+v", p.CPU, c.want)
			}
		})
	}
}
