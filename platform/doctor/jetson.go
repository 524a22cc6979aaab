package doctor

import (
	"fmt"
	"slices"
	"strings"

	"edgecam/platform"
	"edgecam/platform/onnxruntime"
)

// boardChecks judge a Jetson: what it is, its power mode, its user and what JetPack
// brought along.
func boardChecks(p platform.Platform) []Check {
	j := *p.Jetson
	checks := []Check{jetson(j)}
	if j.Unsupported != "" { // its problems say why, and nothing below would help
		return checks
	}
	if c, ok := power(j); ok {
		checks = append(checks, c)
	}
	if len(j.MissingGroups) > 0 {
		checks = append(checks, Check{
			Name: "jetson groups", Status: Warn, Fix: j.GroupCommand(),
			Detail: fmt.Sprintf("user %s is not in %s: GPU and decoder are theirs (the unit adds them by itself)", j.User, strings.Join(j.MissingGroups, " and ")),
		})
	}
	if len(j.MissingDevices) > 0 && len(p.GPUs) > 0 {
		checks = append(checks, Check{
			Name: "jetson devices", Status: Warn, Detail: "not there: " + strings.Join(j.MissingDevices, ", "),
			Fix: "reboot; in a container start it with NVIDIA's runtime: docker run --runtime nvidia",
		})
	}
	if j.Stack.Shadow != "" {
		checks = append(checks, Check{
			Name: "jetson driver", Status: Warn,
			Detail: j.Stack.Shadow + " of a driver for PCs hides JetPack's " + orNone(j.Stack.Driver) + " from other programs: edgecam opens JetPack's",
			Fix:    platform.RemoveShadow,
		})
	}
	if hasDriver(p) {
		checks = append(checks, jetpack(withJetPack(p), p.Container))
	}
	return checks
}

// hasDriver says that the board's driver can be there: in a container that was
// started without it nothing else matters.
func hasDriver(p platform.Platform) bool { return !p.Container || p.Jetson.Stack.Driver != "" }

// withJetPack is the board with a JetPack where nothing but the driver tells it, as
// in containers: by the CUDA that it offers. The advice needs no more.
func withJetPack(p platform.Platform) platform.Jetson {
	j := *p.Jetson
	if j.JetPack != "" || j.Family == "" {
		return j
	}
	for _, by := range []struct{ cuda, jetpack string }{{"13", "7"}, {"12.6", "6"}, {"12", "6.0"}, {"11", "5"}} {
		if platform.OfSeries(p.CUDA, by.cuda) {
			j.JetPack = by.jetpack
			break
		}
	}
	return j
}

func jetson(j platform.Jetson) Check {
	d := j.Model + ", " + orNone(j.SoC)
	if j.Family != "" {
		d += " (" + j.Family + ")"
	}
	if j.Module != "" {
		d += ", module " + j.Module
	}
	d += fmt.Sprintf(", L4T %s, JetPack %s", orNone(j.L4T), orNone(j.JetPack))
	if j.Family == "" && j.SoC != "" {
		d += "; this version of edgecam does not know the chip, and uses its GPU as the driver describes it"
	}
	return Check{Name: "jetson", Status: OK, Detail: d}
}

// power says which mode holds and which would be the fastest.
func power(j platform.Jetson) (Check, bool) {
	if j.PowerMode == "" {
		return Check{}, false
	}
	c := Check{Name: "jetson power", Status: OK, Detail: "mode " + j.PowerMode}
	best, known := j.Fastest()
	if !known || best.Name == j.PowerMode {
		return c, true
	}
	c.Status = Warn
	c.Detail += ", which limits the clocks; the fastest of this board is " + best.Name
	c.Fix = fmt.Sprintf("sudo nvpmodel -m %d, where power supply and cooling allow it; sudo jetson_clocks keeps the clocks up until the next boot", best.ID)
	return c, true
}

// jetpack compares what is installed with what the board's JetPack ships.
func jetpack(j platform.Jetson, container bool) Check {
	has, ships := j.Stack, j.Ships()
	c := Check{Name: "jetpack", Status: OK}
	var found, missing, odd, packages []string
	for _, l := range []struct{ name, has, ships, packages string }{
		{"CUDA", has.CUDA, ships.CUDA, "nvidia-jetpack"},
		{"cuDNN", has.CuDNN, ships.CuDNN, cuDNNPackage(j)},
		{"TensorRT", has.TensorRT, ships.TensorRT, tensorRTPackages(j)},
	} {
		switch {
		case l.has == "":
			missing = append(missing, l.name)
			packages = append(packages, l.packages)
		case l.ships != "" && !platform.OfSeries(l.has, l.ships):
			odd = append(odd, fmt.Sprintf("%s %s is not that of JetPack %s, which is %s", l.name, l.has, j.JetPack, l.ships))
		default:
			found = append(found, l.name+" "+l.has)
		}
	}
	if slices.Contains(packages, "nvidia-jetpack") {
		packages = []string{"nvidia-jetpack"} // it brings the others
	}
	c.Detail = strings.Join(found, ", ")
	if len(missing) > 0 {
		c.Status = Warn
		c.Detail = joined("missing "+strings.Join(missing, ", "), c.Detail)
		c.Fix = "sudo apt-get update && sudo apt-get install " + strings.Join(packages, " ")
	}
	if len(odd) > 0 {
		c.Status = Warn
		c.Detail = joined(strings.Join(odd, "; "), c.Detail)
		if c.Fix == "" {
			c.Fix = "fine if the build of ONNX Runtime is made for it; else sudo apt-get install --reinstall nvidia-jetpack"
		}
	}
	if container && c.Status == Warn {
		c.Fix = "use an image that holds them for this release, such as NVIDIA's l4t-jetpack: the runtime brings the driver alone"
	}
	return c
}

