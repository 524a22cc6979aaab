package ort

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func testKey(model byte) engineKey {
	return engineKey{
		Format: cacheFormat, Model: strings.Repeat(string(model), 64), GPU: "GPU-1", Name: "NVIDIA H200", ComputeCapability: "9.0",
		Driver: "580.1", TensorRT: "10.6.0", ONNXRuntime: "1.31.1", Shapes: "images:1x3x416x416 images:16x3x416x416", Precision: "fp16", Level: 1,
	}
}

// TestEngineKeyCoversAll changes every field and wants another file each time.
func TestEngineKeyCoversAll(t *testing.T) {
	seen := map[string]string{testKey('a').stem(): "nothing"}
	for i := range reflect.TypeFor[engineKey]().NumField() {
		key := testKey('a')
		f := reflect.ValueOf(&key).Elem().Field(i)
		if f.Kind() == reflect.Int {
			f.SetInt(f.Int() + 1)
		} else {
			f.SetString("x" + f.String())
		}
		name := reflect.TypeFor[engineKey]().Field(i).Name
		if other, ok := seen[key.stem()]; ok {
			t.Errorf("changing %s gives the file of changing %s", name, other)
		}
		seen[key.stem()] = name
	}
	if stem := testKey('a').stem(); stem != testKey('a').stem() || strings.ContainsAny(stem, "/. ") {
		t.Errorf("stem %q", stem)
	}
}

func TestEngineCacheKeepsWhole(t *testing.T) {
	c := engineCache{dir: filepath.Join(t.TempDir(), "state", "tensorrt")}
	key, content := testKey('a'), bytes.Repeat([]byte("engine"), 1000)
	if _, err := c.load(key); !errors.Is(err, errNoEngine) {
		t.Errorf("before: %v", err)
	}
	if err := c.store(key, content); err != nil {
		t.Fatal(err)
	}
	if got, err := c.load(key); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if info, err := os.Stat(c.dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("directory %v, %v", info.Mode(), err)
	}
	c.remove(key)
	if _, err := c.load(key); !errors.Is(err, errNoEngine) {
		t.Errorf("removed: %v", err)
	}
	if left, _ := os.ReadDir(c.dir); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// TestEngineCacheSaysWhy covers what a file can be other than the engine.
func TestEngineCacheSaysWhy(t *testing.T) {
	key := testKey('a')
	engine, note := key.stem()+engineSuffix, key.stem()+noteSuffix
	write := func(t *testing.T, c engineCache, name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name   string
		change func(*testing.T, engineCache)
		want   string
	}{
		{"changed", func(t *testing.T, c engineCache) { write(t, c, engine, "engiNe") }, "it is damaged: its checksum is another"},
		{"longer", func(t *testing.T, c engineCache) { write(t, c, engine, "engine and more") }, "it is damaged: 15 bytes instead of 6"},
		{"gone", func(t *testing.T, c engineCache) { _ = os.Remove(filepath.Join(c.dir, engine)) }, "no such file or directory"},
		{"no note", func(t *testing.T, c engineCache) { _ = os.Remove(filepath.Join(c.dir, note)) }, "none is stored"},
		{"note is text", func(t *testing.T, c engineCache) { write(t, c, note, "hello") }, "its note is damaged: invalid character 'h' looking for beginning of value"},
		{"note is huge", func(t *testing.T, c engineCache) { write(t, c, note, strings.Repeat(" ", maxNote+1)) }, "it is damaged: 65537 bytes"},
		{"note names nothing", func(t *testing.T, c engineCache) { write(t, c, note, "{}") }, "its note names another model, GPU or version"},
		{"directory", func(t *testing.T, c engineCache) {
			_ = os.Remove(filepath.Join(c.dir, engine))
			_ = os.Mkdir(filepath.Join(c.dir, engine), 0o700)
		}, "it is not a regular file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := engineCache{dir: t.TempDir()}
			if err := os.Chmod(c.dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := c.store(key, []byte("engine")); err != nil {
				t.Fatal(err)
			}
			tt.change(t, c)
			if got, err := c.load(key); err == nil || err.Error() != tt.want {
				t.Errorf("%q, %v; want %s", got, err, tt.want)
			}
		})
	}
}

// TestEngineCacheIsBounded: a model has one engine, all models together
// maxEngines, the oldest go; files of others are not touched.
func TestEngineCacheIsBounded(t *testing.T) {
	c := engineCache{dir: t.TempDir()}
	mine := filepath.Join(c.dir, "notes.txt")
	if err := os.WriteFile(mine, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	old := testKey('a')
	old.Driver = "570.1"
	models := "abcdefghijkl"
	for i, key := range append([]engineKey{old}, func() (keys []engineKey) {
		for _, m := range models {
			keys = append(keys, testKey(byte(m)))
		}
		return keys
	}()...) {
		if err := c.store(key, []byte("engine")); err != nil {
			t.Fatal(err)
		}
		age := time.Now().Add(time.Duration(i-100) * time.Hour)
		if err := os.Chtimes(filepath.Join(c.dir, key.stem()+engineSuffix), age, age); err != nil {
			t.Fatal(err)
		}
	}
	var kept []string
	for _, m := range models {
		if _, err := c.load(testKey(byte(m))); err == nil {
			kept = append(kept, string(m))
		}
	}
	if want := strings.Split("efghijkl", ""); !slices.Equal(kept, want) {
		t.Errorf("kept %q, want %q", kept, want)
	}
	if _, err := c.load(old); err == nil {
		t.Error("the engine of the older driver is kept")
	}
	entries, err := os.ReadDir(c.dir)
	if err != nil || len(entries) != 2*maxEngines+1 {
		t.Errorf("%d files, %v: %v", len(entries), err, fmt.Sprint(entries))
	}
}

// Two cards in one machine keep an engine of the same model each.
func TestEngineCacheOfSeveralGPUs(t *testing.T) {
	c := engineCache{dir: t.TempDir()}
	first, second := testKey('a'), testKey('a')
	second.GPU = "GPU-another"
	for _, key := range []engineKey{first, second} {
		if err := c.store(key, []byte("engine of "+key.GPU)); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []engineKey{first, second} {
		if _, err := c.load(key); err != nil {
			t.Errorf("engine of %s: %v", key.GPU, err)
		}
	}
}

func TestEngineCacheWithoutAPlace(t *testing.T) {
	var none engineCache
	if err := none.store(testKey('a'), []byte("engine")); err != nil {
		t.Error(err)
	}
	if _, err := none.load(testKey('a')); !errors.Is(err, errNoEngine) {
		t.Error(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (engineCache{dir: filepath.Join(file, "tensorrt")}).store(testKey('a'), []byte("engine")); err == nil {
		t.Error("stored below a file")
	}
}
