package platform

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Driver answers questions about CUDA devices; platform/cuda's Driver is the
// real one. Methods are called in the order Init, Version, Devices, and no
// other is called where Init gave an error.
type Driver interface {
	// Init opens the library and initialises it: nil, an *UnavailableError, or a
	// *DriverError.
	Init() error
	// Path is the file of the library, "" = not opened.
	Path() string
	// Version is the CUDA version that the driver offers, e.g. 13000.
	Version() (int, error)
	// Devices lists the devices. Bus places (PCIe, NUMANode, BAR1Bytes) are left
	// to Detect.
	Devices() ([]GPU, error)
}

// Options for Detect.
type Options struct {
	Root   fs.FS  // holds proc, sys, etc, dev, var. It defaults to the machine's own.
	Driver Driver // nil = the GPU is not asked for
}

// Detect says what this machine is.
func Detect(o Options) Platform {
	if o.Root == nil {
		o.Root = os.DirFS("/")
	}
	d := detection{tree: tree{o.Root}}
	d.p = Platform{
		Kind:      KindCPU,
		GPUs:      []GPU{},
		Problems:  []Problem{},
		Driver:    d.driverVersion(),
		Jetson:    d.jetson(),
		CPU:       d.cpu(),
		Memory:    d.memory(),
		Nodes:     d.nodes(),
		Container: d.inContainer(),
	}
	d.found = d.cards()
	if o.Driver == nil {
		d.p.Why = "the GPU is not used"
		return d.p
	}
	d.ask(o.Driver)
	d.checkBoard()
	d.checkGPUs()
	return d.p
}

// detection is the state of one Detect.
type detection struct {
	tree
	p     Platform
	found []card
}

// inContainer looks for the marks that Docker, Podman and Kubernetes leave.
func (d *detection) inContainer() bool {
	if d.exists(".dockerenv") || d.exists("run/.containerenv") {
		return true
	}
	for _, line := range d.lines("proc/1/cgroup") {
		if strings.Contains(line, "/docker") || strings.Contains(line, "/kubepods") || strings.Contains(line, "/lxc") {
			return true
		}
	}
	return false
}

func (d *detection) problem(what, hint string) {
	d.p.Problems = append(d.p.Problems, Problem{What: what, Hint: hint})
}

// ask fills in what the driver says and decides the kind.
func (d *detection) ask(drv Driver) {
	err := drv.Init()
	d.p.Library = drv.Path()
	if err != nil {
		d.refused(err)
		return
	}
	if v, err := drv.Version(); err == nil {
		d.p.CUDA = fmt.Sprintf("%d.%d", v/1000, v%1000/10)
	}
	gpus, err := drv.Devices()
	if err != nil {
		d.refused(err)
		return
	}
	if len(gpus) == 0 {
		d.p.Why = "the driver shows no GPU"
		d.problem("the NVIDIA driver works but shows no GPU", "is CUDA_VISIBLE_DEVICES set to nothing? Otherwise run nvidia-smi")
		return
	}
	for i := range gpus {
		d.placeOnBus(&gpus[i])
		gpus[i].IOCoherent = !gpus[i].Integrated || coherentGPU(gpus[i].ComputeCapability)
	}
	d.p.GPUs = gpus
	d.p.Kind, d.p.Why = judge(d.p)
}

