package doctor_test

import (
	"debug/elf"
	"fmt"
	"maps"
	"strings"
	"testing"

	"edgecam/internal/testkit"
	"edgecam/platform"
	"edgecam/platform/doctor"
	"edgecam/platform/onnxruntime"
)

// tree is the files of a made-up box.
type tree map[string]any

// with gives t with more files.
func (t tree) with(more ...tree) tree {
	all := maps.Clone(t)
	for _, m := range more {
		maps.Copy(all, m)
	}
	return all
}

// without gives t without some.
func (t tree) without(paths ...string) tree {
	all := maps.Clone(t)
	for _, p := range paths {
		delete(all, p)
	}
	return all
}

// debian is a fresh Debian 12.
func debian() tree {
	return tree{
		"/etc/os-release": "NAME=\"Debian GNU/Linux\"\nID=debian\nVERSION_ID=\"12\"\n", "/usr/bin/python3": "->python3.11", "/usr/bin/python3.11": "",
		"/usr/lib/edgecam/libonnxruntime.so.1": testkit.ELF{}, // edgecam's own, which is not looked for here
	}
}

const venv = "/opt/edgecam/venv/lib/python3.11/site-packages"

// ort is a GPU build of a release in a directory, for a CUDA and a cuDNN, with a
// provider for a TensorRT.
func ort(dir, release string, cuda, cudnn, tensorRT int) tree {
	needed := []string{
		fmt.Sprintf("libcublasLt.so.%d", cuda), fmt.Sprintf("libcublas.so.%d", cuda), "libcurand.so.10",
		map[int]string{11: "libcudart.so.11.0", 12: "libcudart.so.12", 13: "libcudart.so.13"}[cuda], "libc.so.6",
	}
	if cuda < 13 {
		needed = append(needed, fmt.Sprintf("libcudnn.so.%d", cudnn), fmt.Sprintf("libcufft.so.%d", cuda-1))
	}
	return tree{
		dir + "/libonnxruntime.so." + release:                             testkit.ELF{},
		dir + "/libonnxruntime_providers_cuda.so":                         testkit.ELF{Needed: needed, Text: "Run\x00" + release + "\x00Failed"},
		dir + "/libonnxruntime_providers_tensorrt.so":                     testkit.ELF{Needed: []string{needed[1], fmt.Sprintf("libnvinfer.so.%d", tensorRT)}},
		dir + "/../../onnxruntime_gpu-" + release + ".dist-info/METADATA": "",
	}
}

// wheels are NVIDIA's in a Python environment, for CUDA 12 or 13.
func wheels(packages string, cuda int) tree {
	t := tree{}
	put := func(wheel, dir string, names ...string) {
		t[packages+"/"+wheel+".dist-info/METADATA"] = ""
		for _, name := range names {
			t[packages+"/nvidia/"+dir+"/lib/"+name] = testkit.ELF{Name: name}
		}
	}
	if cuda == 12 {
		put("nvidia_cublas_cu12-12.9.1.4", "cublas", "libcublas.so.12", "libcublasLt.so.12")
		put("nvidia_cuda_runtime_cu12-12.9.79", "cuda_runtime", "libcudart.so.12")
		put("nvidia_cufft_cu12-11.4.1.4", "cufft", "libcufft.so.11")
		put("nvidia_curand_cu12-10.3.10.19", "curand", "libcurand.so.10")
	} else {
		put("nvidia_cublas-13.1.0.3", "cu13", "libcublas.so.13", "libcublasLt.so.13", "libcudart.so.13", "libcufft.so.12", "libcurand.so.10")
	}
	put(fmt.Sprintf("nvidia_cudnn_cu%d-9.14.0.64", cuda), "cudnn", "libcudnn.so.9")
	return t
}

// tensorRT is its wheel.
func tensorRT(packages string, cuda int, version string) tree {
	major, _, _ := strings.Cut(version, ".")
	return tree{
		fmt.Sprintf("%s/tensorrt_cu%d_libs-%s.dist-info/METADATA", packages, cuda, version): "",
		packages + "/tensorrt_libs/libnvinfer.so." + major:                                  testkit.ELF{},
		packages + "/tensorrt_libs/libnvinfer_builder_resource.so." + version:               testkit.ELF{Name: "libnvinfer_builder_resource.so." + version},
	}
}

