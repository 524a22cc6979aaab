package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// WriteText writes the report as a table for people.
func (r Report) WriteText(w io.Writer) error {
	width := 0
	for _, c := range r.Checks {
		width = max(width, len(c.Name))
	}
	var b strings.Builder
	for _, c := range r.Checks {
		fmt.Fprintf(&b, "%-4s  %-*s  %s\n", c.Status, width, c.Name, c.Detail)
		if c.Fix != "" {
			fmt.Fprintf(&b, "      %-*s  Try: %s\n", width, "", c.Fix)
		}
	}
	fmt.Fprintf(&b, "\nedgecam %s: %s\n", r.Version, r.summary())
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteJSON writes the report for programs.
func (r Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

func (r Report) summary() string {
	fails, warns := r.Count(Fail), r.Count(Warn)
	switch {
	case fails == 0 && warns == 0:
		return "all is well"
	case fails == 0:
		return fmt.Sprintf("works, with %s", count(warns, "warning"))
	case warns == 0:
		return count(fails, "failure")
	}
	return fmt.Sprintf("%s, %s", count(fails, "failure"), count(warns, "warning"))
}
