package onnxruntime_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edgecam/internal/testkit"
	"edgecam/platform/onnxruntime"
)

// TestLibraryReportsToNobody runs the library in a process of its own, without
// the variables by which it knows test machines: it sends nothing where it has
// neither made an identifier of the machine nor a log of what it sends.
func TestLibraryReportsToNobody(t *testing.T) {
	const inside = "EDGECAM_TEST_OPEN_ONNXRUNTIME"
	if path := os.Getenv(inside); path != "" {
		if _, err := onnxruntime.Open(path); err != nil {
			t.Error(err)
		}
		return
	}
	home, temporary := t.TempDir(), t.TempDir()
	cmd := testkit.Self(t, "-test.run=^"+t.Name()+"$")
	cmd.Env = []string{inside + "=" + testkit.ONNXRuntime(t), "HOME=" + home, "XDG_CACHE_HOME=" + home, "TMPDIR=" + temporary}
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); name == "PATH" || name == "LD_LIBRARY_PATH" {
			cmd.Env = append(cmd.Env, v)
		}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, dir := range []string{home, temporary} {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				t.Errorf("the library left %s", strings.TrimPrefix(path, dir))
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}
