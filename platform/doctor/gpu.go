package doctor

import (
	"fmt"
	"strings"
)

// GPU is what was tried on the card that the configuration means.
type GPU struct {
	Tried bool // false leaves it out of the report

	Err  error // why it cannot serve
	Hint string

	Provider, Precision string
	ProbeMS             float64  // one picture
	Notes               []string // of the engine's choices

	Strategy, StrategyWhy string // how pictures come to the card
	NoDecoder             string // why it does not decode, "" = it does
	DecoderEngines        int    // 0 = unknown

	Libraries []Library // that GPU inference needs, found or not
}

// Library is one file that GPU inference needs.
type Library struct {
	Name, Path, Version string // Path "" = missing
	NeededBy            string
	Optional            bool // TensorRT and what it needs: CUDA serves without
}

func gpuWork(g GPU, jetson bool) []Check {
	if !g.Tried {
		return nil
	}
	checks := []Check{libraries(g.Libraries)}
	if g.Err != nil {
		fix := g.Hint
		if fix == "" {
			fix = "install what is missing, or set gpu.mode to off; until then the processor does the work"
		}
		return append(checks, Check{Name: "gpu engine", Status: Warn, Detail: g.Err.Error(), Fix: fix})
	}
	engine := fmt.Sprintf("%s, %s, %.1f ms a picture", g.Provider, g.Precision, g.ProbeMS)
	if len(g.Notes) > 0 {
		engine += " (" + strings.Join(g.Notes, "; ") + ")"
	}
	checks = append(checks,
		Check{Name: "gpu engine", Status: OK, Detail: engine},
		Check{Name: "gpu pictures", Status: OK, Detail: g.Strategy + ": " + g.StrategyWhy})
	return append(checks, decoding(g, jetson))
}

// decoding judges the card's own decoder. A Jetson's is reached another way: see
// ffmpeg.
func decoding(g GPU, jetson bool) Check {
	c := Check{Name: "gpu decoding", Status: OK, Detail: "H.264 and H.265 in the card's memory"}
	switch {
	case g.NoDecoder != "" && jetson:
		c.Detail = "a Jetson decodes through FFmpeg, see there"
	case g.NoDecoder != "":
		c.Status, c.Detail = Warn, g.NoDecoder
		c.Fix = "in a container set NVIDIA_DRIVER_CAPABILITIES=compute,video,utility; else the processor decodes"
	case g.DecoderEngines > 0:
		c.Detail += ", " + count(g.DecoderEngines, "engine")
	}
	return c
}

func libraries(all []Library) Check {
	c := Check{Name: "gpu libraries", Status: OK}
	var found, missing, without []string
	for _, l := range all {
		switch {
		case l.Path != "":
			found = append(found, strings.TrimSpace(l.Name+" "+l.Version))
		case l.Optional:
			without = append(without, l.Name)
		default:
			missing = append(missing, fmt.Sprintf("%s (needed by %s)", l.Name, l.NeededBy))
		}
	}
	c.Detail = strings.Join(found, ", ")
	if len(without) > 0 {
		c.Detail += "; without TensorRT, as these are missing: " + strings.Join(without, ", ")
	}
	switch {
	case len(all) == 0:
		c.Status, c.Detail = Warn, "no GPU build of ONNX Runtime found"
		c.Fix = "install one (onnxruntime-gpu) and name its libonnxruntime.so in inference.library or EDGECAM_ONNXRUNTIME"
	case len(missing) > 0:
		c.Status = Warn
		c.Detail = "missing " + strings.Join(missing, ", ") + "; found " + c.Detail
		c.Fix = "install CUDA's libraries and cuDNN for the CUDA version above, or add their directory to LD_LIBRARY_PATH"
	}
	return c
}
