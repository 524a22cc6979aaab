package track

import (
	"cmp"
	"math"
	"slices"
	"time"

	"edgecam/infer"
)

const (
	// nearly is the least overlap of a prediction and a strong detection.
	nearly = 0.2
	// surely is the least overlap with a detection that is not strong.
	surely = 0.45
	// around is the least overlap of boxes that are widened for the third try.
	around = 0.15
	// wide is how far the third try widens boxes, in sizes to each side: when
	// few pictures a second are analysed, a person leaves his box between two.
	wide = 0.5
	// stale is what a second of absence costs a track in overlap, against one
	// that was seen in the picture before.
	stale = 0.3
	// defaultTracks bounds the tracks of a camera.
	defaultTracks = 512
)

// Options steer a tracker.
type Options struct {
	// Strong gives the score from which a detection of a class may begin a
	// track. Weaker ones only go on with one and are dropped otherwise. Nil:
	// all are strong.
	Strong func(class int) float32
	// MaxGap is how long an object may be unseen and keep its id. It defaults
	// to 1 s. A track also lives through one missing picture, however few come.
	MaxGap time.Duration
	// MaxTracks bounds the tracks; what is seen beyond has id 0. It defaults to 512.
	MaxTracks int
}

// Object is a detection with its id.
type Object struct {
	infer.Detection
	ID        uint64 // 0: seen for the first time, or beyond MaxTracks
	Confirmed bool   // seen in at least 3 pictures
}

// Tracker follows the objects of one camera.
type Tracker struct {
	opts   Options
	tracks []track
	last   time.Time
	every  time.Duration // smoothed time between pictures
	lastID uint64

	// Of the current picture, kept for their memory.
	owner []int // of each detection: its track, or one of the marks below
	pairs []pair
}

// Marks in owner.
const (
	free    = -1 // no track yet
	broken  = -2 // no box
	dropped = -3 // weak and of no track
)

type pair struct {
	track, detection int
	overlap          float32
}

// New makes a tracker without tracks.
func New(opts Options) *Tracker {
	if opts.Strong == nil {
		opts.Strong = func(int) float32 { return 0 }
	}
	if opts.MaxGap <= 0 {
		opts.MaxGap = time.Second
	}
	if opts.MaxTracks <= 0 {
		opts.MaxTracks = defaultTracks
	}
	return &Tracker{opts: opts}
}

// Update takes the detections of one picture, boxes in fractions of it, and
// appends the objects to dst: the strong detections and those weak ones that go
// on with a track, in the order of dets. at is the time of the picture on one
// monotonic clock.
func (t *Tracker) Update(dst []Object, at time.Time, dets []infer.Detection) []Object {
	dt := t.tick(at)
	t.tracks = slices.DeleteFunc(t.tracks, func(k track) bool { return t.gone(&k, at) })
	for i := range t.tracks {
		t.tracks[i].predict(dt.Seconds())
		t.tracks[i].missed++
	}
	t.owner = t.owner[:0]
	for i := range dets {
		t.owner = append(t.owner, free)
		if !isBox(&dets[i]) {
			t.owner[i] = broken
		}
	}
	t.pair(at, dets, true, nearly, 0)
	t.pair(at, dets, false, surely, 0)
	t.pair(at, dets, true, around, wide)
	t.begin(at, dets)
	return t.objects(dst, dets)
}

// tick moves the clock and gives the time passed, never less than 0.
func (t *Tracker) tick(at time.Time) time.Duration {
	dt := max(at.Sub(t.last), 0)
	if t.last.IsZero() {
		dt = 0
	}
	if dt > 0 || t.last.IsZero() {
		t.last = at
	}
	switch {
	case dt == 0:
	case t.every == 0:
		t.every = dt
	default:
		t.every += (min(dt, 4*t.every) - t.every) / 8
	}
	return dt
}

// gone tells whether a track has been unseen for too long.
func (t *Tracker) gone(k *track, at time.Time) bool {
	gap := t.opts.MaxGap
	if k.id == 0 { // it may have been a mistake of the detector
		gap /= 3
	}
	return at.Sub(k.lastSeen) > max(gap, t.every*5/2)
}

