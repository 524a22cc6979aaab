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
// Portable Go, one core, no vector instructions: about 9 ns per sample of the
// picture in the input, whatever the size of the picture. 1080p in 416×416 (97344
// samples) takes 0.9 ms of an AMD EPYC of 2023, 768×576 (129792) 1.1 ms, 10-bit
// formats a fifth more, grey ones a third.
//
// There is no assembly, by measurement. The loops that gather samples from where
// the taps lie take three fifths of the time, and NEON has no load from several
// addresses. From weighted codes to values is a third, of a stage that takes 7 % of
// a picture's time with the smallest model: vectors there save 2 % of it at most.
// On arm64 the compiler contracts a multiplication and an addition into one, which
// may move the last bit of a value.
//
// The kernels need compute capability 5.3 and the 48 KiB of shared memory that
// every such device has. Over PCIe the bytes are the cost: letterbox fetches a tile
// of rows in whole 128-byte lines, each once, and leaves out rows of weight 0, which
// for 1080p in 640×640 are two thirds of the luma. They are built for the processor
// too, from the same sources, and there the tests compare them with their twins.
package preprocess
