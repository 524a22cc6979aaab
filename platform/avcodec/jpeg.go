package avcodec

import "fmt"

// maxJPEG is the largest side of a baseline JPEG.
const maxJPEG = 65535

// qscale maps a quality of 1 to 100, as people know it, to the quantiser scale
// of libavcodec's encoder: 31 to 2, the standard's tables at about 8. Below 2
// files grow without visible gain.
func qscale(quality int) int {
	q := min(max(quality, 1), 100)
	return 31 - ((q-1)*29+49)/99
}

func checkPlanes(w, h int, planes [3][]byte, strides [3]int) error {
	for i, p := range planes {
		cols, rows := w, h
		if i > 0 {
			cols, rows = (w+1)/2, (h+1)/2
		}
		if strides[i] < cols {
			return fmt.Errorf("plane %d: stride %d is less than its %d columns", i, strides[i], cols)
		}
		if need := strides[i]*(rows-1) + cols; len(p) < need {
			return fmt.Errorf("plane %d: %d bytes, %d needed", i, len(p), need)
		}
	}
	return nil
}
