package lint_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// staged is a tree with what install.sh needs, and stand-ins for what a build
// leaves.
func staged(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	put := func(name, text string, mode os.FileMode) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{
		"systemd/edgecam.service", "systemd/edgecam.sysusers", "systemd/edgecam.tmpfiles",
		"LICENSE", "NOTICE", "THIRD_PARTY_NOTICES.md", "internal/config/edgecam.yaml",
	} {
		put(name, readFile(t, name), 0o644)
	}
	put("scripts/install.sh", readFile(t, "scripts/install.sh"), 0o755)
	put("bin/edgecam", "program", 0o755)
	put("ort/libonnxruntime.so.1", "library", 0o644)
	return dir
}

func install(t *testing.T, tree, dest string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(tree, "scripts/install.sh"))
	cmd.Env = append(os.Environ(), "DESTDIR="+dest, "PREFIX=/usr", "ORT_DIR=ort")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("install.sh: %v\n%s", err, out)
	}
	return string(out)
}

func TestInstall(t *testing.T) {
	tree, dest := staged(t), t.TempDir()
	install(t, tree, dest)
	for name, mode := range map[string]os.FileMode{
		"usr/bin/edgecam":                              0o755,
		"usr/lib/edgecam/libonnxruntime.so.1":          0o644,
		"usr/lib/systemd/system/edgecam.service":       0o644,
		"usr/lib/sysusers.d/edgecam.conf":              0o644,
		"usr/lib/tmpfiles.d/edgecam.conf":              0o644,
		"usr/share/doc/edgecam/LICENSE":                0o644,
		"usr/share/doc/edgecam/NOTICE":                 0o644,
		"etc/edgecam/edgecam.yaml":                     0o640, // passwords of cameras may stand in it
		"usr/share/doc/edgecam/THIRD_PARTY_NOTICES.md": 0o644,
	} {
		info, err := os.Stat(filepath.Join(dest, name))
		if err != nil {
			t.Error(err)
		} else if info.Mode().Perm() != mode {
			t.Errorf("%s has mode %o, want %o", name, info.Mode().Perm(), mode)
		}
	}
	unit, err := os.ReadFile(filepath.Join(dest, "usr/lib/systemd/system/edgecam.service"))
	if err != nil || !strings.Contains(string(unit), "\nExecStart=/usr/bin/edgecam run --config /etc/edgecam/edgecam.yaml\n") {
		t.Errorf("the unit does not start the installed program (%v)", err)
	}
}

// Installing again must not take a configuration away.
func TestInstallKeepsConfiguration(t *testing.T) {
	tree, dest := staged(t), t.TempDir()
	path := filepath.Join(dest, "etc/edgecam/edgecam.yaml")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := install(t, tree, dest)
	if got, _ := os.ReadFile(path); string(got) != "mine" {
		t.Errorf("the configuration is now %q", got)
	}
	if !strings.Contains(out, "left as it is") {
		t.Errorf("install.sh does not say so:\n%s", out)
	}
}

// The setup scripts must do nothing where nothing is missing, and must tell a
// user who is not root what to run.
func TestNeedPackages(t *testing.T) {
	bin := t.TempDir()
	tool := func(name, script string) {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tool("apt-get", `echo "apt-get $*" >&2; exit 9`)
	tool("dpkg-query", `for p; do :; done; [ "$p" = there ] && echo "install ok installed"`)
	tool("id", `echo 1000`)
	need := func(packages string) (string, error) {
		cmd := exec.Command("bash", "-c", "here=scripts; . scripts/apt.sh; need_packages build "+packages)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := need("there"); err != nil || out != "" {
		t.Errorf("nothing missing: %v, %q", err, out)
	}
	out, err := need("there absent other")
	if err == nil || !strings.Contains(out, "apt-get install -y --no-install-recommends absent other") {
		t.Errorf("missing as a user: %v, %q", err, out)
	}
	tool("id", `echo 0`)
	if out, err := need("absent"); err == nil || !strings.Contains(out, "apt-get -qq") || !strings.Contains(out, "exit status 9") {
		t.Errorf("apt-get that fails: %v, %q", err, out)
	}
}

func TestStep(t *testing.T) {
	for _, c := range []struct {
		name, command string
		status        int
		want, not     string
	}{
		{"quiet when well", "echo loud", 0, "✓ title", "loud"},
		{"loud when not", "echo loud; exit 3", 3, "loud", "✓"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command("scripts/step.sh", "title", "sh", "-c", c.command)
			cmd.Dir = root
			cmd.Env = append(os.Environ(), "VERBOSE=0")
			out, _ := cmd.CombinedOutput()
			if got := cmd.ProcessState.ExitCode(); got != c.status || !strings.Contains(string(out), c.want) || strings.Contains(string(out), c.not) {
				t.Errorf("status %d, output:\n%s", got, out)
			}
		})
	}
}
