package platform

import (
	"io/fs"
	"strconv"
	"strings"
)

// DebianPackages lists the packages that dpkg has installed, with their versions.
func DebianPackages(root fs.FS) map[string]string { return tree{root}.packages() }

func (t tree) packages() map[string]string {
	installed := map[string]string{}
	name, there := "", false
	for _, line := range t.lines("var/lib/dpkg/status") {
		key, value, _ := strings.Cut(line, ": ")
		switch key {
		case "Package":
			name, there = value, false
		case "Status":
			there = strings.HasSuffix(value, " ok installed") // "hold" before it keeps a package at its version
		case "Version":
			if there {
				installed[name] = value
			}
		}
	}
	return installed
}

// OlderVersion compares versions such as "12.6.68" number by number.
func OlderVersion(a, b string) bool {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(x), len(y)) {
		m, _ := strconv.Atoi(x[i]) // what is no number counts as 0
		n, _ := strconv.Atoi(y[i])
		if m != n {
			return m < n
		}
	}
	return len(x) < len(y)
}

// OfSeries says that a version is of a series, e.g. 12.6.68 of 12.6, or of a later
// one with the same first number, which serves as well.
func OfSeries(version, series string) bool {
	have, _, _ := strings.Cut(version, ".")
	want, _, _ := strings.Cut(series, ".")
	return have == want && !OlderVersion(version, series)
}
