package onnx

import (
	"errors"
	"fmt"
	"io"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	// windowBytes is how much of the file is looked at at a time.
	windowBytes = 64 << 10
	// maxText bounds one string: the names of 10,000 classes need less.
	maxText = 4 << 20
	// maxKept bounds what a file may make the reader keep. The graphs of detectors need
	// a few megabytes; what needs more is no detector.
	maxKept = 64 << 20
)

// TruncatedError says that a file ends before what it announces.
type TruncatedError struct{ Size, Wanted int64 }

func (e *TruncatedError) Error() string {
	return fmt.Sprintf("is cut off: it has %d bytes and should have at least %d", e.Size, e.Wanted)
}

// errDamaged is a file whose parts do not fit into each other.
var errDamaged = errors.New("is no ONNX model, or a damaged one")

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errDamaged, fmt.Sprintf(format, args...))
}

// source reads a protobuf message of any size through a small window.
type source struct {
	r      io.ReaderAt
	size   int64
	window []byte
	start  int64 // of the window in the file
	kept   int64
}

// keep counts memory that the file makes us keep.
func (s *source) keep(n int64) error {
	if s.kept += n; s.kept > maxKept {
		return damaged("its description alone is larger than %d MB", maxKept>>20)
	}
	return nil
}

// peek gives up to n bytes at pos, fewer at the end of the file.
func (s *source) peek(pos int64, n int) ([]byte, error) {
	if pos < s.start || pos+int64(n) > s.start+int64(len(s.window)) {
		if s.window == nil {
			s.window = make([]byte, windowBytes)
		}
		s.window = s.window[:cap(s.window)]
		got, err := s.r.ReadAt(s.window[:min(int64(len(s.window)), s.size-pos)], pos)
		if err != nil && (!errors.Is(err, io.EOF) || got == 0) {
			s.window = s.window[:0]
			return nil, fmt.Errorf("read at byte %d: %w", pos, err)
		}
		s.start, s.window = pos, s.window[:got]
	}
	rest := s.window[pos-s.start:]
	return rest[:min(n, len(rest))], nil
}

// field is one field of a message: a number, or bytes of the file.
type field struct {
	num      protowire.Number
	typ      protowire.Type
	number   uint64
	from, to int64
}

func (f *field) bytes() bool    { return f.typ == protowire.BytesType }
func (f *field) int() int64     { return int64(f.number) }
func (f *field) float() float32 { return math.Float32frombits(uint32(f.number)) }

// each calls fn for every field between from and to.
func (s *source) each(from, to int64, fn func(*field) error) error {
	var f field
	for pos := from; pos < to; {
		next, err := s.field(pos, to, &f)
		if err != nil {
			return err
		}
		if err := fn(&f); err != nil {
			return err
		}
		pos = next
	}
	return nil
}

// field reads the field at pos and tells where the next begins.
func (s *source) field(pos, end int64, f *field) (next int64, err error) {
	const longest = 20 // a tag and a number
	if pos >= s.size {
		return 0, &TruncatedError{Size: s.size, Wanted: end}
	}
	b, err := s.peek(pos, int(min(longest, end-pos)))
	if err != nil {
		return 0, err
	}
	num, typ, n := protowire.ConsumeTag(b)
	if n < 0 {
		return 0, s.broken(pos, end, len(b))
	}
	*f = field{num: num, typ: typ}
	used := n
	switch typ {
	case protowire.VarintType, protowire.BytesType:
		f.number, n = protowire.ConsumeVarint(b[used:])
	case protowire.Fixed32Type:
		var v uint32
		v, n = protowire.ConsumeFixed32(b[used:])
		f.number = uint64(v)
	case protowire.Fixed64Type:
		f.number, n = protowire.ConsumeFixed64(b[used:])
	default:
		return 0, damaged("at byte %d", pos)
	}
	if n < 0 {
		return 0, s.broken(pos, end, len(b))
	}
	next = pos + int64(used+n)
	if typ != protowire.BytesType {
		return next, nil
	}
	f.from = next
	if f.number > uint64(end-next) {
		return 0, s.beyond(f, end)
	}
	f.to = next + int64(f.number)
	return f.to, nil
}

// broken is a field that cannot be read: cut off where the file ends in it.
func (s *source) broken(pos, end int64, got int) error {
	if end >= s.size && pos+int64(got) >= s.size && got < 20 {
		return &TruncatedError{Size: s.size, Wanted: s.size + 1}
	}
	return damaged("at byte %d", pos)
}

// beyond is a part that is longer than what holds it.
func (s *source) beyond(f *field, end int64) error {
	const most = 2 << 30 // no protobuf message is larger
	if end == s.size && f.number < most {
		return &TruncatedError{Size: s.size, Wanted: f.from + int64(f.number)}
	}
	return damaged("at byte %d", f.from)
}

// text reads a string.
func (s *source) text(f *field) (string, error) {
	if !f.bytes() {
		return "", damaged("at byte %d", f.from)
	}
	n := f.to - f.from
	if n > maxText {
		return "", damaged("a text of %d bytes at byte %d", n, f.from)
	}
	if err := s.keep(n + 16); err != nil {
		return "", err
	}
	if n <= windowBytes {
		b, err := s.peek(f.from, int(n))
		if err == nil && int64(len(b)) < n {
			err = &TruncatedError{Size: s.size, Wanted: f.to}
		}
		return string(b), err
	}
	b := make([]byte, n)
	if _, err := s.r.ReadAt(b, f.from); err != nil {
		return "", fmt.Errorf("read at byte %d: %w", f.from, err)
	}
	return string(b), nil
}

// ints appends a repeated integer, packed or not.
func (s *source) ints(f *field, to []int64) ([]int64, error) {
	if !f.bytes() {
		return append(to, f.int()), s.keep(8)
	}
	for pos := f.from; pos < f.to; {
		b, err := s.peek(pos, int(min(10, f.to-pos)))
		if err != nil {
			return to, err
		}
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return to, damaged("at byte %d", pos)
		}
		if err := s.keep(8); err != nil {
			return to, err
		}
		to = append(to, int64(v))
		pos += int64(n)
	}
	return to, nil
}

// floats appends a repeated float, packed or not.
func (s *source) floats(f *field, to []float32) ([]float32, error) {
	if !f.bytes() {
		return append(to, f.float()), s.keep(4)
	}
	if (f.to-f.from)%4 != 0 {
		return to, damaged("at byte %d", f.from)
	}
	for pos := f.from; pos < f.to; pos += 4 {
		b, err := s.peek(pos, 4)
		if err != nil {
			return to, err
		}
		v, n := protowire.ConsumeFixed32(b)
		if n < 0 {
			return to, &TruncatedError{Size: s.size, Wanted: f.to}
		}
		if err := s.keep(4); err != nil {
			return to, err
		}
		to = append(to, math.Float32frombits(v))
	}
	return to, nil
}
