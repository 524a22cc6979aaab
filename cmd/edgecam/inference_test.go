package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"edgecam/internal/config"
	"edgecam/internal/testkit"
	"edgecam/platform"
	"edgecam/platform/cuda"
)

// exitCode is what the program would end with.
func exitCode(err error) int {
	root := newRoot()
	root.RunE = func(*cobra.Command, []string) error { return err }
	return execute(context.Background(), root, nil, &bytes.Buffer{})
}

// TestOpenInference goes through what the configuration may say and what the
// machine may have.
func TestOpenInference(t *testing.T) {
	const (
		present = "present"
		absent  = "absent"
		failing = "failing" // it is there, and ONNX Runtime cannot use it
	)
	const (
		noCard  = "there is no card here"
		refusal = "CUDA: libcublasLt.so.13 is missing, which libonnxruntime_providers_cuda.so needs"
		both    = ": one rules out the other"
	)
	cases := []struct {
		mode, provider, card string
		serves               string // provider, "" = the start ends
		code                 int
		err                  string // beginning of the error
		note                 string // why not the card
	}{
		{"auto", "auto", present, "cuda", exitOK, "", ""},
		{"auto", "auto", absent, "cpu", exitOK, "", ""},
		{"auto", "auto", failing, "cpu", exitOK, "", "the GPU is not used: " + refusal},
		{"auto", "cpu", present, "cpu", exitOK, "", ""},
		{"auto", "cpu", absent, "cpu", exitOK, "", ""},
		{"auto", "cpu", failing, "cpu", exitOK, "", ""},
		{"auto", "cuda", present, "cuda", exitOK, "", ""},
		{"auto", "cuda", absent, "", exitFailed, "inference.provider is cuda, and the GPU cannot serve: " + noCard, ""},
		{"auto", "cuda", failing, "", exitFailed, "inference.provider is cuda, and the GPU cannot serve: " + refusal, ""},
		{"auto", "tensorrt", present, "cuda", exitOK, "", ""}, // serves at once, TensorRT may follow
		{"auto", "tensorrt", absent, "", exitFailed, "inference.provider is tensorrt, and the GPU cannot serve: " + noCard, ""},
		{"auto", "tensorrt", failing, "", exitFailed, "inference.provider is tensorrt, and the GPU cannot serve: " + refusal, ""},
		{"require", "auto", present, "cuda", exitOK, "", ""},
		{"require", "auto", absent, "", exitFailed, "gpu.mode is require, and the GPU cannot serve: " + noCard, ""},
		{"require", "auto", failing, "", exitFailed, "gpu.mode is require, and the GPU cannot serve: " + refusal, ""},
		{"require", "cpu", present, "", exitConfig, "gpu.mode is require and inference.provider is cpu" + both, ""},
		{"require", "cpu", absent, "", exitConfig, "gpu.mode is require and inference.provider is cpu" + both, ""},
		{"require", "cuda", present, "cuda", exitOK, "", ""},
		{"require", "cuda", absent, "", exitFailed, "inference.provider is cuda, and the GPU cannot serve: " + noCard, ""},
		{"require", "tensorrt", failing, "", exitFailed, "inference.provider is tensorrt, and the GPU cannot serve: " + refusal, ""},
		{"off", "auto", present, "cpu", exitOK, "", ""},
		{"off", "auto", failing, "cpu", exitOK, "", ""},
		{"off", "cpu", present, "cpu", exitOK, "", ""},
		{"off", "cuda", present, "", exitConfig, "gpu.mode is off and inference.provider is cuda" + both, ""},
		{"off", "tensorrt", absent, "", exitConfig, "gpu.mode is off and inference.provider is tensorrt" + both, ""},
	}
	for _, c := range cases {
		t.Run(c.mode+" "+c.provider+" "+c.card, func(t *testing.T) {
			card := testkit.NewCard(t)
			cfg := config.Default()
			cfg.GPU.Mode, cfg.Inference.Provider, cfg.Inference.Library, cfg.Inference.MaxBatch = c.mode, c.provider, card.ONNXRuntime, 1
			box := platform.Platform{Why: noCard}
			if c.card != absent {
				box.GPUs = []platform.GPU{{Name: "stand-in", CanMapHost: true, HostRegisterSupported: true, NUMANode: -1}}
			}
			if c.card == failing {
				card.FailORT("update cuda", "Failed to load library /opt/ort/libonnxruntime_providers_cuda.so with error: libcublasLt.so.13: cannot open shared object file: No such file or directory")
			}
			var log bytes.Buffer
			in, err := openInference(t.Context(), cfg, box, cuda.New(cuda.Options{Library: card.Driver}), nil, kept{}, slog.New(slog.NewTextHandler(&log, nil)))
			if got := exitCode(err); got != c.code {
				t.Errorf("exit code %d, want %d", got, c.code)
			}
			if err != nil || c.err != "" {
				if err == nil || c.err == "" || !strings.HasPrefix(err.Error(), c.err) {
					t.Errorf("error %v, want %s", err, c.err)
				}
				if c.card == failing && hintOf(err) == "" {
					t.Error("no hint")
				}
				if in != nil {
					t.Error("something is open")
				}
				leftNothing(t, card)
				return
			}
			if got := serving(in); got != c.serves {
				t.Errorf("%s serves, want %s", got, c.serves)
			}
			if (c.note == "") != (in.note == "") || !strings.HasPrefix(in.note, c.note) {
				t.Errorf("note %q, want %q", in.note, c.note)
			}
			in.close(slog.New(slog.DiscardHandler)) // what TensorRT is prepared by logs until then
			leftNothing(t, card)
			if warned := strings.Count(log.String(), "the GPU is not used"); warned != min(len(c.note), 1) {
				t.Errorf("%d warnings:\n%s", warned, log.String())
			}
		})
	}
}

