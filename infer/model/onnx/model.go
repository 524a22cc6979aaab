// Package onnx reads the description in an ONNX file: graph, shapes, names, metadata. Weights stay in the
// file; the values of a tensor are read when somebody asks.
//
// A file is not trusted: what it can make the reader keep is bounded, and so is the depth of graphs in graphs.
package onnx

import (
	"errors"
	"fmt"
	"io"
)

// Newest that this reader, and the ONNX Runtime that edgecam ships, know.
const (
	NewestIR    = 13
	NewestOpset = 26
)

// Model is an ONNX file's description. Its tensors read from the source given to Read.
type Model struct {
	IR              int64
	Producer        string
	ProducerVersion string
	Opsets          map[string]int64 // by domain; "" is ONNX's own
	Metadata        map[string]string
	Graph           *Graph
	Functions       int // operators that the file defines itself
}

// Graph is a graph or the body of one in an attribute.
type Graph struct {
	Name         string
	Nodes        []Node
	Inputs       []Value // without those that are initializers
	Outputs      []Value
	Values       []Value
	Initializers []Tensor
}

// Node is one operation.
type Node struct {
	Op, Domain, Name string
	Inputs, Outputs  []string
	Attributes       []Attribute
}

// Attribute is a parameter of a node.
type Attribute struct {
	Name   string
	Int    int64
	Float  float32
	Text   string
	Ints   []int64
	Floats []float32
	Tensor *Tensor
	Graphs []*Graph
}

// Value is a named tensor in the graph. A dimension is its size, or −1 with the
// name that the file gives it.
type Value struct {
	Name  string
	Type  Type
	Dims  []int64
	Names []string
	// Shaped tells a scalar from a tensor of unknown shape.
	Shaped bool
}

// Attribute gives a node's attribute, or nil.
func (n *Node) Attribute(name string) *Attribute {
	for i := range n.Attributes {
		if n.Attributes[i].Name == name {
			return &n.Attributes[i]
		}
	}
	return nil
}

// Int gives an integer attribute, or a default.
func (n *Node) Int(name string, missing int64) int64 {
	if a := n.Attribute(name); a != nil {
		return a.Int
	}
	return missing
}

// Ints gives an attribute of integers, or nil.
func (n *Node) Ints(name string) []int64 {
	if a := n.Attribute(name); a != nil {
		return a.Ints
	}
	return nil
}

// Input gives the name of an input, or "" where it is left out.
func (n *Node) Input(i int) string {
	if i < len(n.Inputs) {
		return n.Inputs[i]
	}
	return ""
}

// Read reads the description of a model of size bytes. Errors are complete sentences about the file, like "is cut
// off: …".
func Read(r io.ReaderAt, size int64) (*Model, error) {
	p := parser{source: source{r: r, size: size}}
	m := &Model{Opsets: map[string]int64{}, Metadata: map[string]string{}}
	err := p.each(0, size, func(f *field) error { return p.model(f, m) })
	if err != nil {
		return nil, err
	}
	if m.Graph == nil || m.IR <= 0 || len(m.Graph.Nodes) == 0 {
		return nil, damaged("there is no graph in it")
	}
	const opsetsSince = 3 // of the IR
	if m.IR >= opsetsSince && len(m.Opsets) == 0 {
		return nil, damaged("it states no opset, as when its end is missing")
	}
	return m, nil
}

// Check names what is newer than this program and the runtime that ships with it.
func (m *Model) Check() error {
	var all []error
	if m.IR > NewestIR {
		all = append(all, fmt.Errorf("it is written in ONNX IR version %d, the newest that edgecam knows is %d", m.IR, NewestIR))
	}
	if v := m.Opsets[""]; v > NewestOpset {
		all = append(all, fmt.Errorf("it uses ONNX opset %d, the newest that edgecam knows is %d", v, NewestOpset))
	}
	return errors.Join(all...)
}
