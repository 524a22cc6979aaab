package onnx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// Type is the type of a tensor's elements, as numbered in onnx.proto.
type Type int32

// The types that matter here.
const (
	Float32  Type = 1
	Uint8    Type = 2
	Int8     Type = 3
	Uint16   Type = 4
	Int16    Type = 5
	Int32    Type = 6
	Int64    Type = 7
	String   Type = 8
	Bool     Type = 9
	Float16  Type = 10
	Float64  Type = 11
	Uint32   Type = 12
	Uint64   Type = 13
	BFloat16 Type = 16
)

// String names the type as ONNX Runtime does.
func (t Type) String() string {
	names := map[Type]string{
		Float32: "float32", Uint8: "uint8", Int8: "int8", Uint16: "uint16", Int16: "int16", Int32: "int32", Int64: "int64",
		String: "string", Bool: "bool", Float16: "float16", Float64: "float64", Uint32: "uint32", Uint64: "uint64", BFloat16: "bfloat16",
	}
	if n, ok := names[t]; ok {
		return n
	}
	return "type " + strconv.Itoa(int(t))
}

// Bytes of one element, 0 where they have no fixed size or are smaller than a byte.
func (t Type) Bytes() int {
	switch t {
	case Uint8, Int8, Bool:
		return 1
	case Uint16, Int16, Float16, BFloat16:
		return 2
	case Float32, Int32, Uint32:
		return 4
	case Int64, Uint64, Float64:
		return 8
	}
	return 0
}

// Tensor is a constant whose values lie in the file, or in a file beside it.
type Tensor struct {
	Name     string
	Type     Type
	Dims     []int64
	External *External // where the values lie beside the file

	src      *source
	raw      bool
	typed    protowire.Number // the field that holds the values where they are not raw
	from, to int64
	few      []uint64 // values that were not packed
	many     bool     // in more than one part
}

// External is the place of values in a file beside the model.
type External struct {
	Location       string
	Offset, Length int64 // Length 0: to the end
}

// Elements is how many values the tensor has.
func (t *Tensor) Elements() int64 {
	n := int64(1)
	for _, d := range t.Dims {
		if d < 0 || d > 0 && n > math.MaxInt64/d {
			return 0
		}
		n *= d
	}
	return n
}

func (p *parser) tensor(f *field) (t Tensor, err error) {
	t.src = &p.source
	outside := false
	var external External
	err = p.message(f, func(f *field) (err error) {
		switch f.num {
		case 1:
			t.Dims, err = p.ints(f, t.Dims)
		case 2:
			t.Type = Type(f.number)
		case 4, 5, 7, 10, 11:
			t.place(f)
		case 8:
			return p.set(f, &t.Name)
		case 9:
			t.raw, t.from, t.to = true, f.from, f.to
		case 13:
			return p.external(f, &external)
		case 14:
			outside = f.number == 1
		}
		return err
	})
	if outside {
		t.External = &external
	}
	if err == nil {
		err = p.keep(tensorBytes)
	}
	return t, err
}

// place remembers where typed values lie.
func (t *Tensor) place(f *field) {
	const few = 64
	t.many = t.many || t.typed != 0 && (f.bytes() || len(t.few) == 0 || len(t.few) >= few)
	t.typed = f.num
	if f.bytes() {
		t.from, t.to = f.from, f.to
	} else if !t.many {
		t.few = append(t.few, f.number)
	}
}

func (p *parser) external(f *field, e *External) error {
	key, value, err := p.entry(f)
	if err != nil {
		return err
	}
	number := func(to *int64) error {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 0 {
			return damaged("external data has the %s %q", key, value)
		}
		*to = n
		return nil
	}
	switch key {
	case "location":
		e.Location = value
	case "offset":
		return number(&e.Offset)
	case "length":
		return number(&e.Length)
	}
	return nil
}

// errNoValues is a tensor whose values are not to be had here.
var errNoValues = errors.New("the values lie elsewhere")

