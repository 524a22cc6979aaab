package pipeline

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"edgecam/capture"
	"edgecam/internal/pipeline/capacity"
	"edgecam/platform/nvml"
	"edgecam/web"
)

const (
	// measureEvery is how often the box's resources are looked at.
	measureEvery = 5 * time.Second
	// warnAfter is how long one must be short before anybody is told.
	warnAfter = time.Minute
)

// CardMeter says how busy a card is.
type CardMeter struct {
	Sample    func() nvml.Sample
	LinkBytes float64 // a second that its link carries one way; 0 = not known
}

// sampleWithin bounds the wait for a card: a driver that hangs must not hold up
// the other figures, nor the end of the program.
const sampleWithin = 2 * time.Second

// cardMeter is a CardMeter that is asked once at a time.
type cardMeter struct {
	CardMeter

	answer chan nvml.Sample // cap 1
	asked  bool             // and has not answered yet
}

// sample is false where the card does not answer in time.
func (c *cardMeter) sample() (nvml.Sample, bool) {
	if !c.asked {
		c.asked = true
		go func() { c.answer <- c.Sample() }()
	}
	t := time.NewTimer(sampleWithin)
	defer t.Stop()
	select {
	case s := <-c.answer:
		c.asked = false
		return s, true
	case <-t.C:
		return nvml.Sample{}, false
	}
}

// meters measure what the box has and uses.
type meters struct {
	cards []*cardMeter
	last  readings
	base  int64 // bytes of the cards' memory in use before the first camera

	mu    sync.Mutex
	uses  map[capacity.Resource]capacity.Use // guarded by mu, like all below; nil before the first look
	watch capacity.Watch
}

// readings are counters that only grow.
type readings struct {
	at                time.Time
	process           time.Duration // processor time of this process
	hostBusy, hostAll uint64        // of all processors together, in ticks
}

// meter looks at the resources until ctx ends, and warns.
func (p *Pipeline) meter(ctx context.Context) {
	p.meters.watch.After = warnAfter
	p.meters.last = read(p.now())
	p.meters.base = p.meters.deviceMemory().used
	every(ctx, measureEvery, func() { p.look(p.now()) })
}

// look takes in the time since the look before.
func (p *Pipeline) look(now time.Time) {
	uses := p.uses(now)
	m := p.meters
	m.mu.Lock()
	defer m.mu.Unlock()
	m.uses = uses
	for _, n := range m.watch.Look(now, uses) {
		if n.Short {
			p.logger.Warn("the box is nearly full", "resource", string(n.Resource), "share", n.Share,
				"try", "fewer cameras, lower detect.fps, or smaller streams: see `edgecam doctor --capacity`")
			continue
		}
		p.logger.Info("the box has room again", "resource", string(n.Resource), "share", n.Share)
	}
}

func (p *Pipeline) uses(now time.Time) map[capacity.Resource]capacity.Use {
	m := p.meters
	next := read(now)
	uses := map[capacity.Resource]capacity.Use{}
	engine, gpu, cards := p.engineUse(now)
	uses[capacity.CPU] = cpuUse(m.last, next, engine)
	m.last = next
	if cards > 0 {
		uses[capacity.GPU] = capacity.Use{Total: gpu, Cameras: gpu}
	}
	m.cardUses(uses)
	p.memoryUse(uses)
	return uses
}

// engineUse is what the analysed pictures cost, in the best batches: cores of the
// processor, and the mean share of the cards.
func (p *Pipeline) engineUse(now time.Time) (cores, gpu float64, cards int) {
	for _, s := range p.stations() {
		fps := 0.0
		for _, c := range p.camerasOn(s) {
			fps += c.inferred.perSecond(now)
		}
		busy := fps * s.times.PerPicture().Seconds()
		if s.gpu == nil {
			cores += busy
			continue
		}
		gpu += busy / float64(max(len(s.workers), 1))
		cards++
	}
	return cores, min(gpu/float64(max(cards, 1)), 1), cards
}

// cpuUse is the share of the processors that this process may use, and that all
// use where it may use all of them.
func cpuUse(from, to readings, engineCores float64) capacity.Use {
	cores := float64(runtime.GOMAXPROCS(0))
	took := to.at.Sub(from.at).Seconds()
	if took <= 0 {
		return capacity.Use{}
	}
	own := min((to.process-from.process).Seconds()/took/cores, 1)
	u := capacity.Use{Total: own, Cameras: own, Engine: min(engineCores/cores, own)}
	if all := to.hostAll - from.hostAll; all > 0 && runtime.NumCPU() == runtime.GOMAXPROCS(0) {
		u.Total = max(own, min(float64(to.hostBusy-from.hostBusy)/float64(all), 1))
	}
	return u
}

func newMeters(cards []CardMeter) *meters {
	m := &meters{}
	for _, c := range cards {
		m.cards = append(m.cards, &cardMeter{CardMeter: c, answer: make(chan nvml.Sample, 1)})
	}
	return m
}

