package farm

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"
)

// Figures are what a process holds.
type Figures struct {
	ResidentBytes int64 `json:"resident_bytes"`
	GoBytes       int64 `json:"go_bytes"` // of it, what Go holds: the rest is the libraries'
	Goroutines    int   `json:"goroutines"`
	Descriptors   int   `json:"descriptors"` // open files and sockets; 0 where the system does not tell
	Threads       int   `json:"threads"`
}

type point struct {
	at      time.Duration
	figures Figures
}

func figuresNow() Figures {
	f := Figures{Goroutines: runtime.NumGoroutine(), GoBytes: goBytes()}
	if dir, err := os.ReadDir("/proc/self/fd"); err == nil {
		f.Descriptors = len(dir) - 1 // without the one that reads the directory
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return f // no Linux: the figures that Go knows are left
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		number, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch {
		case err != nil:
		case name == "VmRSS":
			f.ResidentBytes = number << 10
		case name == "Threads":
			f.Threads = int(number)
		}
	}
	return f
}

// goBytes is the memory that Go has of the system and not given back.
func goBytes() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64()) //nolint:gosec // less than the address space
}

// figuresAtRest gives the figures once what ends by itself has ended: at most
// settle after the cameras went.
func figuresAtRest(ctx context.Context, start Figures, free func() bool) Figures {
	ctx, cancel := context.WithTimeout(ctx, settle)
	defer cancel()
	for {
		debug.FreeOSMemory() // what Go keeps for later is nobody's
		f := figuresNow()
		if f.Goroutines <= start.Goroutines && f.Descriptors <= start.Descriptors && free() || !sleep(ctx, 50*time.Millisecond) {
			return f
		}
	}
}

func (f Figures) most(g Figures) Figures {
	return Figures{
		ResidentBytes: max(f.ResidentBytes, g.ResidentBytes), GoBytes: max(f.GoBytes, g.GoBytes), Goroutines: max(f.Goroutines, g.Goroutines),
		Descriptors: max(f.Descriptors, g.Descriptors), Threads: max(f.Threads, g.Threads),
	}
}

// slope is the growth of the resident memory in bytes a minute, by least
// squares.
func slope(points []point) float64 {
	var n, sx, sy, sxx, sxy float64
	for _, p := range points {
		x, y := p.at.Minutes(), float64(p.figures.ResidentBytes)
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	if d := n*sxx - sx*sx; d > 0 {
		return (n*sxy - sx*sy) / d
	}
	return 0
}
