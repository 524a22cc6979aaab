package framepool

import "time"

// Meta describes the picture in a frame. It is fixed when the frame is
// published and never changes after.
type Meta struct {
	Camera string
	Seq    uint64 // counts the pictures that the camera's decoder gave, from 1

	Format        PixelFormat
	Width, Height int    // visible samples, after cropping
	Offset        [3]int // first visible sample of each plane, bytes from the start of the slot
	Stride        [3]int // bytes from one row to the next
	Range         Range
	Matrix        Matrix

	Received   time.Time // arrival of the last packet of the access unit (carries the monotonic clock)
	Decoded    time.Time // return from the decoder (monotonic)
	CapturedAt time.Time // wall clock: the camera's where it is sane, else the host's
	RTPTime    uint32    // RTP timestamp of the access unit, in the stream's clock rate
	KeyFrame   bool
}

// String names the kind as the HTTP contract does.
func (k MemoryKind) String() string {
	switch k {
	case MemoryHeap:
		return "heap"
	case MemoryPinned:
		return "pinned"
	case MemoryDevice:
		return "device"
	default:
		return "unknown"
	}
}
