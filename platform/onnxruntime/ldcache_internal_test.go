package onnxruntime

import (
	"bytes"
	"encoding/binary"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"testing"

	"edgecam/internal/testkit"
)

// cacheEntry is one of a made-up cache of the dynamic linker.
type cacheEntry struct {
	flags      uint32
	name, file string
}

func makeCache(entries ...cacheEntry) []byte {
	var names bytes.Buffer
	var table []uint32
	at := uint32(48 + 24*len(entries))
	text := func(s string) uint32 {
		offset := at + uint32(names.Len())
		names.WriteString(s + "\x00")
		return offset
	}
	for _, e := range entries {
		table = append(table, e.flags, text(e.name), text(e.file), 0, 0, 0)
	}
	var out bytes.Buffer
	out.WriteString("glibc-ld.so.cache1.1")
	for _, part := range []any{uint32(len(entries)), uint32(names.Len()), [5]uint32{}, table, names.Bytes()} {
		_ = binary.Write(&out, binary.LittleEndian, part) // a buffer takes everything
	}
	return out.Bytes()
}

func TestLinkerCache(t *testing.T) {
	entries := []cacheEntry{
		{0x0303, "libcudart.so.12", "/usr/lib/glibc-hwcaps/x86-64-v3/libcudart.so.12"},
		{0x0303, "libcudart.so.12", "/usr/lib/libcudart.so.12"}, // for any processor
		{0x0003, "libcudart.so.12", "/lib32/libcudart.so.12"},
		{0x0a03, "libcublas.so.12", "/usr/lib/aarch64-linux-gnu/libcublas.so.12"},
	}
	x86 := map[string]string{"libcudart.so.12": "/usr/lib/glibc-hwcaps/x86-64-v3/libcudart.so.12"}
	arm := map[string]string{"libcublas.so.12": "/usr/lib/aarch64-linux-gnu/libcublas.so.12"}
	plain := makeCache(entries...)
	for name, data := range map[string][]byte{"of today": plain, "behind an older table": append([]byte("ld.so-1.7.0\x00\x00\x00\x00\x00"), plain...)} {
		if got := parseCache(data, "amd64"); !maps.Equal(got, x86) {
			t.Errorf("%s, amd64: %v", name, got)
		}
		if got := parseCache(data, "arm64"); !maps.Equal(got, arm) {
			t.Errorf("%s, arm64: %v", name, got)
		}
	}
	if got := parseCache([]byte("ld.so-1.7.0"), "amd64"); got != nil {
		t.Errorf("no table that is known: %v", got)
	}
	if got := linkerCache(t.TempDir()+"/none", "amd64"); got != nil {
		t.Errorf("no file: %v", got)
	}
}

// What ldconfig prints of this machine's cache is what is read of it.
func TestLinkerCacheOfThisMachine(t *testing.T) {
	if testkit.Emulated() {
		t.Skip("an emulator shows another cache than the machine's ldconfig reads")
	}
	ldconfig, err := exec.LookPath("ldconfig")
	if err != nil {
		ldconfig = "/sbin/ldconfig"
	}
	printed, err := exec.CommandContext(t.Context(), ldconfig, "-p").Output()
	if err != nil {
		t.Fatalf("ldconfig -p: %v", err)
	}
	got := linkerCache("/etc/ld.so.cache", "amd64")
	seen := 0
	first := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\t(\S+) \(libc6,x86-64[^)]*\) => (.+)$`).FindAllSubmatch(printed, -1) {
		name, file := string(m[1]), string(m[2])
		if first[name] {
			continue
		}
		first[name] = true
		if seen++; got[name] != file {
			t.Errorf("%s is %q, ldconfig says %q", name, got[name], file)
		}
	}
	if seen != len(got) {
		t.Errorf("%d names are read, ldconfig knows %d", len(got), seen)
	}
	if _, err := os.Stat("/etc/ld.so.cache"); err == nil && got == nil {
		t.Error("the cache of this machine cannot be read")
	}
}

func FuzzParseCache(f *testing.F) {
	f.Add(makeCache(cacheEntry{0x0303, "a.so", "/a.so"}))
	f.Add([]byte("glibc-ld.so.cache1.1\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for name, file := range parseCache(data, "amd64") {
			if name == "" || file == "" {
				t.Errorf("%q is %q", name, file)
			}
		}
	})
}
