package platform

import (
	"regexp"
	"strconv"
	"strings"
)

// card is an NVIDIA GPU on the PCI bus, with or without a driver.
type card struct {
	Address string // "0000:01:00.0"
	Driver  string // kernel module that holds it: nvidia, nouveau, vfio-pci, "" = none or unknown
}

// cards lists NVIDIA display and 3D controllers (PCI classes 0x0300 and 0x0302).
func (t tree) cards() []card {
	const dir = "sys/bus/pci/devices/"
	var found []card
	for _, addr := range t.list("sys/bus/pci/devices") {
		class := t.text(dir + addr + "/class")
		if t.text(dir+addr+"/vendor") != "0x10de" || !strings.HasPrefix(class, "0x0300") && !strings.HasPrefix(class, "0x0302") {
			continue
		}
		c := card{Address: addr}
		for _, line := range t.lines(dir + addr + "/uevent") {
			if d, ok := strings.CutPrefix(line, "DRIVER="); ok {
				c.Driver = d
			}
		}
		found = append(found, c)
	}
	return found
}

// placeOnBus fills in what the kernel knows of a GPU's slot.
func (t tree) placeOnBus(g *GPU) {
	g.NUMANode = -1
	if g.PCIAddress == "" {
		return
	}
	dir := "sys/bus/pci/devices/" + g.PCIAddress
	g.PCIe = PCIe{
		Gen:      pcieGen(t.text(dir + "/current_link_speed")),
		Width:    linkWidth(t.text(dir + "/current_link_width")),
		MaxGen:   pcieGen(t.text(dir + "/max_link_speed")),
		MaxWidth: linkWidth(t.text(dir + "/max_link_width")),
	}
	if n, ok := t.number(dir + "/numa_node"); ok && n >= 0 {
		g.NUMANode = int(n)
	}
	g.BAR1Bytes = bar1(t.lines(dir + "/resource"))
}

// bar1 is the size of the window into the card's memory: NVIDIA's second BAR. A
// BAR is a line "start end flags", and one of 64 bits takes two, the other being
// zero: GeForce cards have a first BAR of 32 bits, data centre cards of 64.
func bar1(resource []string) int64 {
	nth := 0
	for _, line := range resource[:min(len(resource), 6)] { // behind the six are the ROM and bridges
		f := strings.Fields(line)
		if len(f) != 3 {
			return 0
		}
		start, err1 := strconv.ParseInt(f[0], 0, 64)
		end, err2 := strconv.ParseInt(f[1], 0, 64)
		if err1 != nil || err2 != nil {
			return 0
		}
		if end <= start {
			continue
		}
		if nth++; nth == 2 {
			return end - start + 1
		}
	}
	return 0
}

// pcieGen tells the generation by the speed of a lane, "16.0 GT/s PCIe".
func pcieGen(speed string) int {
	number, _, _ := strings.Cut(speed, " ")
	switch strings.TrimSuffix(number, ".0") {
	case "2.5":
		return 1
	case "5":
		return 2
	case "8":
		return 3
	case "16":
		return 4
	case "32":
		return 5
	case "64":
		return 6
	}
	return 0
}

// linkWidth reads "16". The kernel writes 255 for a link that it cannot read.
func linkWidth(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > 32 {
		return 0
	}
	return n
}

// moduleVersion matches the version in /proc/driver/nvidia/version, whose
// wording differs between the open and the closed module.
var moduleVersion = regexp.MustCompile(`\s(\d+\.\d+(?:\.\d+)?)\s`)

// driverVersion is the version of the NVIDIA kernel module that is loaded, ""
// = none. Jetsons before JetPack 6 have no such module.
func (t tree) driverVersion() string {
	for _, line := range t.lines("proc/driver/nvidia/version") {
		if !strings.HasPrefix(line, "NVRM version:") {
			continue
		}
		if m := moduleVersion.FindStringSubmatch(line + " "); m != nil {
			return m[1]
		}
	}
	return t.text("sys/module/nvidia/version")
}
