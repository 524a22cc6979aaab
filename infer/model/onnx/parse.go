package onnx

// maxDepth bounds graphs within graphs (If, Loop).
const maxDepth = 16

// Bytes that one thing costs beside its texts, for the bound of what is kept.
const (
	nodeBytes      = 160
	attributeBytes = 160
	tensorBytes    = 160
	valueBytes     = 96
)

// parser turns fields into the description. The numbers are those of onnx.proto.
type parser struct {
	source
	depth int
}

// set reads a string into to.
func (p *parser) set(f *field, to *string) (err error) {
	*to, err = p.text(f)
	return err
}

// add appends a string.
func (p *parser) add(f *field, to *[]string) error {
	s, err := p.text(f)
	*to = append(*to, s)
	return err
}

// message calls fn for the fields of a message in a field.
func (p *parser) message(f *field, fn func(*field) error) error {
	if !f.bytes() {
		return damaged("at byte %d", f.from)
	}
	return p.each(f.from, f.to, fn)
}

func (p *parser) model(f *field, m *Model) error {
	switch f.num {
	case 1:
		m.IR = f.int()
	case 2:
		return p.set(f, &m.Producer)
	case 3:
		return p.set(f, &m.ProducerVersion)
	case 7:
		g, err := p.graph(f)
		m.Graph = g
		return err
	case 8:
		return p.opset(f, m)
	case 14:
		key, value, err := p.entry(f)
		m.Metadata[key] = value
		return err
	case 25:
		m.Functions++
	}
	return nil
}

func (p *parser) opset(f *field, m *Model) error {
	var domain string
	var version int64
	err := p.message(f, func(f *field) error {
		switch f.num {
		case 1:
			return p.set(f, &domain)
		case 2:
			version = f.int()
		}
		return nil
	})
	if domain == "ai.onnx" {
		domain = ""
	}
	m.Opsets[domain] = version
	return err
}

func (p *parser) entry(f *field) (key, value string, err error) {
	err = p.message(f, func(f *field) error {
		switch f.num {
		case 1:
			return p.set(f, &key)
		case 2:
			return p.set(f, &value)
		}
		return nil
	})
	if err == nil {
		err = p.keep(64)
	}
	return key, value, err
}

func (p *parser) graph(f *field) (*Graph, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, damaged("graphs lie in graphs more than %d deep", maxDepth)
	}
	defer func() { p.depth-- }()
	g := &Graph{}
	if err := p.message(f, func(f *field) error { return p.graphField(f, g) }); err != nil {
		return nil, err
	}
	g.dropInitialized()
	return g, nil
}

func (p *parser) graphField(f *field, g *Graph) error {
	switch f.num {
	case 1:
		n, err := p.node(f)
		g.Nodes = append(g.Nodes, n)
		return err
	case 2:
		return p.set(f, &g.Name)
	case 5:
		t, err := p.tensor(f)
		g.Initializers = append(g.Initializers, t)
		return err
	case 11:
		return p.value(f, &g.Inputs)
	case 12:
		return p.value(f, &g.Outputs)
	case 13:
		return p.value(f, &g.Values)
	}
	return nil
}

// dropInitialized takes the weights out of the inputs, where old exporters list them.
func (g *Graph) dropInitialized() {
	known := make(map[string]bool, len(g.Initializers))
	for i := range g.Initializers {
		known[g.Initializers[i].Name] = true
	}
	var left []Value
	for _, v := range g.Inputs {
		if !known[v.Name] {
			left = append(left, v)
		}
	}
	g.Inputs = left
}

func (p *parser) node(f *field) (n Node, err error) {
	err = p.message(f, func(f *field) error {
		switch f.num {
		case 1:
			return p.add(f, &n.Inputs)
		case 2:
			return p.add(f, &n.Outputs)
		case 3:
			return p.set(f, &n.Name)
		case 4:
			return p.set(f, &n.Op)
		case 5:
			a, err := p.attribute(f)
			n.Attributes = append(n.Attributes, a)
			return err
		case 7:
			return p.set(f, &n.Domain)
		}
		return nil
	})
	if n.Domain == "ai.onnx" {
		n.Domain = ""
	}
	if err == nil {
		err = p.keep(nodeBytes)
	}
	return n, err
}

func (p *parser) attribute(f *field) (a Attribute, err error) {
	err = p.message(f, func(f *field) (err error) {
		switch f.num {
		case 1:
			return p.set(f, &a.Name)
		case 2:
			a.Float = f.float()
		case 3:
			a.Int = f.int()
		case 4:
			return p.set(f, &a.Text)
		case 5:
			t, err := p.tensor(f)
			a.Tensor = &t
			return err
		case 6, 11:
			g, err := p.graph(f)
			a.Graphs = append(a.Graphs, g)
			return err
		case 7:
			a.Floats, err = p.floats(f, a.Floats)
		case 8:
			a.Ints, err = p.ints(f, a.Ints)
		}
		return err
	})
	if err == nil {
		err = p.keep(attributeBytes)
	}
	return a, err
}

func (p *parser) value(f *field, to *[]Value) error {
	v := Value{}
	err := p.message(f, func(f *field) error {
		switch f.num {
		case 1:
			return p.set(f, &v.Name)
		case 2:
			return p.message(f, func(f *field) error {
				if f.num != 1 { // a tensor; sequences and maps stay without a type
					return nil
				}
				return p.tensorType(f, &v)
			})
		}
		return nil
	})
	*to = append(*to, v)
	if err == nil {
		err = p.keep(valueBytes)
	}
	return err
}

func (p *parser) tensorType(f *field, v *Value) error {
	return p.message(f, func(f *field) error {
		switch f.num {
		case 1:
			v.Type = Type(f.number)
		case 2:
			v.Shaped = true
			return p.message(f, func(f *field) error {
				if f.num != 1 {
					return nil
				}
				return p.dimension(f, v)
			})
		}
		return nil
	})
}

func (p *parser) dimension(f *field, v *Value) error {
	size, name := int64(-1), ""
	err := p.message(f, func(f *field) error {
		switch f.num {
		case 1:
			size = f.int()
		case 2:
			return p.set(f, &name)
		}
		return nil
	})
	if size < 0 {
		size = -1
	}
	v.Dims, v.Names = append(v.Dims, size), append(v.Names, name)
	if err == nil {
		err = p.keep(24)
	}
	return err
}
