package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"edgecam/internal/config"
	"edgecam/internal/state"
)

// box is a directory with a configuration as it stands on a box, and what it
// names.
type box struct{ dir, config, state, outside string }

const boxPassword, boxURLPassword, boxHash = "s3cret-word", "url-s3cret", "$argon2id$v=19$m=65536,t=3,p=2$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaGhhc2hoYXNo"

const boxStamp = `{"schema": 1, "written_by": "1.0", "at": "2026-01-01T00:00:00Z"}`

func newBox(t *testing.T) box {
	t.Helper()
	dir := t.TempDir()
	b := box{filepath.Join(dir, "etc"), filepath.Join(dir, "etc/edgecam.yaml"), filepath.Join(dir, "state"), filepath.Join(dir, "outside")}
	put(t, filepath.Join(b.dir, "models/labels.txt"), strings.Repeat("label\n", 80))
	put(t, filepath.Join(b.outside, "big.txt"), strings.Repeat("other\n", 80))
	put(t, filepath.Join(b.dir, "hall-password"), "file-s3cret\n")
	for _, name := range []string{"tensorrt/engine.onnx", "cuda/x", "memory-strategies.json", ".profile"} {
		put(t, filepath.Join(b.state, name), "cache")
	}
	put(t, filepath.Join(b.state, "rules/one.json"), "{}")
	put(t, filepath.Join(b.state, "state.json"), boxStamp)
	put(t, b.config, strings.NewReplacer("STATE", b.state, "OUTSIDE", b.outside).Replace(`# The yard.
version: 1
server:
  auth: {user: admin, password_hash: "`+boxHash+`"}   # made in May
inference:
  model: {file: builtin:nanodet-g, labels: models/labels.txt}
  models:
    plates: {file: builtin:nanodet-g, labels: OUTSIDE/big.txt}
state_dir: STATE
cameras:
  gate:
    url: rtsp://viewer:`+boxURLPassword+`@192.0.2.1/a  
    enabled: false
  yard:
    url: rtsp://192.0.2.2/a
    username: viewer
    password: >-
      `+boxPassword+`
    enabled: false
  #   password: `+boxPassword+`
  hall: {url: "rtsp://192.0.2.3/a", username: viewer, password: {file: hall-password}, enabled: false}
`))
	return b
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o640)); err != nil {
		t.Fatal(err)
	}
}

func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// must runs a command line that succeeds, and gives what it says.
func must(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errs := run(t, args...)
	if code != exitOK {
		t.Fatalf("%v: exit code %d\n%s%s", args, code, out, errs)
	}
	return out
}

// unpacked is all text of an archive.
func unpacked(t *testing.T, path string) string {
	t.Helper()
	z, err := gzip.NewReader(strings.NewReader(text(t, path)))
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

func members(t *testing.T, path string) (names []string) {
	t.Helper()
	r := tar.NewReader(strings.NewReader(unpacked(t, path)))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
	}
}

