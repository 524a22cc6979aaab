package doctor

import (
	"strings"
	"testing"

	"edgecam/platform"
)

// What is said of a PC is no help on a board: each kind of lack has its own command.
func TestForBoard(t *testing.T) {
	for _, c := range []struct {
		jetpack, cuda, check, detail string
		want                         string
	}{
		{"6.2", "12.6", "gpu runtime", "no GPU build of ONNX Runtime found", "jp6/cu126 onnxruntime-gpu"},
		{"6.0", "12.2", "gpu runtime", "no GPU build of ONNX Runtime found", "update to JetPack 6.2"},
		{"5.1.2", "11.4", "gpu runtime", "built for CUDA 12", "build ONNX Runtime 1.18 from source"},
		{"7.0", "13.0", "gpu libraries", "no GPU build of ONNX Runtime found", "sbsa/cu130 onnxruntime-gpu"},
		{"", "13.2", "gpu runtime", "no GPU build", "sbsa/cu130 onnxruntime-gpu"},
		{"", "12.2", "gpu runtime", "no GPU build", "update to JetPack 6.2"},
		{"6.2", "12.6", "gpu libraries", "missing libcudnn.so.9 (needed by libonnxruntime_providers_cuda.so)", "install libcudnn9-cuda-12;"},
		{"7.2", "13.2", "gpu libraries", "missing libcudnn.so.9", "install libcudnn9-cuda-13;"},
		{"5.1.2", "11.4", "gpu libraries", "missing libcudnn.so.8", "install libcudnn8;"},
		{"6.2", "12.6", "gpu libraries", "missing libcublas.so.12", "install nvidia-jetpack;"},
		{"6.2", "12.6", "gpu tensorrt", "libnvinfer.so.10 is missing", "install libnvinfer10 libnvinfer-plugin10 libnvonnxparsers10, or"},
		{"5.1.2", "11.4", "gpu tensorrt", "libnvinfer.so.8 is missing", "install libnvinfer8 libnvinfer-plugin8 libnvonnxparsers8, or"},
	} {
		p := platform.Platform{CUDA: c.cuda, Jetson: &platform.Jetson{Family: "Orin", JetPack: c.jetpack}}
		checks := []Check{{Name: c.check, Status: Warn, Detail: c.detail, Fix: "of a PC"}, {Name: c.check, Status: OK, Detail: c.detail}}
		forBoard(checks, p, Probes{})
		if !strings.Contains(checks[0].Fix, c.want) {
			t.Errorf("JetPack %q, CUDA %s, %s: %q, want %q in it", c.jetpack, c.cuda, c.check, checks[0].Fix, c.want)
		}
		if checks[1].Fix != "" {
			t.Errorf("%s is ok and was given the fix %q", c.check, checks[1].Fix)
		}
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
