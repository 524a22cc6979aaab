package platform

import (
	"math"
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
	var implementer, part string
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
			part = value
		}
	}
	if c.Model == "" {
		c.Model = armModel(implementer, part)
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
	case "0x41/0xd07":
		return "Arm Cortex-A57"
	case "0x41/0xd08":
		return "Arm Cortex-A72"
	case "0x41/0xd0b":
		return "Arm Cortex-A76"
	case "0x41/0xd0c":
		return "Arm Neoverse N1"
	case "0x41/0xd40":
		return "Arm Neoverse V1"
	case "0x41/0xd42":
		return "Arm Cortex-A78AE"
	case "0x41/0xd4f":
		return "Arm Neoverse V2"
	case "0x41/0xd83":
		return "Arm Neoverse V3AE"
	case "0x4e/0x003":
		return "NVIDIA Denver 2"
	case "0x4e/0x004":
		return "NVIDIA Carmel"
	}
	if implementer == "" {
		return "unknown"
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
