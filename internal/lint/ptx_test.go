package lint_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The PTX that is committed and embedded is what its source gives.
func TestPTXIsWhatTheSourcesGive(t *testing.T) {
	dir := t.TempDir()
	// Without clang-19 the script says which command installs it.
	if out, err := exec.CommandContext(t.Context(), filepath.Join(root, "scripts/ptx.sh"), dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	sources := 0
	for _, name := range files(t) {
		stem, ok := strings.CutSuffix(name, ".cu")
		if !ok {
			continue
		}
		sources++
		built, err := os.ReadFile(filepath.Join(dir, filepath.Base(stem)+".ptx"))
		if err != nil {
			t.Fatal(err)
		}
		if string(built) != readFile(t, stem+".ptx") {
			t.Errorf("%s.ptx is not what %s gives: run make ptx and commit it", stem, name)
		}
		if !strings.Contains(string(built), ".version 6.3\n.target sm_53\n") {
			t.Errorf("%s: PTX of another version than Jetson Nano loads", name)
		}
	}
	if sources == 0 {
		t.Error("no CUDA source found")
	}
}
