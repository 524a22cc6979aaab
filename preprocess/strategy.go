package preprocess

import (
	"fmt"
	"slices"
	"strings"

	"edgecam/platform"
)

// Strategy is a way of pixels to a kernel.
type Strategy string

// The strategies.
const (
	Shared Strategy = "shared" // an integrated GPU reads the slot in the DRAM that it shares with the processor
	Mapped Strategy = "mapped" // a card reads the slot across PCIe, each needed byte once
	Staged Strategy = "staged" // the card's copy engine brings the slot to its memory first
	Device Strategy = "device" // the decoder left the picture in the card's memory
	Heap   Strategy = "heap"   // the driver copies the picture out of ordinary memory; without a GPU the CPU reads it there
)

// InPlace says whether kernels read the slot where it lies.
func (s Strategy) InPlace() bool { return s == Shared || s == Mapped }

// Rules say how pictures may reach a GPU.
type Rules struct {
	// Candidates are for pictures in host memory, the likely best first. Where
	// there are several, the Chooser measures.
	Candidates []Strategy
	// Register: pools are shown to the device (framepool.Mapper).
	Register bool
	// OnDevice: gpu.memory is device, so decoders must leave pictures there.
	OnDevice bool
	// Why is one sentence on what decided.
	Why string
}

// RulesFor gives what a device can do and what is worth trying there.
func RulesFor(g platform.GPU) Rules {
	visible := g.CanMapHost && g.HostRegisterSupported
	switch {
	case g.Integrated && !g.IOCoherent:
		return Rules{
			Candidates: []Strategy{Heap},
			Why: fmt.Sprintf("the integrated GPU (compute capability %s) is not I/O coherent: memory that it sees is uncached for the processor, "+
				"so pictures are decoded to ordinary memory and copied once", g.ComputeCapability),
		}
	case g.Integrated && visible:
		return Rules{
			Candidates: []Strategy{Shared}, Register: true,
			Why: "GPU and processor share the DRAM: kernels read pictures where they lie",
		}
	case visible:
		why := "the card has memory of its own: reading across PCIe and copying first are measured"
		if strings.HasPrefix(g.UUID, "MIG-") {
			why = "the MIG instance has memory of its own: reading across PCIe and copying first are measured"
		}
		return Rules{Candidates: []Strategy{Mapped, Staged}, Register: true, Why: why}
	case !g.CanMapHost:
		return Rules{Candidates: []Strategy{Heap}, Why: "the device cannot map host memory: pictures are copied by the driver"}
	default:
		return Rules{Candidates: []Strategy{Heap}, Why: "the driver cannot register existing memory: pictures are copied by the driver"}
	}
}

// StrategyError says why a configured strategy cannot be had.
type StrategyError struct {
	Configured string
	GPU        string // its name
	Reason     string
	Hint       string
}

// Error implements error.
func (e *StrategyError) Error() string {
	return fmt.Sprintf("use gpu memory strategy %q on %s: %s", e.Configured, e.GPU, e.Reason)
}

// Force narrows the rules of a device to what gpu.memory says: auto (or
// nothing), or a strategy's name, where mapped means shared on an integrated
// GPU. The error is a *StrategyError.
func (r Rules) Force(configured string, g platform.GPU) (Rules, error) {
	s := Strategy(configured)
	refuse := func(reason, hint string) (Rules, error) {
		return Rules{}, &StrategyError{Configured: configured, GPU: g.Name, Reason: reason, Hint: hint}
	}
	switch s {
	case "", "auto":
		return r, nil
	case Heap:
		return Rules{Candidates: []Strategy{Heap}, Why: "configured"}, nil
	case Device:
		if g.Integrated {
			return refuse("an integrated GPU has no memory of its own, and its decoder writes to the shared DRAM", "set gpu.memory to auto")
		}
		r.OnDevice, r.Why = true, "configured; what a decoder cannot leave on the device: "+r.Why
		return r, nil
	case Shared, Mapped:
		if s == Mapped && slices.Contains(r.Candidates, Shared) {
			s = Shared
		}
		if !slices.Contains(r.Candidates, s) {
			if s == Shared && !g.Integrated {
				return refuse("the card has memory of its own and shares none", "set gpu.memory to auto or mapped")
			}
			return refuse(r.Why, "set gpu.memory to auto or heap")
		}
	case Staged:
		if !r.Register {
			return refuse(r.Why, "set gpu.memory to auto or heap")
		}
	default:
		return refuse("there is no such strategy", "set gpu.memory to auto, mapped, staged, device or heap")
	}
	return Rules{Candidates: []Strategy{s}, Register: true, Why: "configured"}, nil
}