// aptRepository is NVIDIA's, with some packages of it installed.
func aptRepository(packages ...string) tree {
	status := "Package: cuda-keyring\nStatus: install ok installed\nVersion: 1.1-1\n\n"
	for _, p := range packages {
		name, version, _ := strings.Cut(p, "=")
		status += "Package: " + name + "\nStatus: install ok installed\nVersion: " + version + "\n\n"
	}
	return tree{"/var/lib/dpkg/status": status}
}

// pc is a machine with one card.
func pc(driver, cuda, capability string) platform.Platform {
	return platform.Platform{
		Kind: platform.KindDiscrete, Driver: driver, CUDA: cuda,
		GPUs: []platform.GPU{{Name: "card", ComputeCapability: capability}},
	}
}

// Every combination of what may be found on a PC: the verdict, and the steps for this
// box.
func TestGPULibraries(t *testing.T) {
	const system = "/usr/lib/x86_64-linux-gnu"
	modern := pc("580.95.05", "13.0", "8.9")
	capi := venv + "/onnxruntime/capi"
	good13 := debian().with(ort(capi, "1.31.1", 13, 9, 10), wheels(venv, 13))
	good12 := debian().with(ort(capi, "1.26.0", 12, 9, 10), wheels(venv, 12))
	python := func(version string) tree {
		return tree{"/usr/bin/python3": "->python" + version, "/usr/bin/python" + version: ""}
	}
	for _, c := range []struct {
		name    string
		files   tree
		box     platform.Platform
		library string
		demand  string
		arch    string
	}{
		{name: "fresh-13", files: debian(), box: modern},
		{name: "fresh-12", files: debian(), box: pc("550.54.15", "12.4", "8.6")},
		{name: "fresh-old-driver", files: debian(), box: pc("470.256.02", "11.4", "8.6")},
		{name: "fresh-old-card", files: debian(), box: pc("580.95.05", "13.0", "6.1")},
		{name: "fresh-too-old-card", files: debian(), box: pc("470.256.02", "12.2", "3.5")},
		{name: "fresh-python-3.10", files: debian().with(python("3.10")), box: modern},
		{name: "fresh-python-3.9", files: debian().with(python("3.9")), box: modern},
		{name: "fresh-no-python", files: debian().without("/usr/bin/python3", "/usr/bin/python3.11"), box: modern},
		{name: "fresh-arm64", files: debian(), box: modern, arch: "arm64"},
		{name: "fresh-demanded", files: debian(), box: modern, demand: "gpu.mode is require"},
		{name: "plain-only", files: debian().with(tree{"/usr/local/lib/libonnxruntime.so.1.30.0": testkit.ELF{}}), box: modern},
		{name: "fits-13", files: good13, box: modern},
		{name: "fits-13-tensorrt", files: good13.with(tensorRT(venv, 13, "10.14.1.48")), box: modern},
		{name: "fits-12-on-13", files: good12, box: modern},
		{name: "driver-too-old", files: good13, box: pc("550.54.15", "12.4", "8.6")},
		{name: "card-too-old", files: good13, box: pc("580.95.05", "13.0", "7.0")},
		{name: "cudnn-too-new-for-card", files: good12, box: pc("580.95.05", "13.0", "6.1")},
		{name: "another-fits", files: good12.with(ort("/opt/onnxruntime/lib", "1.31.1", 13, 9, 10)), box: pc("550.54.15", "12.4", "8.6")},
		{name: "cudnn-missing", files: good12.without(venv + "/nvidia/cudnn/lib/libcudnn.so.9"), box: modern},
		{name: "cudnn-8", files: good12.without(venv+"/nvidia/cudnn/lib/libcudnn.so.9").with(tree{
			system + "/libcudnn.so.8": "->libcudnn.so.8.9.7", system + "/libcudnn.so.8.9.7": testkit.ELF{},
		}, aptRepository("libcudnn8=8.9.7.29-1+cuda12.2")), box: modern},
		{name: "cudnn-of-other-cuda", files: good13.without(venv+"/nvidia/cudnn/lib/libcudnn.so.9").with(tree{
			system + "/libcudnn.so.9": "->libcudnn.so.9.14.0", system + "/libcudnn.so.9.14.0": testkit.ELF{},
		}, aptRepository("libcudnn9-cuda-12=9.14.0.64-1")), box: modern},
		{name: "cudnn-of-other-cuda-by-its-parts", files: good13.without(venv + "/nvidia/cudnn/lib/libcudnn.so.9").with(tree{
			"/opt/cudnn/lib/libcudnn.so.9":     testkit.ELF{},
			"/opt/cudnn/lib/libcudnn_ops.so.9": testkit.ELF{Needed: []string{"libcublasLt.so.12"}},
		}), box: modern},
		{name: "core-too-old", files: debian().with(ort("/usr/local/lib", "1.16.3", 12, 8, 8)), box: modern},
		{name: "needs-cudnn-8", files: debian().with(ort("/usr/local/lib", "1.18.1", 11, 8, 8)), box: modern},
		{name: "nothing-but-the-build", files: debian().with(ort("/usr/local/lib", "1.26.0", 12, 9, 10), aptRepository()), box: pc("550.54.15", "12.4", "8.6")},
		{name: "tensorrt-8", files: good12.with(tree{system + "/libnvinfer.so.8": "->libnvinfer.so.8.6.1", system + "/libnvinfer.so.8.6.1": testkit.ELF{}}), box: modern},
		{name: "tensorrt-11", files: good13.with(tensorRT(venv, 13, "11.4.0.106")), box: modern},
		{name: "tensorrt-of-other-cuda", files: good13.with(tensorRT(venv, 12, "10.14.1.48")), box: modern},
		{name: "tensorrt-without-builder", files: good13.with(tensorRT(venv, 13, "10.14.1.48")).without(venv + "/tensorrt_libs/libnvinfer_builder_resource.so.10.14.1.48"), box: modern},
		{name: "provider-newer", files: good13.with(tree{capi + "/libonnxruntime_providers_cuda.so": testkit.ELF{
			Needed: []string{"libcublas.so.13", "libcudart.so.13"}, Text: "\x001.32.0\x00",
		}}), box: modern},
		{name: "provider-wrong-arch", files: good13.with(tree{capi + "/libonnxruntime_providers_cuda.so": testkit.ELF{Machine: elf.EM_AARCH64}}), box: modern},
		{name: "provider-truncated", files: good13.with(tree{capi + "/libonnxruntime_providers_cuda.so": testkit.ELF{Short: 1 << 20}}), box: modern},
		{name: "library-truncated", files: good13.with(tree{venv + "/nvidia/cu13/lib/libcublasLt.so.13": testkit.ELF{Short: 4096}}), box: modern},
		{name: "named-directory", files: good13.with(ort("/srv/ort/lib", "1.31.1", 13, 9, 10)), box: modern, library: "/srv/ort"},
		{name: "named-environment", files: good12.with(ort("/srv/py/lib/python3.12/site-packages/onnxruntime/capi", "1.26.0", 12, 9, 10)), box: modern, library: "/srv/py"},
		{name: "named-file-is-plain", files: good13.with(tree{"/srv/libonnxruntime.so": testkit.ELF{}}), box: modern, library: "/srv/libonnxruntime.so"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			testkit.Tree(t, root, c.files)
			arch := c.arch
			if arch == "" {
				arch = "amd64"
			}
			found := onnxruntime.LookAround(onnxruntime.SurveyOptions{
				Root: root, Arch: arch, Library: c.library, Getenv: func(string) string { return "" },
			})
			r := doctor.Examine(c.box, doctor.Probes{GPU: doctor.GPU{Tried: true, Libraries: found, Demanded: c.demand}})
			var text strings.Builder
			for _, check := range r.Checks {
				if check.Name != "gpu runtime" && check.Name != "gpu libraries" && check.Name != "gpu tensorrt" {
					continue
				}
				fmt.Fprintf(&text, "%s  %s: %s\n", check.Status, check.Name, check.Detail)
				if check.Fix != "" {
					fmt.Fprintf(&text, "  Try: %s\n", check.Fix)
				}
				if (check.Status == doctor.OK) != (check.Fix == "") {
					t.Errorf("check %s is %s with the fix %q", check.Name, check.Status, check.Fix)
				}
			}
			if strings.Contains(text.String(), root) {
				t.Errorf("the root of the tree shows:\n%s", text.String())
			}
			testkit.Golden(t, "testdata/libraries/"+c.name+".golden.txt", []byte(text.String()), *update)
		})
	}
}
