//go:build linux && (amd64 || arm64)

package cuda_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"edgecam/platform/cuda"
)

func TestDecoderEngines(t *testing.T) {
	for _, c := range []struct {
		name, define string
		want         int
		err          string
	}{
		{"seven", "ENGINES=7", 7, ""},
		{"none", "ENGINES=0", 0, "ask the decoder what it can do: it tells of no engine"},
		{"refused", "RESULT=201", 0, "ask the decoder what it can do: cuvidGetDecoderCaps gives 201"},
	} {
		t.Run(c.name, func(t *testing.T) {
			lib := filepath.Join(t.TempDir(), "libnvcuvid.so.1")
			out, err := exec.Command("gcc", "-shared", "-fPIC", "-D"+c.define, "-o", lib, filepath.Join("testdata", "fakenvcuvid.c")).CombinedOutput()
			if err != nil {
				t.Fatalf("compile: %v\n%s", err, out)
			}
			n, err := cuda.DecoderEngines(lib)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if n != c.want || text != c.err {
				t.Errorf("%d engines, error %q; want %d, %q", n, text, c.want, c.err)
			}
		})
	}
	if _, err := cuda.DecoderEngines(filepath.Join(t.TempDir(), "none.so")); err == nil {
		t.Error("a library that is not there gives no error")
	}
}
