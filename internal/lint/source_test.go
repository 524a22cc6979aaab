package lint_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

const (
	maxLines    = 600 // of a file
	maxFuncLine = 100 // of a function; 40 is the aim
)

// parsed is one source file.
type parsed struct {
	name string
	fset *token.FileSet
	file *ast.File
}

func parse(t *testing.T, name string) parsed {
	t.Helper()
	p := parsed{name: name, fset: token.NewFileSet()}
	var err error
	p.file, err = parser.ParseFile(p.fset, filepath.Join(root, name), nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (p parsed) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", p.name, p.fset.Position(n.Pos()).Line)
}

// Every package has one comment that says what it is, and the stages say in it
// who feeds them and what they own.
func TestPackageComments(t *testing.T) {
	comments := map[string][]string{} // directory → files with a package comment
	texts := map[string]string{}
	for _, name := range goFiles(t, false) {
		p := parse(t, name)
		dir := path.Dir(name)
		if _, ok := comments[dir]; !ok {
			comments[dir] = nil
		}
		if p.file.Doc == nil {
			continue
		}
		comments[dir] = append(comments[dir], name)
		texts[dir] = p.file.Doc.Text()
		start := "Package " + p.file.Name.Name + " "
		if p.file.Name.Name == "main" {
			start = "Command "
		}
		if !strings.HasPrefix(p.file.Doc.Text(), start) && !strings.HasPrefix(p.file.Doc.Text(), strings.TrimSpace(start)+"\n") {
			t.Errorf("%s: the package comment must begin with %q", name, start)
		}
	}
	for dir, with := range comments {
		if len(with) != 1 {
			t.Errorf("package %s has %d package comments %v, want one", dir, len(with), with)
		}
	}
	for _, stage := range []string{"capture", "framepool", "platform", "preprocess", "infer", "overlay", "web"} {
		if _, ok := comments[stage]; !ok {
			t.Errorf("stage %s is missing", stage)
			continue
		}
		for _, heading := range []string{"Position", "Ownership", "Concurrency", "Failure"} {
			if !strings.Contains(texts[stage], "# "+heading+"\n") {
				t.Errorf("the package comment of %s lacks the heading %q", stage, heading)
			}
		}
	}
}

func TestSizes(t *testing.T) {
	for _, name := range files(t) {
		switch path.Ext(name) {
		case ".go", ".ts", ".tsx", ".css", ".sh", ".c", ".h", ".py", ".mjs":
			if n := strings.Count(readFile(t, name), "\n"); n > maxLines {
				t.Errorf("%s has %d lines; %d is the most", name, n, maxLines)
			}
		}
	}
	for _, name := range goFiles(t, false) {
		p := parse(t, name)
		for _, d := range p.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := p.fset.Position(f.End()).Line - p.fset.Position(f.Pos()).Line + 1; n > maxFuncLine {
				t.Errorf("%s: func %s has %d lines; %d is the most", p.at(f), f.Name.Name, n, maxFuncLine)
			}
		}
	}
}

// forbidden finds calls that no source but a few may make.
func forbidden(p parsed) (found []string) {
	cmd := strings.HasPrefix(p.name, "cmd/")
	backoff := strings.HasPrefix(path.Base(p.name), "backoff")
	ast.Inspect(p.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Name.Name == "init" && n.Recv == nil {
				found = append(found, p.at(n)+": no init(): pass values in")
			}
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			if !ok {
				break
			}
			call := x.Name + "." + n.Sel.Name
			switch {
			case call == "time.Sleep" && !backoff:
				found = append(found, p.at(n)+": no time.Sleep: wait for what is waited for, with a context")
			case strings.HasPrefix(call, "fmt.Print") && !cmd:
				found = append(found, p.at(n)+": no "+call+" outside of cmd: the logger is passed in")
			case (call == "os.Exit" || strings.HasPrefix(call, "log.Fatal")) && p.name != "cmd/edgecam/main.go" && !strings.HasPrefix(p.name, "internal/testkit/"): // a TestMain exits
				found = append(found, p.at(n)+": no "+call+" but in main: give an error")
			case call == "slog.Default" || call == "slog.SetDefault" || call == "http.DefaultServeMux" || call == "http.HandleFunc" || call == "http.Handle":
				found = append(found, p.at(n)+": no "+call+": no globals")
			case x.Name == "slog" && (n.Sel.Name == "Info" || n.Sel.Name == "Warn" || n.Sel.Name == "Error" || n.Sel.Name == "Debug"):
				found = append(found, p.at(n)+": no "+call+": the logger is passed in")
			}
		}
		return true
	})
	return found
}

func TestForbiddenCalls(t *testing.T) {
	for _, name := range goFiles(t, false) {
		for _, f := range forbidden(parse(t, name)) {
			t.Error(f)
		}
	}
}

// A sleeping test is slow or fails by chance, but for those in a bubble of
// testing/synctest, where time is made up.
func TestSleepsAreInBubbles(t *testing.T) {
	for _, name := range goFiles(t, true) {
		if !strings.HasSuffix(name, "_test.go") || name == "internal/lint/source_test.go" {
			continue
		}
		p := parse(t, name)
		bubble := false
		for _, i := range p.file.Imports {
			bubble = bubble || i.Path.Value == `"testing/synctest"`
		}
		if bubble {
			continue
		}
		for _, f := range forbidden(p) {
			if strings.Contains(f, "time.Sleep") {
				t.Error(f)
			}
		}
	}
}

// The law itself must bite.
func TestForbiddenCallsAreFound(t *testing.T) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "capture/x.go", `package x
func init() { time.Sleep(1); fmt.Println(); os.Exit(1); slog.Info("") ; http.Handle("", nil) }
func (x) init() { fmt.Fprintln(w); time.NewTimer(1); l.Info("") }`, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := forbidden(parsed{name: "capture/x.go", fset: fset, file: file}); len(got) != 6 {
		t.Errorf("%d findings, want 6: %q", len(got), got)
	}
	if got := forbidden(parsed{name: "cmd/edgecam/main.go", fset: fset, file: file}); len(got) != 4 {
		t.Errorf("%d findings in main, want 4: %q", len(got), got)
	}
}

// Package names that say nothing gather what belongs nowhere.
func TestNoGrabBags(t *testing.T) {
	for _, name := range goFiles(t, false) {
		switch dir := path.Base(path.Dir(name)); dir {
		case "util", "utils", "common", "types", "models", "defs", "helpers", "core", "misc":
			t.Errorf("%s: a package named %s has no owner; put its parts where they are made", name, dir)
		}
	}
}
