package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

const (
	envPrefix = "EDGECAM_"
	// envConfig names the file itself and is the command's business.
	envConfig = "EDGECAM_CONFIG"
)

// environment turns NAME=value texts into a map; of a name that stands twice
// the last holds, as in the C library's setenv.
func environment(env []string) map[string]string {
	m := map[string]string{}
	for _, e := range env {
		if name, value, ok := strings.Cut(e, "="); ok {
			m[name] = value
		}
	}
	return m
}

// envName is the variable that overrides a path.
func envName(path string) string {
	return envPrefix + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, path)
}

// override applies the variables of the environment to what the file gave.
// Values are taken as they are: no ${NAME}, no {file: …}.
func (d *decoder) override(cfg *Config) {
	names := map[string][]string{} // variable → paths
	walk("", reflect.ValueOf(cfg).Elem(), nil, func(path string, _ reflect.Value) {
		names[envName(path)] = append(names[envName(path)], path)
	})
	set := map[string]bool{} // paths to set
	for _, name := range d.envNames() {
		paths := names[name]
		at := place{env: name}
		switch {
		case len(paths) == 1:
			set[paths[0]] = true
		case len(paths) > 1:
			d.fail(at, "", "", fmt.Errorf("fits %s: rename one", strings.Join(paths, " and ")))
		default:
			d.unknownVariable(name, names)
		}
	}
	wanted := func(path string) bool {
		for p := range set {
			if p == path || strings.HasPrefix(p, path+".") {
				return true
			}
		}
		return false
	}
	walk("", reflect.ValueOf(cfg).Elem(), wanted, func(path string, v reflect.Value) {
		if set[path] {
			d.overrideOne(path, v)
		}
	})
}

func (d *decoder) overrideOne(path string, v reflect.Value) {
	name := envName(path)
	at := place{env: name}
	d.at[path] = at
	switch {
	case v.Kind() == reflect.Map:
		d.overrideYAML(path, at, v, "{person: 0.5}")
	case v.Kind() == reflect.Slice:
		d.overrideYAML(path, at, v, "[640, 640]")
	case v.Type() == reflect.TypeFor[Labels]():
		d.overrideYAML(path, at, v, "/etc/edgecam/labels.txt or [person, car]")
	case v.Type() == reflect.TypeFor[Model]():
		v.Set(reflect.ValueOf(Model{File: d.env[name]})) // what is said of another file does not hold for it
	case v.Type() == reflect.TypeFor[Secret]():
		v.Set(reflect.ValueOf(NewSecret(d.env[name])))
	default:
		d.set(path, d.env[name], v, at)
	}
}

// overrideYAML replaces a value by the YAML text of a variable, which looks like
// the example.
func (d *decoder) overrideYAML(path string, at place, v reflect.Value, example string) {
	sub := newDecoder(at.env, nil)
	file, err := parseYAML([]byte(d.env[at.env]))
	if err != nil || len(file.Docs) != 1 || file.Docs[0].Body == nil {
		d.fail(at, path, d.env[at.env], fmt.Errorf("want YAML such as %s", example))
		return
	}
	v.SetZero()
	sub.value(path, file.Docs[0].Body, v, 0)
	for _, e := range sub.errs {
		d.fail(at, e.Path, e.Value, e.Err)
	}
	for p := range sub.at {
		d.at[p] = at
	}
}

// envNames are the variables that may be ours, sorted.
func (d *decoder) envNames() []string {
	var names []string
	for name := range d.env {
		if strings.HasPrefix(name, envPrefix) && name != envConfig {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// unknownVariable reports a variable that looks like a key: it begins with a
// section's name or is close to one that exists. Others may belong to someone
// else, like the service links that Kubernetes sets.
func (d *decoder) unknownVariable(name string, known map[string][]string) {
	at := place{env: name}
	candidates := make([]string, 0, len(known))
	for k := range known {
		candidates = append(candidates, k)
	}
	near := ""
	if c := Closest(name[len(envPrefix):], trimmed(candidates)); c != "" {
		near = envPrefix + c
	}
	section := false
	t := reflect.TypeFor[Config]()
	for i := range t.NumField() {
		ft := t.Field(i).Type
		prefix := envName(yamlKey(t.Field(i)))
		section = section || name == prefix || (ft.Kind() == reflect.Struct || ft.Kind() == reflect.Map) && strings.HasPrefix(name, prefix+"_")
	}
	switch {
	case near != "" && (section || distance(name, near) <= 2):
		d.fail(at, "", "", fmt.Errorf("fits no key: did you mean %s?", near))
	case strings.HasPrefix(name, envName("cameras")+"_"):
		d.fail(at, "", "", errors.New("fits no key of a camera in the file: cameras are added in the file alone"))
	case section:
		d.fail(at, "", "", errors.New("fits no key"))
	}
}

func trimmed(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = strings.TrimPrefix(n, envPrefix)
	}
	return out
}

// walk visits every value of a configuration that a variable can override:
// single values and maps of single values. Elements of maps are copied, visited and
// put back. Optional structs that are absent are visited as empty ones, and
// made only where keep, if not nil, wants something of them.
func walk(path string, v reflect.Value, keep func(path string) bool, visit func(path string, v reflect.Value)) {
	switch {
	case v.Kind() == reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		if !v.IsNil() {
			p = v
		}
		walk(path, p.Elem(), keep, visit)
		if keep != nil && keep(path) {
			v.Set(p)
		}
	case v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[Secret]() && v.Type() != reflect.TypeFor[Labels]():
		if v.Type() == reflect.TypeFor[Model]() {
			visit(path, v)
		}
		for i := range v.NumField() {
			walk(join(path, yamlKey(v.Type().Field(i))), v.Field(i), keep, visit)
		}
	case v.Kind() == reflect.Map:
		if v.Type().Elem().Kind() != reflect.Struct {
			visit(path, v)
		}
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, k := range keys {
			elem := reflect.New(v.Type().Elem()).Elem()
			elem.Set(v.MapIndex(k))
			walk(join(path, k.String()), elem, keep, visit)
			v.SetMapIndex(k, elem)
		}
	default:
		visit(path, v)
	}
}
