package state_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"edgecam/internal/state"
)

// inside makes the test binary open a directory and say what comes of it.
const inside = "EDGECAM_TEST_STATE_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(inside); dir != "" {
		d, err := state.Open(dir, "2.0")
		fmt.Printf("usable=%v err=%v", d != nil, err)
		var u *state.UnusableError
		if errors.As(err, &u) {
			fmt.Printf(" try=%s", u.Hint())
		}
		_ = d.Close()
		return
	}
	os.Exit(m.Run())
}

func open(t *testing.T, dir, program string) *state.Dir {
	t.Helper()
	d, err := state.Open(dir, program)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func tree(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			name, _ := filepath.Rel(dir, path)
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestOpenMakesTheDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	d := open(t, dir, "1.2.3")
	if got := d.Info(); got.Schema != 1 || got.WrittenBy != "1.2.3" || got.At.IsZero() {
		t.Errorf("%+v", got)
	}
	text, err := os.ReadFile(filepath.Join(dir, "state.json"))
	var keys map[string]any
	if err != nil || json.Unmarshal(text, &keys) != nil || keys["schema"] != 1.0 || keys["written_by"] != "1.2.3" || keys["at"] == nil {
		t.Errorf("%v: %s", err, text)
	}
	if info, err := os.Stat(d.Temp()); err != nil || !info.IsDir() {
		t.Error(err)
	}
	if got := tree(t, dir); !slices.Equal(got, []string{"state.json"}) {
		t.Errorf("%q", got)
	}
}

func TestOpenTakesOverWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"memory-strategies.json", "gpu-losses.json", "tensorrt/a.onnx", "tensorrt/a.json", "cuda/x", ".profile"} {
		put(t, filepath.Join(dir, name), "x")
	}
	for _, name := range []string{"memory-strategies.json.123", "tensorrt/.build-1/half", "tensorrt/.new-2", "tmp/edgecam-profile-1/x", ".state.json-1", ".gpu-losses.json-1"} {
		put(t, filepath.Join(dir, name), "left over")
	}
	if i, err := state.Read(dir); err != nil || i.Schema != 0 {
		t.Fatalf("%+v, %v", i, err)
	}
	open(t, dir, "1")
	want := []string{".profile", "cuda/x", "gpu-losses.json", "memory-strategies.json", "state.json", "tensorrt/a.json", "tensorrt/a.onnx"}
	if got := tree(t, dir); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if kept, err := state.Kept(dir); err != nil || len(kept) > 0 {
		t.Errorf("caches are kept: %q, %v", kept, err)
	}
	put(t, filepath.Join(dir, "rules/a.json"), "x")
	put(t, filepath.Join(dir, "rules/tmp/b"), "x")
	if kept, err := state.Kept(dir); err != nil || !slices.Equal(kept, []string{"rules/a.json", "rules/tmp/b"}) {
		t.Errorf("%q, %v", kept, err)
	}
	if got, least := state.Size(dir), int64(8); got < least {
		t.Errorf("%d bytes", got)
	}
}

func TestNewerIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	const text = `{"schema": 7, "written_by": "9.9.1", "at": "2030-01-01T00:00:00Z", "more": true}`
	put(t, filepath.Join(dir, "state.json"), text)
	put(t, filepath.Join(dir, "tmp/theirs"), "x")
	_, err := state.Open(dir, "1.0")
	var newer *state.NewerError
	if !errors.As(err, &newer) || newer.Have != 7 || newer.Know != 1 || newer.By != "9.9.1" {
		t.Fatalf("%v", err)
	}
	if !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "9.9.1") || !strings.Contains(newer.Hint(), "install edgecam 9.9.1") {
		t.Errorf("%v; %s", err, newer.Hint())
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "state.json")); string(got) != text {
		t.Errorf("changed: %s", got)
	}
	if got := tree(t, dir); !slices.Equal(got, []string{"state.json", "tmp/theirs"}) {
		t.Errorf("%q", got)
	}
	if state.Locked(dir) {
		t.Error("still locked")
	}
}

// What a stamp says of its writer is shown in terminals.
func TestWriterThatCannotBeShown(t *testing.T) {
	for _, by := range []string{``, `9\u001b[2J`, `9\nx`, strings.Repeat("9", 101)} {
		dir := t.TempDir()
		put(t, filepath.Join(dir, "state.json"), `{"schema": 7, "written_by": "`+by+`"}`)
		_, err := state.Open(dir, "1.0")
		var newer *state.NewerError
		if !errors.As(err, &newer) || !strings.Contains(err.Error(), "was written by an edgecam in a newer form") || !strings.HasPrefix(newer.Hint(), "install that version again") {
			t.Errorf("%q: %v", by, err)
		}
	}
}

