package platform

import (
	"io/fs"
	"strconv"
	"strings"
)

// tree reads small files of /proc, /sys, /etc and /dev. What cannot be read is
// empty: absence is an answer here, not an error.
type tree struct{ root fs.FS }

// text gives a file without the blanks and NULs around it.
func (t tree) text(path string) string {
	b, err := fs.ReadFile(t.root, path)
	if err != nil {
		return ""
	}
	return strings.Trim(string(b), " \t\r\n\x00")
}

// lines gives a file's lines.
func (t tree) lines(path string) []string {
	s := t.text(path)
	if s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}

// number gives a file that holds one decimal number.
func (t tree) number(path string) (int64, bool) {
	n, err := strconv.ParseInt(t.text(path), 10, 64)
	return n, err == nil
}

func (t tree) stat(path string) (fs.FileInfo, error) { return fs.Stat(t.root, path) }

func (t tree) exists(path string) bool {
	_, err := t.stat(path)
	return err == nil
}

// list gives the names in a directory, sorted.
func (t tree) list(path string) []string {
	entries, err := fs.ReadDir(t.root, path)
	if err != nil {
		return nil
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

// field splits "key : value" lines of files like /proc/cpuinfo.
func field(line string) (key, value string, ok bool) {
	key, value, ok = strings.Cut(line, ":")
	return strings.TrimSpace(key), strings.TrimSpace(value), ok
}
