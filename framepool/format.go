package framepool

// PixelFormat is the layout of a picture's samples. All formats are YCbCr or
// luma only; 10-bit samples are little-endian 16-bit words with the value in
// the low bits (high bits for P010), as libavutil lays them out.
type PixelFormat uint8

// The formats that a slot may hold.
const (
	FormatUnknown PixelFormat = iota
	I420                      // planar 4:2:0, 8 bit (yuv420p, yuvj420p)
	I422                      // planar 4:2:2, 8 bit (yuv422p, yuvj422p)
	I444                      // planar 4:4:4, 8 bit (yuv444p, yuvj444p)
	Gray8                     // luma only, 8 bit
	I420P10                   // planar 4:2:0, 10 bit in 16 (yuv420p10le)
	I422P10                   // planar 4:2:2, 10 bit in 16 (yuv422p10le)
	I444P10                   // planar 4:4:4, 10 bit in 16 (yuv444p10le)
	Gray10                    // luma only, 10 bit in 16 (gray10le)
	NV12                      // semi-planar 4:2:0, 8 bit, CbCr interleaved
	P010                      // semi-planar 4:2:0, 10 bit in the high bits of 16
)

// Range says how luma and chroma codes map to light: Limited is 16..235 and
// 16..240 (8 bit), Full is 0..255.
type Range uint8

// The two ranges. Streams that carry no tag are Limited (ITU-T H.264 E.2.1:
// video_full_range_flag absent means 0), except MJPEG, which is Full (JFIF).
const (
	RangeLimited Range = iota
	RangeFull
)

// Matrix is the luma/chroma matrix of a picture.
type Matrix uint8

// The matrices that streams name. An untagged stream is BT.601 below 720
// lines and BT.709 from there on, the convention of players.
const (
	MatrixBT601 Matrix = iota
	MatrixBT709
	MatrixBT2020
)

// MemoryKind says where a frame's samples lie.
type MemoryKind uint8

// The kinds of memory.
const (
	MemoryHeap   MemoryKind = iota // ordinary process memory, unlocked
	MemoryPinned                   // locked pages of a pool's region
	MemoryDevice                   // GPU memory; planes have no host bytes
)

// Layout places the planes of a picture in a slot. Offsets, strides and Size
// are bytes; Width and Height are the allocated (coded, aligned) samples of
// plane 0. Strides are multiples of 64.
type Layout struct {
	Format        PixelFormat
	Width, Height int
	Offset        [3]int
	Stride        [3]int
	Size          int
}
