package sim

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/pion/rtp"
)

// crowd is how many cameras a server has before they begin apart from each
// other. All cameras begin with a key frame when somebody comes to watch: the
// key frames of hundreds would fall together for as long as they play, which
// real cameras, with clocks of their own, do not do.
const crowd = 16

// longestWait bounds how long a camera of a crowd waits for its place.
const longestWait = 2 * time.Second

// pacer sends the pictures of all healthy cameras when they are due: one timer
// and one goroutine, where a timer and a goroutine for each camera would cost
// more than the sending.
type pacer struct {
	wake chan struct{} // cap 1: there is a new first in line

	mu      sync.Mutex
	waiting plays
}

func newPacer() *pacer { return &pacer{wake: make(chan struct{}, 1)} }

// play is a healthy camera that is being watched.
type play struct {
	cam    *camera
	due    time.Time // of what comes next
	start  time.Time // of the clip's place from
	from   time.Duration
	loop   time.Duration // clip time that whole loops have taken
	report time.Time     // when a sender report is due
	offset uint16        // from the clip's sequence numbers to the camera's
	packet rtp.Packet    // the copy of the header that is sent

	index int // in the heap; -1 = not in it. Guarded by pacer.mu
}

// add has a camera played from its next random access point on, after its wait.
func (p *pacer) add(c *camera) *play {
	now := time.Now()
	for !c.clip.Samples[c.pos].RandomAccess {
		c.pos = (c.pos + 1) % len(c.clip.Samples)
	}
	start := now.Add(c.wait)
	r := &play{
		cam: c, due: start, start: start, from: c.clip.Samples[c.pos].DTS, report: start.Add(reportPeriod),
		offset: c.sequence - c.shared.samples[c.pos][0].SequenceNumber,
	}
	p.mu.Lock()
	heap.Push(&p.waiting, r)
	first := r.index == 0
	p.mu.Unlock()
	if first {
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
	return r
}

// remove ends a play. Nothing of it is sent any more when it returns.
func (p *pacer) remove(r *play) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.index >= 0 {
		heap.Remove(&p.waiting, r.index)
	}
}

// run sends until ctx ends.
func (p *pacer) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-p.wake:
		}
		if wait, any := p.send(time.Now); any {
			timer.Reset(wait)
		}
	}
}

// send sends what is due, the longest overdue first, and gives the time until
// the next; false when there is none.
func (p *pacer) send(now func() time.Time) (wait time.Duration, any bool) {
	for {
		p.mu.Lock()
		if len(p.waiting) == 0 {
			p.mu.Unlock()
			return 0, false
		}
		r := p.waiting[0]
		if wait = r.due.Sub(now()); wait > 0 {
			p.mu.Unlock()
			return wait, true
		}
		// The lock is held while it sends, which does not wait: remove relies on it.
		r.step()
		heap.Fix(&p.waiting, 0)
		p.mu.Unlock()
	}
}

// step sends the next picture, and a report where one is due.
func (r *play) step() {
	c := r.cam
	s := &c.clip.Samples[c.pos]
	at := r.start.Sub(c.epoch) + r.loop - r.from
	r.picture(c.base + ticks(at+s.PTS))
	if c.pos++; c.pos == len(c.clip.Samples) {
		c.pos = 0
		r.loop += c.clip.Duration
		r.offset += c.shared.total
	}
	r.due = r.start.Add(r.loop - r.from + c.clip.Samples[c.pos].DTS)
	if !r.due.Before(r.report) {
		c.report()
		r.report = r.report.Add(reportPeriod)
	}
}

func (r *play) picture(timestamp uint32) {
	c := r.cam
	packets := c.shared.samples[c.pos]
	for i := range packets {
		r.packet = packets[i]
		r.packet.SequenceNumber += r.offset
		r.packet.Timestamp = timestamp
		c.write(&r.packet)
	}
	c.sequence = r.packet.SequenceNumber + 1
}

// plays is a heap, the one that is due first at its top.
type plays []*play

// Len implements heap.Interface.
func (h plays) Len() int { return len(h) }

// Less implements heap.Interface.
func (h plays) Less(i, j int) bool { return h[i].due.Before(h[j].due) }

// Swap implements heap.Interface.
func (h plays) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *plays) Push(x any) {
	r := x.(*play) //nolint:forcetypeassert // the heap holds nothing else
	r.index = len(*h)
	*h = append(*h, r)
}

// Pop implements heap.Interface.
func (h *plays) Pop() any {
	old := *h
	r := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	r.index = -1
	return r
}

// waitOf is how long camera index of a crowd waits before it begins, so that
// the key frames of all are spread over the time between two.
func waitOf(clip *ClipData, index, of int) time.Duration {
	if of <= crowd {
		return 0
	}
	keys := 0
	for _, s := range clip.Samples {
		if s.RandomAccess {
			keys++
		}
	}
	between := min(clip.Duration/time.Duration(max(keys, 1)), longestWait)
	// Steps of the golden section fall evenly, whichever of the cameras play.
	const section = 0.6180339887498949
	place := float64(index) * section
	return time.Duration(float64(between) * (place - float64(int(place))))
}
