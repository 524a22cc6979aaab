package wholefile_test

import (
	"os"
	"path/filepath"
	"testing"

	"edgecam/platform/wholefile"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state.json")
	for _, content := range []string{"old", "new and longer"} {
		if err := wholefile.Write(path, []byte(content), 0o640); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != content {
			t.Errorf("read %q, %v; want %q", got, err, content)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	only(t, dir, "state.json")
}

func TestWriteThatFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "busy")
	if err := os.MkdirAll(filepath.Join(path, "full"), 0o755); err != nil { // no file takes its place
		t.Fatal(err)
	}
	if err := wholefile.Write(path, []byte("x"), 0o600); err == nil {
		t.Error("a directory was replaced")
	}
	only(t, dir, "busy")
	if err := wholefile.Write(filepath.Join(dir, "none", "x"), nil, 0o600); !os.IsNotExist(err) {
		t.Errorf("a directory that is not there: %v", err)
	}
}

func only(t *testing.T, dir, name string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != name {
		t.Errorf("the directory holds %v, %v; want %s alone", entries, err, name)
	}
}
