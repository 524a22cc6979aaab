package infer

import "context"

// ColorOrder is the order of the three channel planes of an input tensor.
type ColorOrder uint8

// The channel orders.
const (
	RGB ColorOrder = iota
	BGR
)

// Align says where the picture lies in the letterboxed input.
type Align uint8

// The alignments: Center puts half the padding on each side, TopLeft all of it
// right and below.
const (
	Center Align = iota
	TopLeft
)

// InputSpec says what an engine's input tensor must hold: NCHW float32, one
// image being 3*Height*Width values, each (sample−Mean[c])/Std[c] with samples
// 0..255, c counted in the tensor's channel order. Pad is the sample value
// (before normalising) outside of the picture.
type InputSpec struct {
	Width  int        `json:"width"`
	Height int        `json:"height"`
	Order  ColorOrder `json:"color"`
	Mean   [3]float32 `json:"mean"`
	Std    [3]float32 `json:"std"`
	Pad    float32    `json:"letterbox_pad"`
	Align  Align      `json:"letterbox"`
}

// Detection is one object in one picture. The box is in input pixels when an
// engine returns it, and in fractions of the picture (0..1) once mapped back.
type Detection struct {
	Class          int
	Score          float32
	X1, Y1, X2, Y2 float32
}

// Info is what is known of a loaded engine.
type Info struct {
	Model      string // "builtin:nanodet-g" or the file's path
	Precision  string // fp32, fp16, int8; "as in the file" for a model file
	Provider   string // the one that really runs: cpu, cuda, tensorrt
	Library    string // path of the runtime library
	Version    string // of the runtime library
	Labels     []string
	Input      InputSpec
	MaxBatch   int
	Threads    int     // concurrent Run calls that pay off
	ProbeMS    float64 // measured time of one image at load
	ProbeNotes []string
	Graphs     []int  // batch sizes whose runs are replayed as CUDA graphs
	NoGraphs   string // on a GPU: why there are none
}

// Engine runs one model. Slots are input tensors owned by the engine: take
// one with Acquire, fill Input(i), call Run, read the result, Release. Acquire
// blocks until a slot is free or ctx ends. Methods of the engine are safe for
// concurrent use; a slot belongs to one goroutine at a time. Close is
// idempotent and waits for running calls.
type Engine interface {
	Info() Info
	Acquire(ctx context.Context) (Slot, error)
	Close() error
}

// Slot is one bound set of tensors.
type Slot interface {
	// Input is the tensor of image i, 3*Height*Width values, to be written before Run.
	Input(i int) []float32
	// Run infers images 0..n-1 (n ≤ MaxBatch) and appends to out[i] the
	// detections of image i with a score of at least threshold(class) after NMS,
	// best first, in input pixels. An *UnhealthyError means that the model gave
	// NaN, infinite or impossible values: nothing of the batch may be used.
	Run(n int, threshold func(class int) float32, out [][]Detection) error
	Release()
}
