package capture

import "sync/atomic"

// Why pictures that arrived were not decoded: the keys of Status.Dropped.
const (
	// DropOverflow counts access units that came while the decoder was behind.
	DropOverflow = "decode_overflow"
	// DropNoKeyFrame counts access units before the first one that decoding
	// can start at.
	DropNoKeyFrame = "no_key_frame"
	// DropDamaged counts access units that the decoder refused.
	DropDamaged = "decode_error"
)

// drops counts by reason. It may be used concurrently.
type drops struct {
	overflow, noKeyFrame, damaged atomic.Uint64
}

func (d *drops) add(reason string, n uint64) {
	switch reason {
	case DropOverflow:
		d.overflow.Add(n)
	case DropNoKeyFrame:
		d.noKeyFrame.Add(n)
	case DropDamaged:
		d.damaged.Add(n)
	default:
		panic("capture: unknown drop reason " + reason)
	}
}

// counts lists all reasons, those with no drop too: a counter that shows up
// late has no rate.
func (d *drops) counts() map[string]uint64 {
	return map[string]uint64{
		DropOverflow:   d.overflow.Load(),
		DropNoKeyFrame: d.noKeyFrame.Load(),
		DropDamaged:    d.damaged.Load(),
	}
}
