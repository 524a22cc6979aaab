package cameras

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"edgecam/internal/pipeline"
	"edgecam/platform/nvml"
	"edgecam/web"
)

// CardOptions are one card of the box.
type CardOptions struct {
	Index int
	UUID  string
	Name  string
	Node  int    // memory node that it hangs on; -1 = not known
	CPUs  string // that its thread is kept on; "" = any
	// Sample asks the card how busy it is; nil = it does not tell.
	Sample func() nvml.Sample
}

// OneCard is what one card did in a trial; what it does not tell is left out.
type OneCard struct {
	Index int    `json:"index"`
	UUID  string `json:"uuid"`
	Name  string `json:"name"`

	Cameras     int     `json:"cameras"` // at the end
	AnalysedFPS float64 `json:"analysed_fps"`
	Percentiles         // of the age at publication
	Engine      float64 `json:"engine"` // part of the time that its engine was at work

	NUMANode    int    `json:"numa_node"`              // -1 = not known
	ThreadOn    string `json:"thread_on,omitempty"`    // processors that its thread is kept on
	PoolsOnNode bool   `json:"pools_on_node"`          // frame memory is taken from its node
	Lost        string `json:"lost_because,omitempty"` // at the end

	GPU      *float64 `json:"gpu,omitempty"`     // 0 to 1
	Decoder  *float64 `json:"decoder,omitempty"` // 0 to 1
	RXBytes  *float64 `json:"rx_bytes_per_second,omitempty"`
	TXBytes  *float64 `json:"tx_bytes_per_second,omitempty"`
	UsedMem  int64    `json:"used_bytes"`
	TotalMem int64    `json:"total_bytes"`
}

// cardCount counts what a card analyses.
type cardCount struct {
	uuid     string
	analysed atomic.Int64
	ages     spread
}

func countOn(cards []*cardCount, r pipeline.Result) {
	for _, c := range cards {
		if c.uuid == r.GPU {
			c.analysed.Add(1)
			c.ages.add(r.Published)
		}
	}
}

// cardMeters watches the cards through a trial.
type cardMeters struct {
	cards   []CardOptions
	counts  []*cardCount
	samples [][]nvml.Sample
	engine  []float64 // sums of the looks
	looks   int
}

func newCardMeters(cards []CardOptions) *cardMeters {
	m := &cardMeters{cards: cards, samples: make([][]nvml.Sample, len(cards)), engine: make([]float64, len(cards))}
	for _, c := range cards {
		m.counts = append(m.counts, &cardCount{uuid: c.UUID})
	}
	return m
}

// look asks all cards at once, as one takes its time for the answer.
func (m *cardMeters) look(now []web.GPU) {
	var asking sync.WaitGroup
	for i, c := range m.cards {
		if g, ok := find(now, c.UUID); ok {
			m.engine[i] += g.Utilisation
		}
		if c.Sample != nil {
			asking.Go(func() { m.samples[i] = append(m.samples[i], c.Sample()) })
		}
	}
	asking.Wait()
	m.looks++
}

func find(gpus []web.GPU, uuid string) (web.GPU, bool) {
	for _, g := range gpus {
		if g.UUID == uuid {
			return g, true
		}
	}
	return web.GPU{}, false
}

// end gives the figures of a trial of so many seconds, and by which part the busiest
// card is over the mean.
func (m *cardMeters) end(now []web.GPU, took float64) (out []OneCard, apart float64) {
	most, sum := 0.0, 0.0
	for i, c := range m.cards {
		o := OneCard{
			Index: c.Index, UUID: c.UUID, Name: c.Name, NUMANode: c.Node, ThreadOn: c.CPUs, PoolsOnNode: c.Node >= 0,
			AnalysedFPS: float64(m.counts[i].analysed.Load()) / took, Percentiles: m.counts[i].ages.percentiles(),
			Engine: m.engine[i] / float64(max(m.looks, 1)),
		}
		if g, ok := find(now, c.UUID); ok {
			o.Cameras, o.Lost = g.Cameras, g.Reason
		}
		o.meter(m.samples[i])
		out = append(out, o)
		most, sum = max(most, o.AnalysedFPS), sum+o.AnalysedFPS
	}
	if sum > 0 {
		apart = most/(sum/float64(len(out))) - 1
	}
	return out, apart
}

// meter averages what the card told.
func (o *OneCard) meter(samples []nvml.Sample) {
	if len(samples) == 0 {
		return
	}
	mean := func(of func(nvml.Sample) float64) *float64 {
		sum := 0.0
		for _, s := range samples {
			v := of(s)
			if v < 0 {
				return nil
			}
			sum += v
		}
		sum /= float64(len(samples))
		return &sum
	}
	last := samples[len(samples)-1]
	o.GPU = mean(func(s nvml.Sample) float64 { return s.GPU })
	o.Decoder = mean(func(s nvml.Sample) float64 { return s.Decoder })
	o.RXBytes = mean(func(s nvml.Sample) float64 { return s.RXBytes })
	o.TXBytes = mean(func(s nvml.Sample) float64 { return s.TXBytes })
	o.UsedMem, o.TotalMem = max(last.UsedMem, 0), max(last.TotalMem, 0)
}

