package onnxruntime

import (
	"bytes"
	"encoding/binary"
	"os"
)

// linkerCache reads what ldconfig left for the dynamic linker: the file that it
// takes for each name. It is nil where there is no cache that can be read, as with
// another C library than glibc.
//
// The layout is that of glibc's dl-cache.h: a magic text, the number of entries, a
// header of 48 bytes in all, entries of 24 bytes, and strings at offsets from the
// magic text. Older ldconfigs put another table in front of it.
func linkerCache(path, arch string) map[string]string {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return parseCache(data, arch)
}

func parseCache(data []byte, arch string) map[string]string {
	const header, entry = 48, 24
	magic := []byte("glibc-ld.so.cache1.1")
	at := bytes.Index(data, magic)
	if at < 0 || len(data)-at < header {
		return nil
	}
	data = data[at:]
	text := func(offset uint32) string {
		if uint64(offset) >= uint64(len(data)) {
			return ""
		}
		name, _, _ := bytes.Cut(data[offset:], []byte{0})
		return string(name)
	}
	want := uint32(0x0303) // libc6, x86-64
	if arch == "arm64" {
		want = 0x0a03
	}
	found := map[string]string{}
	n := uint64(binary.LittleEndian.Uint32(data[len(magic):]))
	for i := range min(n, uint64(len(data)-header)/entry) {
		e := data[header+i*entry:]
		name, file := text(binary.LittleEndian.Uint32(e[4:])), text(binary.LittleEndian.Uint32(e[8:]))
		if _, twice := found[name]; name == "" || file == "" || twice || binary.LittleEndian.Uint32(e)&0xffff != want {
			continue // those for processors with more come first
		}
		found[name] = file
	}
	return found
}
