package schedule

import (
	"math"
	"time"
)

const (
	// youngLeast is what timers are late.
	youngLeast = time.Millisecond
	// busyPart is how busy an engine may be with batches that suffice.
	busyPart = 0.8
	// waits is how long a batch waits for young frames, in times of how long one is young,
	// where so many turns wait that none is missed.
	waits = 2
	// mostChosen is the part of the pictures, of all cameras or of one, that may be due:
	// more leaves nothing to choose. On processors, which wait for a young one for longer,
	// it is mostOnCores of all.
	mostChosen, mostOnCores = 0.7, 0.35
	// mostTries is how many newer pictures a turn lets pass before it is done with one
	// that is twice as old, and so on, mostDoubled times: so nobody starves.
	mostTries, mostDoubled = 8, 8
	// mostOwed is how many turns a camera may be behind.
	mostOwed = 2
	// silence is how long after its last picture, in times of what they are apart, a
	// camera is not expected to send a newer one.
	silence = 1.5
	// farApart is how far apart pictures are of a camera whose next one is not worth
	// waiting for: the engine comes to this one long before.
	farApart = 250 * time.Millisecond
)

// Choice is how an engine that is asked for more than it can do chooses among the
// pictures, of which it has more than enough then. A camera's turn is done with the
// picture that is there when the engine comes to it, not with the one that came when it
// was due. A frame that has grown old meanwhile waits for its camera's next one, which
// takes its place and keeps its turn, and the engine for the next young frame: so frames
// are hardly older than one that meets a free engine. The zero value is an engine that
// does what it is asked for, which chooses nothing.
type Choice struct {
	Young time.Duration // by which a frame may be older than usual and be taken; 0 = no choice
	Most  int           // frames in a batch
	Width int           // workers that are busy at once
}

// Choice is for an engine of so many workers whose governor is in a state after a window.
// An engine that has to do fewer pictures than there are runs the smallest batches, and as
// few of them at once, as suffice: all of a batch are as late as its last, and runs beside
// each other, and beside the decoders, take longer. What is young enough is so many frames
// that a batch finds its own among them.
func (t *Times) Choice(s GovernorState, w Window, workers int) Choice {
	rate, sent := s.Allowed, float64(w.Sent)/w.Length.Seconds()
	part, young := mostOnCores, onCores
	if w.Apart {
		part, young = mostChosen, onCard
	}
	if !s.Reducing || rate > part*sent {
		return Choice{}
	}
	c := Choice{Most: 1}
	for c.Most < t.most && t.busy(rate, c.Most) > float64(workers) {
		c.Most = min(2*c.Most, t.most)
	}
	c.Width = max(min(int(math.Ceil(t.busy(rate, c.Most))), workers), 1)
	c.Young = max(young(t.Of(c.Most), time.Duration(float64(c.Most)/sent*float64(time.Second))), youngLeast)
	return c
}

// onCard is how long a frame stays young beyond its camera's usual age, of the time of a
// run and that in which as many pictures come as a batch takes. A batch finds its own among
// twice as many, as not all of them are of cameras that have a turn.
func onCard(run, coming time.Duration) time.Duration { return max(run/4, 2*coming) }

// onCores is that on processors, where a run takes long and frames that wait for it are
// much of what makes pictures older than at ease.
func onCores(run, coming time.Duration) time.Duration { return max(run/5, coming) }

// LeaveCores is how many of the workers may be busy at once on so many processors while
// the engine chooses. A run beside others and beside the decoders takes longer, so that
// these, which have the other pictures, are left a quarter of the processors, or one.
func LeaveCores(workers, processors int) int {
	return max(min(workers, processors-(processors+3)/4), 1)
}

