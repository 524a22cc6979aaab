package lint_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// unit copies the unit to a directory of its own, as a system would know it,
// with a program that exists in place of the installed one.
func unit(t *testing.T) string {
	t.Helper()
	text := readFile(t, "systemd/edgecam.service")
	if !strings.Contains(text, "\nExecStart=/usr/local/bin/edgecam run ") {
		t.Fatal("systemd/edgecam.service must start /usr/local/bin/edgecam: make install and the package put their own path there")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "edgecam.service")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "/usr/local/bin/edgecam", program)), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// systemdTool finds a tool of systemd, which `make test` installs.
func systemdTool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%v: run scripts/setup-test.sh", err)
	}
	return path
}

func TestUnitVerifies(t *testing.T) {
	out, err := exec.Command(systemdTool(t, "systemd-analyze"), "verify", unit(t)).CombinedOutput()
	if err != nil || strings.Contains(string(out), "edgecam.service") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

// The verifier must be able to say no: a misspelt key is found.
func TestUnitVerifierFindsMistakes(t *testing.T) {
	path := unit(t)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(b), "WatchdogSec=", "WachdogSec=", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	out, _ := exec.Command(systemdTool(t, "systemd-analyze"), "verify", path).CombinedOutput()
	if !strings.Contains(string(out), "WachdogSec") {
		t.Errorf("systemd-analyze verify did not name the key:\n%s", out)
	}
}

func TestUnitExposure(t *testing.T) {
	// The threshold is ten times the score; 3.0 is the contract, 2.0 what the
	// unit has, so that a step back is seen.
	out, err := exec.Command(systemdTool(t, "systemd-analyze"), "security", "--offline=true", "--no-pager", "--threshold=20", unit(t)).CombinedOutput()
	if err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
	if !strings.Contains(string(out), "Overall exposure level for edgecam.service") {
		t.Errorf("no score in:\n%s", out)
	}
}

// What other parts rely on must stand in the unit.
func TestUnitKeepsItsPromises(t *testing.T) {
	text := "\n" + readFile(t, "systemd/edgecam.service")
	for _, line := range []string{
		"Type=notify", "NotifyAccess=main", "WatchdogSec=30", "ExecReload=/bin/kill -HUP $MAINPID",
		"Restart=always", "RestartPreventExitStatus=78", "StartLimitIntervalSec=0",
		"LimitMEMLOCK=infinity", "User=edgecam", "SupplementaryGroups=video render",
		"StateDirectory=edgecam", "DevicePolicy=closed", "DeviceAllow=char-nvidia* rw",
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("systemd/edgecam.service lacks %q", line)
		}
	}
}

func TestSysusers(t *testing.T) {
	path, err := filepath.Abs(filepath.Join(root, "systemd/edgecam.sysusers"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(systemdTool(t, "systemd-sysusers"), "--dry-run", "--root="+t.TempDir(), path).CombinedOutput()
	if err != nil {
		t.Fatalf("systemd-sysusers: %v\n%s", err, out)
	}
	for _, want := range []string{`user 'edgecam'`, `group 'video'`, `group 'render'`} {
		if !strings.Contains(string(out), want) {
			t.Errorf("systemd-sysusers does not make %s:\n%s", want, out)
		}
	}
}

// Each line of the tmpfiles is of a known type, with a mode and an owner.
func TestTmpfiles(t *testing.T) {
	line := regexp.MustCompile(`^[dz] /(etc|var/lib|var/cache)/edgecam(/edgecam\.yaml)? [02][0-7]{3} (root|edgecam) edgecam -$`)
	for _, l := range strings.Split(strings.TrimSpace(readFile(t, "systemd/edgecam.tmpfiles")), "\n") {
		if !strings.HasPrefix(l, "#") && !line.MatchString(l) {
			t.Errorf("systemd/edgecam.tmpfiles: %q", l)
		}
	}
}
