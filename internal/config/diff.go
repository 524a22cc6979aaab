package config

import (
	"maps"
	"reflect"
	"slices"
)

// Changes is what differs between two configurations. A camera is added,
// removed or changed as a whole; ids are sorted.
type Changes struct {
	Added, Removed, Changed []string

	// Models says that models differ, or what scores count; Inference means the rest.
	Models bool

	Server, GPU, Inference, Memory, Log, StateDir bool
}

// Any says whether anything differs.
func (c Changes) Any() bool {
	return len(c.Added)+len(c.Removed)+len(c.Changed) > 0 ||
		c.Models || c.Server || c.GPU || c.Inference || c.Memory || c.Log || c.StateDir
}

// Diff compares a running configuration with the one that shall follow it.
func Diff(from, to *Config) Changes {
	c := Changes{
		Server:    !reflect.DeepEqual(from.Server, to.Server),
		GPU:       from.GPU != to.GPU,
		Models:    !reflect.DeepEqual(from.Inference.Named(), to.Inference.Named()),
		Inference: !reflect.DeepEqual(withoutModels(from.Inference), withoutModels(to.Inference)),
		Memory:    from.Memory != to.Memory,
		Log:       from.Log != to.Log,
		StateDir:  from.StateDir != to.StateDir,
	}
	for _, id := range slices.Sorted(maps.Keys(from.Cameras)) {
		next, ok := to.Cameras[id]
		switch {
		case !ok:
			c.Removed = append(c.Removed, id)
		case !sameCamera(from.Cameras[id], next):
			c.Changed = append(c.Changed, id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(to.Cameras)) {
		if _, ok := from.Cameras[id]; !ok {
			c.Added = append(c.Added, id)
		}
	}
	return c
}

func withoutModels(i Inference) Inference {
	i.Model, i.Models, i.ScoreThreshold = Model{}, nil, 0
	return i
}

// SameStream says whether two cameras differ at most in what is looked for in
// their pictures.
func SameStream(a, b Camera) bool {
	a.Model, a.Detect.Objects = b.Model, b.Detect.Objects
	return sameCamera(a, b)
}

// sameCamera compares secrets by their text and takes no objects for empty ones.
func sameCamera(a, b Camera) bool {
	same := maps.Equal(a.Detect.Objects, b.Detect.Objects)
	a.Detect.Objects, b.Detect.Objects = nil, nil
	return same && reflect.DeepEqual(a, b)
}
