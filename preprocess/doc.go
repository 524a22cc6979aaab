// Package preprocess turns a decoded picture into the tensor that an engine
// wants: scaled to fit, padded, converted to RGB or BGR and normalised, in one
// pass from the planes where the decoder left them.
//
// # Position
//
// Fed by internal/pipeline with a framepool.Frame and with an input tensor of
// an infer.Slot; what it wrote is run by infer, and the boxes that come back go
// through Transform.Inverse. CPU is the twin of GPU, whose kernel fills the tensor
// of an engine on the card: both follow the rules below and may differ by less than
// one code of 255.
//
// On a GPU, RulesFor says which strategies a device has, a Chooser picks the
// fastest for each geometry, a Feed makes the pictures of a batch readable by it,
// and GPU turns the batch into tensors with one launch. Preview makes the small
// pictures that viewers see, without fetching a large one from the card.
//
// # Ownership
//
// CPU.Run borrows the frame and the tensor until it returns and keeps neither. A
// Feed keeps handles of its own until the device has finished with the pictures.
//
// # Concurrency
//
// A CPU belongs to one goroutine at a time: it holds the tables of the
// geometries that it has met and rows of scratch. Transform is a plain value. GPU,
// Preview, Feed and Trial belong to the goroutine of their cuda.Device; a Chooser
// is safe for concurrent use.
//
// # Failure
//
// Run fails on pictures that it cannot read (unknown format, empty, no host
// bytes) and on a tensor of another size; the tensor is then as it was. Inverse
// never fails and never leaves 0..1.
//
// # What the tensor holds
//
// The picture w×h is scaled by r = min(W/w, H/h) to round(w·r)×round(h·r), ties
// to even, and lies in the input at (W−new)/2 rounded down, or at 0 for
// infer.TopLeft. An output sample i lies at (i+½)·w/new−½ of the picture, the
// half-pixel rule of OpenCV's INTER_LINEAR; positions beyond the border take the
// border's sample. Y, Cb and Cr are interpolated with two taps in each direction,
// also when the picture shrinks: the built-in models' reference boxes were made
// that way. Then follow the matrix, a clamp to 0..255 and (value−mean)/std.
//
// Chroma of subsampled formats is taken as sited in the middle of its luma
// samples. H.264 and H.265 say left by default (chroma_sample_loc_type 0), but
// libswscale, through which OpenCV reads streams, takes the middle where it is
// told nothing (get_local_pos in libswscale/utils.c), and its fast converter
// from yuv420p gives all luma samples of a block the same chroma, which comes to
// the same. Models and reference boxes were made with that. A test compares:
// sited in the middle, pictures agree with libswscale to 1.5 of 255; half a luma
// sample to any side they do not.
//
// # Hardware
//
// One core. The inner loops, which interpolate samples and turn codes into values,
// are assembly with AVX2 and FMA on amd64 and with NEON on arm64, eight samples at a
// time. Each has a twin in Go, which takes the rest of a row, other processors, and
// builds with the tag noasm or purego. Both give the same bits: sums are whole
// numbers that an int64 and a float64 hold exactly, and the last multiplication and
// addition are rounded one after the other everywhere, so that the tensor does not
// depend on the processor. Only the chroma of P010 is interpolated in Go alone.
//
// On an AMD EPYC of 2023, in one run, the twin's time in brackets: 1080p in 416×416
// (97344 samples) takes 0.26 ms (0.85), 10-bit planes 0.26 (1.13), P010 0.67 (1.14),
// grey 0.11 (0.36), 768×576 (129792 samples) 0.31 (1.09). Of the loops alone,
// codes to values is 4 times as fast as its twin, interpolating luma 4.5, chroma 3.5.
// Samples are loaded one tap at a time: AVX2's own gather instruction takes twice as
// long there.
//
// On arm64 nothing was measured on hardware. LLVM's models of a Cortex-A57, a
// Cortex-A55, an Exynos M5 and a ThunderX2 give the assembly 2 to 6 times the twin's
// speed for codes to values, 1.2 to 1.9 for 8-bit luma, 1.1 to 1.6 for planar chroma
// and 1.3 to 2.1 for that of NV12, 2.1 to 2.7 for 10 bits. Luma and chroma of I420
// together come to 1.3 or more on each. That is why both are there.
//
// The kernels need compute capability 5.3 and the 48 KiB of shared memory that
// every such device has. Over PCIe the bytes are the cost: letterbox fetches a tile
// of rows in whole 128-byte lines, each once, and leaves out rows of weight 0, which
// for 1080p in 640×640 are two thirds of the luma. They are built for the processor
// too, from the same sources, and there the tests compare them with their twins.
package preprocess
