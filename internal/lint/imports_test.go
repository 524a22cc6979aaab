package lint_test

import (
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "edgecam"

// importsOf maps each package (by directory) to what its non-test sources
// import, with the file that does.
func importsOf(t *testing.T) map[string]map[string]string {
	t.Helper()
	all := map[string]map[string]string{}
	for _, name := range goFiles(t, false) {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		dir := path.Dir(name)
		if all[dir] == nil {
			all[dir] = map[string]string{}
		}
		for _, i := range f.Imports {
			p, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			all[dir][p] = name
		}
	}
	return all
}

// direction says what of ours a package may import. "a/..." is a and all below
// it, "a" is a alone. The rule with the longest name that fits a package holds;
// a package that none fits needs one.
func direction() map[string][]string {
	everything := []string{
		"framepool", "platform/...", "capture/...", "preprocess", "infer/...", "overlay", "web/...", "internal/...",
	}
	return map[string][]string{
		"framepool":             {},
		"platform/...":          {"platform/..."},
		"capture":               {"framepool"},
		"capture/...":           {"capture", "framepool", "platform/..."},
		"preprocess":            {"framepool", "infer", "platform/..."},
		"infer":                 {},
		"infer/...":             {"framepool", "infer/...", "platform/..."},
		"overlay":               {"framepool", "infer"},
		"web/...":               {"internal/event", "web/..."},
		"internal/config":       {},
		"internal/state":        {"platform/wholefile"},
		"internal/backup":       {},
		"internal/event":        {},
		"internal/metrics":      {"internal/event"},
		"internal/sdnotify":     {},
		"internal/lint":         {},
		"internal/testkit":      {"capture", "framepool", "infer"},
		"internal/sim":          {"capture", "framepool"},
		"internal/pipeline":     everything,
		"internal/pipeline/...": everything,
		"internal/e2e":          everything,
		"cmd/...":               everything,
	}
}

func fits(rule, pkg string) bool {
	if tree, ok := strings.CutSuffix(rule, "/..."); ok {
		return pkg == tree || strings.HasPrefix(pkg, tree+"/")
	}
	return rule == pkg
}

// ruleFor gives the longest rule that fits.
func ruleFor(rules map[string][]string, pkg string) (name string, ok bool) {
	for rule := range rules {
		if fits(rule, pkg) && (!ok || len(strings.TrimSuffix(rule, "/...")) > len(strings.TrimSuffix(name, "/...")) || rule == pkg) {
			name, ok = rule, true
		}
	}
	return name, ok
}

func TestImportDirection(t *testing.T) {
	rules := direction()
	for pkg, imports := range importsOf(t) {
		rule, ok := ruleFor(rules, pkg)
		if !ok {
			t.Errorf("package %s: no rule says what it may import; add one to direction()", pkg)
			continue
		}
		for p, file := range imports {
			ours, isOurs := strings.CutPrefix(p, module+"/")
			if isOurs && !slices.ContainsFunc(rules[rule], func(r string) bool { return fits(r, ours) }) {
				t.Errorf("%s imports %s: %s may import of ours only %q", file, p, rule, rules[rule])
			}
		}
	}
}

// Some packages have few who may import them.
func TestImporters(t *testing.T) {
	few := map[string][]string{
		// Ours.
		"edgecam/internal/pipeline": {"cmd/...", "internal/pipeline/bench/..."},
		"edgecam/internal/config":   {"internal/pipeline/...", "cmd/...", "internal/e2e"},
		"edgecam/internal/state":    {"cmd/..."},
		"edgecam/internal/backup":   {"cmd/..."},
		"edgecam/internal/testkit":  {}, // tests only
		// Others': one place each, so that a change of library stays in one place.
		"C":                                   {"platform/..."},
		"unsafe":                              {"platform/...", "framepool"},
		"github.com/ebitengine/purego":        {"platform/...", "internal/testkit"}, // the latter scripts stand-ins
		"github.com/bluenviron/gortsplib/v4":  {"capture/rtsp", "internal/sim"},
		"github.com/labstack/echo/v4":         {"web/..."},
		"github.com/prometheus/client_golang": {"internal/metrics", "web/..."},
		"github.com/spf13/cobra":              {"cmd/..."},
		"github.com/goccy/go-yaml":            {"internal/config", "infer/model"},
		"github.com/coreos/go-systemd/v22":    {"internal/sdnotify"},
		"github.com/alexedwards/argon2id":     {"web/...", "cmd/..."},
		"google.golang.org/protobuf":          {"infer/model/..."},
		"edgecam/infer/model/fixture":         {}, // tests only
	}
	for pkg, imports := range importsOf(t) {
		for p, file := range imports {
			for guarded, who := range few {
				below := strings.HasPrefix(p, guarded+"/") && !strings.HasPrefix(guarded, module+"/")
				if p != guarded && !below {
					continue
				}
				if !slices.ContainsFunc(who, func(r string) bool { return fits(r, pkg) }) {
					t.Errorf("%s imports %s: only %q may", file, p, who)
				}
			}
		}
	}
}

// cgo and unsafe stay behind the fence, in tests too.
func TestUnsafeFence(t *testing.T) {
	for _, name := range goFiles(t, true) {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range f.Imports {
			dir, base := path.Dir(name), path.Base(name)
			switch i.Path.Value {
			case `"C"`:
				if path.Dir(dir) != "platform" {
					t.Errorf("%s: import \"C\" belongs into platform/<lib>", name)
				}
			case `"unsafe"`:
				if path.Dir(dir) != "platform" && !(dir == "framepool" && strings.HasPrefix(base, "mem_")) {
					t.Errorf("%s: unsafe belongs into platform/<lib> or framepool/mem_*.go", name)
				}
			}
		}
	}
}

// Assembly stays in the two packages whose loops need it, and every build can do
// without: a tag leaves it out, and then the tests of the package judge the twin.
func TestAssemblyFence(t *testing.T) {
	n := 0
	for _, name := range files(t) {
		if path.Ext(name) != ".s" && path.Ext(name) != ".S" {
			continue
		}
		n++
		if dir := path.Dir(name); dir != "preprocess" && dir != "infer" {
			t.Errorf("%s: assembly belongs into preprocess and infer", name)
		}
		if !strings.HasPrefix(readFile(t, name), "//go:build !purego && !noasm\n") {
			t.Errorf("%s: no build tag that leaves it out", name)
		}
		stem, _, _ := strings.Cut(path.Base(name), "_")
		if twin := path.Join(path.Dir(name), stem+"_noasm.go"); !strings.Contains(readFile(t, twin), "//go:build !") {
			t.Errorf("%s: %s is not for builds without assembly", name, twin)
		}
	}
	if n == 0 {
		t.Error("no assembly found: the test looks in the wrong place")
	}
}

func TestRuleFor(t *testing.T) {
	rules := map[string][]string{"a": nil, "a/...": nil, "a/b": nil}
	for pkg, want := range map[string]string{"a": "a", "a/c": "a/...", "a/b": "a/b", "a/b/c": "a/...", "z": ""} {
		if got, _ := ruleFor(rules, pkg); got != want {
			t.Errorf("rule for %s is %q, want %q", pkg, got, want)
		}
	}
}
