package config

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxDepth bounds how deep aliases may lead; the structs are five levels deep.
const maxDepth = 32

var (
	errNowhere = errors.New("alias that leads nowhere")
	errNotUTF8 = errors.New("is not UTF-8 text: save the file in that encoding")
)

// place is where a value stands.
type place struct {
	line, column int
	env          string // name of the variable that gave it, or ""
	expanded     bool   // the value holds the text of some ${NAME}, perhaps a secret's
}

// decoder walks a file's syntax tree and the types of Config side by side. The
// YAML package's own decoder stops at the first problem and quotes the source
// around it, secrets included.
type decoder struct {
	file    string
	lines   []string
	env     map[string]string
	at      map[string]place // of every value that file or environment gives, by path
	anchors map[string]ast.Node
	errs    Errors
	failed  map[string]bool // paths whose value could not be decoded
	broken  bool            // the text is no YAML mapping: nothing else can be said
}

func newDecoder(file string, env map[string]string) *decoder {
	return &decoder{file: file, env: env, at: map[string]place{}, anchors: map[string]ast.Node{}, failed: map[string]bool{}}
}

// fail reports a value that cannot be decoded and keeps its default.
func (d *decoder) fail(at place, path, value string, err error) {
	d.failed[path] = true
	d.report(at, path, value, err)
}

func (d *decoder) report(at place, path, value string, err error) {
	e := &FieldError{Source: d.file, Line: at.line, Column: at.column, Path: path, Value: value, Err: err}
	if at.env != "" {
		e.Source, e.Line, e.Column = at.env, 0, 0
	}
	if at.expanded {
		e.Value = ""
	}
	d.errs = append(d.errs, e)
}

// failAt reports a problem of a decoded value at the closest place known. Where
// the value or what holds it could not be decoded, that is told already.
func (d *decoder) failAt(path, value string, err error) {
	at, found := place{}, false
	for p := path; ; {
		if d.failed[p] {
			return
		}
		if there, ok := d.at[p]; ok && !found {
			at, found = there, true
		}
		i := strings.LastIndexByte(p, '.')
		if i < 0 {
			break
		}
		p = p[:i]
	}
	d.report(at, path, value, err)
}

func (d *decoder) decode(data []byte, cfg *Config) {
	body := d.parse(data)
	if body == nil {
		return
	}
	ast.Walk(anchorVisitor{d.anchors}, body)
	before := len(d.errs)
	d.value("", body, reflect.ValueOf(cfg).Elem(), 0)
	if _, ok := body.(*ast.MappingNode); !ok && len(d.errs) > before {
		d.broken = true
	}
}

// parse gives the tree of a text; without one it has reported why.
func (d *decoder) parse(data []byte) ast.Node {
	if len(data) > maxFile {
		d.broken = true
		d.fail(place{}, "", "", fmt.Errorf("the file has %d bytes, more than the %d of a configuration", len(data), maxFile))
		return nil
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) // some editors put the mark of UTF-8 in front
	if at := firstInvalid(data); at.line > 0 {
		d.broken = true
		d.fail(at, "", "", errNotUTF8)
		return nil
	}
	d.lines = strings.Split(string(data), "\n")
	file, err := parseYAML(data)
	if err != nil {
		d.broken = true
		d.syntax(err)
		return nil
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if body != nil {
			d.fail(placeOf(doc.Body), "", "", errors.New("second YAML document: one file is one configuration"))
			return nil
		}
		body = doc.Body
	}
	if body == nil {
		// Most likely a file that is just being written: to take it for "no
		// cameras" would stop them all at a reload.
		d.broken = true
		d.fail(place{}, "", "", errors.New("the file holds no settings: the least is version: 1"))
	}
	return body
}

// firstInvalid is the place of the first byte that is no UTF-8. In another
// encoding a name would be shown wrong, and a password be another one.
func firstInvalid(data []byte) place {
	at := place{line: 1, column: 1}
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		switch {
		case r == utf8.RuneError && n == 1:
			return at
		case r == '\n':
			at.line, at.column = at.line+1, 1
		default:
			at.column++
		}
		data = data[n:]
	}
	return place{}
}

// parseYAML parses without comments and with duplicate keys, which the decoder
// reports with their place. The parser is fed by hand-written files in which
// anything may happen; should it panic, that is a syntax error too.
func parseYAML(data []byte) (file *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("the text cannot be read as YAML")
		}
	}()
	return parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
}

