package onnxruntime

import (
	"bufio"
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// system is where libraries are looked for.
type system struct {
	root   string // in front of every path, "" but in tests
	arch   string // GOARCH
	getenv func(string) string

	early     []string          // directories that the dynamic linker searches before its cache
	cache     map[string]string // of the dynamic linker; nil = it has none
	late      []string          // directories that it searches last
	extra     []string          // others where NVIDIA's libraries are put
	installed map[string]string // by dpkg; nil = not read yet
	known     map[string]*file  // by real path
}

// file is what is known of a library without loading it.
type file struct {
	real    string // behind links
	problem string // why it cannot be loaded, "" = nothing is known against it
	needed  []string
	version string
	cuda    int // that it is for, 0 = unknown
}

func hostSystem() *system { return newSystem("", runtime.GOARCH, os.Getenv) }

func newSystem(root, arch string, getenv func(string) string) *system {
	s := &system{root: root, arch: arch, getenv: getenv, known: map[string]*file{}}
	for _, dir := range filepath.SplitList(getenv("LD_LIBRARY_PATH")) {
		if filepath.IsAbs(dir) {
			s.early = append(s.early, s.at(dir))
		}
	}
	s.late = []string{s.at("/lib/" + tripletOf(arch)), s.at("/usr/lib/" + tripletOf(arch)), s.at("/lib64"), s.at("/usr/lib64"), s.at("/lib"), s.at("/usr/lib")}
	s.cache = linkerCache(s.at("/etc/ld.so.cache"), arch)
	configured := s.configured(s.at("/etc/ld.so.conf"), 0)
	if s.cache == nil {
		s.late = append(configured, s.late...)
	} else {
		s.extra = append(s.extra, configured...) // where ldconfig has not been run since
	}
	target := map[string]string{"arm64": "sbsa-linux"}
	for _, pattern := range []string{
		"/usr/local/cuda/lib64", "/usr/local/cuda-*/lib64", "/usr/local/cuda*/targets/" + cmp.Or(target[arch], "x86_64-linux") + "/lib",
		"/usr/lib/" + tripletOf(arch) + "/nvidia", "/usr/lib/" + tripletOf(arch) + "/tegra", "/usr/local/nvidia/lib64", "/usr/lib/wsl/lib",
		"/usr/local/lib", "/opt/*/lib", "/opt/*/lib64", "/usr/local/[Tt]ensor[Rr][Tt]*/lib",
	} {
		s.extra = append(s.extra, s.glob(pattern)...)
	}
	for _, packages := range s.pythons() {
		s.extra = append(s.extra, nvidiaIn(packages)...)
	}
	return s
}

// at is where a path of the system lies.
func (s *system) at(path string) string { return s.root + path }

// glob gives what is there of a pattern, the last by name first: that is the newest
// of several versions.
func (s *system) glob(pattern string) []string {
	found, _ := filepath.Glob(escapeGlob(s.root) + pattern) // the patterns are well formed
	slices.Reverse(found)
	return found
}

// pythons gives the directories of packages of the Python environments: the one
// that is active, those that edgecam's instructions make, the system's, and those
// below /opt.
func (s *system) pythons() []string {
	var found []string
	add := func(pattern string) {
		for _, kind := range []string{"site-packages", "dist-packages"} {
			for _, dir := range s.glob(pattern + "/lib/python3*/" + kind) {
				if !slices.Contains(found, dir) {
					found = append(found, dir)
				}
			}
		}
	}
	for _, name := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if dir := s.getenv(name); filepath.IsAbs(dir) {
			add(escapeGlob(dir))
		}
	}
	for _, pattern := range []string{"/opt/edgecam/venv", "/opt/venv", "/usr/local", "/usr", "/opt/*", "/opt/*/venv", "/opt/*/.venv", "/opt/*/envs/*"} {
		add(pattern)
	}
	return found
}

// nvidiaIn gives the directories of NVIDIA's libraries in a Python environment:
// those of its wheels, and that of conda's packages.
func nvidiaIn(packages string) []string {
	found, _ := filepath.Glob(escapeGlob(packages) + "/nvidia/*/lib") // the pattern is well formed
	return append(found, filepath.Join(packages, "tensorrt_libs"), filepath.Join(packages, "../.."))
}