// deviceBytes is the memory of the cards together; 0 where they do not tell.
type deviceBytes struct{ used, total int64 }

func (m *meters) deviceMemory() (b deviceBytes) {
	for _, c := range m.cards {
		if s, ok := c.sample(); ok {
			b.add(s)
		}
	}
	return b
}

func (b *deviceBytes) add(s nvml.Sample) {
	b.used += max(s.UsedMem, 0)
	b.total += max(s.TotalMem, 0)
}

// cardUses asks the cards. What one of them does not tell is left out.
func (m *meters) cardUses(uses map[capacity.Resource]capacity.Use) {
	if len(m.cards) == 0 {
		return
	}
	var decoder, link float64
	decoderKnown, linkKnown := true, true
	var memory deviceBytes
	for _, c := range m.cards {
		s, ok := c.sample()
		if !ok {
			return
		}
		memory.add(s)
		decoder += s.Decoder / float64(len(m.cards))
		decoderKnown = decoderKnown && s.Decoder >= 0
		busier := max(s.RXBytes, s.TXBytes)
		linkKnown = linkKnown && busier >= 0 && c.LinkBytes > 0
		if linkKnown {
			link += busier / c.LinkBytes / float64(len(m.cards))
		}
	}
	if decoderKnown {
		uses[capacity.NVDEC] = capacity.Use{Total: decoder, Cameras: decoder}
	}
	if linkKnown {
		uses[capacity.Link] = capacity.Use{Total: link, Cameras: link}
	}
	if memory.total > 0 {
		total := float64(memory.total)
		uses[capacity.Memory] = capacity.Use{
			Total: float64(memory.used) / total, Cameras: float64(max(memory.used-m.base, 0)) / total,
		}
	}
}

// memoryUse puts in the frame memory of the machine where that is tighter than
// the cards'.
func (p *Pipeline) memoryUse(uses map[capacity.Resource]capacity.Use) {
	limit := p.budget.Limit()
	if limit <= 0 {
		return
	}
	share := float64(p.budget.Used()) / float64(limit)
	if device, ok := uses[capacity.Memory]; !ok || share > device.Total {
		uses[capacity.Memory] = capacity.Use{Total: share, Cameras: share}
	}
}

// kinds gives the live cameras.
func (p *Pipeline) kinds(now time.Time) (out []capacity.Kind) {
	for _, c := range p.sorted() {
		s := c.captureStatus()
		s.FPS = c.streamFPS(&s)
		if s.State != capture.Live || s.FPS <= 0 {
			continue
		}
		k := capacity.Kind{Width: s.Width, Height: s.Height, FPS: s.FPS, Codec: string(s.Codec), GPU: s.Decoder.Memory == "device"}
		if c.lane() != nil {
			k.DetectFPS = c.inferred.perSecond(now)
		}
		out = append(out, k)
	}
	return out
}

// Capacity says how many more cameras of a kind fit; nil means the mean of those
// that are live. What a kind leaves at 0 is the mean's.
func (p *Pipeline) Capacity(kind *capacity.Kind) web.Capacity {
	m := p.meters
	m.mu.Lock()
	uses, short := m.uses, m.watch.Short()
	m.mu.Unlock()
	out := web.Capacity{Shares: web.Shares{}}
	for r, use := range uses {
		share := use.Total
		switch r {
		case capacity.NVDEC:
			out.Shares.NVDEC = &share
		case capacity.GPU:
			out.Shares.GPU = &share
		case capacity.CPU:
			out.Shares.CPU = &share
		case capacity.Memory:
			out.Shares.Memory = &share
		case capacity.Link:
			out.Shares.Link = &share
		}
	}
	for _, r := range short {
		out.Short = append(out.Short, string(r))
	}
	load := capacity.Load{Cameras: p.kinds(p.now()), Uses: uses}
	k, ok := capacity.Mean(load.Cameras)
	if !ok || uses == nil {
		return out
	}
	k = k.With(kind)
	a := load.Ask(k)
	out.Kind = &web.CameraKind{Width: k.Width, Height: k.Height, FPS: k.FPS, DetectFPS: k.DetectFPS, Codec: k.Codec}
	if a.Known {
		out.CamerasMore, out.LimitedBy = &a.More, string(a.LimitedBy)
	}
	return out
}

// read takes the counters of the process and the machine.
func read(now time.Time) readings {
	r := readings{at: now}
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) == nil {
		r.process = time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return r
	}
	first, _, _ := strings.Cut(string(data), "\n")
	r.hostBusy, r.hostAll = ticksOf(first)
	return r
}

// ticksOf reads the line "cpu user nice system idle iowait irq softirq steal …".
func ticksOf(line string) (busy, all uint64) {
	const idle, iowait, steal = 3, 4, 7 // guest times behind are part of user's
	fields := strings.Fields(line)
	for i, text := range fields[min(1, len(fields)):] {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil || i > steal {
			break
		}
		all += n
		if i != idle && i != iowait {
			busy += n
		}
	}
	return busy, all
}
