//go:build cgo

package avcodec

// #cgo !staticffmpeg pkg-config: libavcodec libavutil
// #cgo staticffmpeg pkg-config: --static libavcodec libavutil
// #cgo staticffmpeg CFLAGS: -DEC_STATIC_FFMPEG
// #cgo CFLAGS: -std=c11 -O2 -Wall -Wextra
// #cgo LDFLAGS: -lpthread -ldl
//
// // With the tag staticffmpeg the libraries are linked in. No code reads the macro:
// // the go command tells cached builds apart by the flags above, but not by
// // what pkg-config says.
//
// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"fmt"
	"runtime/cgo"
	"unsafe"
)

// Library is the loaded libavcodec. The zero value is not usable.
type Library struct{}

// ownMemory is the size from which on pieces of the C heap have memory of their own:
// less than a decoder's tables for 1080p, more than what comes with every picture.
const ownMemory = 256 << 10

// Open takes over FFmpeg's log and returns the library. libavutil has one log
// callback for the whole process, which is why this is a call and nobody gets
// one in passing; the C library's heap is set up for decoders too. Calling it again is
// harmless.
func Open() (*Library, error) {
	C.ec_log_install(C.int(LevelWarning))
	C.ec_heap_install(ownMemory)
	return &Library{}, nil
}

// Versions of libavcodec and libavutil.
func (l *Library) Versions() Versions {
	var cb, c, ub, u C.uint
	C.ec_versions(&cb, &c, &ub, &u)
	return Versions{Codec: dotted(c), CodecBuilt: dotted(cb), Util: dotted(u), UtilBuilt: dotted(ub)}
}

func dotted(v C.uint) string { return fmt.Sprintf("%d.%d.%d", v>>16, v>>8&0xff, v&0xff) }

// Configuration is the configure line of libavcodec.
func (l *Library) Configuration() string { return C.GoString(C.ec_configuration()) }

// License of libavcodec as it was built, e.g. "GPL version 2 or later".
func (l *Library) License() string { return C.GoString(C.ec_license()) }

// Decoders lists the decoders for H.264, H.265 and MJPEG.
func (l *Library) Decoders() []DecoderInfo {
	var (
		state unsafe.Pointer
		c     C.ec_codec
		out   []DecoderInfo
	)
	for C.ec_codec_next(&state, &c) != 0 {
		out = append(out, DecoderInfo{
			Name: C.GoString(c.name), LongName: C.GoString(c.long_name), Codec: C.GoString(c.codec),
			Hardware: c.hardware != 0, Direct: c.direct != 0,
		})
	}
	return out
}

// Decoder decodes one stream. See the package comment.
type Decoder struct {
	c         *C.ec_decoder // nil once closed
	handle    cgo.Handle
	allocate  Allocate
	surfaces  func(SurfaceRequest) (int, error)
	refused   error // what allocate said, during a call
	unfit     error // what surfaces said, during a call
	codec     string
	exhausted int64
	nonsense  C.int
	pts       int64 // of the unit in work
	picture   Picture
}

