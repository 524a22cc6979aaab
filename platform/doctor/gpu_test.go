package doctor_test

import (
	"errors"
	"regexp"
	"testing"

	"edgecam/platform"
	"edgecam/platform/doctor"
)

func TestExamineGPU(t *testing.T) {
	works := regexp.MustCompile(`^gpu (\d )?(engine|pictures|decoding)$`) // for the rest see TestGPULibraries
	cases := []struct {
		name string
		gpu  doctor.GPU
		want map[string]doctor.Check // by name; a check that is absent must not be there
	}{
		{"not tried", doctor.GPU{}, map[string]doctor.Check{}},
		{
			"serves",
			doctor.GPU{
				Tried: true, Libraries: build("1.31.1"),
				Cards: []doctor.Card{{
					Provider: "cuda", Precision: "fp16", ProbeMS: 2.04, Notes: []string{"TensorRT: libnvinfer.so.10 is missing; CUDA serves"},
					Strategy: "device", StrategyWhy: "pictures are decoded in the card's memory", DecoderEngines: 7,
				}},
			},
			map[string]doctor.Check{
				"gpu engine":   {Status: doctor.OK, Detail: "cuda, fp16, 2.0 ms a picture (TensorRT: libnvinfer.so.10 is missing; CUDA serves)"},
				"gpu pictures": {Status: doctor.OK, Detail: "device: pictures are decoded in the card's memory"},
				"gpu decoding": {Status: doctor.OK, Detail: "H.264 and H.265 in the card's memory, 7 engines"},
			},
		},
		{
			"decodes with engines that are not told",
			doctor.GPU{
				Tried: true, Libraries: build("1.31.1"),
				Cards: []doctor.Card{{Provider: "cuda", Precision: "fp16", Strategy: "device", StrategyWhy: "there"}},
			},
			map[string]doctor.Check{
				"gpu engine":   {Status: doctor.OK, Detail: "cuda, fp16, 0.0 ms a picture"},
				"gpu pictures": {Status: doctor.OK, Detail: "device: there"},
				"gpu decoding": {Status: doctor.OK, Detail: "H.264 and H.265 in the card's memory"},
			},
		},
		{
			"cannot serve",
			doctor.GPU{Tried: true, Err: errors.New("CUDA: libcudnn.so.9 is missing"), Libraries: build("1.31.1")},
			map[string]doctor.Check{
				"gpu engine": {
					Status: doctor.Warn, Detail: "CUDA: libcudnn.so.9 is missing",
					Fix: "install what is missing, or set gpu.mode to off; until then the processor does the work",
				},
			},
		},
		{
			"no library and no decoder",
			doctor.GPU{Tried: true, Cards: []doctor.Card{{Strategy: "mapped", StrategyWhy: "measured", NoDecoder: "no libnvcuvid", Provider: "cuda", Precision: "fp32"}}},
			map[string]doctor.Check{
				"gpu engine":   {Status: doctor.OK, Detail: "cuda, fp32, 0.0 ms a picture"},
				"gpu pictures": {Status: doctor.OK, Detail: "mapped: measured"},
				"gpu decoding": {
					Status: doctor.Warn, Detail: "no libnvcuvid",
					Fix: "in a container set NVIDIA_DRIVER_CAPABILITIES=compute,video,utility; else the processor decodes",
				},
			},
		},
		{
			"two of three serve",
			doctor.GPU{Tried: true, Libraries: build("1.31.1"), Cards: []doctor.Card{
				{Index: 0, Provider: "tensorrt", Precision: "fp16", ProbeMS: 0.5, Strategy: "device", StrategyWhy: "decoded there"},
				{Index: 1, Err: errors.New("CUDA: too old")},
				{Index: 3, Provider: "cuda", Precision: "fp32", ProbeMS: 1, Strategy: "mapped", StrategyWhy: "measured", NoDecoder: "it has none"},
			}},
			map[string]doctor.Check{
				"gpu 0 engine":   {Status: doctor.OK, Detail: "tensorrt, fp16, 0.5 ms a picture"},
				"gpu 0 pictures": {Status: doctor.OK, Detail: "device: decoded there"},
				"gpu 0 decoding": {Status: doctor.OK, Detail: "H.264 and H.265 in the card's memory"},
				"gpu 1 engine":   {Status: doctor.Warn, Detail: "CUDA: too old", Fix: "the other cards do its work; to leave it out, name those in CUDA_VISIBLE_DEVICES of the service"},
				"gpu 3 engine":   {Status: doctor.OK, Detail: "cuda, fp32, 1.0 ms a picture"},
				"gpu 3 pictures": {Status: doctor.OK, Detail: "mapped: measured"},
				"gpu 3 decoding": {
					Status: doctor.Warn, Detail: "it has none",
					Fix: "in a container set NVIDIA_DRIVER_CAPABILITIES=compute,video,utility; else the processor decodes",
				},
			},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := doctor.Examine(platform.Platform{}, doctor.Probes{GPU: c.gpu})
			got := map[string]doctor.Check{}
			for _, check := range r.Checks {
				if works.MatchString(check.Name) {
					got[check.Name] = check
				}
			}
			for name, want := range c.want {
				want.Name = name
				if got[name] != want {
					t.Errorf("got  %+v\nwant %+v", got[name], want)
				}
			}
			if len(got) != len(c.want) {
				t.Errorf("%d checks of the card, want %d: %+v", len(got), len(c.want), got)
			}
		})
	}
}
