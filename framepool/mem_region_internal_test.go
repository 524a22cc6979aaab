package framepool

import "testing"

// TestPlansKeepToPages: kernels for arm64 have pages of 4, 16 or 64 KiB, and take
// access away, lock and map by whole ones. 2 MiB hold a whole number of each.
func TestPlansKeepToPages(t *testing.T) {
	for _, page := range []int{4 << 10, 16 << 10, 64 << 10} {
		for _, size := range []int{1, 64, 4096, 4160, 65536, 65536 + 64, 3110400} {
			for _, slots := range []int{1, 2, 7, 1100} {
				for _, huge := range []bool{false, true} {
					stride := GuardNone.stride(size, page)
					p := planRegion(stride*slots, slots, page, huge)
					switch {
					case stride < size || stride%slotAlign != 0:
						t.Errorf("page %d, size %d: stride %d", page, size, stride)
					case p.pixels%page != 0 || p.words%page != 0 || p.guard != page:
						t.Errorf("page %d, size %d: %+v breaks pages", page, size, p)
					case p.pixels < stride*slots || p.words < slots*wordStride:
						t.Errorf("page %d, size %d, %d slots: %+v is too small", page, size, slots, p)
					case p.most() < p.total():
						t.Errorf("page %d, size %d, %d slots: %d bytes are the most of %d", page, size, slots, p.most(), p.total())
					}
				}
			}
			for _, g := range []Guard{GuardAbove, GuardBelow} {
				if stride := g.stride(size, page); stride%page != 0 || stride-page < size {
					t.Errorf("page %d, guard %d, size %d: stride %d", page, g, size, stride)
				}
			}
		}
	}
}
