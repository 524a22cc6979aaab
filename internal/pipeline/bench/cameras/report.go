package cameras

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"edgecam/web"
)

// Report is what a bench found.
type Report struct {
	Machine   string `json:"machine"`
	GPU       string `json:"gpu,omitempty"`
	Video     string `json:"video"` // of each camera
	Model     string `json:"model"`
	Precision string `json:"precision"`
	Provider  string `json:"provider"`
	Batch     int    `json:"batch"` // most pictures in a run of the engine

	Notes []string `json:"notes"` // what the probe found of the engine: who runs its nodes, and how long it takes

	P95Bound float64 `json:"p95_bound_ms"`
	Max      int     `json:"max"`                 // cameras that meet the bounds; of a search
	Stops    string  `json:"stops,omitempty"`     // what the next number of cameras misses
	CutShort string  `json:"cut_short,omitempty"` // why the search did not end by itself

	CeilingFPS float64 `json:"ceiling_fps,omitempty"` // what the card's decoders give flat out; 0 without them

	Best   *Trial  `json:"best"` // null where no trial of a search met the bounds, and of a rehearsal alone
	Trials []Trial `json:"trials"`

	Overload *Overload `json:"overload,omitempty"` // of a rehearsal
}

// Trial is one number of cameras.
type Trial struct {
	Cameras       int     `json:"cameras"`
	ComeUpSeconds float64 `json:"come_up_seconds"` // from the reload until all were live
	Seconds       float64 `json:"seconds"`         // that were measured
	Fails         string  `json:"fails,omitempty"` // the bound that was missed

	DecodedFPS    float64           `json:"decoded_fps"`
	AskedFPS      float64           `json:"asked_fps"` // frames that should have been analysed
	AnalysedFPS   float64           `json:"analysed_fps"`
	AnalysedShare float64           `json:"analysed_share"` // of those asked for
	OfCeiling     float64           `json:"of_ceiling,omitempty"`
	Slowest       Slowest           `json:"slowest"`
	Dropped       map[string]uint64 `json:"dropped"`
	Stalls        int               `json:"stalls"` // cameras that were not live, and new sessions

	Governor *Governor `json:"governor,omitempty"` // where it lowered the rates

	Stages []Stage `json:"stages"`

	Run       *web.Percentiles `json:"run_ms,omitempty"` // of the engine, of late
	BatchMean float64          `json:"batch_mean"`       // pictures in one, of late

	Cores           float64 `json:"cores"`                 // of this process
	CPUPercentOfOne float64 `json:"cpu_percent_of_one"`    // of a core, each camera
	PerCPUSecond    float64 `json:"frames_per_cpu_second"` // analysed ones
	SimulatorCores  float64 `json:"simulator_cores"`

	ResidentBytes int64 `json:"resident_bytes"`
	Threads       int   `json:"threads"`
	PoolBytes     int64 `json:"pool_bytes"`
	Slots         int   `json:"slots"`
	SlotsInUse    int   `json:"slots_in_use"`
	SlotsMost     int   `json:"slots_most"` // in use at once

	Cards []OneCard `json:"cards,omitempty"`
	Apart float64   `json:"cards_apart"`     // how far the busiest card's analysed frames are over the mean, 0 to 1
	Nodes []Node    `json:"nodes,omitempty"` // memory nodes, where there are several
	Loss  *Loss     `json:"loss,omitempty"`
}

// Slowest is the camera with the fewest analysed frames.
type Slowest struct {
	Camera string  `json:"camera"`
	FPS    float64 `json:"fps"`
	Share  float64 `json:"share"` // of what was asked of it

	DecodedFPS float64           `json:"decoded_fps"`
	Dropped    map[string]uint64 `json:"dropped"` // frames, by reason
}

// Governor is what the pipeline's governor did at the end of a trial.
type Governor struct {
	Reason     string  `json:"reason"`
	AskedFPS   float64 `json:"asked_fps"`
	AllowedFPS float64 `json:"allowed_fps"`
	Cameras    int     `json:"cameras"` // that got less than they asked for
}

// Stage is the age of the frames as they leave a stage.
type Stage struct {
	Name string `json:"name"`
	Percentiles
}

// memory fills in what the pools and the process take.
func (t *Trial) memory(m web.Memory) {
	t.ResidentBytes, t.Threads = statusOf("self")
	t.PoolBytes, t.Slots, t.SlotsInUse, t.SlotsMost = m.PoolBytes, m.Slots, m.InUse, m.HighWater
}

// SetCeiling sets what the card's decoders give flat out.
func (r *Report) SetCeiling(fps float64) {
	if fps <= 0 {
		return
	}
	r.CeilingFPS = fps
	for i := range r.Trials {
		r.Trials[i].OfCeiling = r.Trials[i].AnalysedFPS / fps
	}
	more := []*Trial{r.Best}
	if o := r.Overload; o != nil {
		more = append(more, o.Ease, o.Loaded)
	}
	for _, t := range more {
		if t != nil {
			t.OfCeiling = t.AnalysedFPS / fps
		}
	}
}

