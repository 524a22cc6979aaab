package lint_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// root is the top of the tree, from here.
const root = "../.."

func readFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// files lists what belongs to the project: tracked by git, or about to be.
// Outside of a checkout (an exported tree) it is every file but for build output.
func files(t *testing.T) []string {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	if out, err := cmd.Output(); err == nil {
		var names []string
		for _, name := range strings.Split(strings.TrimSpace(string(out)), "\n") {
			if _, err := os.Lstat(filepath.Join(root, name)); err == nil { // deleted ones are still listed
				names = append(names, name)
			}
		}
		return names
	}
	var names []string
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules" || name == "bin" || name == "dist" || name == ".cache" || name == "web/dist") {
			return filepath.SkipDir
		}
		if !d.IsDir() {
			names = append(names, filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// goFiles lists the Go sources; tests says whether with _test.go files.
func goFiles(t *testing.T, tests bool) []string {
	t.Helper()
	var names []string
	for _, name := range files(t) {
		if strings.HasSuffix(name, ".go") && !strings.Contains(name, "testdata/") && (tests || !strings.HasSuffix(name, "_test.go")) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		t.Fatal("no Go files found: the test looks in the wrong place")
	}
	return names
}
