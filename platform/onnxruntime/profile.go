package onnxruntime

import (
	"encoding/json"
	"fmt"
	"os"
	"unsafe"
)

// NodeRuns counts the runs of one kind of node by one provider.
type NodeRuns struct {
	Provider string // e.g. CUDAProvider
	Op       string // e.g. "Conv"; what a provider made of many nodes has a name of its own
	Count    int
}

// EndProfile ends the profiling that SessionOptions.Profile began and gives
// what ran since, which proves the provider that did. Its file is removed.
func (s *Session) EndProfile() ([]NodeRuns, error) {
	l := s.library
	var text uintptr
	if err := l.call(fnSessionEndProfiling, s.handle, l.allocator, uintptr(unsafe.Pointer(&text))); err != nil {
		return nil, fmt.Errorf("end profile: %w", err)
	}
	path := l.takeString(text)
	defer os.Remove(path) //nolint:errcheck // it lies in a directory that the caller removes
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read profile: %w", err)
	}
	runs, err := parseProfile(content)
	if err != nil {
		return nil, fmt.Errorf("read profile %s: %w", path, err)
	}
	return runs, nil
}

// parseProfile reads a profile: a list of events, of which those of category
// Node that name a provider are runs of a node.
func parseProfile(content []byte) ([]NodeRuns, error) {
	var events []struct {
		Category string          `json:"cat"`
		Args     json.RawMessage `json:"args"`
	}
	if err := json.Unmarshal(content, &events); err != nil {
		return nil, err
	}
	var runs []NodeRuns
	place := make(map[NodeRuns]int)
	for _, e := range events {
		var args struct {
			Provider string `json:"provider"`
			Op       string `json:"op_name"`
		}
		// Other events have arguments of other kinds.
		if e.Category != "Node" || json.Unmarshal(e.Args, &args) != nil || args.Provider == "" {
			continue
		}
		key := NodeRuns{Provider: args.Provider, Op: args.Op}
		i, ok := place[key]
		if !ok {
			i = len(runs)
			place[key], runs = i, append(runs, key)
		}
		runs[i].Count++
	}
	return runs, nil
}