// Table prints the report for people.
func (r *Report) Table(w io.Writer) error {
	var t bytes.Buffer
	machine := r.Machine
	if r.GPU != "" {
		machine += ", " + r.GPU
	}
	fmt.Fprintf(&t, "%s\n%s (%s, %s, batches up to %d); cameras: %s\n", machine, r.Model, r.Precision, r.Provider, r.Batch, r.Video)
	if len(r.Trials) > 1 || r.Best == nil && r.Overload == nil {
		fmt.Fprintf(&t, "\n%8s %12s %10s %10s  %s\n", "cameras", "analysed/s", "p95 ms", "cores", "")
		for i := range r.Trials {
			one := &r.Trials[i]
			p95 := 0.0
			if len(one.Stages) > 0 {
				p95 = one.Stages[published].P95
			}
			fmt.Fprintf(&t, "%8d %12.1f %10.1f %10.2f  %s\n", one.Cameras, one.AnalysedFPS, p95, one.Cores, one.Fails)
		}
	}
	if r.Best != nil {
		r.Best.table(&t)
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&t, "engine: %s\n", note)
	}
	if r.CeilingFPS > 0 {
		fmt.Fprintf(&t, "the card's decoders give %.0f frames/s flat out", r.CeilingFPS)
		if r.Best != nil {
			fmt.Fprintf(&t, "; analysed are %.1f %% of that", r.Best.OfCeiling*100)
		}
		fmt.Fprintln(&t)
	}
	if r.Max > 0 || r.Stops != "" {
		fmt.Fprintf(&t, "\nlargest number of cameras with p95 <= %.0f ms: %d", r.P95Bound, r.Max)
		if r.Stops != "" {
			fmt.Fprintf(&t, " (what stops more: %s)", r.Stops)
		}
		fmt.Fprintln(&t)
	}
	if r.CutShort != "" {
		fmt.Fprintln(&t, r.CutShort)
	}
	if r.Overload != nil {
		r.Overload.table(&t)
	}
	_, err := w.Write(t.Bytes())
	return err
}

func (t *Trial) table(w io.Writer) {
	fmt.Fprintf(w, "\n%d cameras, %.1f s, all live after %.1f s\n\n", t.Cameras, t.Seconds, t.ComeUpSeconds)
	if t.Fails != "" {
		fmt.Fprintf(w, "bound missed: %s\n\n", t.Fails)
	}
	fmt.Fprintf(w, "%-12s %10s %10s %10s\n", "age at", "p50 ms", "p95 ms", "p99 ms")
	for _, s := range t.Stages {
		fmt.Fprintf(w, "%-12s %10.1f %10.1f %10.1f\n", s.Name, s.P50, s.P95, s.P99)
	}
	fmt.Fprintf(w, "\nframes/s: %.1f decoded, %.1f analysed (%.2f %% of those asked for); slowest camera: %s, %.1f\n",
		t.DecodedFPS, t.AnalysedFPS, t.AnalysedShare*100, t.Slowest.Camera, t.Slowest.FPS)
	fmt.Fprintf(w, "not analysed: %s; stalls: %d\n", drops(t.Dropped), t.Stalls)
	if g := t.Governor; g != nil {
		fmt.Fprintf(w, "rates lowered from %.0f to %.0f frames/s for %d cameras: %s\n", g.AskedFPS, g.AllowedFPS, g.Cameras, g.Reason)
	}
	fmt.Fprintf(w, "this process: %.2f cores, %.2f %% of a core each camera, %.1f frames analysed per CPU second, %.0f MiB resident, %d threads\n",
		t.Cores, t.CPUPercentOfOne, t.PerCPUSecond, mib(t.ResidentBytes), t.Threads)
	fmt.Fprintf(w, "simulated cameras: %.2f cores, in a process of their own\n", t.SimulatorCores)
	fmt.Fprintf(w, "frame memory: %.0f MiB, %d slots, %d in use, %d at most\n", mib(t.PoolBytes), t.Slots, t.SlotsInUse, t.SlotsMost)
	if t.Run != nil {
		fmt.Fprintf(w, "a run of the engine: %.1f pictures on average, p50 %.1f ms, p95 %.1f ms\n", t.BatchMean, t.Run.P50, t.Run.P95)
	}
	for i := range t.Cards {
		t.Cards[i].table(w)
	}
	if len(t.Cards) > 1 {
		fmt.Fprintf(w, "the busiest card analyses %.1f %% more than the mean\n", t.Apart*100)
	}
	for _, n := range t.Nodes {
		fmt.Fprintf(w, "memory node %d: %.0f MiB of this process, %d of its threads\n", n.Node, mib(n.Bytes), n.Threads)
	}
	if t.Loss != nil {
		t.Loss.table(w)
	}
}

func drops(by map[string]uint64) string {
	if len(by) == 0 {
		return "none"
	}
	var parts []string
	for reason, n := range by {
		parts = append(parts, fmt.Sprintf("%s %d", reason, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }
