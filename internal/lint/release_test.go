package lint_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A version that stands in two places is wrong in one of them some day.
func TestVersionsStandOnce(t *testing.T) {
	for owner, pattern := range map[string]string{
		"scripts/build-ffmpeg.sh":      `(?m)^version=(5\.\d+\.\d+)$`,
		"scripts/fetch-onnxruntime.sh": `(?m)^version=(\d+\.\d+\.\d+)$`,
		"scripts/sysroot.sh":           `(?m)^libc6 +(\S+)`,
	} {
		m := regexp.MustCompile(pattern).FindStringSubmatch(readFile(t, owner))
		if m == nil {
			t.Errorf("%s: no version found", owner)
			continue
		}
		for name, b := range texts(t) {
			build := name == "Makefile" || strings.HasPrefix(name, "scripts/") || strings.HasPrefix(name, "packaging/") || strings.HasPrefix(name, ".ci/")
			if !build || name == owner {
				continue
			}
			// Comments may give an example.
			code := regexp.MustCompile(`(?m)^\s*#.*$`).ReplaceAll(b, nil)
			if strings.Contains(string(code), m[1]) {
				t.Errorf("%s repeats the version %s, which %s names", name, m[1], owner)
			}
		}
	}
}

// copyScript puts one of our scripts into a tree of the test.
func copyScript(t *testing.T, tree, name string) string {
	t.Helper()
	path := filepath.Join(tree, "scripts", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(readFile(t, "scripts/"+name)), 0o755); err != nil { //nolint:gosec // a script
		t.Fatal(err)
	}
	return path
}

