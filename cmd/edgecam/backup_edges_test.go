package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"edgecam/internal/state"
)

// A file that is left out for its secret does not come in as part of the state
// directory, whatever its name there is.
func TestSecretsInTheStateDirectory(t *testing.T) {
	b := newBox(t)
	word := filepath.Join(b.state, "words/gate")
	put(t, word, "state-s3cret\n")
	if err := errors.Join(os.Symlink("words", filepath.Join(b.state, "link")), os.Link(word, filepath.Join(b.state, "second-name"))); err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(b.state, "ca.pem")
	put(t, ca, "-----BEGIN PRIVATE KEY-----\nQUJD\n-----END PRIVATE KEY-----\n")
	before := strings.Replace(text(t, b.config), "hall-password", b.state+"/link/gate", 1)
	put(t, filepath.Join(b.state, "real.yaml"), before+"  shed: {url: \"rtsps://192.0.2.4/a\", enabled: false, tls: {ca: "+ca+"}}\n")
	if err := errors.Join(os.Remove(b.config), os.Symlink(filepath.Join(b.state, "real.yaml"), b.config)); err != nil {
		t.Fatal(err)
	}
	must(t, "backup", "-c", b.config, "--with-secrets", filepath.Join(b.state, "earlier"))
	to := filepath.Join(t.TempDir(), "yard.tar.gz")
	out := must(t, "backup", "-c", b.config, to)
	for _, secret := range []string{boxPassword, boxURLPassword, boxHash, "state-s3cret", "PRIVATE KEY"} {
		if strings.Contains(unpacked(t, to), secret) {
			t.Errorf("%s is in it", secret)
		}
	}
	var kept []string
	for _, name := range members(t, to) {
		if strings.HasPrefix(name, "state/") {
			kept = append(kept, name[len("state/0000-"):])
		}
	}
	if !slices.Equal(kept, []string{"one.json"}) {
		t.Errorf("of the state directory: %q", kept)
	}
	for _, said := range []string{"earlier: is a backup itself", "second-name: holds the secret of cameras.hall.password", "real.yaml: the configuration, with its secrets", "ca.pem: holds a private key"} {
		if !strings.Contains(out, said) {
			t.Errorf("not said: %q in\n%s", said, out)
		}
	}
}

// What a restore has kept of the configuration before it holds secrets, too.
func TestPreviousConfigurationInTheStateDirectory(t *testing.T) {
	b := newBox(t)
	put(t, b.config, strings.Replace(text(t, b.config), "state_dir: "+b.state, "state_dir: .", 1))
	put(t, b.config+beforeRestore, "cameras: {gate: {password: older-s3cret}}\n")
	to := filepath.Join(t.TempDir(), "yard.tar.gz")
	must(t, "backup", "-c", b.config, to)
	for _, secret := range []string{"older-s3cret", "file-s3cret", boxPassword} {
		if strings.Contains(unpacked(t, to), secret) {
			t.Errorf("%s is in it", secret)
		}
	}
}

