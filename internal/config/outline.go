package config

import (
	"errors"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

// LeftOut stands in a configuration where a backup has left a secret out. It is
// plain enough to be part of a URL, and Parse reports it.
const LeftOut = "edgecam-secret-left-out"

// errLeftOut is what Parse says of it.
var errLeftOut = errors.New("this secret was left out of the backup that the file comes from: fill it in")

// Outline is the text of a configuration with the place of each of its values,
// right ones and wrong ones: a file with mistakes has secrets, too.
type Outline struct {
	text    string // lines end in \n alone, without the mark of UTF-8
	mark    bool   // the file began with it
	returns bool   // every line ended in \r\n
	lines   []int  // where each line begins
	tokens  []*token.Token
	leaves  []leaf
	anchors map[string]ast.Node
}

// leaf is one value.
type leaf struct {
	key    string
	node   ast.Node // a single value
	secret bool
	file   bool // it is {file: …} of a secret
	item   bool // it is one of a list
	block  int  // column of the key, which lines of a block scalar lie right of
}

// Examine finds the values of a configuration's text; path names it in errors.
// Only a text that is no YAML is an error.
func Examine(data []byte, path string) (*Outline, error) {
	d := newDecoder(path, nil)
	body := d.parse(data)
	if body == nil {
		return nil, d.errs
	}
	o := &Outline{anchors: d.anchors}
	o.setText(string(data))
	file, err := parseYAML([]byte(o.text)) // again, as places are counted without \r
	if err != nil || len(file.Docs) == 0 {
		return nil, errors.New("the text cannot be read as YAML")
	}
	o.tokens = lexer.Tokenize(o.text)
	for _, doc := range file.Docs {
		if doc.Body != nil {
			ast.Walk(anchorVisitor{o.anchors}, doc.Body)
		}
	}
	for _, doc := range file.Docs {
		if doc.Body != nil {
			o.walk(leaf{node: doc.Body}, reflect.TypeFor[Config](), 0)
		}
	}
	o.spread()
	return o, nil
}

// spread makes a value secret that is one at some other place, by an alias.
func (o *Outline) spread() {
	secret := map[ast.Node]bool{}
	for _, l := range o.leaves {
		secret[l.node] = secret[l.node] || l.secret
	}
	for i := range o.leaves {
		o.leaves[i].secret = secret[o.leaves[i].node]
	}
}

func (o *Outline) setText(text string) {
	text, o.mark = strings.CutPrefix(text, "\xef\xbb\xbf")
	pairs := strings.Count(text, "\r\n")
	o.returns = pairs > 0 && pairs == strings.Count(text, "\n")
	o.text = strings.ReplaceAll(text, "\r\n", "\n")
	o.lines = []int{0}
	for i, c := range []byte(o.text) {
		if c == '\n' {
			o.lines = append(o.lines, i+1)
		}
	}
}

// plain takes anchors, aliases and tags off a node.
func (o *Outline) plain(n ast.Node) ast.Node {
	d := decoder{anchors: o.anchors}
	return d.plainNode(n)
}

// walk visits what is below a value of type t; nil is a type that nothing is known
// of: whatever stands there may be a secret that has slipped.
func (o *Outline) walk(l leaf, t reflect.Type, depth int) {
	n := o.plain(l.node)
	if n == nil || depth > maxDepth || n.Type() == ast.NullType {
		return
	}
	l.node = n
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		o.mapping(l, n, t, depth)
	case *ast.SequenceNode:
		elem := reflect.Type(nil)
		switch {
		case t == reflect.TypeFor[Labels]():
			elem = reflect.TypeFor[string]()
		case t != nil && t.Kind() == reflect.Slice:
			elem = t.Elem()
		}
		for _, v := range n.Values {
			o.walk(leaf{key: l.key, node: v, block: l.block, item: true}, elem, depth+1)
		}
	default:
		l.secret = !isPlainValue(t)
		o.leaves = append(o.leaves, l)
	}
}

// isPlainValue says whether a single value of the type is none that is hidden.
func isPlainValue(t reflect.Type) bool {
	switch {
	case t == nil, t == reflect.TypeFor[Secret]():
		return false
	case t == reflect.TypeFor[Model](), t == reflect.TypeFor[Labels]():
		return true
	}
	return t.Kind() != reflect.Struct && t.Kind() != reflect.Map && t.Kind() != reflect.Slice
}

