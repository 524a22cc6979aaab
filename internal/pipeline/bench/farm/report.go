package farm

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"edgecam/web"
)

// Report is what was found.
type Report struct {
	Machine  string  `json:"machine"`
	Flapping int     `json:"flapping"`
	Healthy  int     `json:"healthy"`
	Seed     uint64  `json:"seed"`
	Seconds  float64 `json:"seconds"`

	Before Figures `json:"before"` // without cameras
	Warm   Figures `json:"warm"`   // after the warm-up
	Peak   Figures `json:"peak"`
	End    Figures `json:"end"`
	After  Figures `json:"after"` // without cameras again

	SlopeBytesPerMinute float64 `json:"slope_bytes_per_minute"` // of the resident memory after the warm-up
	NoiseBytes          float64 `json:"noise_bytes"`            // its standard deviation

	Attempts uint64         `json:"attempts"` // of all cameras
	Frames   uint64         `json:"frames"`
	Damaged  uint64         `json:"damaged"`
	States   map[string]int `json:"states"` // seconds of cameras in each

	HealthyFrames   uint64            `json:"healthy_frames"`
	HealthyLost     uint64            `json:"healthy_lost"`    // dropped before or in the decoder, or damaged
	HealthyDropped  map[string]uint64 `json:"healthy_dropped"` // all, by reason: analysis may skip pictures of a busy machine
	HealthySessions uint64            `json:"healthy_sessions"`

	Returns       int     `json:"returns"` // of the camera that loses its power
	BackP50       float64 `json:"back_p50_seconds"`
	BackMax       float64 `json:"back_max_seconds"`
	StopSeconds   float64 `json:"stop_seconds"`    // to end all sessions, in whatever state
	SlotsLeft     int     `json:"slots_left"`      // in use after the end
	PoolBytesLeft int64   `json:"pool_bytes_left"` // reserved after the end

	Problems []string `json:"problems"` // what is not as it must be

	points []point
}

// healthy takes the account of a camera that nothing is wrong with.
func (r *Report) healthy(c web.Camera, first uint64) {
	r.HealthyFrames += c.Frames - first
	r.HealthySessions += c.Attempts
	for reason, n := range c.Dropped {
		r.HealthyDropped[reason] += n
	}
	for _, reason := range []string{"decode_overflow", "no_key_frame", "damaged", "pool_exhausted", "readers_busy"} {
		r.HealthyLost += c.Dropped[reason]
	}
	if c.LastError != nil {
		r.Problems = append(r.Problems, fmt.Sprintf("healthy camera %s: %s", c.ID, c.LastError.Reason))
	}
}

// returns takes the account of the camera that comes back.
func (r *Report) returns(took []time.Duration) {
	slices.Sort(took)
	if r.Returns = len(took); r.Returns > 0 {
		r.BackP50, r.BackMax = took[len(took)/2].Seconds(), took[len(took)-1].Seconds()
	}
}

// The bounds of what is as it must be.
const (
	backMost = 2 * time.Second // from a camera's return to its picture
	stopMost = 2 * time.Second // of the end in any state
	// growthMost is the growth a minute that counts as none, as a share of the
	// resident memory.
	growthMost = 0.005
)

func (r *Report) judge(o Options) {
	r.SlopeBytesPerMinute = slope(r.points)
	var mean, square float64
	for _, p := range r.points {
		mean += float64(p.figures.ResidentBytes) / float64(len(r.points))
	}
	for _, p := range r.points {
		d := float64(p.figures.ResidentBytes) - mean
		square += d * d / float64(len(r.points))
	}
	r.NoiseBytes = math.Sqrt(square)
	minutes := (o.Duration - o.WarmUp).Minutes()
	bad := func(when bool, text string, args ...any) {
		if when {
			r.Problems = append(r.Problems, fmt.Sprintf(text, args...))
		}
	}
	grown := r.SlopeBytesPerMinute * minutes
	bad(r.SlopeBytesPerMinute > growthMost*mean && grown > 2*r.NoiseBytes && minutes > 5,
		"resident memory grows by %.2f MiB a minute", mib(int64(r.SlopeBytesPerMinute)))
	bad(r.After.Goroutines > r.Before.Goroutines, "%d goroutines before, %d after", r.Before.Goroutines, r.After.Goroutines)
	bad(r.After.Descriptors > r.Before.Descriptors, "%d descriptors before, %d after", r.Before.Descriptors, r.After.Descriptors)
	bad(r.SlotsLeft > 0 || r.PoolBytesLeft > 0, "%d slots and %d bytes of frame memory are left", r.SlotsLeft, r.PoolBytesLeft)
	bad(r.HealthyLost > 0, "healthy cameras lost %d pictures", r.HealthyLost)
	bad(r.HealthySessions > uint64(r.Healthy), "%d sessions with %d healthy cameras", r.HealthySessions, r.Healthy) //nolint:gosec // a count
	bad(r.BackMax > backMost.Seconds(), "a camera was seen again %.1f s after its return", r.BackMax)
	bad(r.Returns == 0 && o.Duration > time.Minute, "the camera that loses its power never came back")
	bad(r.StopSeconds > stopMost.Seconds(), "the end took %.1f s", r.StopSeconds)
}

// Table writes the report for people.
func (r *Report) Table(w io.Writer) error {
	fmt.Fprintf(w, "%s\n%d cameras with every fault in turn (seed %d), %d healthy ones and one that loses its power, %.0f s\n\n",
		r.Machine, r.Flapping, r.Seed, r.Healthy, r.Seconds)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tbefore\twarm\tpeak\tend\tafter\t")
	all := []Figures{r.Before, r.Warm, r.Peak, r.End, r.After}
	row := func(name string, value func(Figures) string) {
		cells := make([]string, 0, len(all))
		for _, f := range all {
			cells = append(cells, value(f))
		}
		fmt.Fprintf(t, "%s\t%s\t\n", name, strings.Join(cells, "\t"))
	}
	row("resident MiB", func(f Figures) string { return fmt.Sprintf("%.1f", mib(f.ResidentBytes)) })
	row("of it Go's", func(f Figures) string { return fmt.Sprintf("%.1f", mib(f.GoBytes)) })
	row("goroutines", func(f Figures) string { return fmt.Sprint(f.Goroutines) })
	row("descriptors", func(f Figures) string { return fmt.Sprint(f.Descriptors) })
	row("threads", func(f Figures) string { return fmt.Sprint(f.Threads) })
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nresident memory: %+.3f MiB a minute after the warm-up, noise %.2f MiB\n", r.SlopeBytesPerMinute/(1<<20), r.NoiseBytes/(1<<20))
	fmt.Fprintf(w, "all cameras: %d attempts, %d pictures, %d damaged and not shown\n", r.Attempts, r.Frames, r.Damaged)
	fmt.Fprintf(w, "healthy cameras: %d pictures in %d sessions, %d lost; dropped on the way to detections: %v\n",
		r.HealthyFrames, r.HealthySessions, r.HealthyLost, r.HealthyDropped)
	fmt.Fprintf(w, "camera seconds by state: %v\n", r.States)
	fmt.Fprintf(w, "picture after a camera's return: p50 %.2f s, at most %.2f s, of %d returns\n", r.BackP50, r.BackMax, r.Returns)
	fmt.Fprintf(w, "end of all sessions: %.3f s\n", r.StopSeconds)
	if len(r.Problems) == 0 {
		_, err := fmt.Fprintln(w, "all as it must be")
		return err
	}
	_, err := fmt.Fprintf(w, "NOT as it must be:\n  %s\n", strings.Join(r.Problems, "\n  "))
	return err
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }
