package avcodec

// Format is a pixel format that a decoder may give. The J formats are full
// range by definition.
type Format uint8

// The formats.
const (
	FormatNone Format = iota
	YUV420P
	YUVJ420P
	YUV422P
	YUVJ422P
	YUV444P
	YUVJ444P
	Gray
	YUV420P10
	YUV422P10
	YUV444P10
	Gray10
	NV12 // semi-planar, from GPUs and other hardware
	P010 // the same with 10 bits, in the high ones of 16
)

// String is FFmpeg's name of the format.
func (f Format) String() string {
	names := [...]string{
		"none", "yuv420p", "yuvj420p", "yuv422p", "yuvj422p", "yuv444p", "yuvj444p",
		"gray", "yuv420p10le", "yuv422p10le", "yuv444p10le", "gray10le",
		"nv12", "p010le",
	}
	if int(f) >= len(names) {
		return "unknown"
	}
	return names[f]
}

// Matrix is the luma/chroma matrix of a picture, as ITU-T H.273 numbers them.
type Matrix uint8

// The matrices that matter; others come through as they are.
const (
	MatrixRGB         Matrix = 0
	MatrixBT709       Matrix = 1
	MatrixUnspecified Matrix = 2
	MatrixFCC         Matrix = 4
	MatrixBT470BG     Matrix = 5 // the same matrix as SMPTE 170M: "BT.601"
	MatrixSMPTE170M   Matrix = 6
	MatrixSMPTE240M   Matrix = 7
	MatrixBT2020NCL   Matrix = 9
	MatrixBT2020CL    Matrix = 10
)

// Request says what one slot must hold for the pictures that come next. Offset,
// Stride and Size are bytes; strides and offsets are multiples of 64.
type Request struct {
	Format        Format
	Width, Height int // samples of plane 0, rounded up as libavcodec demands
	Offset        [3]int
	Stride        [3]int
	Size          int
}

// Ring is memory for pictures, outside the Go heap: Slots slots, SlotStride
// bytes apart from Base on, and one 64-bit control word a slot, WordStride
// bytes apart from Words on (low 32 bits: references, high 32 bits:
// generation). Base and SlotStride are multiples of 64.
type Ring struct {
	ID         uint64 // comes back in Picture.Ring
	Words      uintptr
	WordStride int
	Base       uintptr
	SlotStride int
	Slots      int
}

// Allocate gives the decoder a ring for pictures of another geometry. From the
// call on, whatever it returns, the decoder takes no slot of the ring before;
// pictures that lie there stay until libavcodec drops them. An error fails
// the access unit and comes out of Decode, wrapped.
type Allocate func(Request) (Ring, error)

// Picture is a decoded picture that lies in a slot or, if Device says so, in
// the memory of a GPU.
type Picture struct {
	Ring    uint64
	Slot    int
	Gen     uint32 // generation of the slot's control word
	Readers int    // slots of that ring, or surfaces of the GPU's decoder, that somebody else than the decoder holds

	Plane [3]uintptr // device addresses of the first visible samples, 0 in a slot

	Format        Format
	Width, Height int    // visible samples
	Offset        [3]int // of the first visible sample of each plane, bytes from the start of the slot
	Stride        [3]int // bytes
	FullRange     bool
	Matrix        Matrix

	PTS     int64
	Key     bool  // decoding can start at it
	Intra   bool  // made of intra slices only
	Corrupt bool  // decoded from references that were not there, or not yet whole
	Damaged bool  // parts are missing (for H.265 see Decoder.Blocks) or were made up: a GPU's decoder does not tell
	Copied  int64 // bytes that had to be copied into the slot, as the decoder has memory of its own

	owner *Decoder // of a picture in device memory
}

// Device says that the picture lies in the memory of a GPU: Keep takes it.
func (p *Picture) Device() bool { return p.owner != nil }

// Options of a decoder.
type Options struct {
	Decoder   string   // FFmpeg's name, e.g. "h264", "hevc", "mjpeg"
	Codec     string   // "h264", "hevc" or "mjpeg": what the decoder must decode; "" = whatever it does
	Extradata [][]byte // parameter sets without start codes, in the order VPS, SPS, PPS; bad ones are ignored
	Threads   int      // slice threads; 0 = 1. They speed up only pictures coded in several slices, and add no delay
	Allocate  Allocate // for decoders in software

	// Hardware makes the GPU decode, with the accelerator of FFmpeg's decoder.
	// Surfaces then says how many pictures the GPU shall have memory for, at most
	// MaxSurfaces, when a geometry becomes known: what the stream needs and what
	// readers may hold. An error from it is the reason of a *HardwareError.
	Hardware *HardwareDevice
	Surfaces func(SurfaceRequest) (int, error)

	copies bool // copy every picture, as from a decoder with memory of its own
}

// Unit is one access unit.
type Unit struct {
	Parts      [][]byte // NAL units without start codes, or the bytes of one JPEG file
	StartCodes bool     // put a start code before each part
	PTS        int64    // comes back in Picture.PTS
}

// Level is the weight of a log line, as FFmpeg numbers them.
type Level int

// The levels that come through.
const (
	LevelPanic   Level = 0
	LevelFatal   Level = 8
	LevelError   Level = 16
	LevelWarning Level = 24
)

// Line is one line of FFmpeg's log.
type Line struct {
	Level    Level
	Text     string
	Repeated int // how often it (or, at overflow, any line) came again right after
}

// DecoderInfo describes a decoder that this libavcodec has.
type DecoderInfo struct {
	Name     string `json:"name"`
	LongName string `json:"long_name"`
	Codec    string `json:"codec"`    // "h264", "hevc" or "mjpeg"
	Hardware bool   `json:"hardware"` // uses, or may use, hardware
	Direct   bool   `json:"direct"`   // can decode into our memory; from others each picture is copied once
}

// Versions of the libraries, e.g. "59.37.100": those loaded and those whose
// headers the program was built with.
type Versions struct {
	Codec, CodecBuilt string
	Util, UtilBuilt   string
}
