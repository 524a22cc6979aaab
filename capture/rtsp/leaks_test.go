package rtsp_test

import (
	"context"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"edgecam/capture"
	"edgecam/capture/rtsp"
	"edgecam/internal/sim"
)

// deafSink takes everything and keeps nothing.
type deafSink struct{}

func (deafSink) Stream(capture.StreamInfo) error { return nil }
func (deafSink) AccessUnit(*capture.AccessUnit)  {}

// holdings are what a process must not collect.
type holdings struct {
	goroutines, descriptors int
	heap                    uint64
}

func held(t *testing.T) holdings {
	t.Helper()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("this system does not tell of descriptors: %v", err)
	}
	return holdings{runtime.NumGoroutine(), len(files), m.HeapAlloc}
}

// A thousand sessions that fail, in every way that they can, leave nothing behind.
//
// Not parallel: it counts what the process holds.
func TestThousandFailures(t *testing.T) {
	faults := []string{
		"refuse", "silent", "auth", "notfound", "busy", "novideo", "codec", "redirect-loop", "session-lost=0", "close=1",
		"reset-every=1ms", "half-open=1", "rtcp-only", "slow-describe=1m",
	}
	var sources []rtsp.Options
	for _, fault := range faults {
		s := startSim(t, sim.Options{Fault: fault})
		sources = append(sources, rtsp.Options{URL: s.URL(0), ReadTimeout: 100 * time.Millisecond, ConnectTimeout: time.Second, Transport: "tcp"})
	}
	fail := func(n int) {
		var wg sync.WaitGroup
		for _, o := range sources {
			wg.Go(func() {
				for range n {
					ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
					source, err := rtsp.New(o)
					if err == nil {
						err = source.Run(ctx, deafSink{})
					}
					cancel()
					if err == nil {
						t.Errorf("%s: no error", o.URL)
					}
				}
			})
		}
		wg.Wait()
	}
	fail(5) // pools and caches fill
	before := held(t)
	fail(1 + 1000/len(faults))
	var after holdings
	for limit := time.Now().Add(patience); time.Now().Before(limit); {
		// the simulators notice the end of connections a moment later
		if after = held(t); after.goroutines <= before.goroutines && after.descriptors <= before.descriptors {
			break
		}
		runtime.Gosched()
	}
	t.Logf("before %+v, after %+v", before, after)
	if after.goroutines > before.goroutines || after.descriptors > before.descriptors {
		t.Errorf("before %+v, after %+v", before, after)
	}
	if grown := int64(after.heap) - int64(before.heap); grown > 2<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
}
