package cuda

import (
	"reflect"
	"testing"
	"testing/fstest"
)

// The loader's own choice comes first, but for a Jetson with a PC's libcuda.
func TestCandidates(t *testing.T) {
	const (
		lib  = "usr/lib/aarch64-linux-gnu/"
		six  = lib + "nvidia/libcuda.so.1"
		five = lib + "tegra/libcuda.so.1"
		pc   = lib + "libcuda.so.535.309.01"
		orin = "opt/nvidia/l4t-gpu-libs/nvgpu/libcuda.so.1.1"
		thor = "opt/nvidia/l4t-gpu-libs/openrm/libcuda.so.1.1"
		wsl  = "/usr/lib/wsl/lib/libcuda.so.1"
	)
	for _, c := range []struct {
		name, chip string
		files      []string
		searched   string // LD_LIBRARY_PATH
		want       []string
	}{
		{"a PC", "", nil, "", []string{"libcuda.so.1", wsl}},
		{"an ARM server with a card", "", []string{pc}, "", []string{"libcuda.so.1", wsl}},
		{"JetPack 5", "tegra194", []string{five}, "", []string{"libcuda.so.1", "/" + five, wsl}},
		{"JetPack 6", "tegra234", []string{six}, "", []string{"libcuda.so.1", "/" + six, wsl}},
		{"JetPack 7.2 on Orin", "tegra234", []string{orin, thor}, "", []string{"libcuda.so.1", "/" + orin, wsl}},
		{"JetPack 7.2 on Thor", "tegra264", []string{orin, thor}, "", []string{"libcuda.so.1", "/" + thor, wsl}},
		{"a PC's library beside it", "tegra234", []string{six, pc}, "", []string{"/" + six, "libcuda.so.1", wsl}},
		{"the operator says where to look", "tegra234", []string{six, pc}, "/usr/local/cuda/compat", []string{"libcuda.so.1", "/" + six, wsl}},
	} {
		root := fstest.MapFS{}
		if c.chip != "" {
			root["proc/device-tree/compatible"] = &fstest.MapFile{Data: []byte("nvidia,board\x00nvidia," + c.chip + "\x00")}
		}
		for _, f := range c.files {
			root[f] = &fstest.MapFile{Data: []byte("ELF")}
		}
		if got := candidates(root, c.searched); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