func (o *OneCard) table(w io.Writer) {
	parts := []string{fmt.Sprintf("%d cameras, %.1f frames/s analysed, age p95 %.1f ms, engine %.0f %%", o.Cameras, o.AnalysedFPS, o.P95, o.Engine*100)}
	for _, p := range []struct {
		value  *float64
		format string
		unit   float64
	}{
		{o.GPU, "kernels %.0f %%", 0.01},
		{o.Decoder, "decoders %.0f %%", 0.01},
		{o.RXBytes, "link to the card %.0f MB/s", 1e6},
		{o.TXBytes, "from it %.0f MB/s", 1e6},
	} {
		if p.value != nil {
			parts = append(parts, fmt.Sprintf(p.format, *p.value/p.unit))
		}
	}
	if o.TotalMem > 0 {
		parts = append(parts, fmt.Sprintf("memory %.0f of %.0f MiB", mib(o.UsedMem), mib(o.TotalMem)))
	}
	if o.Lost != "" {
		parts = append(parts, o.Lost)
	}
	fmt.Fprintf(w, "card %d: %s\n        %s\n", o.Index, strings.Join(parts, ", "), o.place())
}

// place says in words what is kept near the card.
func (o *OneCard) place() string {
	switch {
	case o.NUMANode < 0:
		return "it hangs on no memory node that is known: nothing is bound"
	case o.ThreadOn == "":
		return fmt.Sprintf("memory node %d, the only one", o.NUMANode)
	}
	return fmt.Sprintf("memory node %d: its thread is kept on processors %s, frame memory on the node", o.NUMANode, o.ThreadOn)
}

// Node is what a memory node holds of this process.
type Node struct {
	Node    int   `json:"node"`
	Bytes   int64 `json:"bytes"`   // of its memory
	Threads int   `json:"threads"` // that were last on its processors
}

// onNode is "N1=20" of a mapping, in pages.
var onNode = regexp.MustCompile(`\bN(\d+)=(\d+)`) //nolint:gochecknoglobals // constant

// nodesOf tells where the process of a /proc directory lies, nil where the machine
// has one node.
func nodesOf(proc string) []Node {
	if _, err := os.Stat("/sys/devices/system/node/node1"); err != nil {
		return nil
	}
	maps, err := os.ReadFile(filepath.Join(proc, "numa_maps"))
	if err != nil {
		return nil
	}
	return nodes(string(maps), threadsByNode(proc))
}

// nodes makes the report of the kernel's list of mappings.
func nodes(maps string, threads map[int]int) []Node {
	bytes := map[int]int64{}
	for line := range strings.Lines(maps) {
		page := int64(4)
		if _, size, ok := strings.Cut(line, "kernelpagesize_kB="); ok {
			page, _ = strconv.ParseInt(strings.TrimSpace(strings.SplitN(size, " ", 2)[0]), 10, 64)
		}
		for _, m := range onNode.FindAllStringSubmatch(line, -1) {
			node, _ := strconv.Atoi(m[1])
			pages, _ := strconv.ParseInt(m[2], 10, 64)
			bytes[node] += pages * page << 10
		}
	}
	var out []Node
	for node := range threads {
		bytes[node] += 0
	}
	for node, n := range bytes {
		out = append(out, Node{Node: node, Bytes: n, Threads: threads[node]})
	}
	slices.SortFunc(out, func(a, b Node) int { return a.Node - b.Node })
	return out
}

// threadsByNode counts the threads by the node of the processor that each was last on.
func threadsByNode(proc string) map[int]int {
	nodeOf := map[int]int{}
	dirs, _ := filepath.Glob("/sys/devices/system/node/node[0-9]*/cpu[0-9]*")
	for _, dir := range dirs {
		node, err1 := strconv.Atoi(strings.TrimPrefix(filepath.Base(filepath.Dir(dir)), "node"))
		cpu, err2 := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), "cpu"))
		if err1 == nil && err2 == nil {
			nodeOf[cpu] = node
		}
	}
	const lastOn = 36 // field 39 of stat, behind the name
	count := map[int]int{}
	stats, _ := filepath.Glob(filepath.Join(proc, "task", "[0-9]*", "stat"))
	for _, path := range stats {
		data, err := os.ReadFile(path)
		_, after, ok := strings.Cut(string(data), ") ")
		if fields := strings.Fields(after); err == nil && ok && len(fields) > lastOn {
			if cpu, err := strconv.Atoi(fields[lastOn]); err == nil {
				count[nodeOf[cpu]]++
			}
		}
	}
	return count
}
