// Package doctor judges a machine: what it has, what is missing, and what to do
// about it. It is a function of plain values, platform.Detect's and what the
// caller probed, and touches nothing itself.
package doctor

import (
	"fmt"
	"slices"
	"strings"

	"edgecam/platform"
)

// Status is the verdict of one check.
type Status string

// The verdicts.
const (
	OK   Status = "ok"
	Warn Status = "warn" // works, but worse than it could
	Fail Status = "fail" // does not work
)

// Check is one thing that was looked at.
type Check struct {
	Name   string `json:"name"`
	Status Status `json:"status"`
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"` // what to do, "" when Status is OK
}

// Report is the whole examination.
type Report struct {
	Version  string            `json:"version"`
	Status   Status            `json:"status"` // the worst of the checks
	Checks   []Check           `json:"checks"`
	Platform platform.Platform `json:"platform"`
}

// Probes are the results of what the caller tried; a zero part was not tried
// and is left out of the report.
type Probes struct {
	Version string // of the program

	BudgetBytes int64
	BudgetWhy   string // how much the frame pools may take together, and why so much

	FFmpeg  FFmpeg
	Runtime Runtime
	Model   Model
	GPU     GPU
	State   State
	Listen  Listen
}

// FFmpeg is what libavcodec says of itself.
type FFmpeg struct {
	Version  string   // e.g. "59.37.100"; "" = not tried
	Decoders []string // names that the library has, of those asked for
	Asked    []string // names that the product uses
	// System is the machine's own FFmpeg, asked on boards whose decoder ours cannot
	// reach: the decoders of it that are tried there, and its libavcodec.
	System     []string
	SystemPath string // "" = none can be used
}

// Runtime is ONNX Runtime's library.
type Runtime struct {
	Path, Version string
	Err           error  // why it cannot be used
	Hint          string // what to do then
}

// Model is a load of the configured model.
type Model struct {
	Name      string // "" = not tried
	Precision string
	Provider  string
	Labels    int
	ProbeMS   float64 // one image
	Err       error
}

// Listen is an attempt to listen on the dashboard's address.
type Listen struct {
	Address string // "" = not tried
	Err     error
}

// Examine judges.
func Examine(p platform.Platform, probes Probes) Report {
	r := Report{Version: probes.Version, Platform: p, Status: OK}
	r.Checks = append(r.Checks, cpu(p.CPU), memory(p.Memory))
	if probes.BudgetWhy != "" {
		r.Checks = append(r.Checks, budget(probes))
	}
	r.Checks = append(r.Checks, memlock(p.Memory), hugePages(p.Memory))
	if p.Nodes > 1 {
		r.Checks = append(r.Checks, numa(p))
	}
	r.Checks = append(r.Checks, gpus(p)...)
	if p.Jetson != nil {
		r.Checks = append(r.Checks, boardChecks(p)...)
	}
	if probes.FFmpeg.Version != "" {
		c := ffmpeg(probes.FFmpeg)
		if j := p.Jetson; j != nil && c.Status == OK && j.Unsupported == "" && hasDriver(p) {
			c = boardDecoders(c, *j, probes)
		}
		r.Checks = append(r.Checks, c)
	}
	if probes.Runtime.Path != "" || probes.Runtime.Err != nil {
		r.Checks = append(r.Checks, onnx(probes.Runtime))
	}
	if probes.Model.Name != "" {
		r.Checks = append(r.Checks, model(probes.Model))
	}
	r.Checks = append(r.Checks, gpuWork(probes.GPU, p)...)
	if probes.State.Dir != "" {
		r.Checks = append(r.Checks, stateDir(probes.State))
	}
	if probes.Listen.Address != "" {
		r.Checks = append(r.Checks, port(probes.Listen))
	}
	for _, c := range r.Checks {
		r.Status = worse(r.Status, c.Status)
	}
	return r
}

// Count gives how many checks have a status.
func (r Report) Count(s Status) int {
	n := 0
	for _, c := range r.Checks {
		if c.Status == s {
			n++
		}
	}
	return n
}

func worse(a, b Status) Status {
	order := []Status{OK, Warn, Fail}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}

