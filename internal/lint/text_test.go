package lint_test

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestGoMod(t *testing.T) {
	mod := readFile(t, "go.mod")
	if regexp.MustCompile(`(?m)^\s*replace\b`).MatchString(mod) {
		t.Error("go.mod: no replace: the tree must build as it is for everybody")
	}
	// v4.16.3 is an empty module that only says that it was a mistake.
	if !regexp.MustCompile(`(?m)^\s*(require )?github\.com/bluenviron/gortsplib/v4 v4\.16\.2(\s|$)`).MatchString(mod) {
		t.Error("go.mod: gortsplib must stand at v4.16.2")
	}
}

// texts gives every file of the project that is text.
func texts(t *testing.T) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, name := range files(t) {
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(b[:min(len(b), 8000)], []byte{0}) {
			all[name] = b
		}
	}
	return all
}

// Tracked text names no package registry (each machine has its own settings)
// and no path of the machine that it was written on.
func TestTextIsPortable(t *testing.T) {
	hosts := []string{"proxy." + "golang.org", "sum." + "golang.org", "registry." + "npmjs.org", "registry." + "yarnpkg.com", "pypi" + ".org", "files." + "pythonhosted.org", "deb." + "debian.org"}
	paths := regexp.MustCompile(`(?m)(?:^|[\s"'=(:` + "`" + `])/(?:` + "ro" + `ot|wo` + `rk|home/[a-z][a-z0-9_-]*)/[\w.-]`)
	for name, b := range texts(t) {
		for _, h := range hosts {
			if bytes.Contains(b, []byte(h)) {
				t.Errorf("%s names the registry %s", name, h)
			}
		}
		if m := paths.Find(b); m != nil {
			t.Errorf("%s holds a path of one machine: %q", name, bytes.TrimSpace(m))
		}
	}
}

// A reminder in a comment is work that nobody tracks.
func TestNoReminders(t *testing.T) {
	reminder := regexp.MustCompile(`(?m)(//|#|/\*|<!--)[^\n]*\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)
	for name, b := range texts(t) {
		switch path.Ext(name) {
		case ".go", ".ts", ".tsx", ".css", ".sh", ".c", ".h", ".py", ".mjs", ".md", ".yaml", ".yml", ".service", "":
			if m := reminder.Find(b); m != nil {
				t.Errorf("%s: %q", name, m)
			}
		}
	}
}

// packagePath matches a package or directory in backquotes in a document.
var packagePath = regexp.MustCompile("`((?:capture|framepool|platform|preprocess|infer|overlay|web|internal|cmd|systemd|scripts|docs)(?:/[a-z0-9_./-]+)?)/?`")

// Documents speak of what is there.
func TestDocumentsNameWhatExists(t *testing.T) {
	for _, doc := range []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"} {
		text := readFile(t, doc)
		for _, m := range packagePath.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "*") || strings.HasPrefix(m[1], "web/dist") {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
				t.Errorf("%s names %s, which does not exist", doc, m[1])
			}
		}
		for _, m := range regexp.MustCompile("`make ([a-z-]+)").FindAllStringSubmatch(text, -1) {
			if !strings.Contains(readFile(t, "Makefile"), "\n"+m[1]+":") {
				t.Errorf("%s names make %s, which does not exist", doc, m[1])
			}
		}
	}
}

// ARCHITECTURE.md has a word on every package.
func TestArchitectureIsComplete(t *testing.T) {
	text := readFile(t, "ARCHITECTURE.md")
	for pkg := range importsOf(t) {
		if !strings.Contains(text, pkg) {
			t.Errorf("ARCHITECTURE.md does not mention %s", pkg)
		}
	}
}

// Each linter is there for a reason, which stands beside it.
func TestLintersHaveReasons(t *testing.T) {
	item := regexp.MustCompile(`^\s+- [a-z]+\s*(#.*)?$`)
	n, in := 0, false
	for i, line := range strings.Split(readFile(t, ".golangci.yml"), "\n") {
		switch {
		case strings.TrimSpace(line) == "enable:":
			in = true
		case in && item.MatchString(line):
			n++
			if !strings.Contains(line, "# ") {
				t.Errorf(".golangci.yml:%d: no reason: %s", i+1, line)
			}
		case in && strings.TrimSpace(line) != "" && !strings.HasPrefix(strings.TrimSpace(line), "#"):
			in = false
		}
	}
	if n < 10 {
		t.Errorf("only %d linters found in .golangci.yml", n)
	}
}

// What users rely on when they read the help.
func TestMakeHelpNamesTheContract(t *testing.T) {
	mk := readFile(t, "Makefile")
	for _, target := range []string{"help", "demo", "test", "build", "lint", "bench", "install"} {
		if !regexp.MustCompile(`(?m)^` + target + `:.*## \S`).MatchString(mk) {
			t.Errorf("Makefile: target %s is missing or says nothing of itself", target)
		}
	}
}
