package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxLabels is more classes than any detector has, maxLabel more bytes than any name.
const maxLabels, maxLabel = 10000, 200

// parseNames reads class names as models carry them: a JSON list, a JSON object by class id, a Python list or
// dict of the same, or lines or commas between bare names.
func parseNames(text string) ([]string, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, errors.New("is empty")
	}
	var list []string
	var err error
	switch text[0] {
	case '[', '(', '{':
		p := literal{text: text}
		list, err = p.names()
	default:
		sep := ","
		if strings.Contains(text, "\n") {
			sep = "\n"
		}
		for name := range strings.SplitSeq(text, sep) {
			list = append(list, strings.TrimSpace(name))
		}
		if len(list) == 1 {
			return nil, fmt.Errorf("is %s, no list of names", strconv.Quote(clip(text)))
		}
	}
	if err != nil {
		return nil, err
	}
	return list, checkLabels(list)
}

func checkLabels(list []string) error {
	if len(list) == 0 || len(list) > maxLabels {
		return fmt.Errorf("holds %d labels, wanted 1 to %d", len(list), maxLabels)
	}
	for i, l := range list {
		if strings.TrimSpace(l) == "" {
			return fmt.Errorf("label %d is empty", i)
		}
		if !utf8.ValidString(l) || Printable(l) != l {
			return fmt.Errorf("label %d, %q, holds characters that are no text", i, clip(l))
		}
		if len(l) > maxLabel {
			return fmt.Errorf("label %d, %q, has %d bytes, wanted at most %d", i, clip(l), len(l), maxLabel)
		}
	}
	return nil
}

func clip(s string) string {
	const longest = 60
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "") + "…"
	}
	return s
}

// literal reads a Python or JSON literal of names: {0: 'person', 1: "dog's"}, ['a', 'b'], {"0": "a"}.
type literal struct {
	text string
	at   int
}

func (p *literal) names() ([]string, error) {
	open := p.text[p.at]
	p.at++
	closing := map[byte]byte{'[': ']', '(': ')', '{': '}'}[open]
	byID := map[int]string{}
	var list []string
	for {
		p.space()
		switch {
		case p.at >= len(p.text):
			return nil, fmt.Errorf("is cut off after %d names", max(len(list), len(byID)))
		case p.text[p.at] == closing:
			p.at++
			if p.space(); p.at < len(p.text) {
				return nil, p.unexpected()
			}
			if open == '{' {
				return ordered(byID)
			}
			return list, nil
		case len(list) > maxLabels || len(byID) > maxLabels:
			return nil, fmt.Errorf("holds more than %d labels", maxLabels)
		}
		if open == '{' {
			if err := p.pair(byID); err != nil {
				return nil, err
			}
		} else {
			name, err := p.value()
			if err != nil {
				return nil, err
			}
			list = append(list, name)
		}
		if p.space(); p.at < len(p.text) && p.text[p.at] == ',' {
			p.at++
		} else if p.at < len(p.text) && p.text[p.at] != closing {
			return nil, p.unexpected()
		}
	}
}

func (p *literal) pair(to map[int]string) error {
	key, err := p.value()
	if err != nil {
		return err
	}
	id, err := strconv.Atoi(key)
	if err != nil || id < 0 || id > maxLabels {
		return fmt.Errorf("has the class id %q, wanted a number from 0 on", clip(key))
	}
	if p.space(); p.at >= len(p.text) || p.text[p.at] != ':' {
		return p.unexpected()
	}
	p.at++
	p.space()
	name, err := p.value()
	if err != nil {
		return err
	}
	if _, twice := to[id]; twice {
		return fmt.Errorf("has class %d twice", id)
	}
	to[id] = name
	return nil
}

// ordered puts names in the order of their ids, which must be 0…n−1.
func ordered(byID map[int]string) ([]string, error) {
	list := make([]string, len(byID))
	for id := range list {
		name, ok := byID[id]
		if !ok {
			return nil, fmt.Errorf("has %d names but none for class %d", len(byID), id)
		}
		list[id] = name
	}
	return list, nil
}

func (p *literal) space() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

func (p *literal) unexpected() error {
	if p.at >= len(p.text) {
		return errors.New("is cut off")
	}
	return fmt.Errorf("is no list of names: unexpected %q", clip(p.text[p.at:]))
}

// value reads a string in either quotes, or a bare word or number.
func (p *literal) value() (string, error) {
	if p.at >= len(p.text) {
		return "", p.unexpected()
	}
	quote := p.text[p.at]
	if quote != '\'' && quote != '"' {
		from := p.at
		for p.at < len(p.text) && strings.IndexByte(",:]})\n", p.text[p.at]) < 0 {
			p.at++
		}
		word := strings.TrimSpace(p.text[from:p.at])
		if word == "" || strings.ContainsAny(word, "[{('\"") {
			p.at = from
			return "", p.unexpected()
		}
		return word, nil
	}
	var out strings.Builder
	for p.at++; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; c {
		case quote:
			p.at++
			return strings.TrimSpace(out.String()), nil
		case '\\':
			if err := p.escape(&out); err != nil {
				return "", err
			}
		default:
			out.WriteByte(c)
		}
	}
	return "", p.unexpected()
}

// escape reads what follows a backslash; p.at is left on its last byte.
func (p *literal) escape(out *strings.Builder) error {
	rest := p.text[p.at:]
	if len(rest) < 2 {
		return p.unexpected()
	}
	switch digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[rest[1]]; {
	case digits > 0 && len(rest) >= 2+digits:
		v, err := strconv.ParseUint(rest[2:2+digits], 16, 32)
		if err != nil {
			return p.unexpected()
		}
		r := rune(v)
		p.at += 1 + digits
		if more := p.text[p.at+1:]; v >= 0xd800 && v < 0xdc00 && len(more) >= 6 { // JSON's pairs
			var s string
			if json.Unmarshal([]byte(`"`+rest[:6]+more[:6]+`"`), &s) == nil {
				p.at += 6
				out.WriteString(s)
				return nil
			}
		}
		out.WriteRune(r)
	case rest[1] == 'n' || rest[1] == 't' || rest[1] == 'r':
		out.WriteByte(' ')
		p.at++
	default: // \' \" \\ \/
		out.WriteByte(rest[1])
		p.at++
	}
	return nil
}

// without drops a leading label that stands for the background.
func withoutBackground(labels []string) ([]string, bool) {
	if len(labels) > 1 && slices.Contains([]string{"background", "__background__", "bg", "_background_"}, strings.ToLower(labels[0])) {
		return labels[1:], true
	}
	return labels, false
}
