package platform

import (
	"regexp"
	"slices"
	"strings"
)

// chip is one of NVIDIA's systems on a chip for Jetsons.
type chip struct {
	soc, family string
	id          string // decimal chip number, as /sys/devices/soc0 gives it
	coherent    bool
}

// chips are those known here. From Xavier on the CPU's caches see what the GPU
// reads, so pinned memory may be cached. Before, it is uncached for the CPU
// (CUDA for Tegra, "Memory Management": I/O coherency from compute capability
// 7.2 on). Newer ones than these are taken to be coherent as well.
var chips = [...]chip{ //nolint:gochecknoglobals // constant table
	{"tegra210", "Nano or TX1", "33", false},
	{"tegra186", "TX2", "24", false},
	{"tegra194", "Xavier", "25", true},
	{"tegra234", "Orin", "35", true},
	{"tegra264", "Thor", "38", true},
}

// jetson reads the device tree and the board's files; nil = not a Jetson.
func (t tree) jetson() *Jetson {
	soc, model := t.soc()
	l4t := t.l4t()
	if soc == "" && l4t == "" {
		return nil
	}
	j := &Jetson{
		Model: model, SoC: soc, Module: t.module(),
		L4T: l4t, JetPack: jetPack(l4t), IOCoherent: true,
		Stack: t.stack(soc),
	}
	for _, c := range chips {
		if c.soc == soc {
			j.Family, j.IOCoherent = c.family, c.coherent
		}
	}
	j.Model = fullName(j)
	j.PowerMode, j.PowerModes = t.power()
	j.User, j.MissingGroups = t.missingGroups()
	j.MissingDevices = t.missingDevices(j)
	j.Unsupported = unsupportedJetson(j)
	return j
}

// fullName makes a name that says something of what the device tree has: TX2s
// call themselves "quill".
func fullName(j *Jetson) string {
	switch lower := strings.ToLower(j.Model); {
	case j.Model == "" && j.Family != "":
		return "NVIDIA Jetson " + j.Family
	case j.Model == "":
		return "NVIDIA Jetson"
	case j.Family == "" || strings.Contains(lower, "jetson") || strings.Contains(lower, "nvidia"):
		return j.Model
	}
	return j.Model + " (Jetson " + j.Family + ")"
}

// soc names the chip and the board. Containers see no device tree, as their
// runtimes mask /sys/firmware; the chip's own entry in /sys stays.
func (t tree) soc() (soc, model string) {
	for _, c := range t.compatible() {
		s, ok := strings.CutPrefix(c, "nvidia,tegra")
		switch {
		case !ok:
		case knownChip("tegra" + s):
			return "tegra" + s, t.text("proc/device-tree/model")
		case s == "23x": // JetPack 5 names Orin's chip so, beside its number or without
			soc = "tegra234"
		case soc == "":
			soc = "tegra" + s
		}
	}
	if soc != "" {
		return soc, t.text("proc/device-tree/model")
	}
	const dir = "sys/devices/soc0/"
	if t.text(dir+"family") != "Tegra" {
		return "", ""
	}
	id := t.text(dir + "soc_id")
	for _, c := range chips {
		if c.id == id {
			return c.soc, t.text(dir + "machine")
		}
	}
	return "tegra, chip " + id, t.text(dir + "machine")
}

func knownChip(soc string) bool {
	return slices.ContainsFunc(chips[:], func(c chip) bool { return c.soc == soc })
}

// compatible lists what the board calls itself, the most exact first. Boards of
// NVIDIA and of others differ in all but the name of the chip.
func (t tree) compatible() []string {
	return strings.Split(t.text("proc/device-tree/compatible"), "\x00")
}

// moduleNumber matches the part number of a module beside that of its carrier:
// "nvidia,p3768-0000+p3767-0005-super".
var moduleNumber = regexp.MustCompile(`\b(p(?:2180|2888|3310|3448|3489|3636|3668|3701|3767|3834)-\d{4})`)

// module is the part number of the module, e.g. "p3767-0005", "" = unknown.
func (t tree) module() string {
	return moduleNumber.FindString(strings.Join(t.compatible(), " "))
}

// unsupportedJetson says why a board's GPU cannot serve, "" = it can.
func unsupportedJetson(j *Jetson) string {
	old := strings.HasPrefix(j.JetPack, "4")
	if !old && j.IOCoherent {
		return ""
	}
	jp := "JetPack 4"
	if old {
		jp = "JetPack " + j.JetPack
	}
	if j.IOCoherent {
		return jp + " has CUDA 10.2 and glibc 2.27, which are too old for the inference libraries"
	}
	return jp + " is the last for this board: its CUDA 10.2 and glibc 2.27 are too old for the inference libraries"
}

// serviceUser is whom the unit runs the program as.
const serviceUser = "edgecam"

// missingGroups says which of the groups that own the GPU's device files a user
// is not in: the one who asks, or the service's where root does.
func (t tree) missingGroups() (user string, missing []string) {
	uid, gids := t.self()
	user = t.userNamed(func(f []string) bool { return f[2] == uid })
	if uid == "0" || uid == "" {
		user = t.userNamed(func(f []string) bool { return f[0] == serviceUser })
	}
	if user == "" {
		return "", nil
	}
	for _, line := range t.lines("etc/group") { // name:password:gid:members
		f := strings.Split(line, ":")
		if len(f) != 4 || f[0] != "video" && f[0] != "render" {
			continue
		}
		mine := uid != "0" && slices.Contains(gids, f[2])
		if !mine && !slices.Contains(strings.Split(f[3], ","), user) {
			missing = append(missing, f[0])
		}
	}
	return user, missing
}

// self gives the effective user and the groups of this process.
func (t tree) self() (uid string, gids []string) {
	for _, line := range t.lines("proc/self/status") {
		key, value, _ := field(line)
		ids := strings.Fields(value)
		switch {
		case key == "Uid" && len(ids) > 1:
			uid = ids[1]
		case key == "Gid" && len(ids) > 1:
			gids = append(gids, ids[1])
		case key == "Groups":
			gids = append(gids, ids...)
		}
	}
	return uid, gids
}

// userNamed gives the name of the first user of /etc/passwd that fits.
func (t tree) userNamed(fits func(fields []string) bool) string {
	for _, line := range t.lines("etc/passwd") {
		if f := strings.Split(line, ":"); len(f) > 2 && fits(f) {
			return f[0]
		}
	}
	return ""
}

// missingDevices says which device files are not there. Each line of need is
// served by any one of its names, as they differ from release to release.
func (t tree) missingDevices(j *Jetson) (missing []string) {
	need := [][]string{
		{"nvmap"},
		{"nvgpu/igpu0/ctrl", "nvhost-ctrl-gpu", "nvhost-gpu", "nvidiactl"}, // JetPack 6 and 7, JetPack 5, Thor
	}
	if j.Family == "Thor" {
		need = [][]string{{"nvidiactl"}, {"nvidia0"}, {"nvidia-uvm"}}
	}
	for _, names := range need {
		if !slices.ContainsFunc(names, func(name string) bool { return t.exists("dev/" + name) }) {
			missing = append(missing, "/dev/"+names[0])
		}
	}
	return missing
}