func TestBackupHoldsNoSecrets(t *testing.T) {
	b := newBox(t)
	before := text(t, b.config)
	to := filepath.Join(t.TempDir(), "yard.tar.gz")
	out := must(t, "backup", "-c", b.config, to)
	for _, secret := range []string{boxPassword, boxURLPassword, boxHash, "file-s3cret"} {
		if strings.Contains(unpacked(t, to), secret) || strings.Contains(out, secret) {
			t.Errorf("%s is in it", secret)
		}
	}
	want := []string{"manifest.json", "config/0000-edgecam.yaml", "file/0001-labels.txt", "file/0002-big.txt", "state/0003-one.json"}
	if got := members(t, to); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, said := range []string{
		"  file    " + b.outside + "/big.txt, 480 bytes", "  cameras.gate.url: secret", "  cameras.yard.password: secret",
		"  server.auth.password_hash: secret", "hall-password: holds the secret of cameras.hall.password",
	} {
		if !strings.Contains(out, said) {
			t.Errorf("not said: %q in\n%s", said, out)
		}
	}
	if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if text(t, b.config) != before {
		t.Error("the configuration was changed")
	}
	if text(t, filepath.Join(b.state, "state.json")) != boxStamp {
		t.Error("backup has written to the state directory")
	}
	code, _, errs := run(t, "backup", "-c", b.config, to)
	if code != exitFailed || !strings.Contains(errs, "exists already; --force replaces it") {
		t.Errorf("%d: %s", code, errs)
	}
	must(t, "backup", "-c", b.config, "--force", to)
	if entries, err := os.ReadDir(filepath.Dir(to)); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestBackupWithSecretsComesBackWhole(t *testing.T) {
	b, to := newBox(t), filepath.Join(t.TempDir(), "yard.tar.gz")
	must(t, "backup", "-c", b.config, "--with-secrets", to)
	before := text(t, b.config)
	for _, path := range []string{b.config, filepath.Join(b.dir, "models"), filepath.Join(b.dir, "hall-password"), b.state, b.outside} {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	out := must(t, "restore", "-c", b.config, "--state-dir", b.state, "--outside", to)
	if text(t, b.config) != before || text(t, filepath.Join(b.dir, "hall-password")) != "file-s3cret\n" || text(t, filepath.Join(b.state, "rules/one.json")) != "{}" {
		t.Error("not as it was")
	}
	if strings.Contains(out, "left out") || strings.Contains(out, "missing") {
		t.Error(out)
	}
	must(t, "check", b.config)
	if i, err := state.Read(b.state); err != nil || i.Schema != 1 {
		t.Errorf("%+v, %v", i, err)
	}
	if _, err := os.Stat(b.config + beforeRestore); err == nil {
		t.Error("a previous configuration from nowhere")
	}
}

func TestRestoreTakesPresentSecrets(t *testing.T) {
	b, to := newBox(t), filepath.Join(t.TempDir(), "yard.tar.gz")
	must(t, "backup", "-c", b.config, to)
	before := text(t, b.config)
	newer := strings.ReplaceAll(strings.ReplaceAll(before, boxPassword, "newer-word"), "192.0.2.2", "192.0.2.9")
	put(t, b.config, newer)
	if err := os.Chmod(b.config, 0o604); err != nil {
		t.Fatal(err)
	}
	out := must(t, "restore", "-c", b.config, "--dry-run", to)
	if text(t, b.config) != newer || !strings.Contains(out, "would be written:\n  config  "+b.config) {
		t.Errorf("dry run: %s", out)
	}
	out = must(t, "restore", "-c", b.config, to)
	cfg, err := config.Load(b.config, config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if p := cfg.Cameras["yard"].Password.Reveal(); p != "newer-word" {
		t.Errorf("password %q", p)
	}
	if u := cfg.Cameras["gate"].URL.Reveal(); u != "rtsp://viewer:"+boxURLPassword+"@192.0.2.1/a" {
		t.Errorf("url %q", u)
	}
	if cfg.Server.Auth.PasswordHash.Reveal() != boxHash || cfg.Cameras["yard"].URL.Reveal() != "rtsp://192.0.2.2/a" || cfg.Cameras["hall"].Password.Reveal() != "file-s3cret" {
		t.Error("not restored")
	}
	if !strings.Contains(text(t, b.config), "# The yard.\n") || !strings.Contains(text(t, b.config), "# made in May") {
		t.Errorf("comments are gone:\n%s", text(t, b.config))
	}
	if text(t, b.config+beforeRestore) != newer {
		t.Error("the previous configuration is not kept")
	}
	for _, path := range []string{b.config, b.config + beforeRestore} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o604 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if !strings.Contains(out, "secrets taken from the present configuration: server.auth.password_hash, cameras.gate.url, cameras.yard.password") {
		t.Error(out)
	}
	if text(t, filepath.Join(b.state, "tensorrt/engine.onnx")) != "cache" {
		t.Error("caches were touched")
	}
}

func TestRestoreOnANewBox(t *testing.T) {
	b, to := newBox(t), filepath.Join(t.TempDir(), "yard.tar.gz")
	must(t, "backup", "-c", b.config, to)
	there, dir := filepath.Join(t.TempDir(), "new/edgecam.yaml"), filepath.Join(t.TempDir(), "state")
	if err := os.RemoveAll(b.outside); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(to)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	root := newRoot()
	var out bytes.Buffer
	root.SetIn(in)
	root.SetOut(&out)
	if code := execute(t.Context(), root, []string{"restore", "-c", there, "--state-dir", dir, "-"}, &out); code != exitOK {
		t.Fatal(out.String())
	}
	for _, said := range []string{
		b.outside + "/big.txt: lies outside of the two directories; --outside writes it",
		"secret left out of the backup: fill in cameras.gate.url\n", "secret left out of the backup: fill in cameras.yard.password\n",
		"secret left out of the backup: fill in server.auth.password_hash\n",
		"secret left out of the backup: put " + filepath.Dir(there) + "/hall-password there for cameras.hall.password\n",
		"file missing: put " + b.outside + "/big.txt there for inference.models.plates.labels\n",
	} {
		if !strings.Contains(out.String(), said) {
			t.Errorf("not said: %q in\n%s", said, out.String())
		}
	}
	if _, err := os.Stat(b.outside); err == nil {
		t.Error("written outside")
	}
	if text(t, filepath.Join(filepath.Dir(there), "models/labels.txt")) == "" || text(t, filepath.Join(dir, "rules/one.json")) != "{}" {
		t.Error("not restored")
	}
	code, _, errs := run(t, "check", there)
	if code != exitConfig || !strings.Contains(errs, "cameras.yard.password: this secret was left out of the backup that the file comes from: fill it in") {
		t.Errorf("%d: %s", code, errs)
	}
}

// Whatever is wrong with an archive, nothing is touched.
func TestRestoreChangesNothingUnlessAllIsWell(t *testing.T) {
	b, to := newBox(t), filepath.Join(t.TempDir(), "yard.tar.gz")
	must(t, "backup", "-c", b.config, to)
	whole := text(t, to)
	put(t, to+".cut", whole[:len(whole)-20])
	put(t, to+".no", "version: 1\n")
	put(t, b.config, "version: 1\n")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{to + ".cut"}, "not a usable backup: it is cut short"},
		{[]string{to + ".no"}, "not a usable backup: "},
		{[]string{to + ".none"}, "no such file or directory"},
		{[]string{b.dir}, "is not a regular file"},
		{[]string{"--state-dir", b.config, to}, "not a directory"},
	} {
		code, _, errs := run(t, append([]string{"restore", "-c", b.config}, c.args...)...)
		if code != exitFailed || !strings.Contains(errs, c.want) {
			t.Errorf("%v: exit code %d, %s", c.args, code, errs)
		}
	}
	if text(t, b.config) != "version: 1\n" {
		t.Error("the configuration was changed")
	}
	entries, err := os.ReadDir(b.dir)
	if err != nil || len(entries) != 3 {
		t.Errorf("%v, %v", entries, err)
	}
}

// A state directory that the archive names must be edgecam's own.
func TestRestoreIsNotLedElsewhere(t *testing.T) {
	b, to := newBox(t), filepath.Join(t.TempDir(), "yard.tar.gz")
	must(t, "backup", "-c", b.config, to)
	if err := os.RemoveAll(b.state); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(b.state, "tmp/jobs"), "of others")
	code, _, errs := run(t, "restore", "-c", b.config, to)
	if code != exitFailed || !strings.Contains(errs, "which is not edgecam's by now") {
		t.Errorf("exit code %d, %s", code, errs)
	}
	// A link that the service's user has made leads root nowhere.
	if err := os.Symlink(b.outside, filepath.Join(b.state, "rules")); err != nil {
		t.Fatal(err)
	}
	code, _, errs = run(t, "restore", "-c", b.config, "--state-dir", b.state, to)
	if _, err := os.Stat(filepath.Join(b.outside, "one.json")); err == nil || code != exitFailed {
		t.Errorf("led out by a link: exit code %d, %s", code, errs)
	}
}

