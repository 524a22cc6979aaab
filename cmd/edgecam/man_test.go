package main

import (
	"strings"
	"testing"
)

func TestManual(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1790000000")
	code, page, stderr := run(t, "man")
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, want := range []string{
		`.TH "EDGECAM" "1" "2026\-09\-21" "edgecam dev"`,
		`.SH "FILES"`, `.SH "EXIT STATUS"`, `.SH "ENVIRONMENT"`, `.SH "SIGNALS"`,
		`.SS "edgecam run \-\-config FILE"`, `.SS "edgecam model inspect FILE"`,
		`\fB\-c, \-\-config string\fR`, "\n\\fB78\\fR\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "edgecam man") || strings.Contains(page, "edgecam completion") {
		t.Error("the page speaks of commands that are for the build alone")
	}
	t.Setenv("SOURCE_DATE_EPOCH", "")
	if _, page, _ := run(t, "man"); !strings.HasPrefix(page, `.TH "EDGECAM" "1" "" "edgecam`) {
		t.Errorf("without a date of the source the page begins with %.60q", page)
	}
}

func TestRoff(t *testing.T) {
	var p roff
	p.text("one-way\n.dot and \\\n\n  table  kept\nback")
	want := "one\\-way\n\\&.dot and \\e\n.PP\n.nf\n  table  kept\n.fi\nback\n"
	if got := p.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
