package framepool_test

import (
	"testing"

	"edgecam/framepool"
)

func TestPixelFormat(t *testing.T) {
	type plane struct{ cols, rows int }
	tests := []struct {
		f       framepool.PixelFormat
		name    string
		shiftX  uint
		shiftY  uint
		depth   int
		bytes   int
		semi    bool
		of5by3  []plane // planes of a 5×3 picture
		layout7 int     // size of a 70×2 layout
	}{
		{framepool.I420, "yuv420p", 1, 1, 8, 1, false, []plane{{5, 3}, {3, 2}, {3, 2}}, 2*128 + 64 + 64},
		{framepool.I422, "yuv422p", 1, 0, 8, 1, false, []plane{{5, 3}, {3, 3}, {3, 3}}, 2*128 + 2*64 + 2*64},
		{framepool.I444, "yuv444p", 0, 0, 8, 1, false, []plane{{5, 3}, {5, 3}, {5, 3}}, 6 * 128},
		{framepool.Gray8, "gray", 0, 0, 8, 1, false, []plane{{5, 3}}, 2 * 128},
		{framepool.I420P10, "yuv420p10le", 1, 1, 10, 2, false, []plane{{5, 3}, {3, 2}, {3, 2}}, 2*192 + 128 + 128},
		{framepool.I422P10, "yuv422p10le", 1, 0, 10, 2, false, []plane{{5, 3}, {3, 3}, {3, 3}}, 2*192 + 2*128 + 2*128},
		{framepool.I444P10, "yuv444p10le", 0, 0, 10, 2, false, []plane{{5, 3}, {5, 3}, {5, 3}}, 6 * 192},
		{framepool.Gray10, "gray10le", 0, 0, 10, 2, false, []plane{{5, 3}}, 2 * 192},
		{framepool.NV12, "nv12", 1, 1, 8, 1, true, []plane{{5, 3}, {6, 2}}, 2*128 + 128},
		{framepool.P010, "p010le", 1, 1, 10, 2, true, []plane{{5, 3}, {6, 2}}, 2*192 + 192},
		{framepool.FormatUnknown, "unknown(0)", 0, 0, 0, 0, false, nil, 0},
		{framepool.PixelFormat(99), "unknown(99)", 0, 0, 0, 0, false, nil, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x, y := tt.f.ChromaShift()
			if tt.f.String() != tt.name || x != tt.shiftX || y != tt.shiftY || tt.f.BitDepth() != tt.depth ||
				tt.f.SampleBytes() != tt.bytes || tt.f.SemiPlanar() != tt.semi || tt.f.Planes() != len(tt.of5by3) {
				t.Errorf("%v: shift %d %d, depth %d, bytes %d, semi %v, planes %d",
					tt.f, x, y, tt.f.BitDepth(), tt.f.SampleBytes(), tt.f.SemiPlanar(), tt.f.Planes())
			}
			for i := -1; i < 4; i++ {
				want := plane{}
				if i >= 0 && i < len(tt.of5by3) {
					want = tt.of5by3[i]
				}
				if c, r := tt.f.PlaneSize(i, 5, 3); (plane{c, r}) != want {
					t.Errorf("plane %d of 5×3 is %d×%d, want %v", i, c, r, want)
				}
			}
			l, err := framepool.NewLayout(tt.f, 70, 2)
			if (err == nil) != (tt.depth != 0) || l.Size != tt.layout7 {
				t.Errorf("layout %+v, %v, want %d bytes", l, err, tt.layout7)
			}
			if err == nil && l.Validate() != nil {
				t.Errorf("own layout is not valid: %v", l.Validate())
			}
		})
	}
}

func TestNewLayoutRefuses(t *testing.T) {
	for _, tt := range []struct {
		f    framepool.PixelFormat
		w, h int
		err  string
	}{
		{framepool.FormatUnknown, 1, 1, "lay out picture: pixel format unknown(0)"},
		{framepool.I420, 0, 1, "lay out picture: size 0×1, want 1 to 32768 a side"},
		{framepool.I420, 1, 32769, "lay out picture: size 1×32769, want 1 to 32768 a side"},
	} {
		if _, err := framepool.NewLayout(tt.f, tt.w, tt.h); err == nil || err.Error() != tt.err {
			t.Errorf("got %v, want %s", err, tt.err)
		}
	}
}

func TestFormatBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 1<<20 - 1: "1.0 MiB", 1 << 20: "1.0 MiB",
		50e9: "46.6 GiB", 1 << 62: "4.0 EiB",
	} {
		if got := framepool.FormatBytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestMemoryKindNames(t *testing.T) {
	for k, want := range map[framepool.MemoryKind]string{
		framepool.MemoryHeap: "heap", framepool.MemoryPinned: "pinned", framepool.MemoryDevice: "device", 9: "unknown",
	} {
		if k.String() != want {
			t.Errorf("%d: %v, want %s", k, k, want)
		}
	}
}
