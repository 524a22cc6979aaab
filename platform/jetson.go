package platform

import (
	"regexp"
	"strings"
)

// jetson reads the device tree and the board's files; nil = not a Tegra.
func (t tree) jetson() *Jetson {
	soc := ""
	for _, c := range strings.Split(t.text("proc/device-tree/compatible"), "\x00") {
		if s, ok := strings.CutPrefix(c, "nvidia,tegra"); ok {
			soc = "tegra" + s
		}
	}
	if soc == "" {
		return nil
	}
	j := &Jetson{
		Model:      t.text("proc/device-tree/model"),
		SoC:        soc,
		L4T:        t.l4t(),
		PowerMode:  t.powerMode(),
		IOCoherent: coherentSoC(soc),
	}
	if j.Model == "" {
		j.Model = "NVIDIA " + soc
	}
	j.JetPack = jetPack(j.L4T)
	j.Unsupported = unsupportedJetson(j)
	return j
}

// coherentSoC: from Xavier on the CPU's caches see what the GPU reads, so
// pinned memory may be cached. Before, it is uncached for the CPU (CUDA for
// Tegra, "Memory Management": I/O coherency from compute capability 7.2 on).
func coherentSoC(soc string) bool {
	switch soc {
	case "tegra210", "tegra186": // Nano and TX1; TX2
		return false
	}
	return true
}

// unsupportedJetson says why a board's GPU cannot serve, "" = it can.
func unsupportedJetson(j *Jetson) string {
	if strings.HasPrefix(j.JetPack, "4") || !j.IOCoherent {
		jp := "JetPack 4"
		if j.JetPack != "" {
			jp = "JetPack " + j.JetPack
		}
		if j.IOCoherent {
			return jp + " has CUDA 10.2 and glibc 2.27, which are too old for the inference libraries"
		}
		return jp + " is the last for this board: its CUDA 10.2 and glibc 2.27 are too old for the inference libraries"
	}
	return ""
}

// release matches "# R36 (release), REVISION: 4.3, GCID: …".
var release = regexp.MustCompile(`R(\d+)\s*\(release\),\s*REVISION:\s*([\d.]+)`)

// l4t reads /etc/nv_tegra_release: "36.4.3".
func (t tree) l4t() string {
	m := release.FindStringSubmatch(t.text("etc/nv_tegra_release"))
	if m == nil {
		return ""
	}
	return m[1] + "." + m[2]
}

// jetPack names the JetPack of an L4T release. NVIDIA publishes the pairs; a
// point release that is not listed is told by its family, e.g. "6.x".
func jetPack(l4t string) string {
	for _, p := range [...]struct{ l4t, jetpack string }{
		{"39.2", "7.2"},
		{"38.4", "7.1"},
		{"38.2", "7.0"},
		{"36.5", "6.2.2"},
		{"36.4.7", "6.2.1"},
		{"36.4.4", "6.2.1"},
		{"36.4.3", "6.2"},
		{"36.4.0", "6.1"},
		{"36.3", "6.0"},
		{"36.2", "6.0 DP"},
		{"35.6.0", "5.1.4"},
		{"35.6", "5.1.5"},
		{"35.5", "5.1.3"},
		{"35.4", "5.1.2"},
		{"35.3", "5.1.1"},
		{"35.2", "5.1"},
		{"35.1", "5.0.2"},
		{"32.7", "4.6.x"},
		{"32.6", "4.6"},
		{"32.5", "4.5"},
		{"32.4", "4.4"},
	} {
		if l4t == p.l4t || strings.HasPrefix(l4t, p.l4t+".") {
			return p.jetpack
		}
	}
	major, _, _ := strings.Cut(l4t, ".")
	switch major {
	case "39", "38":
		return "7.x"
	case "36":
		return "6.x"
	case "35", "34":
		return "5.x"
	case "32":
		return "4.x"
	}
	return ""
}

// powerModel matches "< POWER_MODEL ID=0 NAME=MAXN >".
var powerModel = regexp.MustCompile(`POWER_MODEL\s+ID=(\d+)\s+NAME=(\S+)`)

// powerMode names the mode that nvpmodel last set: "pmode:0002" in its status
// file, named in its configuration.
func (t tree) powerMode() string {
	id, ok := strings.CutPrefix(t.text("var/lib/nvpmodel/status"), "pmode:")
	if !ok {
		return ""
	}
	id = strings.TrimLeft(id, "0")
	if id == "" {
		id = "0"
	}
	for _, m := range powerModel.FindAllStringSubmatch(t.text("etc/nvpmodel.conf"), -1) {
		if m[1] == id {
			return m[2]
		}
	}
	return "mode " + id
}
