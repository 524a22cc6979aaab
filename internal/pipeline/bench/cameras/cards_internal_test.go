package cameras

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"edgecam/internal/pipeline"
	"edgecam/platform/nvml"
	"edgecam/web"
)

func TestCardMeters(t *testing.T) {
	m := newCardMeters([]CardOptions{
		{Index: 0, UUID: "GPU-a", Name: "one", Node: 0, CPUs: "0-15", Sample: func() nvml.Sample { return nvml.Sample{Decoder: 0.5, GPU: nvml.Unknown} }},
		{Index: 1, UUID: "GPU-b", Name: "two", Node: 1, CPUs: "16-31"},
	})
	for i := range 110 {
		r := pipeline.Result{GPU: "GPU-a", Published: 20 * time.Millisecond}
		if i >= 60 {
			r.GPU, r.Published = "GPU-b", 40*time.Millisecond
		}
		countOn(m.counts, r)
	}
	countOn(m.counts, pipeline.Result{}) // of the processor
	gpus := []web.GPU{{UUID: "GPU-b", Cameras: 3, Utilisation: 0.25}, {UUID: "GPU-a", Cameras: 4, Utilisation: 0.5}}
	m.look(gpus)
	m.look(gpus)
	cards, apart := m.end(gpus, 10)
	if len(cards) != 2 || fmt.Sprintf("%.3f", apart) != "0.091" {
		t.Fatalf("%d cards, %.3f apart", len(cards), apart)
	}
	a, b := cards[0], cards[1]
	if a.Cameras != 4 || a.AnalysedFPS != 6 || a.Engine != 0.5 || *a.Decoder != 0.5 || a.GPU != nil || a.P95 < 19 || a.P95 > 21 {
		t.Errorf("%+v", a)
	}
	if b.Cameras != 3 || b.AnalysedFPS != 5 || b.Engine != 0.25 || b.Decoder != nil || b.P95 < 39 || b.P95 > 41 || b.NUMANode != 1 || b.ThreadOn != "16-31" {
		t.Errorf("%+v", b)
	}
	var text strings.Builder
	a.table(&text)
	if want := "memory node 0: its thread is kept on processors 0-15, frame memory on the node"; !strings.Contains(text.String(), want) {
		t.Errorf("no %q in %q", want, text.String())
	}
}

func TestNodes(t *testing.T) {
	got := nodes(strings.Join([]string{
		"55d0 default file=/usr/bin/edgecam mapped=8 N0=8 kernelpagesize_kB=4",
		"7f00 bind:1 anon=3 dirty=3 N1=2 N0=1 kernelpagesize_kB=2048",
		"7f10 default",
	}, "\n"), map[int]int{1: 7, 2: 1})
	want := []Node{{Node: 0, Bytes: 8*4<<10 + 2<<20}, {Node: 1, Bytes: 4 << 20, Threads: 7}, {Node: 2, Threads: 1}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Every thread of this process was on some processor.
func TestThreadsByNode(t *testing.T) {
	sum := 0
	for _, n := range threadsByNode("/proc/self") {
		sum += n
	}
	if _, threads := statusOf("self"); sum == 0 || sum > 2*threads+8 {
		t.Errorf("%d threads by node, %d in all", sum, threads)
	}
	dir := t.TempDir()
	if err := os.MkdirAll(dir+"/task/1", 0o700); err != nil {
		t.Fatal(err)
	}
	stat := "1 (a b) c) S" + strings.Repeat(" 0", 35) + " " + strconv.Itoa(1<<20) + " 0"
	if err := os.WriteFile(dir+"/task/1/stat", []byte(stat), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := threadsByNode(dir); got[0] != 1 || len(got) != 1 {
		t.Errorf("of a processor that no node has: %v", got)
	}
}
