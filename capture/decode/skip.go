package decode

import (
	"sync"
	"sync/atomic"
	"time"

	"edgecam/capture"
)

// Skip says which pictures of a stream are left out before they are decoded.
type Skip int32

// The levels, each of which leaves out more. SkipNonReference leaves out what no
// other picture is made from: the rest is decoded as it would be otherwise.
const (
	SkipNothing Skip = iota
	SkipNonReference
	SkipNonKey
)

// Rates are the access units of a stream a second, 0 = not known yet. Key is told
// from the longest distance of late.
type Rates struct{ All, Reference, Key float64 }

const (
	rateUnits = 64 // that All and Reference are told from
	rateKeys  = 4  // that Key is told from
)

// skipper leaves access units out. Its counters belong to the decoding goroutine.
type skipper struct {
	codec  capture.Codec
	level  atomic.Int32
	sparse atomic.Bool // what is decoded depends on the next random access point

	behind bool // references were left out since the last random access point
	gap    bool // packets were lost before a unit that was left out
	layer  byte // H.265: the highest temporal layer
	late   bool // a key picture came out only with what followed it

	units, references int
	first             time.Time // of the units counted
	keys              []time.Time

	mu    sync.Mutex
	rates Rates // guarded by mu
}

// SetSkip changes what is left out, from the next access unit on. Whoever goes back
// to more pictures gets them from the next random access point on. A stream whose
// key pictures come out late keeps all that they wait for. It may be called from any
// goroutine.
func (d *Decoder) SetSkip(level Skip) { d.skip.level.Store(int32(level)) }

// Rates is how often access units come. It may be called from any goroutine.
func (d *Decoder) Rates() Rates {
	d.skip.mu.Lock()
	defer d.skip.mu.Unlock()
	return d.skip.rates
}

// Sparse implements capture.Sparing.
func (d *Decoder) Sparse() bool { return d.skip.sparse.Load() }

// leaves says whether the unit is left out.
func (s *skipper) leaves(au *capture.AccessUnit) bool {
	reference := s.reference(au.NALUs)
	s.count(au, reference)
	if au.RandomAccess {
		return false
	}
	level := Skip(s.level.Load())
	if level == SkipNonKey && s.late {
		level = SkipNothing
	}
	out := s.behind || level == SkipNonKey || level == SkipNonReference && !reference
	s.behind = s.behind || out && reference
	s.gap = s.gap || out && au.LossBefore
	s.sparse.Store(s.behind)
	return out
}

// lost says, once, whether the unit that is not left out misses something before it.
func (s *skipper) lost() bool {
	gap := s.gap
	s.gap = false
	return gap || s.behind
}

// decoded notes what became of a random access point: came says that its picture
// came out at once. Others are left out only behind one that did.
func (s *skipper) decoded(came bool) {
	if s.behind && !came {
		s.late = true
	}
	s.behind = false
	if Skip(s.level.Load()) != SkipNonKey || s.late {
		s.sparse.Store(false)
	}
}

// count learns the stream's rhythm.
func (s *skipper) count(au *capture.AccessUnit, reference bool) {
	if s.units == 0 {
		s.first = au.Received
	}
	if s.units == rateUnits {
		s.tell(au.Received)
		s.units, s.references, s.first = 0, 0, au.Received
	}
	s.units++
	if reference {
		s.references++
	}
	if !au.RandomAccess {
		return
	}
	if len(s.keys) == rateKeys {
		s.keys = append(s.keys[:0], s.keys[1:]...)
	}
	s.keys = append(s.keys, au.Received)
}

func (s *skipper) tell(now time.Time) {
	took := now.Sub(s.first).Seconds()
	if took <= 0 {
		return
	}
	r := Rates{All: float64(s.units) / took, Reference: float64(s.references) / took}
	longest := time.Duration(0)
	for i := 1; i < len(s.keys); i++ {
		longest = max(longest, s.keys[i].Sub(s.keys[i-1]))
	}
	if len(s.keys) > 1 {
		// The one that is due counts too: it may be late.
		longest = max(longest, now.Sub(s.keys[len(s.keys)-1]))
		r.Key = 1 / longest.Seconds()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rates = r
}

// reference says whether other pictures may be made from this one.
func (s *skipper) reference(nalus [][]byte) bool {
	picture := false
	for _, n := range nalus {
		switch s.codec {
		case capture.H264:
			if len(n) < 2 || kindH264(n) != kindSlice {
				continue
			}
			if n[0]>>5&3 != 0 {
				return true
			}
		case capture.H265:
			if len(n) < 3 || kindH265(n) != kindSlice {
				continue
			}
			// Pictures of an even type up to 14 are no references within their temporal
			// layer, Rec. ITU-T H.265 7.4.2.2; those of higher layers may use them.
			layer, t := n[1]&7, n[0]>>1&63
			s.layer = max(s.layer, layer)
			if t > 14 || t&1 != 0 || layer < s.layer {
				return true
			}
		default:
			return true
		}
		picture = true
	}
	return !picture // parameter sets alone are kept
}