func TestOneAtATime(t *testing.T) {
	dir := t.TempDir()
	d, err := state.Open(dir, "1")
	if err != nil {
		t.Fatal(err)
	}
	var locked *state.LockedError
	if _, err := state.Open(dir, "1"); !errors.As(err, &locked) || locked.Dir != dir || !strings.Contains(locked.Hint(), "systemctl stop edgecam") {
		t.Errorf("%v", err)
	}
	if !state.Locked(dir) {
		t.Error("not locked")
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if state.Locked(dir) || state.Locked(filepath.Join(dir, "none")) {
		t.Error("locked by nobody")
	}
	open(t, dir, "1")
}

func TestUnusable(t *testing.T) {
	damaged := t.TempDir()
	put(t, filepath.Join(damaged, "state.json"), `{"schema": `)
	zero := t.TempDir()
	put(t, filepath.Join(zero, "state.json"), `{}`)
	file := filepath.Join(t.TempDir(), "file")
	put(t, file, "x")
	pipe := t.TempDir()
	if err := unix.Mkfifo(filepath.Join(pipe, "state.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := t.TempDir()
	if err := os.Symlink(file, filepath.Join(link, "state.json")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, dir, want string }{
		{"damaged", damaged, "state.json: is damaged: unexpected end of JSON input"},
		{"no schema", zero, "state.json: is damaged: schema 0"},
		{"a file", file, file + ": not a directory"},
		{"below a file", file + "/x", "not a directory"},
		{"a pipe", pipe, "state.json: is damaged"},
		{"a link", link, "state.json: too many levels of symbolic links"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := state.Open(c.dir, "1")
			var u *state.UnusableError
			if d != nil || !errors.As(err, &u) || !strings.Contains(err.Error(), c.want) || u.Hint() == "" {
				t.Errorf("%v, %v", d, err)
			}
		})
	}
	if got, _ := os.ReadFile(filepath.Join(damaged, "state.json")); string(got) != `{"schema": ` {
		t.Errorf("changed: %s", got)
	}
}

// nobody is a user other than the one that runs the tests, which must be root.
const nobody = 65534

// asNobody opens dir as another user.
func asNobody(t *testing.T, dir string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can be somebody else")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The test binary lies where only root gets at.
	text, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(filepath.Dir(dir), "program")
	if err := os.WriteFile(program, text, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env = []string{inside + "=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// theirs is a directory of nobody's, below one that everybody gets at.
func theirs(t *testing.T) string {
	t.Helper()
	base, err := os.MkdirTemp("", "edgecam-state-") //nolint:usetesting // t.TempDir is root's alone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	dir := filepath.Join(base, "state")
	if err := errors.Join(os.Chmod(base, 0o755), os.Mkdir(dir, 0o750), os.Chown(dir, nobody, nobody)); err != nil {
		t.Skip(err)
	}
	return dir
}

// Root has the program run once by hand, and the service works on.
func TestRootLeavesNothingBehind(t *testing.T) {
	dir := theirs(t)
	d, err := state.Open(dir, "1")
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "tensorrt/a.onnx"), "x")
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"state.json", "tmp", "tensorrt", "tensorrt/a.onnx"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Sys().(*syscall.Stat_t).Uid != nobody {
			t.Errorf("%s is not given away: %v", name, err)
		}
	}
	if got := asNobody(t, dir); got != "usable=true err=<nil>" {
		t.Error(got)
	}
}

func TestFilesOfRoot(t *testing.T) {
	dir := theirs(t)
	open(t, dir, "1").Close()
	put(t, filepath.Join(dir, "tensorrt/a.onnx"), "x")
	got := asNobody(t, dir)
	want := "usable=true err=state directory " + dir + ": " + dir + "/tensorrt: permission denied try=give it to the user that runs edgecam: chown -R nobody:nogroup " + dir
	if !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if err := os.Chown(dir, 0, 0); err != nil {
		t.Fatal(err)
	}
	if got := asNobody(t, dir); !strings.HasPrefix(got, "usable=false err=state directory "+dir+": "+dir+": permission denied") {
		t.Error(got)
	}
}

// mount puts a small file system in place of dir.
func mount(t *testing.T, dir, options string) {
	t.Helper()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	mount(t, dir, "size=64k")
	open(t, dir, "1").Close()
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Skip(err)
	}
	d, err := state.Open(dir, "1")
	if d == nil || !errors.Is(err, unix.EROFS) {
		t.Fatalf("%v, %v", d, err)
	}
	d.Close()
}

func TestNoSpace(t *testing.T) {
	dir := t.TempDir()
	mount(t, dir, "size=16k")
	open(t, dir, "1").Close()
	big := filepath.Join(dir, "big")
	if err := os.WriteFile(big, make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	d, err := state.Open(dir, "2")
	var u *state.UnusableError
	if d == nil || !errors.Is(err, unix.ENOSPC) || !errors.As(err, &u) || !strings.Contains(u.Hint(), "make room") {
		t.Fatalf("%v, %v", d, err)
	}
	d.Close()
	if i, err := state.Read(dir); err != nil || i.WrittenBy != "1" {
		t.Errorf("the old stamp is gone: %+v, %v", i, err)
	}
	if err := os.Remove(big); err != nil {
		t.Fatal(err)
	}
	open(t, dir, "2")
}

func TestExamineForAnotherUser(t *testing.T) {
	dir := t.TempDir()
	open(t, dir, "1").Close()
	me := os.Geteuid()
	if err := state.Examine(dir, me, nil); err != nil {
		t.Error(err)
	}
	if err := os.Chmod(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	var u *state.UnusableError
	if err := state.Examine(dir, nobody, nil); !errors.As(err, &u) || u.Path != dir || u.Hint() != "chown -R nobody: "+dir {
		t.Errorf("%v", err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	err := state.Examine(dir, nobody, nil) // the file is the owner's and its group's, and so is tmp
	if !errors.As(err, &u) || filepath.Dir(u.Path) != dir {
		t.Errorf("%v", err)
	}
	if err := errors.Join(os.Chmod(filepath.Join(dir, "tmp"), 0o770), os.Chmod(filepath.Join(dir, "state.json"), 0o640)); err != nil {
		t.Fatal(err)
	}
	if err := state.Examine(dir, nobody, []int{os.Getegid()}); err != nil {
		t.Errorf("by its group: %v", err)
	}
	put(t, filepath.Join(dir, "state.json"), `{"schema": 9, "written_by": "9"}`)
	var newer *state.NewerError
	if err := state.Examine(dir, me, nil); !errors.As(err, &newer) {
		t.Error(err)
	}
}