// The service has its state directory alone, and what is newer it leaves alone.
func TestServiceAndState(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	file := write(t, "edgecam.yaml", "version: 1\nserver: {listen: \"127.0.0.1:0\"}\nstate_dir: "+dir+"\n")
	to := filepath.Join(t.TempDir(), "b.tar.gz")
	p := startProgram(t, []string{"CUDA_CACHE_PATH=", "TMPDIR="}, "run", "--config", file)
	p.line(t, "msg=dashboard")
	must(t, "backup", "-c", file, to)
	code, _, errs := run(t, "restore", "-c", file, to)
	if code != exitFailed || !strings.Contains(errs, "another edgecam uses "+dir) || !strings.Contains(errs, "Try: stop the other one (systemctl stop edgecam)") {
		t.Errorf("restore: exit code %d, %s", code, errs)
	}
	code, _, errs = run(t, "run", "--config", file)
	if code != exitFailed || !strings.Contains(errs, "another edgecam uses "+dir) {
		t.Errorf("a second one: exit code %d, %s", code, errs)
	}
	if out := must(t, "restore", "-c", file, "--dry-run", to); !strings.Contains(out, "systemctl stop edgecam") {
		t.Error(out)
	}
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.end(t); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	must(t, "restore", "-c", file, to)

	const newer = `{"schema": 99, "written_by": "9.9.9", "at": "2030-01-01T00:00:00Z"}`
	put(t, filepath.Join(dir, "state.json"), newer)
	for _, args := range [][]string{{"run", "--config", file}, {"restore", "-c", file, to}, {"backup", "-c", file, "--force", to}} {
		code, _, errs := run(t, args...)
		want := exitFailed
		if args[0] != "restore" {
			want = exitConfig
		}
		if code != want || !strings.Contains(errs, "was written by edgecam 9.9.9") || !strings.Contains(errs, "Try: install edgecam 9.9.9 again") {
			t.Errorf("%v: exit code %d, %s", args, code, errs)
		}
	}
	if text(t, filepath.Join(dir, "state.json")) != newer {
		t.Error("it was touched")
	}
}

