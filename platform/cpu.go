package platform

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// wantedISA are the instruction sets that decoding, preprocessing or the
// engines care for, in the order in which they are shown.
func wantedISA() []string {
	return []string{
		"sse4_2", "avx", "avx2", "fma", "f16c",
		"avx512f", "avx512bw", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_int8", "amx_bf16",
		"asimd", "asimdhp", "asimddp", "i8mm", "bf16", "sve", "sve2",
	}
}

// cpu reads /proc/cpuinfo, x86 and arm64 forms.
func (t tree) cpu() CPU {
	var c CPU
	var implementer string
	var cores []string // names of arm64 cores
	has := map[string]bool{}
	for _, line := range t.lines("proc/cpuinfo") {
		key, value, ok := field(line)
		if !ok {
			continue
		}
		switch key {
		case "processor":
			c.Cores++
		case "model name":
			c.Model = value
		case "flags", "Features":
			for _, f := range strings.Fields(value) {
				has[f] = true
			}
		case "CPU implementer":
			implementer = value
		case "CPU part":
			// Boards have cores of two kinds, and each says which it is.
			if name := armModel(implementer, value); !slices.Contains(cores, name) {
				cores = append(cores, name)
			}
		}
	}
	switch {
	case len(cores) > 0: // L4T has a model name, too: "ARMv8 Processor rev 0 (v8l)"
		c.Model = strings.Join(cores, " + ")
	case c.Model == "":
		c.Model = "unknown"
	}
	for _, isa := range wantedISA() {
		if has[isa] {
			c.ISA = append(c.ISA, isa)
		}
	}
	c.Quota = t.cpuQuota()
	return c
}

// armModel names the cores that boards of this kind have: arm64 kernels print
// numbers only (Arm's MIDR_EL1 register: implementer 0x41 is Arm, 0x4e NVIDIA).
func armModel(implementer, part string) string {
	switch implementer + "/" + part {
	case "0x41/0xd03":
		return "Arm Cortex-A53"
	case "0x41/0xd05":
		return "Arm Cortex-A55"
	case "0x41/0xd07":
		return "Arm Cortex-A57"
	case "0x41/0xd08":
		return "Arm Cortex-A72"
	case "0x41/0xd0b":
		return "Arm Cortex-A76"
	case "0x41/0xd0c":
		return "Arm Neoverse N1"
	case "0x41/0xd41":
		return "Arm Cortex-A78"
	case "0x41/0xd40":
		return "Arm Neoverse V1"
	case "0x41/0xd42":
		return "Arm Cortex-A78AE"
	case "0x41/0xd49":
		return "Arm Neoverse N2"
	case "0x41/0xd4b":
		return "Arm Cortex-A78C"
	case "0x41/0xd4f":
		return "Arm Neoverse V2"
	case "0x41/0xd83":
		return "Arm Neoverse V3AE"
	case "0x41/0xd84":
		return "Arm Neoverse V3"
	case "0x41/0xd85":
		return "Arm Cortex-X925"
	case "0x41/0xd87":
		return "Arm Cortex-A725"
	case "0xc0/0xac3":
		return "Ampere-1"
	case "0x4e/0x003":
		return "NVIDIA Denver 2"
	case "0x4e/0x004":
		return "NVIDIA Carmel"
	}
	return "arm64 implementer " + implementer + " part " + part
}

// cpuQuota is the smallest CPU limit of the process's cgroup and its parents,
// in cores; 0 = none.
func (t tree) cpuQuota() float64 {
	least := math.Inf(1)
	for _, dir := range t.cgroups("cpu") {
		quota, period, ok := strings.Cut(t.text(dir+"/cpu.max"), " ") // v2: "200000 100000" or "max 100000"
		if !ok {
			quota, period = t.text(dir+"/cpu.cfs_quota_us"), t.text(dir+"/cpu.cfs_period_us")
		}
		q, err1 := strconv.ParseFloat(quota, 64)
		p, err2 := strconv.ParseFloat(period, 64)
		if err1 == nil && err2 == nil && q > 0 && p > 0 {
			least = min(least, q/p)
		}
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return least
}
