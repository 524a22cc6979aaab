package doctor

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"edgecam/platform"
	"edgecam/platform/onnxruntime"
)

// The least of NVIDIA's drivers for a major version of CUDA, whatever the minor one
// (https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html),
// and the least compute capability that its libraries still serve.
var cudas = map[int]struct { //nolint:gochecknoglobals // constant table
	driver     int
	capability string
}{11: {450, "3.5"}, 12: {525, "5.0"}, 13: {580, "7.5"}}

// ownPlace is where the instructions put libraries: found without any setting, and
// readable for the service.
const ownPlace = "/opt/edgecam/venv"

// gpuLibraries judges what there is for inference on a card: the build of ONNX
// Runtime that is used, or would be, and what it needs.
func gpuLibraries(v onnxruntime.Survey, p platform.Platform, demanded string) []Check {
	b := box{Survey: v, Platform: p}
	var checks []Check
	if len(v.Builds) == 0 {
		checks = []Check{b.nothing()}
	} else {
		build := b.used()
		checks = append(checks, b.runtime(build))
		if b.wrong(build) == "" { // else another build needs other libraries
			checks = append(checks, b.libraries(build), b.tensorRT(build))
		}
	}
	for i := range checks {
		if c := &checks[i]; demanded != "" && c.Status == Warn && c.Name != "gpu tensorrt" {
			c.Status = Fail
		}
	}
	return checks
}

// box is a machine with what was found on it.
type box struct {
	onnxruntime.Survey
	platform.Platform
}

// offers is the major version of CUDA that the driver offers, 0 = unknown.
func (b box) offers() int {
	major, _, _ := strings.Cut(b.Platform.CUDA, ".")
	n, _ := strconv.Atoi(major) // "" is 0
	return n
}

// oldest is the least compute capability of the cards.
func (b box) oldest() string {
	least := ""
	for _, g := range b.GPUs {
		if least == "" || platform.OlderVersion(g.ComputeCapability, least) {
			least = g.ComputeCapability
		}
	}
	return least
}

// hasOlder says that there is a card of less than a compute capability.
func (b box) hasOlder(capability string) bool {
	card := b.oldest()
	return card != "" && platform.OlderVersion(card, capability)
}

// refuses says why this box cannot use what is built for a CUDA, "" = it can.
func (b box) refuses(cuda int) string {
	need, known := cudas[cuda]
	switch has := b.offers(); {
	case has > 0 && cuda > has:
		return fmt.Sprintf("the driver %s offers no more than CUDA %s", orNone(b.Driver), b.Platform.CUDA)
	case known && b.hasOlder(need.capability):
		return fmt.Sprintf("CUDA %d serves cards from compute capability %s on, and there is one of %s", cuda, need.capability, b.oldest())
	}
	return ""
}

// used is the build that is taken into use: the first whose core can be opened.
func (b box) used() *onnxruntime.Build {
	return b.Builds[max(slices.IndexFunc(b.Builds, func(o *onnxruntime.Build) bool { return o.Components[0].Problem == "" }), 0)]
}

// nothing is the verdict where no build is there.
func (b box) nothing() Check {
	c := Check{Name: "gpu runtime", Status: Warn, Detail: "no GPU build of ONNX Runtime found"}
	if n := len(b.Plain); n > 0 {
		c.Detail += fmt.Sprintf(" (%s for the processor: %s)", count(n, "build"), strings.Join(b.Plain, ", "))
	}
	c.Fix = b.fresh()
	return c
}

// runtime judges the build itself: its files, and whether the box can use it.
func (b box) runtime(build *onnxruntime.Build) Check {
	c := Check{Name: "gpu runtime", Status: OK, Detail: "ONNX Runtime " + orNone(build.Core) + " at " + build.Path}
	if build.CUDA > 0 {
		c.Detail += fmt.Sprintf(", for CUDA %d", build.CUDA)
	}
	if wrong := b.wrong(build); wrong != "" {
		c.Status, c.Detail, c.Fix = Warn, c.Detail+": "+wrong, b.other(build)
	}
	for _, o := range b.Builds {
		if o != build {
			c.Detail += fmt.Sprintf("; not used: %s at %s", orNone(o.Core), o.Path)
		}
	}
	return c
}

// wrong says why a build cannot serve on this box, "" = nothing is known against it.
func (b box) wrong(build *onnxruntime.Build) string {
	for _, c := range build.Components {
		if c.Problem != "" && strings.HasPrefix(filepath.Base(c.Path), "libonnxruntime") && !strings.Contains(c.Name, "tensorrt") {
			return filepath.Base(c.Path) + " " + c.Problem
		}
	}
	if build.Core != "" && platform.OlderVersion(build.Core, onnxruntime.OldestRelease) {
		return "it is too old: " + onnxruntime.OldestRelease + " or newer is needed"
	}
	if build.Core != "" && build.Provider != "" && build.Core != build.Provider {
		return fmt.Sprintf("the provider beside it is of %s, and they only work together where they are of one release", build.Provider)
	}
	return b.refuses(build.CUDA)
}