func joined(a, b string) string {
	if b == "" {
		return a
	}
	return a + "; " + b
}

// cuDNNPackage is NVIDIA's package of cuDNN for the board's JetPack.
func cuDNNPackage(j platform.Jetson) string {
	s := j.Ships()
	cuda, _, _ := strings.Cut(s.CUDA, ".")
	switch s.CuDNN {
	case "":
		return "nvidia-jetpack"
	case "8":
		return "libcudnn8"
	}
	return "libcudnn" + s.CuDNN + "-cuda-" + cuda
}

func tensorRTPackages(j platform.Jetson) string {
	n := j.Ships().TensorRT
	if n == "" {
		return "nvidia-jetpack"
	}
	return fmt.Sprintf("libnvinfer%s libnvinfer-plugin%s libnvonnxparsers%s", n, n, n)
}

// The index of NVIDIA's Jetson AI Lab holds builds of ONNX Runtime for Jetsons;
// the one for servers' ARM processors is what serves JetPack 7.
const jetsonIndex = "https://pypi.jetson-ai-lab.io/"

// runtimeFor says how to come by a GPU build of ONNX Runtime for the JetPack of a
// board. Builds before 1.19 are of no use as Python packages: they lack
// libonnxruntime.so.
func runtimeFor(j platform.Jetson) string {
	venv := func(index string) string {
		return "sudo apt-get install python3-venv && sudo python3 -m venv /opt/edgecam/venv && sudo /opt/edgecam/venv/bin/pip install --index-url " +
			jetsonIndex + index + " onnxruntime-gpu; it is found there"
	}
	switch {
	case strings.HasPrefix(j.JetPack, "7"):
		return venv("sbsa/cu130")
	case strings.HasPrefix(j.JetPack, "6.0"):
		return "update to JetPack 6.2, for which there are ready builds; for 6.0 build ONNX Runtime from source with --build_shared_lib (docs/jetson.md)"
	case strings.HasPrefix(j.JetPack, "6"):
		return venv("jp6/cu126")
	case strings.HasPrefix(j.JetPack, "5"):
		return "no ready build serves JetPack 5: build ONNX Runtime 1.18 from source with --use_cuda --build_shared_lib (docs/jetson.md has the commands), or flash JetPack 6.2 where the board can"
	}
	return "install a GPU build of ONNX Runtime 1.19 or newer for the CUDA of this board, and name its libonnxruntime.so in inference.library"
}

// isBoard says that what serves a PC does not help: drivers and libraries come with
// JetPack.
func (b box) isBoard() bool { return b.Kind == platform.KindJetson || b.Jetson != nil }

// board is the Jetson; nothing is known of one that only its GPU tells.
func (b box) board() platform.Jetson {
	if b.Jetson == nil {
		return platform.Jetson{}
	}
	return withJetPack(b.Platform)
}

// completeBoard says how to bring what a build lacks on a board.
func (b box) completeBoard(bad []onnxruntime.Component) string {
	what, there := "nvidia-jetpack", "CUDA"
	others := func(c onnxruntime.Component) bool { return !strings.HasPrefix(c.Name, "libcudnn") }
	if !slices.ContainsFunc(bad, others) {
		what, there = cuDNNPackage(b.board()), "that version"
	}
	return "sudo apt-get update && sudo apt-get install " + what + "; where " + there +
		" is there already, the build is for another JetPack: " + runtimeFor(b.board())
}

// boardDecoders says which of FFmpeg's decoders use that of a Jetson. NVIDIA's
// come before the kernel's general ones, as cameras try them.
func boardDecoders(c Check, j platform.Jetson, probes Probes) Check {
	of := func(suffix string) (names []string) {
		for _, name := range slices.Concat(probes.FFmpeg.Decoders, probes.FFmpeg.System) {
			if strings.HasSuffix(name, suffix) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		return names
	}
	if path := probes.FFmpeg.SystemPath; path != "" {
		c.Detail += "; the machine's own is " + path
	}
	nvidia, general := of("_nvv4l2dec"), of("_v4l2m2m")
	if board := slices.Concat(nvidia, general); len(board) > 0 {
		c.Detail += "; tried for the board's own decoder, in this order: " + strings.Join(board, " ")
	}
	switch {
	case slices.ContainsFunc(probes.GPU.Cards, func(card Card) bool { return card.Err == nil && card.NoDecoder == "" }):
		// NVDEC itself serves: a Thor's driver has its library.
		return c
	case len(nvidia) > 0 && j.Stack.Decoder == "":
		c.Status = Warn
		c.Detail += "; libnvv4l2.so, through which they reach it, is missing"
		c.Fix = "sudo apt-get install --reinstall nvidia-l4t-multimedia"
	case len(nvidia) == 0:
		c.Status = Warn
		c.Detail += "; none of them is NVIDIA's for this board: the processor decodes"
		if len(general) > 0 {
			c.Detail = strings.TrimSuffix(c.Detail, "the processor decodes") + "JetPack's kernel does not offer the decoder to v4l2m2m, so that the processor decodes"
		}
		c.Fix = "sudo apt-get update && sudo apt-get install ffmpeg, of NVIDIA's repository jetson/ffmpeg: apt-cache policy ffmpeg shows which one is taken"
	}
	return c
}