// command runs a program with few variables, in dir, and gives what it prints.
func command(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	out, err := tryCommand(t, dir, env, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

func tryCommand(t *testing.T, dir string, env []string, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}, env...)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func TestVersionScript(t *testing.T) {
	tree := t.TempDir()
	script := copyScript(t, tree, "version.sh")
	at := []string{
		"GIT_AUTHOR_DATE=2026-03-01T23:30:00-02:00", "GIT_COMMITTER_DATE=2026-03-01T23:30:00-02:00", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b",
	}
	git := func(args ...string) { t.Helper(); command(t, tree, at, "git", args...) }
	var order []string
	expect := func(pattern, epoch string) {
		t.Helper()
		got := command(t, "/", nil, script)
		if !regexp.MustCompile(`^` + pattern + `$`).MatchString(got) {
			t.Errorf("version is %q, want %s", got, pattern)
		}
		if e := command(t, "/", nil, script, "--epoch"); e != epoch {
			t.Errorf("at %s the epoch is %s, want %s", got, e, epoch)
		}
		order = append(order, got)
	}

	expect(`0\.1\.0~dev`, "1767225600")
	order = nil // what is made without git has no place among the others
	git("init", "-q", tree)
	git("add", "scripts")
	expect(`0\.1\.0~dev`, "1767225600") // no commit yet
	order = nil
	git("commit", "-q", "-m", "one")
	expect(`0\.1\.0~git20260302\.013000\.[0-9a-f]{10}`, "1772415000")
	if err := os.WriteFile(script, []byte(readFile(t, "scripts/version.sh")+"\n"), 0o755); err != nil { //nolint:gosec // a script
		t.Fatal(err)
	}
	expect(`0\.1\.0~git20260302\.013000\.[0-9a-f]{10}\+dirty`, "1772415000")
	git("tag", "-a", "v0.1.0-rc1", "-m", "candidate")
	git("commit", "-q", "-a", "-m", "two")
	git("tag", "-d", "v0.1.0-rc1")
	git("tag", "v0.1.0-rc1")
	expect(`0\.1\.0~rc1`, "1772415000")
	git("commit", "-q", "--allow-empty", "-m", "three")
	expect(`0\.1\.0~rc1\+git\.1\.[0-9a-f]{10}`, "1772415000")
	git("tag", "-a", "v0.1.0", "-m", "release")
	expect(`0\.1\.0`, "1772415000")
	git("commit", "-q", "--allow-empty", "-m", "four")
	expect(`0\.1\.0\+git\.1\.[0-9a-f]{10}`, "1772415000")

	if got := command(t, "/", []string{"VERSION=7", "SOURCE_DATE_EPOCH=8"}, script); got != "7" {
		t.Errorf("with VERSION=7 it is %q", got)
	}
	if got := command(t, "/", []string{"VERSION=7", "SOURCE_DATE_EPOCH=8"}, script, "--epoch"); got != "8" {
		t.Errorf("with SOURCE_DATE_EPOCH=8 it is %q", got)
	}
	// An archive that was unpacked inside of somebody's repository.
	inner := copyScript(t, filepath.Join(tree, "unpacked"), "version.sh")
	if got := command(t, "/", nil, inner); got != "0.1.0~dev" {
		t.Errorf("inside another repository it is %q", got)
	}
	if _, err := exec.LookPath("dpkg"); err != nil {
		return // the order is Debian's
	}
	for i, v := range order[1:] {
		command(t, tree, nil, "dpkg", "--compare-versions", order[i], "lt", v)
	}
}

// build compiles C for the tests of check-symbols.sh.
func build(t *testing.T, dir, out, source string, args ...string) string {
	t.Helper()
	c := filepath.Join(dir, out+".c")
	if err := os.WriteFile(c, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	out = filepath.Join(dir, out)
	command(t, dir, nil, "gcc", append([]string{"-nostdlib", "-fno-stack-protector", "-o", out, c}, args...)...)
	return out
}

// The libraries are stand-ins that have the names and versions of glibc, so
// that the test means the same on every machine.
func TestCheckSymbols(t *testing.T) {
	dir := t.TempDir()
	versions := filepath.Join(dir, "versions")
	text := "GLIBC_2.31 { global: old_call; };\nGLIBC_2.34 { global: new_call; } GLIBC_2.31;\nGLIBC_PRIVATE { global: inner_call; };\n"
	if err := os.WriteFile(versions, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	libc := build(t, dir, "libc.so.6", "void old_call(void) {} void new_call(void) {} void inner_call(void) {}",
		"-shared", "-fPIC", "-Wl,--version-script="+versions, "-Wl,-soname=libc.so.6")
	other := build(t, dir, "libavcodec.so.59", "void av_other(void) {}", "-shared", "-fPIC", "-Wl,-soname=libavcodec.so.59")
	cxx := build(t, dir, "libstdc++.so.6", "void cxx_call(void) {}", "-shared", "-fPIC", "-Wl,-soname=libstdc++.so.6")
	calls := func(out, call string, args ...string) string {
		return build(t, dir, out, "void "+call+"(void); void run(void) { "+call+"(); }", append([]string{"-shared", "-fPIC"}, args...)...)
	}
	old := calls("old", "old_call", libc)
	for _, tt := range []struct {
		name string
		args []string
		want string // a part of the complaint, or nothing
	}{
		{"glibc 2.31", []string{old}, ""},
		{"glibc 2.34", []string{calls("new", "new_call", libc)}, "needs more than GLIBC_2.31: new_call of GLIBC_2.34 (1 in all)"},
		{"glibc's private symbols", []string{calls("inner", "inner_call", libc)}, "inner_call of GLIBC_PRIVATE"},
		{"another library", []string{calls("other", "av_other", other)}, "needs the library libavcodec.so.59"},
		{"the C++ run time", []string{calls("cxx", "cxx_call", cxx)}, "needs the library libstdc++.so.6"},
		{"the C++ run time, allowed", []string{"--c++", calls("cxx2", "cxx_call", cxx)}, ""},
		{"FFmpeg shown", []string{build(t, dir, "shown", "void avcodec_open2(void) {}", "-shared", "-fPIC")}, "shows FFmpeg's symbols to other libraries: avcodec_open2"},
		{"no program", []string{versions}, "cannot be read"},
		{"the second of two", []string{old, filepath.Join(dir, "new")}, "new_call of GLIBC_2.34"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, err := tryCommand(t, root, nil, "scripts/check-symbols.sh", tt.args...)
			if (err == nil) != (tt.want == "") || !strings.Contains(out, tt.want) {
				t.Errorf("%v: %q, want %q", err, out, tt.want)
			}
		})
	}
}

// Another release of Debian is read from where this machine's own one comes from.
func TestDebianMirror(t *testing.T) {
	const deb822 = `Types: deb
# an older place
URIs: http://m.test/debian
Suites: bookworm bookworm-updates
Components: main

Types: deb
URIs: http://m.test/debian-security
Suites: bookworm-security
Components: main`
	for _, tt := range []struct {
		name, release, file, text, mirror, want string
	}{
		{"stanzas", "ID=debian\nVERSION_CODENAME=bookworm", "sources.list.d/debian.sources", deb822, "", "main http://m.test/debian\nsecurity http://m.test/debian-security"},
		{"lines", "ID=debian\nVERSION_CODENAME=trixie", "sources.list", "# deb http://no.test/ trixie main\ndeb [arch=amd64 signed-by=/k.gpg] https://m.test/d trixie main\ndeb https://m.test/s trixie-security main", "", "main https://m.test/d\nsecurity https://m.test/s"},
		{"somebody else's repository", "ID=debian\nVERSION_CODENAME=trixie", "sources.list.d/node.sources", "Types: deb\nURIs: https://n.test/x\nSuites: nodistro", "", ""},
		{"Ubuntu", "ID=ubuntu\nVERSION_CODENAME=noble", "sources.list", "deb http://u.test/ubuntu noble main", "", ""},
		{"named", "ID=ubuntu\nVERSION_CODENAME=noble", "sources.list", "deb http://u.test/ubuntu noble main", "http://named.test/debian", "main http://named.test/debian"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			etc := t.TempDir()
			for name, text := range map[string]string{"os-release": tt.release + "\n", "apt/" + tt.file: tt.text + "\n"} {
				path := filepath.Join(etc, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			env := []string{"debian_etc=" + etc, "DEBIAN_MIRROR=" + tt.mirror}
			got := command(t, root, env, "bash", "-euo", "pipefail", "-c", ". scripts/debian.sh; debian_uris")
			if got != tt.want {
				t.Errorf("mirrors are %q, want %q", got, tt.want)
			}
		})
	}
}
