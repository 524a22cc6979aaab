package onnxruntime

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// SurveyOptions say where a survey looks.
type SurveyOptions struct {
	Library string // inference.library; "" = everywhere
	// Root is in front of every path, Arch is a GOARCH, and Getenv gives the
	// environment. They default to those of the process.
	Root, Arch string
	Getenv     func(string) string
}

// Survey is what a box has for inference on a card, whether it fits or not.
type Survey struct {
	Arch  string // GOARCH
	Named bool   // nothing but what the configuration or the environment names was looked at
	// Builds are GPU builds of ONNX Runtime, in the order in which FindGPU tries them.
	Builds []*Build
	// Plain are builds without a provider for cards.
	Plain []string
	// Python is the version of the system's python3, e.g. "3.11", "" = none.
	Python string
	// System is the distribution's name and version, e.g. "debian 12".
	System string
	// Repository says that NVIDIA's packages can be installed with the distribution's tools.
	Repository bool
}

// Build is one GPU build with what it needs.
type Build struct {
	Path string // of the core
	// Environment is the Python environment that it lies in, "" = none.
	Environment string
	// Core and Provider are the releases of the two files, which only work together
	// where they are the same; "" = unknown.
	Core, Provider string
	CUDA           int // major version that the provider needs, 0 = unknown
	Components     []Component
}

// LookAround makes the survey of a box. It opens files but loads nothing.
func LookAround(o SurveyOptions) Survey {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	s := newSystem(o.Root, cmp.Or(o.Arch, runtime.GOARCH), o.Getenv)
	v := Survey{
		Arch: s.arch, Named: s.named(o.Library), Python: s.python(), System: s.distribution(),
		Repository: s.packages()["cuda-keyring"] != "",
	}
	seen := map[string]bool{}
	for _, path := range s.cores(o.Library) {
		f, ok := s.file(path)
		if !ok || seen[f.real] {
			continue
		}
		seen[f.real] = true
		if !cudaBeside(path) {
			v.Plain = append(v.Plain, strings.TrimPrefix(f.real, s.root))
			continue
		}
		v.Builds = append(v.Builds, s.build(path, f))
	}
	return v
}

func (s *system) build(path string, core *file) *Build {
	b := &Build{Path: path, Core: cmp.Or(coreVersion(core.real), core.version), Components: s.inventory(path)}
	if packages, ok := pythonPackages(filepath.Dir(core.real)); ok {
		b.Environment = filepath.Join(packages, "../../..")
	}
	for i := range b.Components {
		c := &b.Components[i]
		if c.Name == cudaLibrary && c.Problem == "" {
			b.CUDA, b.Provider = c.CUDA, providerVersion(c.Path)
		}
		s.outside(&c.Path)
		for k := range c.Others {
			s.outside(&c.Others[k])
		}
	}
	s.outside(&b.Path)
	s.outside(&b.Environment)
	return b
}

// outside takes the root off a path.
func (s *system) outside(path *string) { *path = strings.TrimPrefix(*path, s.root) }

var pythonFile = regexp.MustCompile(`^python3\.(\d+)$`)

// python finds the system's python3 by what its link leads to.
func (s *system) python() string {
	real, err := filepath.EvalSymlinks(s.at("/usr/bin/python3"))
	if err != nil {
		return ""
	}
	if m := pythonFile.FindStringSubmatch(filepath.Base(real)); m != nil {
		return "3." + m[1]
	}
	return ""
}

func (s *system) distribution() string {
	data, err := os.ReadFile(s.at("/etc/os-release"))
	if err != nil {
		return ""
	}
	var id, version string
	for line := range strings.Lines(string(data)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if unquoted, err := strconv.Unquote(value); err == nil {
			value = unquoted
		}
		switch key {
		case "ID":
			id = value
		case "VERSION_ID":
			version = value
		}
	}
	return strings.TrimSpace(id + " " + version)
}

// OldestRelease is the first release that edgecam knows how to use.
const OldestRelease = "1.17"

// Missing gives what a provider of the build needs and is not there, cannot be
// loaded, or is for another CUDA.
func (b *Build) Missing(provider string) []Component {
	at := max(slices.IndexFunc(b.Components, func(c Component) bool { return c.Name == cudaLibrary }), 0)
	list := b.Components[:at+1]
	if provider == TensorRTProvider {
		list = b.Components[at+1:]
	}
	cuda := b.Components[at].CUDA
	var bad []Component
	for _, c := range list {
		if c.Missing() || c.Problem != "" || cuda != 0 && c.CUDA != 0 && c.CUDA != cuda {
			bad = append(bad, c)
		}
	}
	return bad
}