func serving(in *inference) string {
	switch {
	case len(in.gpus) > 0 && in.cpu == nil:
		return in.gpus[0].Info().Provider
	case in.cpu != nil && len(in.gpus) == 0:
		return in.cpu.Info().Provider
	}
	return "nothing, or both"
}

func leftNothing(t *testing.T, card *testkit.Card) {
	t.Helper()
	if n := card.Live(); n != 0 {
		t.Errorf("%d objects of the driver are left", n)
	}
}

// What the configuration asks of a card that it cannot do is a mistake in the
// configuration, whatever the mode; to be told to stop is none.
func TestOpenInferenceRefuses(t *testing.T) {
	card := testkit.NewCard(t)
	driver := cuda.New(cuda.Options{Library: card.Driver})
	box := platform.Platform{GPUs: []platform.GPU{{Name: "stand-in", NUMANode: -1}}}
	for _, mode := range []string{"auto", "require"} {
		cfg := config.Default()
		cfg.GPU.Mode, cfg.GPU.Memory = mode, "mapped"
		_, err := openInference(t.Context(), cfg, box, driver, nil, kept{}, slog.New(slog.DiscardHandler))
		const want = `gpu.memory: use gpu memory strategy "mapped" on stand-in: the device cannot map host memory: pictures are copied by the driver`
		if err == nil || err.Error() != want || exitCode(err) != exitConfig || hintOf(err) == "" {
			t.Errorf("%s: error %v, code %d, hint %q", mode, err, exitCode(err), hintOf(err))
		}
		cfg.GPU.Memory = "auto"
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := openInference(ctx, cfg, box, driver, nil, kept{}, slog.New(slog.DiscardHandler)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, told to stop: %v", mode, err)
		}
	}
	leftNothing(t, card)
}

// A precision that only cards have does not keep the processor from taking over.
func TestOpenInferencePrecisionOfTheCard(t *testing.T) {
	card := testkit.NewCard(t)
	cfg := config.Default()
	cfg.Inference.Precision, cfg.Inference.Library = "fp16", card.ONNXRuntime
	driver, logger := cuda.New(cuda.Options{Library: card.Driver}), slog.New(slog.DiscardHandler)
	if _, err := openInference(t.Context(), cfg, platform.Platform{}, driver, nil, kept{}, logger); exitCode(err) != exitConfig {
		t.Errorf("without a card: error %v", err)
	}
	card.FailORT("update cuda", "no such luck")
	box := platform.Platform{GPUs: []platform.GPU{{Name: "stand-in", NUMANode: -1}}}
	in, err := openInference(t.Context(), cfg, box, driver, nil, kept{}, logger)
	if err != nil {
		t.Fatal(err)
	}
	defer in.close(logger)
	if serving(in) != "cpu" || !strings.Contains(in.note, "no such luck") {
		t.Errorf("%s serves, note %q", serving(in), in.note)
	}
}
