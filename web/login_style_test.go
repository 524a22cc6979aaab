package web_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestLoginPageHasTheDashboardsColours compares the login page's palette, which
// must not need the built dashboard, with the dashboard's own.
func TestLoginPageHasTheDashboardsColours(t *testing.T) {
	page, dashboard := readFile(t, "login.css"), readFile(t, "ui/src/style/base.css")
	dark, light, ok := strings.Cut(dashboard, ":root[data-theme='light']")
	if !ok {
		t.Fatal("no light palette in the dashboard's style")
	}
	for own, theirs := range map[string]string{
		"back": "ground", "panel": "surface", "line": "line-strong", "text": "text", "dim": "soft",
		"accent": "accent", "on-accent": "accent-ink", "bad": "bad",
	} {
		want := "light-dark(" + colour(light, theirs) + ", " + colour(dark, theirs) + ")"
		if got := colour(page, own); got != want {
			t.Errorf("--%s is %q in login.css, want the dashboard's --%s: %q", own, got, theirs, want)
		}
	}
}

// colour returns the value of a custom property where it is set first.
func colour(css, name string) string {
	m := regexp.MustCompile(`(?m)^\s*--` + name + `: (.*);$`).FindStringSubmatch(css)
	if m == nil {
		return "nothing"
	}
	return m[1]
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
