package infer

import "strconv"

// Words for what a model's description is made of, also in JSON.

func word(names []string, i uint8) string {
	if int(i) < len(names) {
		return names[i]
	}
	return strconv.Itoa(int(i))
}

func (o ColorOrder) String() string { return word([]string{"RGB", "BGR"}, uint8(o)) }
func (a Align) String() string      { return word([]string{"center", "top_left"}, uint8(a)) }
func (k Kind) String() string {
	return word([]string{"joined", "split", "end_to_end", "listed", "heads", "selected"}, uint8(k))
}

func (b BoxFormat) String() string {
	return word([]string{"xyxy", "cxcywh", "xywh", "yxyx", "ltrb"}, uint8(b))
}

func (c Coding) String() string {
	return word([]string{"plain", "cell_exp", "cell_distance", "cell_bins", "cell_tanh"}, uint8(c))
}
func (u Units) String() string      { return word([]string{"input_pixels", "fractions"}, uint8(u)) }
func (a Activation) String() string { return word([]string{"none", "sigmoid", "softmax"}, uint8(a)) }

// MarshalText is String.
func (o ColorOrder) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// MarshalText is String.
func (a Align) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// MarshalText is String.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// MarshalText is String.
func (b BoxFormat) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// MarshalText is String.
func (c Coding) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// MarshalText is String.
func (u Units) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// MarshalText is String.
func (a Activation) MarshalText() ([]byte, error) { return []byte(a.String()), nil }
