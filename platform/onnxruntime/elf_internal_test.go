package onnxruntime

import (
	"bytes"
	"debug/elf"
	"os"
	"runtime"
	"testing"
)

// FuzzCheckELF feeds damaged headers: none may crash the check.
func FuzzCheckELF(f *testing.F) {
	f.Add([]byte("\x7fELF"))
	f.Add([]byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x03\x00\x3e\x00\x01\x00\x00\x00"))
	f.Add([]byte("#!/bin/sh\n"))
	if self, err := os.Executable(); err == nil {
		if b, err := os.ReadFile(self); err == nil {
			f.Add(b[:min(len(b), 4096)])
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := checkELF(bytes.NewReader(data), int64(len(data)), "amd64"); err == nil && len(data) < 64 {
			t.Errorf("%d bytes pass for a library", len(data))
		}
	})
}

// ownMachine is this machine's.
func ownMachine(t *testing.T) elf.Machine {
	t.Helper()
	m, ok := machineOf(runtime.GOARCH)
	if !ok {
		t.Fatalf("no machine for %s", runtime.GOARCH)
	}
	return m
}
