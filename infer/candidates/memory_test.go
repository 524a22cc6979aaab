package candidates

import (
	"math"
	"testing"

	"golang.org/x/sys/unix"
)

// beforeGuard makes n bytes, aligned to 16, right before a page that nobody may
// touch: a kernel that reads behind its outputs ends the test.
func beforeGuard(t *testing.T, n int) []byte {
	t.Helper()
	page := unix.Getpagesize()
	size := (n + page - 1) / page * page
	b, err := unix.Mmap(-1, 0, size+page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(b); err != nil {
			t.Error(err)
		}
	})
	if err := unix.Mprotect(b[size:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	at := (size - n) &^ 15
	return b[at : at+n : at+n]
}

// halfValue decodes an IEEE 754 binary16.
func halfValue(h uint16) float32 {
	sign, exp, frac := uint32(h)>>15, int(h>>10&31), float64(h&1023)
	v := math.Ldexp(1+frac/1024, exp-15)
	switch exp {
	case 0:
		v = math.Ldexp(frac/1024, -14)
	case 31:
		v = math.Inf(1)
		if frac != 0 {
			v = math.NaN()
		}
	}
	return float32(math.Copysign(v, 1-2*float64(sign)))
}

// halfBits rounds to binary16, halfway cases away from zero.
func halfBits(v float32) uint16 {
	sign := uint16(math.Float32bits(v) >> 16 & 0x8000)
	a := math.Abs(float64(v))
	switch {
	case v != v:
		return sign | 0x7e00
	case a >= 65520:
		return sign | 0x7c00
	case a < math.Ldexp(1, -14):
		return sign | uint16(math.Round(math.Ldexp(a, 24)))
	}
	frac, exp := math.Frexp(a) // 0.5 to 1
	return sign | (uint16((exp+13)<<10) + uint16(math.Round(math.Ldexp(frac, 11))))
}