// Chosen is the load of an engine that works by a choice, of what so many workers can do
// that way, 0 of one that does not: a batch waits for young frames too. What is allowed
// bounds it, as a window may have some more by chance. On a card it is the whole engine
// that counts: more frames make larger batches there, and slow no decoder.
func (t *Times) Chosen(c Choice, s GovernorState, w Window, workers int) float64 {
	if c.Young == 0 || w.Apart {
		return 0
	}
	run := t.Of(c.Most)
	wait := min(waits*c.Young, run/2)
	return min(w.rate(), s.Allowed) * (run + wait).Seconds() / float64(c.Most*workers)
}

// busy is how many workers rate pictures a second take in batches of n.
func (t *Times) busy(rate float64, n int) float64 {
	return rate * t.Of(n).Seconds() / (busyPart * float64(n))
}

// Sent is a frame that a camera has sent.
type Sent struct {
	Received time.Time
	Decoded  time.Time     // when it left its decoder
	Due      time.Time     // its deadline
	Apart    time.Duration // the camera's pictures, 0 = not known
	Rate     float64       // pictures a second that are due, 0 = all
}

// chosen is what a choice knows of a lane.
type chosen struct {
	sent  Sent
	usual time.Duration // that the camera's frames are old when they leave the decoder; 0 = not known
	tries int           // newer frames that took the place of the one of the turn
	owed  int           // turns that are still to be done
}

// saw takes a frame in.
func (c *chosen) saw(s Sent) {
	c.late(s)
	c.sent = s
}

// late notes how old a frame is that has left the decoder. While the engine chooses it is
// told of all frames, as those that are taken are few: what the start of a decoder held up
// would count for long.
func (c *chosen) late(s Sent) {
	delay := s.Decoded.Sub(s.Received)
	if c.usual == 0 {
		c.usual = delay
	}
	c.usual += time.Duration(smooth * float64(delay-c.usual))
}

// ripe is from when on the waiting frame is taken: now if it is young, if enough newer
// ones have come, or if the camera has none to spare, else when none is to be expected.
func (c *chosen) ripe(now time.Time, young time.Duration) time.Time {
	s := &c.sent
	spares := s.Rate > 0 && s.Rate*s.Apart.Seconds() <= mostChosen && s.Apart <= farApart
	if !spares || now.Sub(s.Received) <= c.usual+young<<min(c.tries/mostTries, mostDoubled) {
		return now
	}
	return s.Received.Add(c.usual + time.Duration(silence*float64(s.Apart)))
}

// Choose has the engine choose from now on, or no more.
func (b *Board[T]) Choose(c Choice) { b.young = c.Young }

// Choosing says whether it does.
func (b *Board[T]) Choosing() bool { return b.young > 0 }

// Newer notes a frame that is not due. It reports whether the lane takes it, in place of
// the one that waits there or for a turn that is owed: only of an engine that chooses.
func (b *Board[T]) Newer(l *Lane[T], s Sent) bool {
	if b.young == 0 || l.closed {
		return false
	}
	if !l.waiting && l.owed == 0 {
		l.late(s)
		return false
	}
	if l.waiting {
		l.tries++
	} else {
		l.owed--
		l.wait(s)
	}
	l.saw(s)
	b.queue(l)
	return true
}

// Ready is how many lanes may be served now. later is when the first of the others
// may, if its camera sends nothing: the zero time if there is none.
func (b *Board[T]) Ready(now time.Time) (n int, later time.Time) {
	if b.young == 0 {
		return len(b.heap), later
	}
	for _, l := range b.heap {
		switch ripe := l.ripe(now, b.young); {
		case !ripe.After(now):
			n++
		case later.IsZero() || ripe.Before(later):
			later = ripe
		}
	}
	return n, later
}

// first is the lane to be served first, nil if there is none.
func (b *Board[T]) first(now time.Time) (first *Lane[T]) {
	if b.young == 0 && len(b.heap) > 0 {
		return b.heap[0]
	}
	for _, l := range b.heap {
		if (first == nil || l.due.Before(first.due)) && !l.ripe(now, b.young).After(now) {
			first = l
		}
	}
	return first
}