// NewDecoder opens a decoder. The error is an *OpenError, or a *HardwareError
// if Options.Hardware is set and cannot serve.
func (l *Library) NewDecoder(o Options) (*Decoder, error) {
	if o.Hardware == nil && o.Allocate == nil || o.Hardware != nil && o.Surfaces == nil {
		panic("avcodec: Options.Allocate or Options.Surfaces is nil")
	}
	d := &Decoder{allocate: o.Allocate, surfaces: o.Surfaces, codec: o.Codec}
	var err error
	if o.Hardware == nil {
		err = d.open(o, nil)
	} else {
		err = o.Hardware.use(func(c *C.ec_device) error { return d.open(o, c) })
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

func (d *Decoder) open(o Options, device *C.ec_device) error {
	d.handle = cgo.NewHandle(d)
	extra := annexB(o.Extradata)
	co := C.ec_decoder_options{
		name: C.CString(o.Decoder), threads: C.int(o.Threads), handle: C.uintptr_t(d.handle),
		extradata: (*C.uint8_t)(C.CBytes(extra)), extradata_size: C.int(len(extra)),
		device: device, copies: C.int(btoi(o.copies)),
	}
	want := C.CString(o.Codec)
	defer func() {
		C.free(unsafe.Pointer(want))
		C.free(unsafe.Pointer(co.name))
		C.free(unsafe.Pointer(co.extradata))
	}()
	if code := C.ec_decoder_open(&d.c, &co, want); code != 0 {
		d.handle.Delete()
		return openError(o, int(code))
	}
	return nil
}

func openError(o Options, code int) error {
	switch code {
	case C.EC_OPEN_UNKNOWN:
		return &OpenError{Decoder: o.Decoder, Why: "this libavcodec has no such decoder"}
	case C.EC_OPEN_CODEC:
		return &OpenError{Decoder: o.Decoder, Why: "it does not decode " + o.Codec}
	case C.EC_OPEN_HARDWARE:
		return &HardwareError{Reason: "this build of FFmpeg has no NVDEC for " + o.Decoder}
	}
	return &OpenError{Decoder: o.Decoder, Why: "libavcodec refused", Err: codeError(code)}
}

func codeError(code int) error {
	var text [128]C.char
	C.ec_strerror(C.int(code), &text[0], C.int64_t(len(text)))
	return &Error{Code: code, Text: C.GoString(&text[0])}
}

// edgecamAllocate is the one call from C into Go. libavcodec asks for the first
// buffer of a geometry in the middle of decoding a picture; there is no
// way to suspend it and come back with memory. It runs once a geometry, not
// once a picture.
//
//export edgecamAllocate
func edgecamAllocate(handle C.uintptr_t, req *C.ec_request, out *C.ec_ring_desc) C.int {
	d := cgo.Handle(handle).Value().(*Decoder)
	r := Request{
		Format: Format(req.format), Width: int(req.width), Height: int(req.height), Size: int(req.size),
	}
	for i := range r.Offset {
		r.Offset[i], r.Stride[i] = int(req.offset[i]), int(req.stride[i])
	}
	ring, err := d.allocate(r)
	if err != nil {
		d.refused = err
		return -1
	}
	out.id = C.uint64_t(ring.ID)
	out.words, out.base = C.uintptr_t(ring.Words), C.uintptr_t(ring.Base)
	out.word_stride, out.slot_stride = C.int64_t(ring.WordStride), C.int64_t(ring.SlotStride)
	out.slots = C.int(ring.Slots)
	return 0
}

// edgecamSurfaces is the other call from C into Go, in place of the first one
// where the GPU decodes, and as rare.
//
//export edgecamSurfaces
func edgecamSurfaces(handle C.uintptr_t, format, width, height, hold C.int) C.int {
	d := cgo.Handle(handle).Value().(*Decoder)
	n, err := d.surfaces(SurfaceRequest{
		Format: Format(format), Width: int(width), Height: int(height), Estimate: int(hold),
	})
	if err != nil {
		d.unfit = err
		return -1
	}
	return C.int(n)
}

// Decode gives u to the decoder and calls fn for every picture that comes out,
// in display order. It makes one call into C for the unit and one for each
// picture. The error speaks of this unit: an *Error (it is damaged, and so
// may be the picture with its PTS), ErrExhausted, a *FormatError, a *HardwareError
// (then only Drain and Close may follow), or what Allocate returned; pictures
// before it have come out all the same.
func (d *Decoder) Decode(u Unit, fn func(*Picture)) error {
	if d.c == nil {
		return fmt.Errorf("decode: %w", ErrClosed)
	}
	n, err := d.assemble(u)
	if err != nil || n == 0 {
		return err
	}
	return d.run(C.int64_t(n), u.PTS, fn)
}

// Drain calls fn for the pictures that the decoder holds back, and makes it
// ready for a new start: at the next random access point.
func (d *Decoder) Drain(fn func(*Picture)) error {
	if d.c == nil {
		return fmt.Errorf("drain decoder: %w", ErrClosed)
	}
	err := d.run(0, 0, fn)
	C.ec_decoder_flush(d.c)
	return err
}

// Reopen starts the decoder anew, with other parameter sets, on the same ring.
// Pictures that it holds back are lost: Drain first. It clears what Drain
// cannot: after a broken slice H.264's decoder keeps coefficients that it adds to
// the next pictures, key frames too. After an error the decoder is closed.
func (d *Decoder) Reopen(extradata [][]byte) error {
	if d.c == nil {
		return fmt.Errorf("reopen decoder: %w", ErrClosed)
	}
	extra := annexB(extradata)
	if code := C.ec_decoder_reopen(d.c, bytesOf(extra), C.int(len(extra))); code < 0 {
		d.Close()
		return fmt.Errorf("reopen decoder: %w", codeError(int(code)))
	}
	return nil
}

// Strict says what becomes of a unit that is not whole: on, it is an error; off,
// as at the start, the decoder makes the best of it and flags what it can.
func (d *Decoder) Strict(on bool) {
	if d.c != nil {
		C.ec_decoder_strict(d.c, C.int(btoi(on)))
	}
}

// Blocks says of what size the squares are that the stream is coded in, in
// samples, 0 if they are not known. The decoder then sees for itself which of them
// were never decoded: for H.265, whose decoder in FFmpeg does not say.
func (d *Decoder) Blocks(size int) {
	if d.c != nil {
		d.c.block = C.int(size)
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// assemble writes u into the packet buffer in C and returns its length.
func (d *Decoder) assemble(u Unit) (int, error) {
	n := 0
	for _, p := range u.Parts {
		if len(p) == 0 {
			continue
		}
		n += len(p)
		if u.StartCodes {
			n += len(startCode)
		}
	}
	if int64(n) > int64(d.c.cap) {
		if code := C.ec_decoder_reserve(d.c, C.int64_t(n)); code < 0 {
			return 0, fmt.Errorf("reserve %d bytes for an access unit: %w", n, codeError(int(code)))
		}
	}
	join(unsafe.Slice((*byte)(d.c.buf), int(d.c.cap))[:0], u.Parts, u.StartCodes)
	return n, nil
}

func (d *Decoder) run(n C.int64_t, pts int64, fn func(*Picture)) error {
	d.refused, d.unfit, d.pts, d.nonsense = nil, nil, pts, d.c.nonsense
	got := C.ec_decoder_decode(d.c, n, C.int64_t(pts))
	first := int(d.c.send_error)
	// A failed receive has consumed something, so this ends; the bound is for a
	// decoder that breaks libavcodec's own contract.
	for range 1 << 10 {
		if got == 0 {
			break
		}
		if got < 0 && first == 0 {
			first = int(got)
		}
		if got > 0 {
			d.fill()
			fn(&d.picture)
		}
		got = C.ec_decoder_receive(d.c)
	}
	return d.verdict(first)
}

// verdict is what became of a unit, in the driver's words where it failed.
func (d *Decoder) verdict(code int) error {
	said := C.GoString(&d.c.refused[0])
	if said == "" {
		said = C.GoString(&d.c.failed[0])
	}
	failure := driverError(said)
	if failure == nil {
		return d.outcome(code)
	}
	if failure.Err = d.outcome(code); failure.Err == nil {
		failure.Err = codeError(tag("EXT "))
	}
	return failure
}

func (d *Decoder) outcome(code int) error {
	lost := int64(d.c.exhausted) - d.exhausted
	d.exhausted += lost
	switch {
	case d.unfit != nil:
		return &HardwareError{Reason: d.unfit.Error()}
	case d.c.refused[0] != 0:
		return &HardwareError{Reason: reasonOf(C.GoString(&d.c.refused[0]), d.codec)}
	case d.c.format_name[0] != 0:
		return &FormatError{Format: C.GoString(&d.c.format_name[0])}
	case d.refused != nil:
		return fmt.Errorf("allocate pictures: %w", d.refused)
	case lost > 0:
		return ErrExhausted
	case code < 0:
		return codeError(code)
	case d.c.nonsense != d.nonsense:
		return nonsense()
	}
	return nil
}

func (d *Decoder) fill() {
	c := &d.c.picture
	p := &d.picture
	*p = Picture{
		Ring: uint64(c.ring), Slot: int(c.slot), Gen: uint32(c.gen), Readers: int(c.readers),
		Format: Format(c.format), Width: int(c.width), Height: int(c.height),
		FullRange: c.full_range != 0, Matrix: Matrix(c.matrix), PTS: int64(c.pts),
		Key: c.key != 0, Intra: c.intra != 0, Corrupt: c.corrupt != 0, Damaged: c.error_flags != 0 || c.missing != 0,
		Copied: int64(c.copied),
	}
	if p.PTS == d.pts && d.c.nonsense != d.nonsense {
		p.Damaged = true
	}
	if c.device != 0 {
		p.owner = d
	}
	for i := range p.Offset {
		p.Offset[i], p.Stride[i] = int(c.offset[i]), int(c.stride[i])
		p.Plane[i] = uintptr(c.plane[i])
	}
}

// Exhausted counts the pictures that were lost for want of a free slot.
func (d *Decoder) Exhausted() int64 { return d.exhausted }

// Lines calls fn for every log line about this decoder since the call before.
func (d *Decoder) Lines(fn func(Line)) {
	if d.c == nil || d.c.lines == 0 {
		return
	}
	var l C.ec_line
	for C.ec_decoder_take_line(d.c, &l) != 0 {
		fn(Line{Level: Level(l.level), Text: C.GoString(&l.text[0]), Repeated: int(l.repeated)})
	}
	d.c.lines = 0
}

// Close gives back all that the decoder holds. Slots that others have
// references to are not touched. It may be called twice.
func (d *Decoder) Close() {
	if d.c == nil {
		return
	}
	C.ec_decoder_close(d.c)
	d.c = nil
	d.handle.Delete()
}

// JPEGEncoder turns pictures of one size into JPEG files.
type JPEGEncoder struct {
	c             *C.ec_encoder // nil once closed
	width, height int
	qscale        int
}

// NewJPEGEncoder makes an encoder for pictures of width × height samples.
// Quality goes from 1 (smallest files) to 100.
func (l *Library) NewJPEGEncoder(width, height, quality int) (*JPEGEncoder, error) {
	if width < 1 || height < 1 || width > maxJPEG || height > maxJPEG {
		return nil, fmt.Errorf("open jpeg encoder %dx%d: size must be 1 to %d", width, height, maxJPEG)
	}
	e := &JPEGEncoder{width: width, height: height, qscale: qscale(quality)}
	if code := C.ec_encoder_open(&e.c, C.int(width), C.int(height), C.int(e.qscale)); code < 0 {
		return nil, fmt.Errorf("open jpeg encoder %dx%d: %w", width, height, codeError(int(code)))
	}
	return e, nil
}

// Encode appends the JPEG file of an I420 picture in full range, BT.601, to dst.
// Strides are bytes. The planes are borrowed until it returns.
func (e *JPEGEncoder) Encode(dst, y, cb, cr []byte, strides [3]int) ([]byte, error) {
	if e.c == nil {
		return dst, fmt.Errorf("encode jpeg: %w", ErrClosed)
	}
	if err := checkPlanes(e.width, e.height, [3][]byte{y, cb, cr}, strides); err != nil {
		return dst, fmt.Errorf("encode jpeg: %w", err)
	}
	code := C.ec_encoder_encode(e.c, bytesOf(y), bytesOf(cb), bytesOf(cr),
		C.int64_t(strides[0]), C.int64_t(strides[1]), C.int64_t(strides[2]), C.int(e.qscale))
	if code < 0 {
		return dst, fmt.Errorf("encode jpeg: %w", codeError(int(code)))
	}
	return append(dst, unsafe.Slice((*byte)(e.c.data), int(e.c.size))...), nil
}

func bytesOf(b []byte) *C.uint8_t { return (*C.uint8_t)(unsafe.SliceData(b)) }

// Close frees the encoder. It may be called twice.
func (e *JPEGEncoder) Close() {
	if e.c != nil {
		C.ec_encoder_close(e.c)
		e.c = nil
	}
}
