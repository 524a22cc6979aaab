package doctor

import (
	"fmt"
	"strings"

	"edgecam/platform"
	"edgecam/platform/onnxruntime"
)

// GPU is what was tried on the cards that the configuration means.
type GPU struct {
	Tried bool // false leaves it out of the report

	Err  error // why none can serve
	Hint string

	Cards     []Card
	Libraries onnxruntime.Survey // that GPU inference needs, found or not
	Demanded  string             // what in the configuration rules the processor out, "" = nothing
}

// Card is what was tried on one card.
type Card struct {
	Index int
	Err   error // why it cannot serve

	Provider, Precision string
	ProbeMS             float64  // one picture
	Notes               []string // of the engine's choices

	Strategy, StrategyWhy string // how pictures come to the card
	NoDecoder             string // why it does not decode, "" = it does
	DecoderEngines        int    // 0 = unknown
}

func gpuWork(g GPU, p platform.Platform) []Check {
	jetson := p.Kind == platform.KindJetson
	if !g.Tried {
		return nil
	}
	checks := gpuLibraries(g.Libraries, p, g.Demanded)
	if g.Err != nil {
		fix := g.Hint
		if fix == "" {
			fix = "install what is missing, or set gpu.mode to off; until then the processor does the work"
		}
		return append(checks, Check{Name: "gpu engine", Status: Warn, Detail: g.Err.Error(), Fix: fix})
	}
	for _, c := range g.Cards {
		of := "gpu"
		if len(g.Cards) > 1 {
			of = fmt.Sprintf("gpu %d", c.Index)
		}
		checks = append(checks, c.work(of, jetson)...)
	}
	return checks
}

// work judges one card, which the names of the checks begin with.
func (c Card) work(of string, jetson bool) []Check {
	if c.Err != nil {
		return []Check{{Name: of + " engine", Status: Warn, Detail: c.Err.Error(), Fix: "the other cards do its work; to leave it out, name those in CUDA_VISIBLE_DEVICES of the service"}}
	}
	engine := fmt.Sprintf("%s, %s, %.1f ms a picture", c.Provider, c.Precision, c.ProbeMS)
	if len(c.Notes) > 0 {
		engine += " (" + strings.Join(c.Notes, "; ") + ")"
	}
	return []Check{
		{Name: of + " engine", Status: OK, Detail: engine},
		{Name: of + " pictures", Status: OK, Detail: c.Strategy + ": " + c.StrategyWhy},
		c.decoding(of, jetson),
	}
}

// decoding judges the card's own decoder. A Jetson's is reached another way: see
// ffmpeg.
func (c Card) decoding(of string, jetson bool) Check {
	d := Check{Name: of + " decoding", Status: OK, Detail: "H.264 and H.265 in the card's memory"}
	switch {
	case c.NoDecoder != "" && jetson:
		d.Detail = "a Jetson decodes through FFmpeg, see there"
	case c.NoDecoder != "":
		d.Status, d.Detail = Warn, c.NoDecoder
		d.Fix = "in a container set NVIDIA_DRIVER_CAPABILITIES=compute,video,utility; else the processor decodes"
	case c.DecoderEngines > 0:
		d.Detail += ", " + count(c.DecoderEngines, "engine")
	}
	return d
}
