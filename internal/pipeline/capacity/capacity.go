// Package capacity says how many more cameras a box takes, from what those that
// run use of it. It knows no clocks and no devices: its callers measure.
//
// Each resource is taken to be used in proportion to what a camera brings of the
// work that the resource does: coded pixels for decoders, analysed pictures for the
// engine, pixels for memory. That is right for more cameras of the same kind, and
// an estimate for others.
package capacity

import (
	"math"
	"time"
)

// Resource is something of which there is a limited amount.
type Resource string

// The resources.
const (
	NVDEC  Resource = "nvdec"  // the cards' decoding engines
	GPU    Resource = "gpu"    // the cards' processors
	CPU    Resource = "cpu"    // the machine's processors
	Memory Resource = "memory" // for frames: of the machine, or of the cards, whichever is tighter
	Link   Resource = "link"   // between the machine and the cards
)

// Resources lists them in the order in which they are named.
func Resources() []Resource { return []Resource{NVDEC, GPU, CPU, Memory, Link} }

const (
	// Full is the share of a resource up to which cameras are added: frames get
	// old before the rest is used.
	Full = 0.9
	// High is the share that is worth a warning when it lasts.
	High = 0.85
)

// h265 is what a pixel of H.265 costs a decoding engine, against one of H.264: on
// the card that was measured 9,590 pictures of the one a second and 5,330 of the
// other.
const h265 = 0.56

// Kind is a camera, as far as it matters here.
type Kind struct {
	Width, Height int
	FPS           float64
	DetectFPS     float64 // that are analysed
	Codec         string  // h264, h265, mjpeg
	GPU           bool    // decoded by a card
}

func (k Kind) pixels() float64 { return float64(k.Width) * float64(k.Height) * k.FPS }

func (k Kind) coded() float64 {
	if k.Codec == "h265" {
		return h265 * k.pixels()
	}
	return k.pixels()
}

// Use is how much of a resource is in use, 0 to 1.
type Use struct {
	Total   float64 // by everybody
	Cameras float64 // by what the cameras cause; at most Total
	// Engine is the part of Cameras that goes with analysed pictures; the rest goes
	// with decoded ones. It matters for CPU alone.
	Engine float64
}

// Load is what was measured.
type Load struct {
	Cameras []Kind // those that are live
	Uses    map[Resource]Use
}

// Answer is what Ask found.
type Answer struct {
	More      int      // cameras that still fit; 0 where it is full
	LimitedBy Resource // what is used up first; "" where nothing limits
	Known     bool     // false without a live camera to measure
}

// Mean is the kind that the live cameras are on average; false without one.
func Mean(cameras []Kind) (Kind, bool) {
	if len(cameras) == 0 {
		return Kind{}, false
	}
	var m Kind
	var pixels float64
	codecs := map[string]int{}
	onGPU := 0
	for _, k := range cameras {
		pixels += float64(k.Width) * float64(k.Height)
		m.FPS += k.FPS
		m.DetectFPS += k.DetectFPS
		codecs[k.Codec]++
		if k.GPU {
			onGPU++
		}
	}
	n := float64(len(cameras))
	m.FPS, m.DetectFPS, m.GPU = m.FPS/n, m.DetectFPS/n, 2*onGPU > len(cameras)
	most := 0
	for _, k := range cameras { // the first of those that are most frequent
		if codecs[k.Codec] > most {
			m.Codec, most = k.Codec, codecs[k.Codec]
		}
	}
	// The size of a picture with the mean number of pixels, in the shape of the
	// first camera's.
	scale := 1.0
	if area := float64(cameras[0].Width) * float64(cameras[0].Height); area > 0 {
		scale = math.Sqrt(pixels / n / area)
	}
	m.Width, m.Height = even(scale*float64(cameras[0].Width)), even(scale*float64(cameras[0].Height))
	return m, true
}

func even(v float64) int { return 2 * int(math.Round(v/2)) }

// Ask says how many more cameras of a kind fit.
func (l Load) Ask(k Kind) Answer {
	if len(l.Cameras) == 0 {
		return Answer{}
	}
	a := Answer{Known: true, More: math.MaxInt32}
	for _, r := range Resources() {
		use, ok := l.Uses[r]
		if !ok {
			continue
		}
		if fits := int((Full-use.Total)/max(l.each(r, use, k), tiny) + tiny); fits < a.More {
			a.More, a.LimitedBy = max(fits, 0), r
		}
	}
	if a.LimitedBy == "" {
		return Answer{}
	}
	return a
}

// tiny keeps what costs next to nothing from being told in billions.
const tiny = 1e-6

// each is what one more camera takes of a resource.
func (l Load) each(r Resource, use Use, k Kind) float64 {
	part := func(use float64, weight func(Kind) float64) float64 {
		sum := 0.0
		for _, c := range l.Cameras {
			sum += weight(c)
		}
		if sum <= 0 {
			return 0
		}
		return use * weight(k) / sum
	}
	analysed := func(k Kind) float64 { return k.DetectFPS }
	switch r {
	case NVDEC:
		return part(use.Cameras, func(k Kind) float64 {
			if !k.GPU {
				return 0
			}
			return k.coded()
		})
	case GPU:
		return part(use.Cameras, analysed)
	case CPU:
		return part(use.Engine, analysed) + part(use.Cameras-use.Engine, func(k Kind) float64 {
			if k.GPU {
				return k.FPS // sessions and packets: pixels do not matter
			}
			return k.coded()
		})
	case Memory:
		return part(use.Cameras, func(k Kind) float64 { return float64(k.Width) * float64(k.Height) })
	}
	return part(use.Cameras, Kind.pixels)
}

// Watch says when a resource has been short for so long that somebody should
// know, and when that is over.
type Watch struct {
	After time.Duration // that the share must have been high, or low again
	since map[Resource]time.Time
	short map[Resource]bool
}

// Change is news of a resource.
type Change struct {
	Resource Resource
	Share    float64
	Short    bool // it is now; false: it is over
}

// over is the share below which a shortage is over.
const over = High - 0.05

// Look takes in the shares of now.
func (w *Watch) Look(now time.Time, uses map[Resource]Use) (news []Change) {
	if w.since == nil {
		w.since, w.short = map[Resource]time.Time{}, map[Resource]bool{}
	}
	for _, r := range Resources() {
		share := uses[r].Total // 0 where it is not known any more
		turning := share > High && !w.short[r] || share < over && w.short[r]
		if !turning {
			delete(w.since, r)
			continue
		}
		since, ok := w.since[r]
		if !ok {
			w.since[r] = now
			continue
		}
		if now.Sub(since) >= w.After {
			delete(w.since, r)
			w.short[r] = !w.short[r]
			news = append(news, Change{Resource: r, Share: share, Short: w.short[r]})
		}
	}
	return news
}

// Short lists the resources that are short.
func (w *Watch) Short() (out []Resource) {
	for _, r := range Resources() {
		if w.short[r] {
			out = append(out, r)
		}
	}
	return out
}

// With is k with everything that other says differently.
func (k Kind) With(other *Kind) Kind {
	if other == nil {
		return k
	}
	if other.Width > 0 && other.Height > 0 {
		k.Width, k.Height = other.Width, other.Height
	}
	if other.FPS > 0 {
		k.FPS, k.DetectFPS = other.FPS, min(k.DetectFPS, other.FPS)
	}
	if other.DetectFPS > 0 {
		k.DetectFPS = min(other.DetectFPS, k.FPS)
	}
	if other.Codec != "" {
		k.Codec = other.Codec
	}
	return k
}
