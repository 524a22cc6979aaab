package schedule

import "time"

// minLead is how long before its predicted end a batch in flight is followed by
// the next one, at least: what a timer may be late.
const minLead = time.Millisecond

// Flight follows the batches of one engine queue, to begin each neither late, as
// the engine would idle, nor early, as frames that are still to come would miss
// it. Batches end in the order they were begun.
type Flight struct {
	times *Times

	begun []begun       // those that have not ended, the oldest first
	lead  time.Duration // smoothed time that beginning one takes
	ended time.Time     // of the last that ended
}

type begun struct {
	n    int
	from time.Time
	end  time.Time // predicted
	// held says that the engine does not work on it before somebody waits for it.
	held  bool
	blind bool // it cannot be predicted
}

// NewFlight is for an engine that times describe.
func NewFlight(times *Times) *Flight { return &Flight{times: times, lead: minLead} }

// Depth is how many batches are in flight.
func (f *Flight) Depth() int { return len(f.begun) }

// Held says whether the last batch in flight is only worked on once somebody waits for
// its end.
func (f *Flight) Held() bool { return len(f.begun) > 0 && f.begun[len(f.begun)-1].held }

// Begun notes that a batch of n was begun between from and to. held says that it is
// only worked on once somebody waits for its end.
func (f *Flight) Begun(n int, from, to time.Time, held bool) {
	f.lead = max(minLead, f.lead+time.Duration(smooth*float64(minLead+to.Sub(from)-f.lead)))
	start := from
	if len(f.begun) > 0 {
		if last := f.begun[len(f.begun)-1].end; last.After(start) {
			start = last
		}
	}
	took := f.times.Of(n)
	f.begun = append(f.begun, begun{n: n, from: from, end: start.Add(took), held: held, blind: held || took == 0})
}

// Finished notes that the oldest batch has ended: at the moment at, or before it if
// nobody waited for it. took is what the engine itself says it was at it, 0 where it
// does not tell. It teaches Times, and gives how long the engine took.
//
// Whoever begins the next batch by the prediction of this one's end finds it ended
// then. A moment like that says nothing of an engine that was faster than predicted, so
// that only its own word lets a prediction which was once too long become shorter.
func (f *Flight) Finished(at time.Time, waited bool, took time.Duration) time.Duration {
	b := f.pop()
	start := b.from
	if f.ended.After(start) {
		start = f.ended // the engine was at the one before until then
	}
	bound := at.Sub(start)
	switch {
	case took > 0:
		f.times.Observe(b.n, took)
		if end := start.Add(took); !waited && end.Before(at) {
			at = end
		}
	case waited:
		took = bound
		f.times.Observe(b.n, took)
	default:
		took = bound
		f.times.ObserveAtMost(b.n, bound)
	}
	f.ended = at
	f.predict(at)
	return took
}

// Failed notes that the oldest batch gave nothing. It teaches nothing.
func (f *Flight) Failed(at time.Time) {
	f.pop()
	f.ended = at
	f.predict(at)
}

func (f *Flight) pop() begun {
	b := f.begun[0]
	f.begun = append(f.begun[:0], f.begun[1:]...)
	return b
}

// predict tells anew when the batches in flight end, from when the engine could come
// to the first of them.
func (f *Flight) predict(from time.Time) {
	for i := range f.begun {
		b := &f.begun[i]
		if b.from.After(from) {
			from = b.from
		}
		took := f.times.Of(b.n)
		from = from.Add(took)
		b.end, b.blind = from, b.held || took == 0
	}
}

// Wait is how long the next batch stays open, 0 = it is to be begun now, if there
// are frames for it. waiting frames wait by now, the most urgent of them with its
// deadline at due, and room is what the batch holds.
//
// An idle engine takes what there is: one camera alone never waits for others. A
// busy one is given its next batch shortly before it is predicted to end, when the
// batch is full, or at the frame's deadline if that comes first and can still be
// met. One whose deadline is lost gains nothing from a batch that others miss. Behind a
// batch that somebody must wait for before the engine works on it nothing stays open.
func (f *Flight) Wait(now time.Time, waiting, room int, due time.Time) time.Duration {
	if len(f.begun) == 0 || waiting >= room {
		return 0
	}
	last := f.begun[len(f.begun)-1]
	if last.blind {
		return 0
	}
	at := last.end.Add(-f.lead)
	if latest := f.latest(waiting, due); waiting > 0 && latest.Before(at) && !latest.Before(now) {
		at = latest
	}
	return max(at.Sub(now), 0)
}

// latest is when a batch of n must be begun for a frame to be done at due.
func (f *Flight) latest(n int, due time.Time) time.Time { return due.Add(-f.times.Of(n) - f.lead) }

// Fill is how many of the frames that wait the next batch takes, see Times.Fill; room is
// what it holds.
func (f *Flight) Fill(waiting, room int) int { return f.times.Fill(min(waiting, room)) }

// Crowded says whether an engine has enough to do, so that what can wait for another
// moment should: its workers, each of which takes batches of up to most, have half of
// what they can hold. Workers that run beside each other take longer each, and what
// fills a batch up makes all of it later.
func Crowded(waiting, busy, workers, most int) bool { return waiting+busy >= (workers*most+1)/2 }
