package doctor

import (
	"strings"
	"testing"

	"edgecam/platform"
	"edgecam/platform/onnxruntime"
)

// What is said to a PC is no help on a board: each kind of lack has its own command.
func TestStepsOfBoards(t *testing.T) {
	build := &onnxruntime.Build{CUDA: 12}
	fresh := func(b box) string { return b.fresh() }
	tensorRT := func(b box) string { return b.withTensorRT(build) }
	lacking := func(names ...string) func(b box) string {
		var bad []onnxruntime.Component
		for _, n := range names {
			bad = append(bad, onnxruntime.Component{Name: n})
		}
		return func(b box) string { return b.complete(build, bad) }
	}
	for _, c := range []struct {
		jetpack, cuda string
		step          func(box) string
		want          string
	}{
		{"6.2", "12.6", fresh, "jp6/cu126 onnxruntime-gpu"},
		{"6.0", "12.2", fresh, "update to JetPack 6.2"},
		{"5.1.2", "11.4", fresh, "build ONNX Runtime 1.18 from source"},
		{"7.0", "13.0", fresh, "sbsa/cu130 onnxruntime-gpu"},
		{"", "13.2", fresh, "sbsa/cu130 onnxruntime-gpu"},
		{"", "12.2", fresh, "update to JetPack 6.2"},
		{"6.2", "12.6", lacking("libcudnn.so.9"), "install libcudnn9-cuda-12;"},
		{"7.2", "13.2", lacking("libcudnn.so.9"), "install libcudnn9-cuda-13;"},
		{"5.1.2", "11.4", lacking("libcudnn.so.8"), "install libcudnn8;"},
		{"6.2", "12.6", lacking("libcublas.so.12"), "install nvidia-jetpack;"},
		{"6.2", "12.6", lacking("libcublas.so.12", "libcudnn.so.9"), "install nvidia-jetpack;"},
		{"6.2", "12.6", lacking("libcuda.so.1"), "install nvidia-jetpack;"},
		{"6.2", "12.6", tensorRT, "install libnvinfer10 libnvinfer-plugin10 libnvonnxparsers10, or"},
		{"5.1.2", "11.4", tensorRT, "install libnvinfer8 libnvinfer-plugin8 libnvonnxparsers8, or"},
	} {
		b := box{Platform: platform.Platform{CUDA: c.cuda, Jetson: &platform.Jetson{Family: "Orin", JetPack: c.jetpack}}}
		if got := c.step(b); !strings.Contains(got, c.want) {
			t.Errorf("JetPack %q, CUDA %s: %q, want %q in it", c.jetpack, c.cuda, got, c.want)
		}
	}
	unknown := box{Platform: platform.Platform{Kind: platform.KindJetson}}
	if got, want := unknown.fresh(), "install a GPU build of ONNX Runtime 1.19 or newer for the CUDA of this board"; !strings.HasPrefix(got, want) {
		t.Errorf("a board that only its GPU tells: %q, want %q", got, want)
	}
}

// Libraries of another release than the board's JetPack are told.
func TestJetPackOfAnotherRelease(t *testing.T) {
	j := platform.Jetson{JetPack: "6.2", Stack: platform.JetsonStack{CUDA: "12.8.90", CuDNN: "8.9.4", TensorRT: "10.3.0"}}
	c := jetpack(j, false)
	if want := "cuDNN 8.9.4 is not that of JetPack 6.2, which is 9; CUDA 12.8.90, TensorRT 10.3.0"; c.Status != Warn || c.Detail != want || c.Fix == "" {
		t.Errorf("%+v, want %q", c, want)
	}
	j.Stack.CuDNN = "9.3.0"
	if c := jetpack(j, false); c.Status != OK || c.Fix != "" {
		t.Errorf("a newer CUDA of the same line: %+v", c)
	}
}

// NVIDIA's decoders need the library through which they reach the hardware.
func TestBoardDecodersWithoutLibrary(t *testing.T) {
	probes := Probes{FFmpeg: FFmpeg{Decoders: []string{"h264", "h264_nvv4l2dec"}}}
	c := boardDecoders(Check{Name: "ffmpeg", Status: OK}, platform.Jetson{}, probes)
	if c.Status != Warn || !strings.Contains(c.Fix, "nvidia-l4t-multimedia") {
		t.Errorf("%+v", c)
	}
}
