package rtsp

import (
	"bytes"
	"strings"

	"github.com/bluenviron/gortsplib/v4/pkg/base"
)

// The limits that gortsplib has for the head of a message; it ends the session
// for more.
const (
	maxReason      = 200
	maxHeaderName  = 200
	maxHeaderValue = 2000
	maxHeaders     = 200
)

// repairHead writes the head of a message as gortsplib reads it: with CR LF,
// with words behind the status, and with nothing but lines that are headers.
func repairHead(head []byte) []byte {
	lines := strings.Split(strings.ReplaceAll(string(head), "\r", ""), "\n")
	var out bytes.Buffer
	out.Grow(len(head) + 2*len(lines))
	out.WriteString(repairFirst(lines[0]))
	length := false
	for _, h := range readHeaders(lines[1:]) {
		if strings.EqualFold(h.name, "Content-Length") {
			h.value = strings.TrimPrefix(h.value, "+")
			digits := h.value[:len(h.value)-len(strings.TrimLeft(h.value, "0123456789"))]
			if length || digits == "" {
				continue // of two lengths the first one counts
			}
			length, h.value = true, digits
		}
		out.WriteString("\r\n" + h.name + ":" + h.gap + h.value)
	}
	out.WriteString("\r\n\r\n")
	return out.Bytes()
}

type header struct {
	name, value string
	gap         string // blanks between the two
}

// readHeaders takes what can be read. A line that begins with a blank goes on
// with the one before (RFC 2068 4.2).
func readHeaders(lines []string) (all []header) {
	for _, line := range lines {
		text := strings.Trim(line, " \t")
		if n := len(all); n > 0 && text != "" && text != strings.TrimRight(line, " \t") {
			all[n-1].value = strings.TrimLeft(all[n-1].value+" "+text, " ")
			continue
		}
		name, value, ok := strings.Cut(text, ":")
		name = strings.TrimRight(name, " \t")
		if ok && name != "" && len(name) <= maxHeaderName {
			h := header{name: name, value: strings.TrimLeft(value, " \t")}
			if h.gap = value[:len(value)-len(h.value)]; strings.Contains(h.gap, "\t") {
				h.gap = " "
			}
			all = append(all, h)
		}
	}
	fits := all[:0]
	for _, h := range all {
		if len(h.value) <= maxHeaderValue && len(fits) < maxHeaders {
			fits = append(fits, h)
		}
	}
	return fits
}

// repairFirst repairs the line that says what a message is.
func repairFirst(line string) string {
	fields := strings.Fields(line)
	if len(fields) > 0 && strings.HasPrefix(fields[0], "RTSP/") {
		if len(fields) < 2 {
			return fields[0]
		}
		reason := strings.Join(fields[2:], " ")
		if reason == "" {
			reason = "-"
		}
		reason = strings.TrimSpace(reason[:min(len(reason), maxReason)]) // it may end behind a word
		return "RTSP/1.0 " + fields[1] + " " + reason
	}
	if len(fields) == 2 && strings.HasPrefix(fields[1], "RTSP/") {
		fields = []string{fields[0], "*", fields[1]}
	}
	if len(fields) != 3 {
		return line
	}
	if _, err := base.ParseURL(fields[1]); err != nil {
		fields[1] = "*" // it is our own session that is meant, whatever stands there
	}
	return strings.Join(fields, " ")
}