func (o *Outline) mapping(l leaf, n *ast.MappingNode, t reflect.Type, depth int) {
	if t == reflect.TypeFor[Secret]() {
		if len(n.Values) == 1 && n.Values[0].Key.GetToken().Value == "file" {
			if v := o.plain(n.Values[0].Value); v != nil && kindOf(v) == singleValue {
				o.leaves = append(o.leaves, leaf{key: l.key, node: v, file: true})
				return
			}
		}
		t = nil
	}
	for _, mv := range n.Values {
		key := mv.Key.GetToken().Value
		below := leaf{key: l.key, node: mv.Value, block: placeOf(mv.Key).column}
		if mv.Key.IsMergeKey() {
			o.merged(below, t, depth)
			continue
		}
		below.key = join(l.key, shown(key))
		if shown(key) != key {
			o.leaves = append(o.leaves, leaf{key: below.key, node: mv.Key, secret: true, block: below.block})
		}
		o.walk(below, typeBelow(t, key), depth+1)
	}
}

func (o *Outline) merged(l leaf, t reflect.Type, depth int) {
	n := o.plain(l.node)
	if list, ok := n.(*ast.SequenceNode); ok {
		for _, v := range list.Values {
			o.walk(leaf{key: l.key, node: v, block: l.block}, t, depth+1)
		}
		return
	}
	o.walk(l, t, depth+1)
}

// typeBelow is the type of a key's value, nil where the type has no such key.
func typeBelow(t reflect.Type, key string) reflect.Type {
	if t == nil {
		return nil
	}
	switch t.Kind() {
	case reflect.Map:
		return t.Elem()
	case reflect.Struct:
		if t == reflect.TypeFor[Secret]() || t == reflect.TypeFor[Labels]() {
			return nil
		}
		for i := range t.NumField() {
			if yamlKey(t.Field(i)) == key {
				return t.Field(i).Type
			}
		}
	}
	return nil
}

// FileRef is a file that a configuration names.
type FileRef struct {
	Key    string
	Path   string // absolute where the configuration's is
	Secret bool   // the file holds nothing but a secret
	Err    error  // why Path is not known
}

// Files are the files that the text names at path, with the variables of env
// filled in: models, labels, certificates, secrets, and inference.library.
func (o *Outline) Files(path string, env []string) (refs []FileRef) {
	d := newDecoder(path, environment(env))
	for _, l := range o.leaves {
		text, ok := scalarText(l.node)
		if !ok || text == "" || !l.file && (l.secret || l.item || !namesFile(l.key)) {
			continue
		}
		text, err := d.expand(text)
		r := FileRef{Key: l.key, Secret: l.file, Err: err}
		if err == nil {
			if strings.HasPrefix(text, builtin) || l.key == "inference.library" && !strings.ContainsRune(text, '/') {
				continue
			}
			r.Path = d.resolvePath(text)
		}
		refs = append(refs, r)
	}
	return refs
}

// namesFile says whether a key's single value is the path of a file.
func namesFile(key string) bool {
	parts := strings.Split(key, ".")
	in := func(n int) bool { return len(parts) == n }
	last := parts[len(parts)-1]
	switch parts[0] {
	case "inference":
		if in(2) {
			return last == "model" || last == "library"
		}
		model := in(3) && parts[1] == "model" || in(4) && parts[1] == "models"
		return model && (last == "file" || last == "labels") || in(3) && parts[1] == "models"
	case "cameras":
		return in(4) && parts[2] == "tls" && last == "ca"
	}
	return false
}

// StateDir is state_dir of the text at path, "" where it gives none.
func (o *Outline) StateDir(path string, env []string) string {
	d := newDecoder(path, environment(env))
	dir := d.env[envName("state_dir")]
	for _, l := range o.leaves {
		if text, ok := scalarText(l.node); ok && l.key == "state_dir" && dir == "" {
			if text, err := d.expand(text); err == nil {
				dir = text
			}
		}
	}
	if dir == "" {
		return ""
	}
	return d.resolvePath(dir)
}