// other says how to come to a build that serves, in place of one that does not: by
// one that is there already, if there is such.
func (b box) other(than *onnxruntime.Build) string {
	for _, build := range b.Builds {
		if build.Path != than.Path && b.wrong(build) == "" && len(b.bad(build)) == 0 {
			return "set inference.library to " + build.Path + ", which fits"
		}
	}
	fix := b.fresh()
	if need, ok := cudas[than.CUDA]; ok && than.CUDA > b.offers() && !b.isBoard() { // its driver comes with JetPack
		fix += fmt.Sprintf("; or update NVIDIA's driver to %d or newer, and reboot", need.driver)
	}
	return fix
}

// bad gives what the CUDA provider lacks of a build on this box: what is not there or
// does not fit, and a cuDNN that has given up cards like this one.
func (b box) bad(build *onnxruntime.Build) []onnxruntime.Component {
	bad := build.Missing(onnxruntime.CUDAProvider)
	if !b.hasOlder(turing) {
		return bad
	}
	for _, c := range build.Components {
		if c.Name == "libcudnn.so.9" && c.Version != "" && !platform.OlderVersion(c.Version, turingOnly) {
			c.Problem = fmt.Sprintf("(%s) serves no card of compute capability %s: from %s on cuDNN does not", c.Version, b.oldest(), turingOnly)
			bad = append(bad, c)
		}
	}
	return bad
}

// libraries judges CUDA's libraries and cuDNN.
func (b box) libraries(build *onnxruntime.Build) Check {
	bad := b.bad(build)
	c := Check{Name: "gpu libraries", Status: OK, Detail: listed(build.Components, bad, false)}
	if len(bad) == 0 {
		return c
	}
	c.Status, c.Fix = Warn, b.complete(build, bad)
	found := c.Detail
	if c.Detail = inWords(bad, build.CUDA); found != "" {
		c.Detail += "; found " + found
	}
	return c
}

// tensorRT judges what TensorRT needs. Without any of it CUDA serves, and nothing
// is wrong; with one that does not fit somebody meant to have it.
func (b box) tensorRT(build *onnxruntime.Build) Check {
	bad := build.Missing(onnxruntime.TensorRTProvider)
	c := Check{Name: "gpu tensorrt", Status: OK, Detail: listed(build.Components, bad, true)}
	if len(bad) == 0 {
		return c
	}
	if last := bad[len(bad)-1]; last.Missing() && strings.HasPrefix(last.Name, "libonnxruntime") {
		c.Detail = "this build of ONNX Runtime has no TensorRT provider: CUDA serves"
		return c
	}
	lacksAll := func(o onnxruntime.Component) bool { return o.Missing() && len(o.Others) == 0 }
	if c.Detail == "" && !slices.ContainsFunc(bad, func(o onnxruntime.Component) bool { return !lacksAll(o) }) {
		c.Detail = "not installed, CUDA serves: " + inWords(bad, build.CUDA)
		return c
	}
	c.Status, c.Detail, c.Fix = Warn, inWords(bad, build.CUDA)+": CUDA serves", b.withTensorRT(build)
	return c
}

// listed names what is there and not bad, of TensorRT or of the rest, by the places
// that it comes from.
func listed(all, bad []onnxruntime.Component, tensorRT bool) string {
	var places []string
	of := map[string][]string{}
	for _, c := range all {
		ours := strings.HasPrefix(c.Name, "libonnxruntime")
		theirs := strings.HasPrefix(c.Name, "libnv") && !strings.HasPrefix(c.Name, "libnvrtc")
		if ours || theirs != tensorRT || slices.ContainsFunc(bad, func(o onnxruntime.Component) bool { return o.Name == c.Name }) {
			continue
		}
		place := ""
		if !c.ByLoader {
			place = "from " + origin(c.Path) + ": "
		}
		text := strings.TrimSpace(c.Name + " " + c.Version)
		if of[place] == nil {
			places = append(places, place)
		}
		if !slices.Contains(of[place], text) {
			of[place] = append(of[place], text)
		}
	}
	slices.Sort(places) // those of the system first
	for i, place := range places {
		places[i] = place + strings.Join(of[place], ", ")
	}
	return strings.Join(places, "; ")
}

// origin is the Python environment of a file, else its directory.
func origin(path string) string {
	if env, _, ok := strings.Cut(path, "/lib/python3"); ok {
		return env
	}
	return filepath.Dir(path)
}

// inWords says what is wrong with libraries.
func inWords(bad []onnxruntime.Component, cuda int) string {
	var missing, words []string
	for _, c := range bad {
		switch {
		case c.Missing() && strings.HasPrefix(c.Name, "libnvinfer_builder") && slices.ContainsFunc(bad, func(o onnxruntime.Component) bool {
			return o.Name == c.NeededBy
		}): // it comes with what it belongs to
		case c.Missing() && len(c.Others) > 0:
			words = append(words, fmt.Sprintf("%s is missing: %s cannot take its place", c.Name, strings.Join(c.Others, ", ")))
		case c.Missing():
			missing = append(missing, c.Name)
		case c.Problem != "":
			words = append(words, c.Path+" "+c.Problem)
		default:
			words = append(words, fmt.Sprintf("%s is for CUDA %d, not %d", strings.TrimSpace(c.Path+" "+c.Version), c.CUDA, cuda))
		}
	}
	if len(missing) > 0 {
		words = append(words, "missing "+strings.Join(missing, ", "))
	}
	return strings.Join(words, "; ")
}
