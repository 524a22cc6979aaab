package main

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"edgecam/internal/config"
	"edgecam/internal/testkit"
	"edgecam/platform"
	"edgecam/platform/cuda"
)

func TestCardsMeant(t *testing.T) {
	board := platform.GPU{Index: 0, UUID: "GPU-board", Integrated: true}
	first, second := platform.GPU{Index: 1, UUID: "GPU-first"}, platform.GPU{Index: 2, UUID: "GPU-second"}
	for _, c := range []struct {
		device string
		have   []platform.GPU
		want   string // indices
	}{
		{"auto", []platform.GPU{board, first, second}, "[1 2]"},
		{"all", []platform.GPU{board, first, second}, "[1 2]"},
		{"auto", []platform.GPU{board}, "[0]"},
		{"auto", []platform.GPU{first}, "[1]"},
		{"2", []platform.GPU{board, first, second}, "[2]"},
		{"GPU-first", []platform.GPU{board, first, second}, "[1]"},
		{"7", []platform.GPU{first}, "error"},
	} {
		cards, err := cardsMeant(c.device, platform.Platform{GPUs: c.have})
		got := []int{}
		for _, g := range cards {
			got = append(got, g.Index)
		}
		var unknown *platform.DeviceError
		if c.want == "error" {
			if !errors.As(err, &unknown) {
				t.Errorf("%s: cards %v, error %v", c.device, got, err)
			}
			continue
		}
		if err != nil || fmt.Sprint(got) != c.want {
			t.Errorf("%s: cards %v, error %v; want %s", c.device, got, err, c.want)
		}
	}
}

// Of several cards those serve that can, with auto; with all, one that cannot ends
// the start.
func TestOneOfSeveralCardsCannotServe(t *testing.T) {
	for _, device := range []string{"auto", "all"} {
		t.Run(device, func(t *testing.T) {
			card := testkit.NewCard(t)
			cfg := config.Default()
			cfg.GPU.Device, cfg.Inference.Provider, cfg.Inference.Library, cfg.Inference.MaxBatch = device, "cuda", card.ONNXRuntime, 1
			good := platform.GPU{Name: "stand-in", UUID: "GPU-0", CanMapHost: true, HostRegisterSupported: true, NUMANode: -1}
			missing := good
			missing.Index, missing.UUID = 99, "GPU-99" // the driver has no such device
			box := platform.Platform{GPUs: []platform.GPU{good, missing}}
			in, err := openInference(t.Context(), cfg, box, cuda.New(cuda.Options{Library: card.Driver}), nil, kept{}, slog.New(slog.DiscardHandler))
			if device == "all" {
				if err == nil {
					t.Error("it starts without a card that is demanded")
				}
				leftNothing(t, card)
				return
			}
			if err != nil || len(in.gpus) != 1 || len(in.unused) != 1 || in.unused[0].Card.Index != 99 || in.unused[0].Reason == "" {
				t.Fatalf("inference %+v, error %v", in, err)
			}
			in.close(slog.New(slog.DiscardHandler))
			leftNothing(t, card)
		})
	}
}
