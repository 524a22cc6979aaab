package onnxruntime

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
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

// readELF lends fn the headers of a file; of one that cannot be read fn learns nothing.
func readELF(path string, fn func(*elf.File)) {
	f, err := elf.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	fn(f)
}

// elfNeeded are the libraries that one is linked with.
func elfNeeded(path string) (names []string) {
	readELF(path, func(f *elf.File) { names, _ = f.ImportedLibraries() }) // nil where they cannot be read
	return names
}

// tellsName says whether a library tells its own name, by which the dynamic linker
// knows it once it is loaded.
func tellsName(path string) (tells bool) {
	readELF(path, func(f *elf.File) {
		names, err := f.DynString(elf.DT_SONAME)
		tells = err == nil && len(names) > 0
	})
	return tells
}

var releaseTag = regexp.MustCompile(`^VERS_(\d+\.\d+\.\d+)$`)

// coreVersion reads the release of a core from the versions of its symbols.
func coreVersion(path string) (release string) {
	readELF(path, func(f *elf.File) {
		versions, _ := f.DynamicVersions() // nil where they cannot be read
		for _, v := range versions {
			if m := releaseTag.FindStringSubmatch(v.Name); m != nil {
				release = m[1]
				return
			}
		}
	})
	return release
}

// providerVersion finds the release that a provider was built with among its
// constants, "" where that is not clear.
func providerVersion(path string) (release string) {
	readELF(path, func(f *elf.File) {
		if section := f.Section(".rodata"); section != nil {
			data, _ := section.Data() // nil where it cannot be read
			release = releaseAmong(data)
		}
	})
	return release
}

var releaseText = regexp.MustCompile(`^\x00(1\.(?:1[7-9]|[2-9]\d)\.\d+)\x00`)

// releaseAmong finds the one release among constants, "" where there is none or several.
func releaseAmong(data []byte) (release string) {
	for {
		// A regular expression over tens of megabytes takes its time: look closer
		// only where a text begins with the number.
		i := bytes.Index(data, []byte("\x001."))
		if i < 0 {
			return release
		}
		data = data[i:]
		if m := releaseText.FindSubmatch(data[:min(16, len(data))]); m != nil {
			if release != "" && release != string(m[1]) {
				return ""
			}
			release = string(m[1])
		}
		data = data[1:]
	}
}