// syntax reports an error of the parser by its place and message alone: its
// full text quotes lines of the file.
func (d *decoder) syntax(err error) {
	var ye yaml.Error
	if !errors.As(err, &ye) {
		d.fail(place{}, "", "", errors.New("the text cannot be read as YAML"))
		return
	}
	d.fail(placeOfToken(ye.GetToken()), "", "", fmt.Errorf("YAML syntax: %s", unquote(ye.GetMessage())))
}

// unquote drops what a message quotes of the file.
func unquote(msg string) string {
	head, rest, ok := strings.Cut(msg, `"`)
	if !ok {
		return msg
	}
	if i := strings.LastIndexByte(rest, '"'); i >= 0 {
		return head + "…" + rest[i+1:]
	}
	return head + "…"
}

type anchorVisitor struct{ anchors map[string]ast.Node }

// Visit collects the anchors of a tree.
func (v anchorVisitor) Visit(n ast.Node) ast.Visitor {
	if a, ok := n.(*ast.AnchorNode); ok {
		v.anchors[a.Name.GetToken().Value] = a.Value
	}
	return v
}

// plainNode takes anchors, aliases and tags off a node.
func (d *decoder) plainNode(n ast.Node) ast.Node {
	for range maxDepth {
		switch t := n.(type) {
		case *ast.AnchorNode:
			n = t.Value
		case *ast.AliasNode:
			n = d.anchors[t.Value.GetToken().Value]
		case *ast.TagNode:
			n = t.Value
		case *ast.MappingValueNode:
			return ast.Mapping(t.Start, false, t)
		default:
			return n
		}
	}
	return nil
}

// value decodes a node into v, whose zero value is its default.
func (d *decoder) value(path string, n ast.Node, v reflect.Value, depth int) {
	at := placeOf(n)
	d.at[path] = at
	n = d.plainNode(n)
	switch {
	case n == nil || depth > maxDepth:
		d.fail(at, path, "", errNowhere)
	case n.Type() == ast.NullType:
		// A key without a value is as good as absent.
	case v.Kind() == reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		d.value(path, n, p.Elem(), depth+1)
		v.Set(p)
	case v.Type() == reflect.TypeFor[Secret]():
		d.secret(path, n, at, v)
	case v.Type() == reflect.TypeFor[Labels]():
		d.labels(path, n, at, v)
	case v.Kind() == reflect.Slice:
		d.sequence(path, n, at, v)
	case v.Type() == reflect.TypeFor[Model]() && kindOf(n) == singleValue:
		if text, ok := d.scalar(path, n, at); ok {
			v.Set(reflect.ValueOf(Model{File: text}))
		}
	case v.Kind() == reflect.Struct:
		if entries, ok := d.entries(path, n, at, "keys and values", depth); ok {
			d.fields(path, entries, v, depth)
		}
	case v.Kind() == reflect.Map:
		if entries, ok := d.entries(path, n, at, "keys and values", depth); ok {
			d.mapValues(path, entries, v, depth)
		}
	default:
		if text, ok := d.scalar(path, n, at); ok {
			d.set(path, text, v, d.at[path])
		}
	}
}

// entry is one key with its value.
type entry struct {
	key   string
	at    place
	value ast.Node
}

// entries are the keys of a mapping, merged ones after its own; a key that
// stands twice is reported and its second value dropped.
func (d *decoder) entries(path string, n ast.Node, at place, want string, depth int) (out []entry, ok bool) {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		d.fail(at, path, "", fmt.Errorf("want %s, not %s", want, kindOf(n)))
		return nil, false
	}
	seen := map[string]place{}
	var merged []entry
	for _, mv := range m.Values {
		e := entry{key: mv.Key.GetToken().Value, at: placeOf(mv.Key), value: mv.Value}
		if first, twice := seen[e.key]; twice {
			d.report(e.at, join(path, shown(e.key)), "", fmt.Errorf("stands twice: first in line %d", first.line))
			continue
		}
		seen[e.key] = e.at
		if !mv.Key.IsMergeKey() {
			out = append(out, e)
			continue
		}
		from := d.plainNode(mv.Value)
		if from == nil || depth > maxDepth {
			d.fail(placeOf(mv.Value), path, "", errNowhere)
			continue
		}
		if e, ok := d.entries(path, from, placeOf(mv.Value), want, depth+1); ok {
			merged = append(merged, e...)
		}
	}
	for _, e := range merged {
		if _, own := seen[e.key]; !own {
			seen[e.key] = e.at
			out = append(out, e)
		}
	}
	return out, true
}

