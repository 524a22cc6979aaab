package platform

import (
	"fmt"
	"strconv"
	"strings"
)

// Kind is the class of machine, by what can be used on it.
type Kind string

// The kinds.
const (
	KindJetson   Kind = "jetson"   // an integrated GPU that shares the machine's DRAM
	KindDiscrete Kind = "discrete" // a GPU with memory of its own, behind PCIe
	KindCPU      Kind = "cpu"      // no GPU that can be used
)

// Platform is what Detect found.
type Platform struct {
	Kind      Kind      `json:"kind"`
	Why       string    `json:"why"` // one sentence: what decided Kind
	GPUs      []GPU     `json:"gpus"`
	Driver    string    `json:"driver"`  // version of the loaded kernel module, "" = none
	CUDA      string    `json:"cuda"`    // CUDA version that the driver offers, e.g. "13.0", "" = none
	Library   string    `json:"library"` // file of libcuda, "" = not opened
	Jetson    *Jetson   `json:"jetson,omitempty"`
	CPU       CPU       `json:"cpu"`
	Memory    Memory    `json:"memory"`
	Nodes     int       `json:"numa_nodes"` // memory nodes, at least 1
	Container bool      `json:"container"`
	Problems  []Problem `json:"problems"`
}

// Problem is something wrong and what to do about it.
type Problem struct {
	What string `json:"what"`
	Hint string `json:"hint"`
}

// GPU is one device, in the driver's order (which CUDA_VISIBLE_DEVICES rules).
type GPU struct {
	Index             int    `json:"index"`
	UUID              string `json:"uuid"` // "GPU-…" or "MIG-…"
	Name              string `json:"name"`
	ComputeCapability string `json:"compute_capability"` // e.g. "8.7"
	Multiprocessors   int    `json:"multiprocessors"`
	CopyEngines       int    `json:"copy_engines"`
	MemoryBytes       int64  `json:"memory_bytes"`

	Integrated            bool `json:"integrated"`
	CanMapHost            bool `json:"can_map_host"`            // kernels can read pinned host memory
	HostRegisterSupported bool `json:"host_register_supported"` // existing memory can be pinned and mapped
	UnifiedAddressing     bool `json:"unified_addressing"`      // host and device pointers never collide
	// SameHostPointer: kernels may use the host pointer of registered memory as it is.
	SameHostPointer bool `json:"same_host_pointer"`
	// IOCoherent: the CPU may cache pinned memory. False on Jetson Nano, TX1 and
	// TX2, where pinned memory is uncached for the CPU.
	IOCoherent bool `json:"io_coherent"`

	PCIAddress string `json:"pci_address"` // "0000:01:00.0", "" = not on PCI
	PCIe       PCIe   `json:"pcie"`
	NUMANode   int    `json:"numa_node"`  // -1 = unknown or only one
	BAR1Bytes  int64  `json:"bar1_bytes"` // 0 = unknown
}

// PCIe is the link of a card, 0 = unknown. The generation falls while a card
// idles, so only the width shows a bad slot.
type PCIe struct {
	Gen      int `json:"gen"`
	Width    int `json:"width"`
	MaxGen   int `json:"max_gen"`
	MaxWidth int `json:"max_width"`
}

// Jetson is what the device tree and the board's files say.
type Jetson struct {
	Model     string `json:"model"`      // e.g. "NVIDIA Jetson AGX Orin Developer Kit"
	Module    string `json:"module"`     // part number of the module, e.g. "p3767-0005", "" = unknown
	SoC       string `json:"soc"`        // e.g. "tegra234", "" = unknown
	Family    string `json:"family"`     // e.g. "Orin", "" = a chip that is not known here
	L4T       string `json:"l4t"`        // e.g. "36.4.3", "" = unknown
	JetPack   string `json:"jetpack"`    // e.g. "6.2", "" = unknown
	PowerMode string `json:"power_mode"` // nvpmodel's name, e.g. "MAXN", "" = unknown
	// PowerModes are all that nvpmodel knows for this board.
	PowerModes []PowerMode `json:"power_modes"`
	IOCoherent bool        `json:"io_coherent"` // see GPU
	Stack      JetsonStack `json:"stack"`

	// User is whose groups were looked at: the one who asks, or the service's
	// where root does; "" = nobody's.
	User           string   `json:"user,omitempty"`
	MissingGroups  []string `json:"missing_groups,omitempty"`  // that own device files and that User is not in
	MissingDevices []string `json:"missing_devices,omitempty"` // device files of the GPU that are not there
	// Unsupported is why the GPU of this board cannot serve, "" = it can.
	Unsupported string `json:"unsupported,omitempty"`
}