// file looks at a library, once.
func (s *system) file(path string) (*file, bool) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, false
	}
	if f, ok := s.known[real]; ok {
		return f, true
	}
	if info, err := os.Stat(real); err != nil || !info.Mode().IsRegular() {
		return nil, false
	}
	f := &file{real: real, version: fileVersion(real), cuda: cudaOfName(filepath.Base(path))}
	s.known[real] = f
	if err := checkFileFor(real, s.arch); err != nil {
		f.problem = err.Error()
		return f, true
	}
	f.needed = elfNeeded(real)
	by := s.ownerOf(real)
	f.version = cmp.Or(f.version, by.version)
	if sharedName(filepath.Base(path)) {
		f.cuda = cmp.Or(by.cuda, cudaOfNeeds(f.needed), s.cudaOfParts(real))
	}
	return f, true
}

// cudaOfParts asks the parts of a library that is split, as cuDNN is: they lie
// beside it and are linked with CUDA's.
func (s *system) cudaOfParts(real string) int {
	stem, rest, _ := strings.Cut(filepath.Base(real), ".so.")
	major, _, _ := strings.Cut(rest, ".")
	parts, _ := filepath.Glob(escapeGlob(filepath.Dir(real)) + "/" + stem + "_*.so." + major) // the pattern is well formed
	var needed []string
	for _, part := range parts {
		needed = append(needed, elfNeeded(part)...)
	}
	return cudaOfNeeds(needed)
}

// candidate is a place where a library lies.
type candidate struct {
	path     string
	file     *file
	byLoader bool
}

// candidates gives the places where a library lies, in the order in which the
// dynamic linker would find it, and behind them those that it does not know.
func (s *system) candidates(name string, near []string) []candidate {
	var list []candidate
	add := func(path string, byLoader bool) {
		f, ok := s.file(path)
		if ok && !slices.ContainsFunc(list, func(c candidate) bool { return c.file == f }) {
			list = append(list, candidate{path: path, file: f, byLoader: byLoader})
		}
	}
	for _, dir := range s.early {
		add(filepath.Join(dir, name), true)
	}
	if path := s.cache[name]; path != "" {
		add(s.at(path), true)
	}
	for _, dir := range s.late {
		add(filepath.Join(dir, name), true)
	}
	for _, dir := range slices.Concat(near, s.extra) {
		add(filepath.Join(dir, name), false)
	}
	return list
}

// choose picks one of candidates for a CUDA (0 = any): what can be loaded and fits,
// else what can be loaded, else the first. byLoader says that the dynamic linker
// comes to the same one.
func choose(list []candidate, cuda int) (c candidate, ok bool) {
	if len(list) == 0 {
		return candidate{}, false
	}
	fits := func(c candidate) bool { return cuda == 0 || c.file.cuda == 0 || c.file.cuda == cuda }
	good := func(c candidate) bool { return c.file.problem == "" }
	at := slices.IndexFunc(list, func(c candidate) bool { return good(c) && fits(c) })
	if at < 0 {
		at = max(slices.IndexFunc(list, good), 0)
	}
	c = list[at]
	c.byLoader = c.byLoader && at == 0
	return c, true
}

// fileVersion is what follows ".so." in a file's name, where it has at least
// two numbers.
func fileVersion(path string) string {
	_, version, _ := strings.Cut(filepath.Base(path), ".so.")
	if !strings.Contains(version, ".") {
		return ""
	}
	return version
}

var includeLine = regexp.MustCompile(`^include\s+(\S+)`)

// configured reads the dynamic linker's configuration.
func (s *system) configured(path string, depth int) []string {
	f, err := os.Open(path)
	if err != nil || depth > 4 {
		return nil
	}
	defer f.Close()
	var dirs []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line, _, _ := strings.Cut(lines.Text(), "#")
		line = strings.TrimSpace(line)
		if m := includeLine.FindStringSubmatch(line); m != nil {
			pattern := m[1]
			if !filepath.IsAbs(pattern) {
				pattern = filepath.Join(strings.TrimPrefix(filepath.Dir(path), s.root), pattern)
			}
			files, _ := filepath.Glob(escapeGlob(s.root) + pattern) // a bad pattern includes nothing, as for the linker
			for _, file := range files {
				dirs = append(dirs, s.configured(file, depth+1)...)
			}
		} else if filepath.IsAbs(line) {
			dirs = append(dirs, s.at(line))
		}
	}
	return dirs
}

func realFile(path string) (string, bool) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", false
	}
	info, err := os.Stat(real)
	return real, err == nil && info.Mode().IsRegular()
}
