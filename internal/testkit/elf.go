package testkit

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ELF is a shared library with nothing in it, for tests of what reads such files.
type ELF struct {
	Machine elf.Machine // 0 = x86-64
	Needed  []string    // libraries that it is linked with
	Name    string      // that it tells of itself (DT_SONAME)
	Text    string      // its constants
	Short   int         // bytes that it says it loads beyond its headers: from some hundred on it is truncated
}

// Bytes makes the file.
func (e ELF) Bytes() []byte {
	if e.Machine == 0 {
		e.Machine = elf.EM_X86_64
	}
	names := []byte{0}
	var dynamic []elf.Dyn64
	add := func(tag elf.DynTag, text string) {
		dynamic = append(dynamic, elf.Dyn64{Tag: int64(tag), Val: uint64(len(names))})
		names = append(append(names, text...), 0)
	}
	for _, n := range e.Needed {
		add(elf.DT_NEEDED, n)
	}
	if e.Name != "" {
		add(elf.DT_SONAME, e.Name)
	}
	dynamic = append(dynamic, elf.Dyn64{})
	labels := "\x00.dynstr\x00.dynamic\x00.rodata\x00.shstrtab\x00"
	const header, program = 64, 56
	at := uint64(header + program)
	var body bytes.Buffer
	sections := make([]elf.Section64, 1, 5)
	section := func(label string, kind elf.SectionType, data any, link uint32) {
		start := body.Len()
		_ = binary.Write(&body, binary.LittleEndian, data) // a buffer takes everything
		sections = append(sections, elf.Section64{
			Name: uint32(strings.Index(labels, label)), Type: uint32(kind), Link: link,
			Off: at + uint64(start), Size: uint64(body.Len() - start),
		})
	}
	section(".dynstr", elf.SHT_STRTAB, names, 0)
	section(".dynamic", elf.SHT_DYNAMIC, dynamic, 1)
	section(".rodata", elf.SHT_PROGBITS, []byte(e.Text), 0)
	section(".shstrtab", elf.SHT_STRTAB, []byte(labels), 0)
	end := at + uint64(body.Len())
	h := elf.Header64{
		Type: uint16(elf.ET_DYN), Machine: uint16(e.Machine), Version: 1, Phoff: header, Shoff: end,
		Ehsize: header, Phentsize: program, Phnum: 1, Shentsize: 64, Shnum: uint16(len(sections)), Shstrndx: uint16(len(sections) - 1),
	}
	copy(h.Ident[:], elf.ELFMAG+"\x02\x01\x01")
	load := elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R), Filesz: end + uint64(e.Short), Memsz: end + uint64(e.Short)}
	var out bytes.Buffer
	for _, part := range []any{h, load, body.Bytes(), sections} {
		_ = binary.Write(&out, binary.LittleEndian, part)
	}
	return out.Bytes()
}

// Tree writes files below root by their paths: ELF ones as they are made, texts as
// they are, and a text that begins with "->" as a link.
func Tree(tb testing.TB, root string, files map[string]any) {
	tb.Helper()
	for path, content := range files {
		path = filepath.Join(root, path)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		switch c := content.(type) {
		case ELF:
			err = errors.Join(err, os.WriteFile(path, c.Bytes(), 0o644))
		case string:
			if to, ok := strings.CutPrefix(c, "->"); ok {
				err = errors.Join(err, os.Symlink(to, path))
			} else {
				err = errors.Join(err, os.WriteFile(path, []byte(c), 0o644))
			}
		default:
			tb.Fatalf("%s: content of type %T", path, content)
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
}
