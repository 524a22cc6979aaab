package platform_test

import (
	"maps"
	"testing"
	"testing/fstest"

	"edgecam/platform"
)

// A package that is held at its version is installed, too; one that was removed has
// left its version behind.
func TestDebianPackages(t *testing.T) {
	const status = `Package: nvidia-l4t-core
Status: hold ok installed
Version: 36.4.3-20250107174145

Package: libcudnn8
Status: deinstall ok config-files
Version: 8.9.4.25-1+cuda12.2

Package: half
Status: install ok half-installed
Version: 1

Package: libcudnn9-cuda-12
Status: install ok installed
Depends: libc6
Version: 9.3.0.75-1
`
	root := fstest.MapFS{"var/lib/dpkg/status": {Data: []byte(status)}}
	want := map[string]string{"nvidia-l4t-core": "36.4.3-20250107174145", "libcudnn9-cuda-12": "9.3.0.75-1"}
	if got := platform.DebianPackages(root); !maps.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := platform.DebianPackages(fstest.MapFS{}); len(got) != 0 {
		t.Errorf("%q where there is no dpkg", got)
	}
}

func TestOlderVersion(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"7.2", "7.5", true},
		{"7.5", "7.5", false},
		{"8.7", "11.0", true},
		{"9.11", "9.9", false},
		{"12.6", "12.6.68", true},
		{"12.6.68", "12.6", false},
		{"", "1.17", true},
	} {
		if got := platform.OlderVersion(c.a, c.b); got != c.want {
			t.Errorf("%q before %q: %v", c.a, c.b, got)
		}
	}
}
