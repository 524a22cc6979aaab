package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// maxSecretFile is more than any password; a directory of devices or a log
// given by mistake is not read whole.
const maxSecretFile = 64 << 10

// scalar is the text of a single value, with variables filled in.
func (d *decoder) scalar(path string, n ast.Node, at place) (string, bool) {
	text, ok := scalarText(n)
	if !ok {
		d.fail(at, path, "", fmt.Errorf("want a single value, not %s", kindOf(n)))
		return "", false
	}
	full, err := d.expand(text)
	if err != nil {
		d.fail(at, path, "", err)
		return "", false
	}
	if full != text {
		at.expanded = true
		d.at[path] = at
	}
	return full, true
}

// scalarText is the text of a value as it is written: 0123 stays 0123.
func scalarText(n ast.Node) (string, bool) {
	switch t := n.(type) {
	case *ast.LiteralNode:
		return t.Value.Value, true
	case *ast.StringNode:
		return t.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// expand fills in ${NAME} from the environment; $$ is a $. Errors name the
// variable, never the text around it.
func (d *decoder) expand(text string) (string, error) {
	var b strings.Builder
	for {
		head, rest, ok := strings.Cut(text, "$")
		b.WriteString(head)
		if !ok {
			return b.String(), nil
		}
		switch {
		case strings.HasPrefix(rest, "$"):
			b.WriteByte('$')
			text = rest[1:]
		case strings.HasPrefix(rest, "{"):
			name, after, closed := strings.Cut(rest[1:], "}")
			if !closed || !isVariable(name) {
				return "", errors.New("a ${ that is no ${NAME}: write $${ for the characters themselves")
			}
			v, set := d.env[name]
			if !set {
				return "", fmt.Errorf("environment variable %s is not set", name)
			}
			b.WriteString(v)
			text = after
		default:
			b.WriteByte('$')
			text = rest
		}
	}
}

func isVariable(name string) bool {
	for i, r := range name {
		if r != '_' && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

// secret decodes a value, ${NAME}, or {file: path}.
func (d *decoder) secret(path string, n ast.Node, at place, v reflect.Value) {
	if _, ok := n.(*ast.MappingNode); ok {
		d.secretFile(path, n, at, v)
		return
	}
	if d.cut(n) {
		d.fail(at, path, "", errors.New(`the value ends at " #", where a comment begins: quote the value if the # belongs to it, else give the comment a line of its own`))
		return
	}
	if text, ok := d.scalar(path, n, at); ok {
		// A block scalar ends with a line break that no one means.
		v.Set(reflect.ValueOf(NewSecret(strings.TrimRight(text, "\r\n"))))
	}
}

// cut says whether an unquoted value is followed by a comment in its line. For
// a secret that is more often a # of the password than a remark. A lone
// ${NAME} has no such doubt.
func (d *decoder) cut(n ast.Node) bool {
	t := n.GetToken()
	if t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType || t.Position == nil || t.Position.Line > len(d.lines) {
		return false
	}
	if _, ok := n.(*ast.LiteralNode); ok {
		return false
	}
	if name, ok := strings.CutPrefix(t.Value, "${"); ok && strings.HasSuffix(name, "}") && isVariable(name[:len(name)-1]) {
		return false
	}
	line := []rune(d.lines[t.Position.Line-1])
	rest := string(line[min(max(t.Position.Column-1, 0), len(line)):])
	_, rest, _ = strings.Cut(rest, t.Value)
	return strings.HasPrefix(strings.TrimLeft(rest, " \t"), "#")
}

func (d *decoder) secretFile(path string, n ast.Node, at place, v reflect.Value) {
	entries, _ := d.entries(path, n, at, "a text or {file: path}", 0)
	if len(entries) != 1 || entries[0].key != "file" {
		d.fail(at, path, "", errors.New("want a text, ${NAME} or {file: path}"))
		return
	}
	node := d.plainNode(entries[0].value)
	if node == nil {
		d.fail(at, path, "", errNowhere)
		return
	}
	name, ok := d.scalar(path, node, placeOf(node))
	if !ok {
		return
	}
	text, err := readSecret(d.resolvePath(name))
	if err != nil {
		d.fail(placeOf(node), path, "", fmt.Errorf("read secret file %s: %w", d.resolvePath(name), err))
		return
	}
	v.Set(reflect.ValueOf(NewSecret(text)))
}

// readSecret reads a small text file without the newline at its end.
func readSecret(name string) (string, error) {
	b, err := readFile(name, maxSecretFile)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(b) {
		return "", errNotUTF8
	}
	return strings.TrimRight(string(b), "\r\n"), nil
}

// set parses a text into a value of one of the types of Config.
func (d *decoder) set(path, text string, v reflect.Value, at place) {
	if err := setText(text, v); err != nil {
		if text == "" {
			err = fmt.Errorf("%w, not an empty text", err)
		}
		d.fail(at, path, text, err)
	}
}

func setText(text string, v reflect.Value) error {
	switch p := v.Addr().Interface().(type) {
	case *string:
		*p = text
		return nil
	case *Secret:
		*p = NewSecret(text)
		return nil
	case *bool:
		return setBool(p, text)
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return errors.New("want a whole number")
		}
		*p = n
		return nil
	case *float64:
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsInf(n, 0) || math.IsNaN(n) {
			return errors.New("want a number")
		}
		*p = n
		return nil
	case *time.Duration:
		n, err := time.ParseDuration(text)
		if err != nil {
			return errors.New("want a duration such as 10s, 80ms or 1m30s")
		}
		*p = n
		return nil
	case *Size:
		n, err := ParseSize(text)
		*p = n
		return err
	}
	panic("config: no text form for " + v.Type().String())
}

func setBool(p *bool, text string) error {
	switch strings.ToLower(text) {
	case "true":
		*p = true
	case "false":
		*p = false
	default:
		return errors.New("want true or false")
	}
	return nil
}