// The service runs by the configuration that is there, whatever directory the
// backup or the command line names.
func TestRestoreWhileTheServiceRuns(t *testing.T) {
	b, to := newBox(t), filepath.Join(t.TempDir(), "yard.tar.gz")
	other := strings.Replace(text(t, b.config), "state_dir: "+b.state, "", 1)
	put(t, filepath.Join(b.dir, "other.yaml"), other)
	must(t, "backup", "-c", filepath.Join(b.dir, "other.yaml"), "--state-dir", b.state, to)
	before := text(t, b.config)
	d, err := state.Open(b.state, "1")
	if err != nil {
		t.Fatal(err)
	}
	for _, more := range [][]string{nil, {"--state-dir", filepath.Join(t.TempDir(), "new")}} {
		args := append([]string{"restore", "-c", b.config, to}, more...)
		code, _, errs := run(t, args...)
		if code != exitFailed || !strings.Contains(errs, "another edgecam uses "+b.state) || text(t, b.config) != before {
			t.Errorf("%v: exit code %d, %s", args, code, errs)
		}
		if out := must(t, append(args, "--dry-run")...); !strings.Contains(out, "stop it first") {
			t.Error(out)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	must(t, "restore", "-c", b.config, to)
}

// stopAt cancels a command at its first byte, or when it is wound back.
type stopAt struct {
	io.ReadSeeker

	stop func()
}

func (s stopAt) Seek(offset int64, whence int) (int64, error) {
	s.stop()
	return s.ReadSeeker.Seek(offset, whence)
}

func (s stopAt) Write(b []byte) (int, error) {
	s.stop()
	return len(b), nil
}

// Whoever stops a command has not got what it was to make: that is a failure, and
// leaves nothing behind.
func TestInterrupted(t *testing.T) {
	b, to := newBox(t), filepath.Join(t.TempDir(), "yard.tar.gz")
	must(t, "backup", "-c", b.config, to)
	put(t, b.config, "version: 1\n")
	if err := os.Remove(filepath.Join(b.state, "rules/one.json")); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(to)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	ctx, stop := context.WithCancel(t.Context())
	err = restore(ctx, restoreFlags{config: b.config, stateDir: b.state}, stopAt{in, stop}, io.Discard)
	if err == nil || err.Error() != "restore: interrupted: nothing was written" {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(b.state, "rules/one.json")); err == nil || text(t, b.config) != "version: 1\n" {
		t.Error("something was restored")
	}

	ctx, stop = context.WithCancel(t.Context())
	root := newRoot()
	var errs bytes.Buffer
	root.SetOut(stopAt{stop: stop})
	root.SetErr(io.Discard)
	if code := execute(ctx, root, []string{"backup", "-c", b.config, "--state-dir", b.state, "-"}, &errs); code != exitFailed || !strings.Contains(errs.String(), "interrupted") {
		t.Errorf("backup: exit code %d, %s", code, errs.String())
	}
	ctx, stop = context.WithCancel(t.Context())
	stop()
	dir := t.TempDir()
	if code := execute(ctx, newRoot(), []string{"backup", "-c", b.config, "--state-dir", b.state, filepath.Join(dir, "x")}, &errs); code != exitFailed {
		t.Errorf("backup: exit code %d, %s", code, errs.String())
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

// A restore that was killed is done again, and nothing of it is left; one that is
// done twice keeps what was there before the first.
func TestRestoreAgain(t *testing.T) {
	b, to := newBox(t), filepath.Join(t.TempDir(), "yard.tar.gz")
	must(t, "backup", "-c", b.config, to)
	const first = "version: 1 # the first\n"
	put(t, b.config, first)
	killed := []string{b.dir + "/.edgecam-restore-1-edgecam.yaml", b.dir + "/.edgecam-restore-1-gone", b.state + "/rules/.edgecam-restore-1-x"}
	for _, path := range killed {
		put(t, path, "half")
	}
	if err := os.Remove(filepath.Join(b.state, "rules/one.json")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		must(t, "restore", "-c", b.config, to)
		if text(t, b.config+beforeRestore) != first {
			t.Errorf("the previous one: %s", text(t, b.config+beforeRestore))
		}
	}
	for _, path := range killed {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A dry run says, too, what would keep the restore from being done.
func TestDryRunSeesTheStateDirectory(t *testing.T) {
	b, to := newBox(t), filepath.Join(t.TempDir(), "yard.tar.gz")
	must(t, "backup", "-c", b.config, to)
	stamp := filepath.Join(b.state, "state.json")
	for content, want := range map[string]string{`{"schema":`: "is damaged", `{"schema": 99, "written_by": "9.9"}`: "was written by edgecam 9.9"} {
		put(t, stamp, content)
		for _, more := range [][]string{{"--dry-run"}, nil} {
			code, _, errs := run(t, append([]string{"restore", "-c", b.config, to}, more...)...)
			if code != exitFailed || !strings.Contains(errs, want) || text(t, stamp) != content {
				t.Errorf("%s %v: exit code %d, %s", content, more, code, errs)
			}
		}
	}
	// What is said to mend it does.
	put(t, stamp, "")
	_, _, errs := run(t, "restore", "-c", b.config, to)
	if !strings.Contains(errs, "mv "+b.state+" "+b.state+".damaged") {
		t.Fatal(errs)
	}
	if err := os.Rename(b.state, b.state+".damaged"); err != nil {
		t.Fatal(err)
	}
	must(t, "restore", "-c", b.config, "--state-dir", b.state, to)
}

// Another user is sent to root, and not told to take the service's files.
func TestNotRoot(t *testing.T) {
	var err error = &rootError{&configError{fs.ErrPermission}}
	var bad *configError
	if hint := hintOf(err); !strings.Contains(hint, "sudo") || !errors.As(err, &bad) {
		t.Errorf("%s, %v", hint, err)
	}
	taken := &rootError{&state.UnusableError{Dir: "/x", Path: "/x", Err: fs.ErrPermission, Try: "chown"}}
	if hint := hintOf(taken); strings.Contains(hint, "chown") {
		t.Error(hint)
	}
	if err := forRoot(fs.ErrNotExist); !errors.Is(err, fs.ErrNotExist) || hintOf(err) != "" {
		t.Error(err)
	}
}
