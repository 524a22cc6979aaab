package onnxruntime

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
)

// machineOf is the ELF machine of a GOARCH that edgecam runs on.
func machineOf(goarch string) (elf.Machine, bool) {
	switch goarch {
	case "amd64":
		return elf.EM_X86_64, true
	case "arm64":
		return elf.EM_AARCH64, true
	}
	return 0, false
}

// checkFile reports why the file cannot be a shared library of this machine.
// The dynamic linker says little about a file of another kind and maps a
// truncated one, which then ends the process with SIGBUS at the first touch.
func checkFile(path string) error { return checkFileFor(path, runtime.GOARCH) }

func checkFileFor(path, goarch string) error {
	info, err := os.Stat(path)
	if err != nil {
		return trimPath(err)
	}
	if info.IsDir() {
		return errors.New("is a directory without libonnxruntime.so in it, in its lib, or in a Python environment there")
	}
	if !info.Mode().IsRegular() {
		return errors.New("is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return trimPath(err)
	}
	defer f.Close()
	return checkELF(f, info.Size(), goarch)
}

func checkELF(r io.ReaderAt, size int64, goarch string) error {
	var magic [4]byte
	if n, _ := r.ReadAt(magic[:], 0); n < 4 || string(magic[:]) != elf.ELFMAG {
		return errors.New("is not an ELF file")
	}
	f, err := elf.NewFile(r)
	if err != nil {
		return fmt.Errorf("is a damaged or truncated ELF file (%d bytes): %w", size, err)
	}
	want, ok := machineOf(goarch)
	if !ok {
		return fmt.Errorf("edgecam has no bindings for %s", goarch)
	}
	if f.Machine != want || f.Class != elf.ELFCLASS64 {
		return fmt.Errorf("is built for %v, this machine is %v", f.Machine, want)
	}
	if f.Type != elf.ET_DYN {
		return fmt.Errorf("is no shared library (ELF type %v)", f.Type)
	}
	for _, p := range f.Progs {
		if end := p.Off + p.Filesz; p.Type == elf.PT_LOAD && (end < p.Off || end > uint64(size)) {
			return fmt.Errorf("is truncated: %d of at least %d bytes", size, end)
		}
	}
	return nil
}

// trimPath drops the operation and path of an *fs.PathError: the error that
// wraps it names the path already.
func trimPath(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