// Without a state directory that can be used the service works, and says so once.
func TestServiceWithoutState(t *testing.T) {
	file := write(t, "edgecam.yaml", "version: 1\nserver: {listen: \"127.0.0.1:0\"}\nstate_dir: edgecam.yaml\n")
	p := startProgram(t, nil, "run", "--config", file)
	l := p.line(t, "state directory")
	if !strings.Contains(l, "level=WARN") || !strings.Contains(l, "not a directory") || !strings.Contains(l, "set state_dir to a directory") {
		t.Error(l)
	}
	p.line(t, "msg=dashboard")
}

func TestDoctorNamesTheStateDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if s := probeState(dir); !s.Missing || s.Err != nil {
		t.Errorf("%+v", s)
	}
	d, err := state.Open(dir, "1.2")
	if err != nil {
		t.Fatal(err)
	}
	if s := probeState(dir); s.Dir != dir || s.Schema != 1 || s.By != "1.2" || !s.InUse || s.Err != nil || s.Bytes == 0 || s.User == "" {
		t.Errorf("%+v", s)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "state.json"), `{"schema": 9, "written_by": "9"}`)
	if s := probeState(dir); !s.Newer || s.Err == nil || !strings.Contains(s.Hint, "install edgecam 9 again") || s.InUse {
		t.Errorf("%+v", s)
	}
	if s := probeState(""); s.Dir != "" {
		t.Errorf("%+v", s)
	}
}