// Values reads the tensor's values, unless there are more than limit.
func (t *Tensor) Values(limit int64) ([]float64, error) {
	n := t.Elements()
	switch {
	case n > limit:
		return nil, fmt.Errorf("tensor %s has %d values, wanted at most %d", t.Name, n, limit)
	case t.External != nil || t.many:
		return nil, errNoValues
	case n == 0:
		return nil, nil
	case len(t.few) > 0:
		return t.unpacked(int(n))
	case t.raw:
		return t.rawValues(int(n))
	}
	return t.packed(int(n))
}

func (t *Tensor) load() ([]byte, error) {
	b := make([]byte, t.to-t.from)
	if _, err := t.src.r.ReadAt(b, t.from); err != nil {
		return nil, fmt.Errorf("read tensor %s: %w", t.Name, err)
	}
	return b, nil
}

func (t *Tensor) rawValues(n int) ([]float64, error) {
	size := t.Type.Bytes()
	if size == 0 || t.to-t.from != int64(n)*int64(size) {
		return nil, damaged("tensor %s has %d bytes for %d values of %v", t.Name, t.to-t.from, n, t.Type)
	}
	b, err := t.load()
	if err != nil {
		return nil, err
	}
	v := make([]float64, n)
	for i := range v {
		v[i] = t.Type.value(b[i*size:])
	}
	return v, nil
}

// value reads one raw element.
func (t Type) value(b []byte) float64 {
	le := binary.LittleEndian
	switch t {
	case Float32:
		return float64(math.Float32frombits(le.Uint32(b)))
	case Float64:
		return math.Float64frombits(le.Uint64(b))
	case Float16:
		return float64(half(le.Uint16(b)))
	case BFloat16:
		return float64(math.Float32frombits(uint32(le.Uint16(b)) << 16))
	case Int64:
		return float64(int64(le.Uint64(b)))
	case Uint64:
		return float64(le.Uint64(b))
	case Int32:
		return float64(int32(le.Uint32(b)))
	case Uint32:
		return float64(le.Uint32(b))
	case Int16:
		return float64(int16(le.Uint16(b)))
	case Uint16:
		return float64(le.Uint16(b))
	case Int8:
		return float64(int8(b[0]))
	}
	return float64(b[0])
}

// number reads one element that is typed.
func (t *Tensor) number(v uint64) float64 {
	switch t.typed {
	case 4:
		return float64(math.Float32frombits(uint32(v)))
	case 10:
		return math.Float64frombits(v)
	case 11:
		return float64(v)
	}
	if t.Type == Float16 {
		return float64(half(uint16(v)))
	}
	return float64(int64(v))
}

func (t *Tensor) unpacked(n int) ([]float64, error) {
	if len(t.few) != n {
		return nil, damaged("tensor %s has %d values of %d", t.Name, len(t.few), n)
	}
	v := make([]float64, n)
	for i, x := range t.few {
		v[i] = t.number(x)
	}
	return v, nil
}

func (t *Tensor) packed(n int) ([]float64, error) {
	if t.to-t.from > int64(n)*10 {
		return nil, damaged("tensor %s has more than %d values", t.Name, n)
	}
	b, err := t.load()
	if err != nil {
		return nil, err
	}
	v := make([]float64, 0, n)
	for len(b) > 0 {
		x, used := t.consume(b)
		if used < 0 {
			return nil, damaged("tensor %s", t.Name)
		}
		b, v = b[used:], append(v, t.number(x))
	}
	if len(v) != n {
		return nil, damaged("tensor %s has %d values of %d", t.Name, len(v), n)
	}
	return v, nil
}

func (t *Tensor) consume(b []byte) (uint64, int) {
	switch t.typed {
	case 4:
		v, n := protowire.ConsumeFixed32(b)
		return uint64(v), n
	case 10:
		return protowire.ConsumeFixed64(b)
	}
	return protowire.ConsumeVarint(b)
}

// half turns the bits of a float16 into a number.
func half(bits uint16) float32 {
	sign, exponent, fraction := uint32(bits>>15)<<31, uint32(bits>>10&31), uint32(bits&0x3ff)
	switch exponent {
	case 0: // zero and what is smaller than normal
		v := float32(fraction) / (1 << 24)
		return math.Float32frombits(math.Float32bits(v) | sign)
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}
