package config_test

import (
	"testing"

	"edgecam/internal/config"
)

func TestParseSize(t *testing.T) {
	for _, tt := range []struct {
		text, back string
		want       config.Size
	}{
		{"0", "0", 0},
		{"0B", "0", 0},
		{"512MiB", "512MiB", 512 << 20},
		{"50GB", "50GB", 50e9},
		{" 10 gib ", "10GiB", 10 << 30},
		{"1.5GiB", "1536MiB", 1536 << 20},
		{"1kb", "1kB", 1000},
		{"7B", "7B", 7},
		{"2TB", "2TB", 2e12},
		{"0.5KiB", "512B", 512},
		{"1e3MB", "1GB", 1e9},
	} {
		got, err := config.ParseSize(tt.text)
		if err != nil || got != tt.want || got.String() != tt.back {
			t.Errorf("%s: got %d, %s, %v", tt.text, int64(got), got, err)
		}
	}
	for text, want := range map[string]string{
		"": "want a size such as 512MiB or 50GB", "5": "want a size such as 512MiB or 50GB", "5G": "want a size such as 512MiB or 50GB",
		"MiB": "want a size such as 512MiB or 50GB", "5 MiB MiB": "want a size such as 512MiB or 50GB", "Inf MB": "want a size such as 512MiB or 50GB",
		"-1MiB": "want a size such as 512MiB or 50GB, 0 to 8388607TiB", "9999999999TiB": "want a size such as 512MiB or 50GB, 0 to 8388607TiB",
	} {
		if got, err := config.ParseSize(text); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, %v, want %s", text, got, err, want)
		}
	}
}
