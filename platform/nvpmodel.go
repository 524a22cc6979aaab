package platform

import (
	"os"
	"regexp"
	"strconv"
	"strings"
)

// Of nvpmodel's files: "pmode:0002 fmode:quiet" is the mode that was set last,
// "< POWER_MODEL ID=0 NAME=MAXN >" begins a mode of the configuration and
// "< PM_CONFIG DEFAULT=2 >" is the one that holds until another is set.
var (
	modeSet     = regexp.MustCompile(`pmode:0*(\d+)`)
	modeDefined = regexp.MustCompile(`(?m)^\s*<\s*POWER_MODEL\s+ID=(\d+)\s+NAME=([^\s>]+)`)
	modeDefault = regexp.MustCompile(`(?m)^\s*<\s*PM_CONFIG\s+DEFAULT=(\d+)`)
)

// power gives the name of the power mode and all that the board has.
func (t tree) power() (mode string, all []PowerMode) {
	conf := t.text("etc/nvpmodel.conf") // a link to the file of this module
	for _, m := range modeDefined.FindAllStringSubmatch(conf, -1) {
		id, err := strconv.Atoi(m[1])
		if err == nil {
			all = append(all, PowerMode{ID: id, Name: m[2]})
		}
	}
	m := modeSet.FindStringSubmatch(t.text("var/lib/nvpmodel/status"))
	if m == nil {
		m = modeDefault.FindStringSubmatch(conf)
	}
	if m == nil {
		return "", all
	}
	for _, p := range all {
		if strconv.Itoa(p.ID) == m[1] {
			return p.Name, all
		}
	}
	return "mode " + m[1], all
}

// PowerModeNow reads the power mode again, which an operator may change while
// the program runs; "" = not a Jetson, or unknown.
func PowerModeNow() string {
	mode, _ := tree{os.DirFS("/")}.power()
	return mode
}

// watts matches the budget in names such as 15W, MODE_20W_6CORE and 120W.
var watts = regexp.MustCompile(`(?:^|_)(\d+)W(?:_|$)`)

// cores matches the number of processors in such names.
var cores = regexp.MustCompile(`_(\d)CORE`)

// Fastest is the mode without a budget, or else the one with the largest. The
// numbers of the modes do not tell it: on an Orin Nano Super 0 is 15W and 2 is
// MAXN_SUPER.
func (j Jetson) Fastest() (PowerMode, bool) {
	best, most := PowerMode{}, -1
	for _, m := range j.PowerModes {
		if r := speed(m.Name); r > most {
			best, most = m, r
		}
	}
	return best, most > 0
}

// speed ranks modes of one board by their names.
func speed(name string) int {
	switch {
	case strings.HasPrefix(name, "MAXN_SUPER"):
		return 1_000_001
	case strings.HasPrefix(name, "MAXN"):
		return 1_000_000
	}
	rank := 0
	if m := watts.FindStringSubmatch(name); m != nil {
		w, _ := strconv.Atoi(m[1]) // digits
		rank = 100 * w
	}
	if m := cores.FindStringSubmatch(name); m != nil {
		n, _ := strconv.Atoi(m[1]) // a digit
		rank += n
	}
	return rank
}