// PowerMode is one of nvpmodel's modes.
type PowerMode struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
}

// JetsonStack is which of NVIDIA's libraries are installed; "" = none.
type JetsonStack struct {
	CUDA     string `json:"cuda"`             // version of its run time, e.g. "12.6.68"
	CuDNN    string `json:"cudnn"`            // version, e.g. "9.3.0"
	TensorRT string `json:"tensorrt"`         // version, e.g. "10.3.0"
	Driver   string `json:"driver"`           // file of libcuda
	Decoder  string `json:"decoder"`          // file of libnvv4l2, behind which the video decoder is
	Shadow   string `json:"shadow,omitempty"` // libcuda of a driver for PCs that hides Driver
}

// CPU is the processor.
type CPU struct {
	Model string   `json:"model"`
	Cores int      `json:"cores"`           // logical processors that are online
	Quota float64  `json:"quota,omitempty"` // cgroup's limit in cores, 0 = none
	ISA   []string `json:"isa"`             // instruction sets that matter here, kernel's names
}

// Has says whether the instruction set is there, by the kernel's name.
func (c CPU) Has(isa string) bool {
	for _, s := range c.ISA {
		if s == isa {
			return true
		}
	}
	return false
}

// FastInt8 says whether the CPU multiplies int8 without saturating and faster
// than float32: AVX-512 VNNI, AVX-VNNI, AMX, or Arm's dot product.
func (c CPU) FastInt8() bool {
	return c.Has("avx512_vnni") || c.Has("avx_vnni") || c.Has("amx_int8") || c.Has("asimddp") || c.Has("i8mm")
}

// Memory is the host's memory and the limits on it, in bytes. -1 = no limit.
type Memory struct {
	TotalBytes     int64 `json:"total_bytes"`
	AvailableBytes int64 `json:"available_bytes"`
	CgroupBytes    int64 `json:"cgroup_bytes"`
	MemlockBytes   int64 `json:"memlock_bytes"` // that this process may lock

	HugePageBytes   int64  `json:"huge_page_bytes"`
	HugePagesTotal  int64  `json:"huge_pages_total"`
	HugePagesFree   int64  `json:"huge_pages_free"`
	TransparentHuge string `json:"transparent_huge"` // always, madvise, never, "" = unknown
}

// Select finds the GPU that a configuration names: an ordinal, or a UUID or the
// beginning of one. The error is a *DeviceError.
func (p Platform) Select(device string) (GPU, error) {
	device = strings.TrimSpace(device)
	if n, err := strconv.Atoi(device); err == nil {
		if n >= 0 && n < len(p.GPUs) {
			return p.GPUs[n], nil
		}
		return GPU{}, p.noDevice(device)
	}
	var found []GPU
	for _, g := range p.GPUs {
		if strings.EqualFold(g.UUID, device) {
			return g, nil
		}
		if len(device) > len("GPU-") && strings.HasPrefix(strings.ToLower(g.UUID), strings.ToLower(device)) {
			found = append(found, g)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	return GPU{}, p.noDevice(device)
}

func (p Platform) noDevice(device string) error {
	e := &DeviceError{Device: device}
	for _, g := range p.GPUs {
		e.Have = append(e.Have, fmt.Sprintf("%d (%s)", g.Index, g.UUID))
	}
	return e
}

// joinWords writes "a", "a and b", "a, b and c".
func joinWords(w []string) string {
	if len(w) < 2 {
		return strings.Join(w, "")
	}
	return strings.Join(w[:len(w)-1], ", ") + " and " + w[len(w)-1]
}
