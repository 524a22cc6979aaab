package pipeline

import "sync/atomic"

// drop is why a decoded frame was not inferred or its result not published.
type drop int

// The reasons; their words are part of the HTTP contract.
const (
	dropBusy drop = iota
	dropTooOld
	dropViewTooOld
	dropUnhealthy
	dropInferenceError
	dropCount
)

var dropWords = [dropCount]string{ //nolint:gochecknoglobals // constant table
	dropBusy:           "inference_busy",
	dropTooOld:         "too_old",
	dropViewTooOld:     "view_too_old",
	dropUnhealthy:      "model_unhealthy",
	dropInferenceError: "inference_error",
}

// drops counts dropped frames by reason.
type drops struct{ n [dropCount]atomic.Uint64 }

func (d *drops) add(r drop) { d.n[r].Add(1) }

// into adds the counts that are not zero to m.
func (d *drops) into(m map[string]uint64) {
	for r := range d.n {
		if n := d.n[r].Load(); n > 0 {
			m[dropWords[r]] += n
		}
	}
}