// fields decodes entries into the struct v.
func (d *decoder) fields(path string, entries []entry, v reflect.Value, depth int) {
	for _, e := range entries {
		f, ok := fieldByKey(v, e.key)
		if !ok {
			d.report(e.at, join(path, shown(e.key)), "", unknownKey(e.key, v.Type()))
			continue
		}
		d.value(join(path, e.key), e.value, f, depth+1)
	}
}

// mapValues decodes entries into the map v: cameras over their defaults,
// numbers as they are.
func (d *decoder) mapValues(path string, entries []entry, v reflect.Value, depth int) {
	if len(entries) == 0 {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, e := range entries {
		if shown(e.key) != e.key {
			d.report(e.at, join(path, shown(e.key)), "", errors.New("want a shorter or plainer key"))
			continue
		}
		elem := reflect.New(v.Type().Elem()).Elem()
		if elem.Type() == reflect.TypeFor[Camera]() {
			elem.Set(reflect.ValueOf(DefaultCamera()))
		}
		d.value(join(path, e.key), e.value, elem, depth+1)
		d.at[join(path, e.key)] = e.at // what is missing is told where the key stands
		if path == "inference.models" && (!idPattern.MatchString(e.key) || e.key == DefaultModel) {
			d.report(e.at, join(path, e.key), "", errors.New("want a name of 1 to 64 of the characters a-z 0-9 _ -, other than "+DefaultModel+", which is inference.model"))
			continue
		}
		if path == "cameras" && !idPattern.MatchString(e.key) {
			d.report(e.at, join(path, e.key), "", errors.New("want an id of 1 to 64 of the characters a-z 0-9 _ - (any text may be its name)"))
			continue
		}
		v.SetMapIndex(reflect.ValueOf(e.key), elem)
	}
}

// unknownKey says what the key may have meant: a neighbour, or a key one level
// further in.
func unknownKey(key string, t reflect.Type) error {
	var names []string
	for i := range t.NumField() {
		names = append(names, yamlKey(t.Field(i)))
	}
	if c := Closest(key, names); c != "" {
		return fmt.Errorf("unknown key: did you mean %s?", c)
	}
	for i := range t.NumField() {
		ft := t.Field(i).Type
		if ft.Kind() == reflect.Pointer {
			ft = ft.Elem()
		}
		if ft.Kind() != reflect.Struct || ft == reflect.TypeFor[Secret]() {
			continue
		}
		for j := range ft.NumField() {
			if yamlKey(ft.Field(j)) == key {
				return fmt.Errorf("unknown key: did you mean %s.%s?", names[i], key)
			}
		}
	}
	return fmt.Errorf("unknown key: want one of %s", strings.Join(names, ", "))
}

// shown is a key as errors may show it. A URL that has slipped into the place
// of a key, for want of a blank behind "url:", would bring its password along.
func shown(key string) string {
	if len(key) > 4*maxName || strings.ContainsAny(key, ":@/") || hasControl(key) {
		return "…"
	}
	return key
}

func yamlKey(f reflect.StructField) string { return f.Tag.Get("yaml") }

func fieldByKey(v reflect.Value, key string) (reflect.Value, bool) {
	for i := range v.NumField() {
		if yamlKey(v.Type().Field(i)) == key {
			return v.Field(i), true
		}
	}
	return reflect.Value{}, false
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func placeOf(n ast.Node) place {
	if n == nil {
		return place{}
	}
	return placeOfToken(firstToken(n))
}

// firstToken is where a node begins: a mapping's own token is its first colon.
func firstToken(n ast.Node) *token.Token {
	switch t := n.(type) {
	case *ast.MappingNode:
		if len(t.Values) > 0 && (t.Start == nil || t.Start.Type != token.MappingStartType) {
			return firstToken(t.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return firstToken(t.Key)
	}
	return n.GetToken()
}

func placeOfToken(t *token.Token) place {
	if t == nil || t.Position == nil {
		return place{}
	}
	return place{line: t.Position.Line, column: t.Position.Column}
}

// singleValue is what kindOf says of neither a mapping nor a list.
const singleValue = "a single value"

func kindOf(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode:
		return "keys and values"
	case *ast.SequenceNode:
		return "a list"
	default:
		return singleValue
	}
}
