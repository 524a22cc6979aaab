package platform

import (
	"io/fs"
	"regexp"
	"strings"
)

// release matches "# R36 (release), REVISION: 4.3, GCID: …".
var release = regexp.MustCompile(`R(\d+)\s*\(release\),\s*REVISION:\s*([\d.]+)`)

// coreVersion matches the version of the package that holds L4T's core:
// "36.4.3-20250107174145".
var coreVersion = regexp.MustCompile(`^(\d+\.\d+(?:\.\d+)?)-`)

// l4t reads which release of Jetson Linux runs: "36.4.3". Images that were put
// together without NVIDIA's own file still have its package.
func (t tree) l4t() string {
	if m := release.FindStringSubmatch(t.text("etc/nv_tegra_release")); m != nil {
		return m[1] + "." + m[2]
	}
	if m := coreVersion.FindStringSubmatch(t.packages()["nvidia-l4t-core"]); m != nil {
		return m[1]
	}
	return ""
}

// jetPack names the JetPack of an L4T release. NVIDIA publishes the pairs; a
// point release that is not listed is told by its family, e.g. "6.x".
func jetPack(l4t string) string {
	for _, p := range [...]struct{ l4t, jetpack string }{
		{"39.2.1", "7.2.1"},
		{"39.2.0", "7.2"},
		{"38.4", "7.1"},
		{"38.2", "7.0"},
		{"36.5.2", "6.2.3"},
		{"36.5.0", "6.2.2"},
		{"36.4.7", "6.2.1"},
		{"36.4.4", "6.2.1"},
		{"36.4.3", "6.2"},
		{"36.4.0", "6.1"},
		{"36.3", "6.0"},
		{"36.2", "6.0 DP"},
		{"35.6.1", "5.1.5"},
		{"35.6.0", "5.1.4"},
		{"35.6", "5.1.x"},
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
		if l4t == p.l4t || l4t+".0" == p.l4t || strings.HasPrefix(l4t, p.l4t+".") {
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

// ships are the libraries that come with releases of JetPack, the newest first.
var ships = [...]struct { //nolint:gochecknoglobals // constant table
	jetpack string // and what begins with it
	stack   JetsonStack
}{
	{"7.2", JetsonStack{CUDA: "13.2", CuDNN: "9", TensorRT: "10"}},
	{"7", JetsonStack{CUDA: "13.0", CuDNN: "9", TensorRT: "10"}},
	{"6.0", JetsonStack{CUDA: "12.2", CuDNN: "8", TensorRT: "8"}},
	{"6", JetsonStack{CUDA: "12.6", CuDNN: "9", TensorRT: "10"}},
	{"5", JetsonStack{CUDA: "11.4", CuDNN: "8", TensorRT: "8"}},
}

// Ships gives the versions that the board's JetPack brings: of CUDA the first
// two numbers, of the others the first. It is empty where the JetPack is unknown.
func (j Jetson) Ships() JetsonStack {
	for _, s := range ships {
		if strings.HasPrefix(j.JetPack, s.jetpack) {
			return s.stack
		}
	}
	return JetsonStack{}
}

const triplet = "usr/lib/aarch64-linux-gnu/"

// driverDirs are where JetPack puts its driver's libraries: from 7.2 on in a set
// for each kind of GPU driver, both of which are installed; 6 and 7 have nvidia,
// 5 has tegra.
func driverDirs(soc string) []string {
	set := "openrm/"
	if soc == "tegra234" {
		set = "nvgpu/"
	}
	return []string{"opt/nvidia/l4t-gpu-libs/" + set, triplet + "nvidia/", triplet + "tegra/"}
}

// JetsonLibcuda lists the files of libcuda that JetPack installed.
func JetsonLibcuda(root fs.FS) []string {
	t := tree{root}
	soc, _ := t.soc()
	return t.libcuda(soc)
}

// libcuda leaves out empty files: those are stubs that NVIDIA's container
// runtime did not cover with the files of its host.
func (t tree) libcuda(soc string) (files []string) {
	for _, dir := range driverDirs(soc) {
		for _, name := range []string{"libcuda.so.1", "libcuda.so.1.1"} {
			if t.filled(dir + name) {
				files = append(files, "/"+dir+name)
				break
			}
		}
	}
	return files
}

// DesktopLibcuda is libcuda of a driver for PCs where the dynamic linker of a
// Jetson looks before it finds JetPack's, "" = none. It knows no GPU of a Jetson.
func DesktopLibcuda(root fs.FS) string {
	t := tree{root}
	if soc, _ := t.soc(); soc == "" {
		return ""
	}
	return t.desktopLibcuda()
}

// desktopLibrary matches libcuda of a driver for PCs, which is named for the
// driver's version; a Jetson's is libcuda.so.1.1.
var desktopLibrary = regexp.MustCompile(`^libcuda\.so\.\d{3}\.`)

func (t tree) desktopLibcuda() string {
	for _, name := range t.list(strings.TrimSuffix(triplet, "/")) {
		if desktopLibrary.MatchString(name) {
			return "/" + triplet + name
		}
	}
	return ""
}

// stack finds NVIDIA's libraries by their files' names.
func (t tree) stack(soc string) JetsonStack {
	var s JetsonStack
	for _, dir := range []string{"usr/local/cuda/targets/aarch64-linux/lib/", "usr/local/cuda/lib64/", triplet} {
		if s.CUDA == "" {
			s.CUDA = t.newest(dir, "libcudart.so.")
		}
	}
	s.CuDNN = t.newest(triplet, "libcudnn.so.")
	s.TensorRT = t.newest(triplet, "libnvinfer.so.")
	if files := t.libcuda(soc); len(files) > 0 {
		s.Driver = files[0]
	}
	for _, dir := range driverDirs(soc) {
		if s.Decoder == "" && t.filled(dir+"libnvv4l2.so") {
			s.Decoder = "/" + dir + "libnvv4l2.so"
		}
	}
	s.Shadow = t.desktopLibcuda()
	return s
}

// filled says that there is a file with something in it.
func (t tree) filled(path string) bool {
	info, err := t.stat(path)
	return err == nil && info.Size() > 0
}

// newest is the highest version among the files of a directory that begin with
// prefix; "" = none, or only a name without a full version.
func (t tree) newest(dir, prefix string) string {
	best := ""
	for _, name := range t.list(strings.TrimSuffix(dir, "/")) {
		v, ok := strings.CutPrefix(name, prefix)
		if ok && strings.Contains(v, ".") && OlderVersion(best, v) {
			best = v
		}
	}
	return best
}