func cpu(c platform.CPU) Check {
	detail := fmt.Sprintf("%s, %s", c.Model, count(c.Cores, "core"))
	if c.Quota > 0 && c.Quota < float64(c.Cores) {
		detail += fmt.Sprintf(", limited to %.3g by the cgroup", c.Quota)
	}
	if len(c.ISA) > 0 {
		detail += "; " + strings.Join(c.ISA, " ")
	}
	check := Check{Name: "cpu", Status: OK, Detail: detail}
	switch {
	case c.FastInt8():
		check.Detail += " (fast int8)"
	case len(c.ISA) > 0 && !c.Has("asimd") && !c.Has("avx2"): // x86
		check.Status = Warn
		check.Fix = "no AVX2: inference is several times slower than on processors since 2014; in a virtual machine pass the host's CPU through"
	}
	if c.Quota > 0 && c.Quota < 1 {
		check.Status = Warn
		check.Fix = "less than one core: raise CPUQuota= or the container's --cpus"
	}
	return check
}

// enoughMemory is what the program, a model and a few cameras need.
const enoughMemory = 1 << 30

func memory(m platform.Memory) Check {
	detail := fmt.Sprintf("%s, %s available", bytes(m.TotalBytes), bytes(m.AvailableBytes))
	least := m.TotalBytes
	if m.CgroupBytes >= 0 {
		detail += fmt.Sprintf("; the cgroup allows %s", bytes(m.CgroupBytes))
		least = min(least, m.CgroupBytes)
	}
	c := Check{Name: "memory", Status: OK, Detail: detail}
	if least < enoughMemory {
		c.Status = Warn
		c.Fix = "less than 1 GiB holds a camera or two; raise MemoryMax= or the container's --memory"
	}
	return c
}

// oneCamera is the frame pool of a camera of 1080p, roughly.
const oneCamera = 64 << 20

func budget(p Probes) Check {
	c := Check{Name: "frame memory", Status: OK, Detail: p.BudgetWhy}
	if p.BudgetBytes < oneCamera {
		c.Status = Warn
		c.Fix = "hardly a camera of 1080p fits: raise memory.limit, or the limit that it comes from"
	}
	return c
}

// enoughMemlock is the frame memory of a few 1080p cameras, which take 40 to
// 60 MB each.
const enoughMemlock = 256 << 20

func memlock(m platform.Memory) Check {
	c := Check{Name: "memory lock", Status: OK, Detail: "unlimited"}
	if m.MemlockBytes >= 0 {
		c.Detail = bytes(m.MemlockBytes)
	}
	if m.MemlockBytes >= 0 && m.MemlockBytes < enoughMemlock {
		c.Status = Warn
		c.Detail += ": frame pools are not locked beyond that, and cannot be shared with a GPU"
		c.Fix = "the unit sets LimitMEMLOCK=infinity; in a shell run ulimit -l unlimited as root first, in a container --ulimit memlock=-1"
	}
	return c
}

func hugePages(m platform.Memory) Check {
	var parts []string
	if m.HugePagesTotal > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d reserved pages of %s free", m.HugePagesFree, m.HugePagesTotal, bytes(m.HugePageBytes)))
	}
	if m.TransparentHuge != "" {
		parts = append(parts, "transparent: "+m.TransparentHuge)
	}
	if len(parts) == 0 {
		parts = append(parts, "none; frame pools use small pages")
	}
	return Check{Name: "huge pages", Status: OK, Detail: strings.Join(parts, ", ")}
}

func numa(p platform.Platform) Check {
	c := Check{Name: "numa", Status: OK, Detail: count(p.Nodes, "node")}
	if len(p.GPUs) == 0 {
		return c
	}
	for _, g := range p.GPUs {
		if g.NUMANode >= 0 {
			c.Detail += fmt.Sprintf("; frame pools belong on node %d, beside GPU %d", g.NUMANode, g.Index)
			continue
		}
		c.Status = Warn
		c.Detail += fmt.Sprintf("; the kernel does not say which one GPU %d is on", g.Index)
		c.Fix = "set the node interleaving option of the firmware to off, or pin the service with NUMAPolicy= and NUMAMask="
	}
	return c
}

