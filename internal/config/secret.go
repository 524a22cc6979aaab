package config

import (
	"fmt"
	"io"
	"log/slog"
)

const masked = "***"

// Secret is a text that is never printed: String, Format and every marshaller
// give "***". Reveal returns it.
type Secret struct {
	// A pointer, because fmt prints unexported fields of foreign structs by
	// reflection and without asking Format: it then shows an address.
	value *string
}

// NewSecret wraps a text. Secrets of equal texts are equal to
// reflect.DeepEqual, not to ==.
func NewSecret(v string) Secret {
	if v == "" {
		return Secret{}
	}
	return Secret{value: &v}
}

// Reveal returns the secret text; never log it.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// IsZero says whether the secret is empty.
func (s Secret) IsZero() bool { return s.value == nil }

// String gives "***".
func (s Secret) String() string { return masked }

// GoString gives "***".
func (s Secret) GoString() string { return masked }

// Format writes "***" under every verb.
func (s Secret) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, masked) // fmt keeps no error of a Formatter
}

// MarshalText gives "***"; it serves JSON, XML and map keys.
func (s Secret) MarshalText() ([]byte, error) { return []byte(masked), nil }

// MarshalJSON gives "***".
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + masked + `"`), nil }

// MarshalYAML gives "***".
func (s Secret) MarshalYAML() (any, error) { return masked, nil }

// LogValue gives "***".
func (s Secret) LogValue() slog.Value { return slog.StringValue(masked) }
