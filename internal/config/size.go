package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes, written like 50GB or 512MiB.
type Size int64

var errSize = errors.New("want a size such as 512MiB or 50GB")

// sizeUnits are the units from the largest: those of 1024 before those of 1000
// of the same rank, so that String finds the shortest exact form.
func sizeUnits() []sizeUnit {
	return []sizeUnit{
		{"TiB", 1 << 40},
		{"TB", 1e12},
		{"GiB", 1 << 30},
		{"GB", 1e9},
		{"MiB", 1 << 20},
		{"MB", 1e6},
		{"KiB", 1 << 10},
		{"kB", 1e3},
		{"B", 1},
	}
}

type sizeUnit struct {
	name  string
	bytes int64
}

// ParseSize reads a number and a unit: B, kB, MB, GB, TB (powers of 1000) or
// KiB, MiB, GiB, TiB (powers of 1024), in upper or lower case. 0 needs no unit.
func ParseSize(text string) (Size, error) {
	text = strings.TrimSpace(text)
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
	unit := strings.TrimSpace(text[len(digits):])
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || math.IsInf(n, 0) || math.IsNaN(n) {
		return 0, errSize
	}
	if unit == "" && n == 0 {
		return 0, nil
	}
	for _, u := range sizeUnits() {
		if !strings.EqualFold(u.name, unit) {
			continue
		}
		bytes := n * float64(u.bytes)
		if bytes < 0 || bytes >= math.MaxInt64 {
			return 0, fmt.Errorf("%w, 0 to 8388607TiB", errSize)
		}
		return Size(math.Round(bytes)), nil
	}
	return 0, errSize
}

// String writes the size in the largest unit that holds it exactly.
func (s Size) String() string {
	for _, u := range sizeUnits() {
		if s != 0 && int64(s)%u.bytes == 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.name
		}
	}
	return "0"
}

// MarshalText writes the size as String does.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