// coherentGPU: integrated GPUs are I/O coherent from compute capability 7.2
// (Xavier) on; 5.3 is the Nano and TX1, 6.2 the TX2. No attribute tells it.
func coherentGPU(cc string) bool {
	var major, minor int
	if _, err := fmt.Sscanf(cc, "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major > 7 || major == 7 && minor >= 2
}

// judge decides by the first GPU, which is the one used unless another is
// configured; p has at least one.
func judge(p Platform) (Kind, string) {
	if p.Jetson != nil && p.Jetson.Unsupported != "" {
		return KindCPU, p.Jetson.Model + ": " + p.Jetson.Unsupported
	}
	g := p.GPUs[0]
	more := ""
	if n := len(p.GPUs); n > 1 {
		more = fmt.Sprintf(", the first of %d GPUs", n)
	}
	if !g.Integrated {
		link := ""
		if g.PCIe.MaxGen > 0 && g.PCIe.Width > 0 {
			link = fmt.Sprintf(" on PCIe %d x%d", g.PCIe.MaxGen, g.PCIe.Width)
		}
		return KindDiscrete, fmt.Sprintf("%s with memory of its own%s%s", g.Name, link, more)
	}
	where := "the machine"
	if p.Jetson != nil {
		where = p.Jetson.Model
	}
	return KindJetson, fmt.Sprintf("the GPU %s of %s shares its DRAM%s", g.Name, where, more)
}

// refused explains why no GPU can be used.
func (d *detection) refused(err error) {
	here := d.gpuInWords()
	var missing *UnavailableError
	if errors.As(err, &missing) {
		if here == "" {
			d.p.Why = "no NVIDIA GPU and no driver for one in this machine"
			return
		}
		d.p.Why = fmt.Sprintf("there is %s, but %s cannot be opened", here, missing.Lib)
		d.problem(d.p.Why+": "+missing.Err.Error(), d.libraryHint(missing))
		return
	}
	var refusal *DriverError
	if !errors.As(err, &refusal) {
		d.p.Why = "the NVIDIA driver cannot be used"
		d.problem(err.Error(), "run nvidia-smi; reinstall the driver if it fails too")
		return
	}
	d.refusedByDriver(refusal, here)
}

func (d *detection) refusedByDriver(e *DriverError, here string) {
	switch {
	case e.Code == CodeNoDevice && here == "" && d.p.Driver == "":
		// libcuda is there, as in many container images, and nothing else is.
		d.p.Why = "libcuda is installed, but there is no NVIDIA GPU in this machine"
	case here != "" && d.p.Jetson == nil && !d.exists("dev/nvidiactl"):
		d.p.Why = "there is " + here + ", but no /dev/nvidia* to reach it"
		d.problem(d.p.Why, d.deviceHint())
	case e.Code == CodeSystemDriverDiffer:
		d.p.Why = "the NVIDIA kernel module and libcuda are of different versions"
		d.problem(fmt.Sprintf("%s: the loaded kernel module is %s, libcuda is %s", d.p.Why, orUnknown(d.p.Driver), orUnknown(libraryVersion(d.p.Library))),
			"the driver was updated while it was in use: reboot, or stop everything that uses the GPU and run modprobe -r nvidia_uvm nvidia_drm nvidia_modeset nvidia && modprobe nvidia")
	default:
		d.p.Why = "the NVIDIA driver refuses: " + e.Text
		d.problem(e.Error(), d.refusalHint(e))
	}
}

// refusalHint adds what the machine's files tell to the driver's own hint.
func (d *detection) refusalHint(e *DriverError) string {
	if d.p.Jetson != nil {
		return d.boardHint()
	}
	if e.Code == CodeNoDevice && d.p.Driver != "" {
		return "is CUDA_VISIBLE_DEVICES set to nothing or to a GPU that is not there? Otherwise run nvidia-smi"
	}
	if d.exists("dev/nvidiactl") && !d.exists("dev/nvidia-uvm") {
		return "/dev/nvidia-uvm is missing: run modprobe nvidia_uvm, or nvidia-modprobe -u -c=0"
	}
	if e.Hint != "" {
		return e.Hint
	}
	return "run nvidia-smi; reboot if it fails too"
}

// boardHint says why a Jetson's driver may refuse.
func (d *detection) boardHint() string {
	j := d.p.Jetson
	switch {
	case j.Stack.Shadow != "":
		return RemoveShadow + " (a driver for PCs, which knows no GPU of a Jetson)"
	case len(j.MissingDevices) > 0 && d.p.Container:
		return d.deviceHint()
	case len(j.MissingDevices) > 0:
		return "the kernel's GPU driver is not loaded: reboot, and flash the board anew if " + joinWords(j.MissingDevices) + " is still missing then"
	case len(j.MissingGroups) > 0:
		return j.GroupCommand()
	}
	return "the user of the service must be in the groups video and render; otherwise look at dmesg for messages of nvgpu or nvidia"
}

// RemoveShadow takes a libcuda away that hides a Jetson's own.
const RemoveShadow = "sudo apt-get remove 'libnvidia-compute-*'"

// GroupCommand puts User into the groups that are missing.
func (j Jetson) GroupCommand() string {
	return "sudo usermod -aG " + strings.Join(j.MissingGroups, ",") + " " + j.User + ", then start the program anew"
}

// gpuInWords names NVIDIA hardware that the kernel sees, "" = none.
func (d *detection) gpuInWords() string {
	if d.p.Jetson != nil {
		return "the GPU of " + d.p.Jetson.Model
	}
	switch len(d.found) {
	case 0:
		return ""
	case 1:
		return "an NVIDIA GPU at " + d.found[0].Address
	}
	return fmt.Sprintf("%d NVIDIA GPUs, the first at %s", len(d.found), d.found[0].Address)
}

// libraryHint says how to come by libcuda.
func (d *detection) libraryHint(e *UnavailableError) string {
	switch {
	case d.p.Container:
		return d.deviceHint()
	case d.p.Jetson != nil:
		return "libcuda comes with JetPack: sudo apt-get install --reinstall nvidia-l4t-cuda"
	case len(d.found) > 0 && d.found[0].Driver == "vfio-pci":
		return "the card is handed to a virtual machine (vfio-pci)"
	case len(d.found) > 0 && d.found[0].Driver == "nouveau":
		return "the card runs on nouveau: install NVIDIA's driver (Debian: nvidia-driver; Ubuntu: ubuntu-drivers install) and reboot"
	case d.p.Driver != "":
		return "the kernel module is loaded: install its library of the same version (Debian: libcuda1; Ubuntu: libnvidia-compute)"
	case e.Hint != "":
		return e.Hint
	}
	return "install NVIDIA's driver (Debian: nvidia-driver; Ubuntu: ubuntu-drivers install) and reboot"
}

// deviceHint says how /dev/nvidia* come to be.
func (d *detection) deviceHint() string {
	if d.p.Container && d.p.Jetson != nil {
		return "start the container with NVIDIA's runtime, which brings the board's devices and driver: docker run --runtime nvidia"
	}
	if d.p.Container {
		return "start the container with the NVIDIA runtime and the GPU: docker run --gpus all, podman run --device nvidia.com/gpu=all"
	}
	return "run nvidia-smi as root once, or enable nvidia-persistenced, which makes them"
}

// checkBoard flags what a Jetson of this kind cannot do.
func (d *detection) checkBoard() {
	j := d.p.Jetson
	if j == nil {
		return
	}
	if j.Unsupported != "" {
		hint := "inference runs on the CPU here; use an Orin or newer with JetPack 6 or 7 for the GPU"
		if j.IOCoherent {
			hint = "inference runs on the CPU here; flash the board with JetPack 5.1 or newer for the GPU"
		}
		d.problem(j.Model+": "+j.Unsupported, hint)
	}
	if !j.IOCoherent {
		d.problem(j.Model+" has no I/O coherency: memory pinned for its GPU is uncached for the CPU",
			"frames stay in ordinary cached memory here; nothing to do")
	}
}

// checkGPUs flags what would make a GPU slow or useless.
func (d *detection) checkGPUs() {
	for _, g := range d.p.GPUs {
		if !g.CanMapHost {
			d.problem(fmt.Sprintf("GPU %d (%s) cannot map host memory", g.Index, g.Name), "frames are copied to it; nothing to do")
		}
		if w := g.PCIe; !g.Integrated && w.Width > 0 && w.Width < w.MaxWidth {
			d.problem(fmt.Sprintf("GPU %d (%s) has %d of its %d PCIe lanes", g.Index, g.Name, w.Width, w.MaxWidth),
				"put the card into a wider slot, or see the mainboard's manual for lanes shared with M.2")
		}
	}
}

// libraryVersion reads "550.54.14" off libcuda.so.550.54.14.
func libraryVersion(path string) string {
	_, v, _ := strings.Cut(path, "libcuda.so.")
	if !strings.Contains(v, ".") {
		return ""
	}
	return v
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}
