package cameras

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"edgecam/internal/pipeline/schedule"
	"edgecam/web"
)

const (
	// mostApart is by how many percent a camera may be off its share.
	mostApart = 10
	// edge is how many pictures more or less are the edge of a trial, and say nothing of
	// a rate.
	edge = 1.5
)

// Share is what the cameras of one weight had, each on average.
type Share struct {
	Weight      float64 `json:"weight"`
	Cameras     int     `json:"cameras"`
	Idle        int     `json:"idle"` // at the end
	FPS         float64 `json:"fps"`
	ExpectedFPS float64 `json:"expected_fps"`
}

// Furthest is the camera that is furthest from its share; its name is empty where all
// are within the edge of the trial.
type Furthest struct {
	Camera      string  `json:"furthest"`
	FPS         float64 `json:"furthest_fps"`
	ExpectedFPS float64 `json:"furthest_expected_fps"`
	Percent     float64 `json:"furthest_percent"` // more than its share, or less
}

// moment is what the cameras asked for at one look, and on which card.
type moment struct {
	claims map[string]schedule.Claim
	cards  map[string]string
}

// watch follows the claims of the cameras and the memory through a trial. A nil one
// does not.
type watch struct {
	moments  []moment
	resident []int64

	took     float64            // seconds
	analysed map[string]float64 // pictures a second
}

func (w *watch) look(now []web.Camera, o *Options) {
	if w == nil {
		return
	}
	m := moment{claims: o.Pipeline.Claims(), cards: map[string]string{}}
	for _, c := range now {
		m.cards[c.ID] = c.GPU
	}
	w.moments = append(w.moments, m)
	w.resident = append(w.resident, o.resident())
}

func (w *watch) end(before, after []web.Camera, took float64) {
	if w == nil {
		return
	}
	was := map[string]uint64{}
	for _, c := range before {
		was[c.ID] = c.Inferred
	}
	w.took, w.analysed = took, map[string]float64{}
	for _, c := range after {
		w.analysed[c.ID] = float64(since(was[c.ID], c.Inferred)) / took
	}
}

// report fills in the memory and the shares.
func (w *watch) report(o *Overload) {
	o.ResidentStart, o.ResidentEnd, o.ResidentMost = w.resident[0], w.resident[len(w.resident)-1], slices.Max(w.resident)
	should := expected(w.moments, w.analysed)
	last := w.moments[len(w.moments)-1].claims
	o.Shares = byWeight(last, w.analysed, should)
	for _, s := range o.Shares {
		o.Idle += s.Idle
	}
	for id, c := range last {
		if slices.ContainsFunc(w.moments, func(m moment) bool { return m.claims[id].Idle != c.Idle }) {
			o.Changed++
		}
	}
	o.Furthest = furthest(w.analysed, should, w.took)
}

// expected is what each camera should have had of what was analysed in all: at each
// moment what the governor's rule leaves it of its card's, and of these the mean, as
// cameras become idle and cease to be.
func expected(moments []moment, analysed map[string]float64) map[string]float64 {
	all := map[string]float64{}
	for _, m := range moments {
		total, claims := map[string]float64{}, map[string][]schedule.Claim{}
		for id, c := range m.claims {
			card := m.cards[id]
			total[card] += analysed[id]
			claims[card] = append(claims[card], c)
		}
		level := map[string]float64{}
		for card := range claims {
			level[card] = schedule.Level(claims[card], total[card])
		}
		for id, c := range m.claims {
			all[id] += c.Share(level[m.cards[id]]) / float64(len(moments))
		}
	}
	return all
}

func byWeight(claims map[string]schedule.Claim, analysed, should map[string]float64) []Share {
	by := map[float64]*Share{}
	for id, c := range claims {
		s := by[c.Weight]
		if s == nil {
			s = &Share{Weight: c.Weight}
			by[c.Weight] = s
		}
		s.Cameras++
		s.FPS += analysed[id]
		s.ExpectedFPS += should[id]
		if c.Idle {
			s.Idle++
		}
	}
	out := []Share{}
	for _, s := range by {
		s.FPS /= float64(s.Cameras)
		s.ExpectedFPS /= float64(s.Cameras)
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b Share) int { return cmp.Compare(a.Weight, b.Weight) })
	return out
}

// furthest compares the cameras with their shares over so many seconds.
func furthest(analysed, should map[string]float64, seconds float64) (f Furthest) {
	for _, id := range slices.Sorted(maps.Keys(should)) {
		fps, share := analysed[id], should[id]
		if share == 0 || math.Abs(fps-share)*seconds < edge {
			continue
		}
		if percent := 100 * (fps/share - 1); math.Abs(percent) > math.Abs(f.Percent) {
			f = Furthest{Camera: id, FPS: fps, ExpectedFPS: share, Percent: percent}
		}
	}
	return f
}