// pair joins free tracks and detections of one class, best overlap first.
// Boxes are widened by margin sizes on each side before.
func (t *Tracker) pair(at time.Time, dets []infer.Detection, strong bool, least, margin float32) {
	t.pairs = t.pairs[:0]
	for i := range dets {
		d := &dets[i]
		if t.owner[i] != free || strong && d.Score < t.opts.Strong(d.Class) {
			continue
		}
		seen := widened(d, margin)
		for k := range t.tracks {
			tr := &t.tracks[k]
			if tr.taken || tr.class != d.Class || margin > 0 && !alike(&tr.box, d) {
				continue
			}
			expected := widened(&tr.box, margin)
			if overlap := infer.IoU(&expected, &seen); overlap >= least {
				overlap -= stale * float32(max(at.Sub(tr.lastSeen)-t.every*3/2, 0).Seconds())
				t.pairs = append(t.pairs, pair{k, i, overlap})
			}
		}
	}
	slices.SortFunc(t.pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(b.overlap, a.overlap), cmp.Compare(a.track, b.track), cmp.Compare(a.detection, b.detection))
	})
	for _, p := range t.pairs {
		if tr := &t.tracks[p.track]; !tr.taken && t.owner[p.detection] == free {
			tr.see(&dets[p.detection], at)
			t.owner[p.detection] = p.track
		}
	}
}

// begin makes tracks of the strong detections that are left, best first.
func (t *Tracker) begin(at time.Time, dets []infer.Detection) {
	for {
		best := -1
		for i := range dets {
			if t.owner[i] == free && (best < 0 || dets[i].Score > dets[best].Score) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		d := &dets[best]
		t.owner[best] = dropped
		if d.Score < t.opts.Strong(d.Class) {
			continue
		}
		t.owner[best] = broken // shown without a track
		if k := t.room(); k >= 0 {
			t.tracks[k] = newTrack(d, at)
			t.owner[best] = k
		}
	}
}

// room finds a place for a new track: a new one, or that of the track that has
// been unseen the longest. -1: all are in view.
func (t *Tracker) room() int {
	if len(t.tracks) < t.opts.MaxTracks {
		t.tracks = append(t.tracks, track{})
		return len(t.tracks) - 1
	}
	oldest := -1
	for k := range t.tracks {
		if !t.tracks[k].taken && (oldest < 0 || t.tracks[k].lastSeen.Before(t.tracks[oldest].lastSeen)) {
			oldest = k
		}
	}
	return oldest
}

// objects gives ids to tracks seen a second time and appends what is shown.
func (t *Tracker) objects(dst []Object, dets []infer.Detection) []Object {
	for i := range dets {
		switch k := t.owner[i]; k {
		case dropped:
		case broken:
			dst = append(dst, Object{Detection: dets[i]})
		default:
			tr := &t.tracks[k]
			if tr.id == 0 && tr.hits >= 2 {
				t.lastID++
				tr.id = t.lastID
			}
			dst = append(dst, Object{Detection: dets[i], ID: tr.id, Confirmed: tr.hits >= 3})
		}
	}
	return dst
}

// widened is a box with margin sizes more on each side.
func widened(d *infer.Detection, margin float32) infer.Detection {
	w, h := (d.X2-d.X1)*margin, (d.Y2-d.Y1)*margin
	return infer.Detection{X1: d.X1 - w, Y1: d.Y1 - h, X2: d.X2 + w, Y2: d.Y2 + h}
}

// alike tells whether two boxes are about as large: widened boxes of a near and
// a far person overlap easily.
func alike(a, b *infer.Detection) bool {
	ratio := (a.Y2 - a.Y1) / (b.Y2 - b.Y1)
	return ratio > 0.6 && ratio < 1/0.6
}

// isBox tells whether a box has an area and finite edges.
func isBox(d *infer.Detection) bool {
	sum := float64(d.X1) + float64(d.Y1) + float64(d.X2) + float64(d.Y2)
	return d.X2 > d.X1 && d.Y2 > d.Y1 && !math.IsInf(sum, 0) && !math.IsNaN(sum) && d.Score == d.Score
}
