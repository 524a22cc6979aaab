package lint_test

import (
	"os/exec"
	"strings"
	"testing"
)

// Every module that is compiled into the program stands in the notices.
func TestNoticesAreComplete(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", "./cmd/edgecam")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	notices := readFile(t, "THIRD_PARTY_NOTICES.md")
	n := 0
	seen := map[string]bool{}
	for _, module := range strings.Fields(string(out)) {
		if seen[module] {
			continue
		}
		seen[module] = true
		n++
		if !strings.Contains(notices, "\n| "+module+" | ") {
			t.Errorf("THIRD_PARTY_NOTICES.md lacks %s: run scripts/notices.sh", module)
		}
	}
	if n < 10 {
		t.Errorf("only %d modules found", n)
	}
	for _, data := range []string{"nanodet-g-416.onnx", "nanodet-g-416-int8.onnx", "pets-s2l1-20s.mp4", "pets-h265-4s.mp4", "pets-mjpeg-2s.mp4", "pets-small-4s.mp4", "preact"} {
		if !strings.Contains(notices, data) {
			t.Errorf("THIRD_PARTY_NOTICES.md lacks %s", data)
		}
	}
}

func TestLicence(t *testing.T) {
	text := readFile(t, "LICENSE")
	for _, part := range []string{"Apache License", "Version 2.0, January 2004", "END OF TERMS AND CONDITIONS", "APPENDIX: How to apply the Apache License"} {
		if !strings.Contains(text, part) {
			t.Errorf("LICENSE lacks %q", part)
		}
	}
}