func gpus(p platform.Platform) []Check {
	var problems []Check
	for _, problem := range p.Problems { // work goes on without a GPU, hence no failure
		problems = append(problems, Check{Name: "gpu", Status: Warn, Detail: problem.What, Fix: problem.Hint})
	}
	if len(p.GPUs) == 0 {
		if len(problems) > 0 { // they say why already
			return problems
		}
		return []Check{{Name: "gpu", Status: OK, Detail: "none used: " + p.Why}}
	}
	checks := append([]Check{{Name: "gpu", Status: OK, Detail: p.Why}}, problems...)
	for _, g := range p.GPUs {
		d := fmt.Sprintf("%s, compute capability %s, %s, %s", g.Name, g.ComputeCapability, bytes(g.MemoryBytes), g.UUID)
		checks = append(checks, card(g, d))
	}
	return append(checks, Check{Name: "driver", Status: OK, Detail: fmt.Sprintf("CUDA %s, kernel module %s, %s", p.CUDA, orNone(p.Driver), p.Library)})
}

// card judges a card's place on the bus. The generation falls while a card idles,
// so that only the width tells of a bad slot.
func card(g platform.GPU, d string) Check {
	c := Check{Name: fmt.Sprintf("gpu %d", g.Index), Status: OK, Detail: d}
	if l := g.PCIe; l.Width > 0 {
		c.Detail += fmt.Sprintf(", PCIe %d x%d", max(l.MaxGen, l.Gen), l.Width)
		if l.Gen > 0 && l.Gen < l.MaxGen {
			c.Detail += fmt.Sprintf(" (generation %d now, as cards that idle slow their link down)", l.Gen)
		}
		if l.Width < l.MaxWidth {
			c.Status = Warn
			c.Detail += fmt.Sprintf("; x%d is possible", l.MaxWidth)
			c.Fix = "put the card into a slot with all lanes, or seat it anew: pictures come over this link"
		}
	}
	if g.BAR1Bytes > 0 {
		c.Detail += ", BAR1 " + bytes(g.BAR1Bytes)
	}
	return c
}

func ffmpeg(f FFmpeg) Check {
	c := Check{Name: "ffmpeg", Status: OK, Detail: "libavcodec " + f.Version}
	var missing []string
	for _, name := range f.Asked {
		if !slices.Contains(f.Decoders, name) {
			missing = append(missing, name)
		}
	}
	if len(f.Decoders) > 0 {
		c.Detail += ", decoders " + strings.Join(f.Decoders, " ")
	}
	if len(missing) > 0 {
		c.Status = Fail
		c.Detail += "; missing " + strings.Join(missing, " ")
		c.Fix = "this libavcodec was built without them: install the distribution's full build (Fedora: ffmpeg from RPM Fusion instead of ffmpeg-free)"
	}
	return c
}

func onnx(r Runtime) Check {
	if r.Err != nil {
		fix := r.Hint
		if fix == "" {
			fix = "run make build, which fetches it, or set inference.library to a libonnxruntime.so of 1.17 or newer"
		}
		return Check{Name: "onnx runtime", Status: Fail, Detail: r.Err.Error(), Fix: fix}
	}
	return Check{Name: "onnx runtime", Status: OK, Detail: fmt.Sprintf("%s at %s", r.Version, r.Path)}
}

func model(m Model) Check {
	if m.Err != nil {
		return Check{Name: "model", Status: Fail, Detail: m.Name + ": " + m.Err.Error(), Fix: "set inference.model to builtin:nanodet-g or to a model with the metadata that the error names"}
	}
	return Check{Name: "model", Status: OK, Detail: fmt.Sprintf("%s, %s on %s, %s, %.1f ms a picture", m.Name, m.Precision, m.Provider, count(m.Labels, "label"), m.ProbeMS)}
}

func port(l Listen) Check {
	if l.Err != nil {
		return Check{
			Name: "dashboard", Status: Warn, Detail: l.Err.Error(),
			Fix: "fine if edgecam is running; else stop what holds the address (ss -ltnp), or set server.listen",
		}
	}
	return Check{Name: "dashboard", Status: OK, Detail: l.Address + " is free"}
}

func orNone(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// bytes writes a size with three digits.
func bytes(n int64) string {
	v, unit := float64(n), "B"
	for _, u := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if v < 1024 {
			break
		}
		v, unit = v/1024, u
	}
	if v >= 100 || unit == "B" {
		return fmt.Sprintf("%.0f %s", v, unit)
	}
	return fmt.Sprintf("%.3g %s", v, unit)
}
