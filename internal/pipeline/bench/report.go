package bench

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Report is what a run found.
type Report struct {
	Machine   string `json:"machine"`
	Clip      string `json:"clip"`
	Model     string `json:"model"`
	Precision string `json:"precision"`
	Provider  string `json:"provider"`

	Frames             int     `json:"frames"`
	Objects            int     `json:"objects"` // found in all pictures together
	Damaged            int     `json:"damaged"` // coded pictures that the decoder refused
	Seconds            float64 `json:"seconds"`
	CPUSeconds         float64 `json:"cpu_seconds"`
	FPS                float64 `json:"fps"`
	FramesPerCPUSecond float64 `json:"frames_per_cpu_second"`

	Stages []Stage `json:"stages"`
	// Overhead is the share of the time that is neither decoding nor the
	// model's own run, 0..1.
	Overhead float64 `json:"overhead"`

	CopiedBytes     uint64  `json:"copied_bytes"` // of pixels, between decoder and preprocessing
	AllocsPerFrame  float64 `json:"allocs_per_frame"`
	RSSEarly        int64   `json:"rss_early_bytes"` // after 2,000 pictures; 0 in a shorter run
	RSSEnd          int64   `json:"rss_end_bytes"`
	GoroutinesGrown int     `json:"goroutines_grown"`
}

// Stage is one row of the table.
type Stage struct {
	Name  string  `json:"name"`
	MS    float64 `json:"ms"`    // mean of a picture
	Share float64 `json:"share"` // of all stages, 0..1
}

func (r *Report) fill(b *bench) {
	info := b.o.Engine.Info()
	r.Model, r.Precision, r.Provider = info.Model, info.Precision, info.Provider
	r.Clip = fmt.Sprintf("%s %d pictures", b.o.Clip.Codec, len(b.o.Clip.Samples))
	r.Objects, r.Damaged = b.objects, b.damaged
	r.FPS = float64(r.Frames) / r.Seconds
	r.FramesPerCPUSecond = float64(r.Frames) / r.CPUSeconds
	r.CopiedBytes = b.decoder.Stats().CopiedBytes
	c := b.clocks
	_, candidates := b.o.Split()
	candidates -= b.candidates
	model := c.engine - candidates
	all := c.decode + c.after
	for _, s := range []struct {
		name string
		took time.Duration
	}{
		{"decode", c.decode},
		{"preprocess", c.preprocess},
		{"model", model},
		{"candidates and NMS", candidates},
		{"results and tracking", c.results},
	} {
		r.Stages = append(r.Stages, Stage{
			Name: s.name, MS: s.took.Seconds() * 1000 / float64(r.Frames), Share: s.took.Seconds() / all.Seconds(),
		})
	}
	r.Overhead = (c.preprocess + candidates + c.results).Seconds() / all.Seconds()
}

// Table prints the report for people.
func (r *Report) Table(w io.Writer) error {
	var t bytes.Buffer
	fmt.Fprintf(&t, "%s, %s (%s, %s), %s\n\n", r.Machine, r.Model, r.Precision, r.Provider, r.Clip)
	fmt.Fprintf(&t, "%-22s %10s %8s\n", "stage", "ms", "share")
	for _, s := range r.Stages {
		fmt.Fprintf(&t, "%-22s %10.3f %7.1f%%\n", s.Name, s.MS, s.Share*100)
	}
	fmt.Fprintf(&t, "\n%d frames in %.1f s: %.1f frames/s, %.1f frames per CPU second\n", r.Frames, r.Seconds, r.FPS, r.FramesPerCPUSecond)
	fmt.Fprintf(&t, "all but decode and model: %.1f %% of the time\n", r.Overhead*100)
	fmt.Fprintf(&t, "objects found: %.1f a frame; damaged pictures: %d\n", float64(r.Objects)/float64(r.Frames), r.Damaged)
	fmt.Fprintf(&t, "pixels copied: %d bytes; Go allocations: %.1f a frame\n", r.CopiedBytes, r.AllocsPerFrame)
	if r.RSSEarly > 0 {
		fmt.Fprintf(&t, "resident: %.1f MiB after %d frames, %.1f MiB at the end (%+.1f %%); goroutines %+d\n",
			mib(r.RSSEarly), memoryMark, mib(r.RSSEnd), (float64(r.RSSEnd)/float64(r.RSSEarly)-1)*100, r.GoroutinesGrown)
	}
	_, err := w.Write(t.Bytes())
	return err
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

// cpuSeconds is the user and system time of this process.
func cpuSeconds() (float64, error) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("read cpu time: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds(), nil
}

// residentBytes is the resident set of this process, 0 where /proc has none.
func residentBytes() int64 {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(data)
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
