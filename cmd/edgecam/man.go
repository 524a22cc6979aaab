package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newMan is for the build of packages: users have the page itself.
func newMan() *cobra.Command {
	return &cobra.Command{
		Use:    "man",
		Short:  "Write the manual page, edgecam(1)",
		Hidden: true,
		Args:   exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(cmd.OutOrStdout(), manual(cmd.Root(), manualDate()))
			return err
		},
	}
}

// manualDate is SOURCE_DATE_EPOCH as a date, or nothing: the page of a version
// is the same whenever it is made.
func manualDate() string {
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return ""
	}
	return time.Unix(seconds, 0).UTC().Format(time.DateOnly)
}

// roff is a page in the language of man(7) as it is written.
type roff struct{ strings.Builder }

// manual is the page of a program: the commands as they describe themselves, and
// what none of them says.
func manual(root *cobra.Command, date string) string {
	var p roff
	p.request("TH", "EDGECAM", "1", date, "edgecam "+version, "User Commands")
	p.request("SH", "NAME")
	p.line("edgecam - video analytics for the box beside the cameras")
	p.request("SH", "SYNOPSIS")
	p.line(`.B edgecam`)
	p.line(`.I command`)
	p.line("[" + `\fIflags\fR` + "]")
	p.request("SH", "DESCRIPTION")
	p.text(manualDescription)
	p.request("SH", "COMMANDS")
	p.commands(root)
	for _, s := range manualSections() {
		p.request("SH", s.title)
		p.text(s.text)
		for _, i := range s.items {
			p.item(i[0], i[1])
		}
	}
	return p.String()
}

func (p *roff) commands(parent *cobra.Command) {
	for _, c := range parent.Commands() {
		if !c.IsAvailableCommand() || c.Name() == "help" {
			continue
		}
		if c.HasAvailableSubCommands() {
			p.commands(c)
			continue
		}
		p.request("SS", strings.TrimSuffix(c.UseLine(), " [flags]"))
		p.text(c.Short + ".")
		p.request("PP")
		p.text(strings.TrimPrefix(c.Long, c.Short+"."))
		c.LocalFlags().VisitAll(p.flag)
		if c.Example != "" {
			p.request("PP")
			p.line("For example:")
			p.request("PP")
			p.text(c.Example)
		}
	}
}

func (p *roff) flag(f *pflag.Flag) {
	if f.Hidden || f.Name == "help" {
		return
	}
	kind, usage := pflag.UnquoteUsage(f)
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	if kind != "" {
		name += " " + kind
	}
	switch f.DefValue {
	case "", "0", "false", "[]": // what the description speaks of, or nothing
	default:
		usage += " (default " + f.DefValue + ")"
	}
	p.item(name, usage)
}

// item is a term and what it means.
func (p *roff) item(term, text string) {
	p.request("TP")
	p.line(`\fB` + escape(term) + `\fR`)
	p.text(text)
}

// text writes paragraphs. Lines that begin with a blank are tables or examples
// and keep their shape.
func (p *roff) text(s string) {
	shaped := false
	for _, l := range strings.Split(strings.Trim(s, "\n"), "\n") {
		if in := strings.HasPrefix(l, " "); in != shaped {
			shaped = in
			p.request(map[bool]string{true: "nf", false: "fi"}[in])
		}
		if l == "" {
			p.request("PP")
			continue
		}
		p.line(guard(escape(l)))
	}
	if shaped {
		p.request("fi")
	}
}

func (p *roff) line(s string) { fmt.Fprintln(p, s) }

func (p *roff) request(name string, args ...string) {
	fmt.Fprintf(p, ".%s", name)
	for _, a := range args {
		fmt.Fprintf(p, ` "%s"`, escape(strings.ReplaceAll(a, `"`, "''")))
	}
	fmt.Fprintln(p)
}

// escape has a text taken as it is. A hyphen would be set as one of words, which
// cannot be copied into a shell.
func escape(s string) string {
	return strings.NewReplacer(`\`, `\e`, `-`, `\-`).Replace(s)
}

// guard keeps a line of text from being taken for a request.
func guard(s string) string {
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		return `\&` + s
	}
	return s
}
