package backup_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"edgecam/internal/backup"
)

func manifest() backup.Manifest {
	return backup.Manifest{Schema: 1, Program: "1.2.3", At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
}

func sources(t testing.TB) []backup.Source {
	t.Helper()
	path := filepath.Join(t.TempDir(), "yard.onnx")
	if err := os.WriteFile(path, bytes.Repeat([]byte("model"), 2000), 0o600); err != nil {
		t.Fatal(err)
	}
	all := []backup.Source{
		{File: backup.File{Kind: backup.Config, Base: backup.BesideConfig, Path: "edgecam.yaml"}, Text: []byte("version: 1\n")},
		{File: backup.File{Kind: backup.Named, Base: backup.Elsewhere, Path: path}, From: path},
		{File: backup.File{Kind: backup.State, Base: backup.InState, Path: "rules/a.json"}, Text: []byte("{}")},
		{File: backup.File{Kind: backup.State, Base: backup.InState, Path: "empty"}, Text: []byte{}},
	}
	for i := range all {
		if err := all[i].Measure(); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func archive(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := backup.Write(&b, manifest(), sources(t)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRoundTrip(t *testing.T) {
	want := sources(t)
	var b bytes.Buffer
	if err := backup.Write(&b, manifest(), want); err != nil {
		t.Fatal(err)
	}
	i := 0
	m, err := backup.Read(&b, func(m *backup.Manifest, f backup.File, content io.Reader) error {
		got, err := io.ReadAll(content)
		if err != nil {
			return err
		}
		wanted := want[i].Text
		if wanted == nil {
			if wanted, err = os.ReadFile(want[i].From); err != nil {
				return err
			}
		}
		if !bytes.Equal(got, wanted) || f.Kind != want[i].Kind || f.Base != want[i].Base || f.Path != want[i].Path || m.Program != "1.2.3" {
			t.Errorf("%+v, %d bytes", f, len(got))
		}
		i++
		return nil
	})
	if err != nil || i != len(want) || !m.At.Equal(manifest().At) || m.Schema != 1 || m.Format != backup.Format {
		t.Errorf("%v, %d files, %+v", err, i, m)
	}
}

// contents is all that an archive holds, in one text.
func contents(archive []byte) (string, error) {
	var all strings.Builder
	_, err := backup.Read(bytes.NewReader(archive), func(_ *backup.Manifest, f backup.File, content io.Reader) error {
		fmt.Fprintf(&all, "%+v\n", f)
		_, err := io.Copy(&all, content)
		return err
	})
	return all.String(), err
}

// An archive that a visitor does not read is verified all the same.
func TestEveryByteCounts(t *testing.T) {
	whole := archive(t)
	if _, err := backup.Read(bytes.NewReader(whole), nil); err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		if _, err := backup.Read(bytes.NewReader(whole[:n]), nil); err == nil {
			t.Fatalf("whole with %d of %d bytes", n, len(whole))
		}
	}
	want, err := contents(whole)
	if err != nil {
		t.Fatal(err)
	}
	flips := 0
	for n := 10; n < len(whole); n += 7 { // the head of gzip has a time and a name that nobody reads
		bad := bytes.Clone(whole)
		bad[n] ^= 0x10
		// Some bits of the compression mean nothing: then what is in it is the same.
		if got, err := contents(bad); err == nil && got != want {
			t.Errorf("byte %d changed, and nothing is said", n)
		}
		flips++
	}
	if flips < 50 {
		t.Fatalf("only %d bytes were tried", flips)
	}
}

// entry is one of a crafted archive.
type entry struct {
	header tar.Header
	text   string
}

func file(name, text string) entry {
	return entry{tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(text)), Mode: 0o600}, text}
}

func pack(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, e := range entries {
		if err := w.WriteHeader(&e.header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func listed(name string, kind backup.Kind, base backup.Base, path, text string) backup.File {
	sum := sha256.Sum256([]byte(text))
	return backup.File{Name: name, Kind: kind, Base: base, Path: path, Size: int64(len(text)), SHA256: hex.EncodeToString(sum[:])}
}

func head(t testing.TB, change func(m *backup.Manifest), files ...backup.File) entry {
	t.Helper()
	m := manifest()
	m.Format, m.Files = 1, files
	if change != nil {
		change(&m)
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return file("manifest.json", string(text))
}

const cfg = "version: 1\n"

func config() backup.File {
	return listed("config/edgecam.yaml", backup.Config, backup.BesideConfig, "edgecam.yaml", cfg)
}

func crafted(t testing.TB) map[string]struct {
	archive []byte
	want    string
} {
	t.Helper()
	good := file("config/edgecam.yaml", cfg)
	with := func(f backup.File, e entry) []byte { return pack(t, head(t, nil, config(), f), good, e) }
	path := func(base backup.Base, p string) []byte {
		return with(listed("file/x", backup.Named, base, p, "x"), file("file/x", "x"))
	}
	typed := func(kind byte, link string) []byte {
		return with(listed("file/x", backup.Named, backup.BesideConfig, "x", ""), entry{tar.Header{Typeflag: kind, Name: "file/x", Linkname: link}, ""})
	}
	twice := listed("file/x", backup.Named, backup.BesideConfig, "x", "x")
	type bad = struct {
		archive []byte
		want    string
	}
	return map[string]bad{
		"empty":                 {nil, "it is empty"},
		"no gzip":               {[]byte("version: 1\ncameras: {}\n"), "gzip: invalid header"},
		"no tar":                {compressed(t, "version: 1\n"), "it is cut short"},
		"no manifest":           {pack(t, good), "it does not begin with a manifest"},
		"no json":               {pack(t, file("manifest.json", "{")), "its manifest: unexpected end"},
		"no configuration":      {pack(t, head(t, nil)), "0 configurations"},
		"two configurations":    {pack(t, head(t, nil, config(), listed("config/b", backup.Config, backup.BesideConfig, "b", cfg)), good, file("config/b", cfg)), "2 configurations"},
		"newer":                 {pack(t, head(t, func(m *backup.Manifest) { m.Format = 2 })), "written by edgecam 1.2.3 in a newer form (format 2)"},
		"newer, of other types": {pack(t, file("manifest.json", `{"format": 2, "program": "9.9", "files": {"a": 1}, "at": 7}`)), "written by edgecam 9.9 in a newer form (format 2)"},
		"newer, by no version":  {pack(t, head(t, func(m *backup.Manifest) { m.Format, m.Program = 2, "\x1b[2J" })), "its manifest makes no sense"},
		"dots":                  {path(backup.BesideConfig, "../x"), "its path leads elsewhere"},
		"dots inside":           {path(backup.InState, "a/../../x"), "its path leads elsewhere"},
		"absolute":              {path(backup.InState, "/etc/passwd"), "its path leads elsewhere"},
		"not absolute":          {path(backup.Elsewhere, "etc/passwd"), "does not start at the root"},
		"dots from the root":    {path(backup.Elsewhere, "/a/../etc/passwd"), "its path leads elsewhere"},
		"the directory itself":  {path(backup.InState, "."), "its path leads elsewhere"},
		"no path":               {path(backup.InState, ""), "its path leads elsewhere"},
		"backslash":             {path(backup.InState, `a\b`), "its path leads elsewhere"},
		"control character":     {path(backup.InState, "a\x1b[2Jb"), "its path leads elsewhere"},
		"no place":              {path("home", "x"), "of no known place"},
		"no kind":               {with(listed("file/x", "link", backup.BesideConfig, "x", "x"), file("file/x", "x")), "of no known kind"},
		"state elsewhere":       {with(listed("file/x", backup.State, backup.Elsewhere, "/etc/x", "x"), file("file/x", "x")), "not of the state directory"},
		"name twice":            {pack(t, head(t, nil, config(), twice, listed("file/x", backup.Named, backup.BesideConfig, "y", "x")), good), "twice"},
		"place twice":           {pack(t, head(t, nil, config(), twice, listed("file/y", backup.Named, backup.BesideConfig, "x", "x")), good), "twice"},
		"file and directory":    {pack(t, head(t, nil, config(), twice, listed("file/y", backup.Named, backup.BesideConfig, "x/y", "x")), good), "for a file and for a directory"},
		"symbolic link":         {typed(tar.TypeSymlink, "/etc"), "is not a regular file"},
		"hard link":             {typed(tar.TypeLink, "/etc/passwd"), "is not a regular file"},
		"device":                {typed(tar.TypeChar, ""), "is not a regular file"},
		"pipe":                  {typed(tar.TypeFifo, ""), "is not a regular file"},
		"directory":             {typed(tar.TypeDir, ""), "is not a regular file"},
		"another name":          {with(twice, file("../x", "x")), "where its manifest lists file/x"},
		"another size":          {with(twice, file("file/x", "xx")), "where its manifest lists file/x"},
		"another content":       {with(twice, file("file/x", "y")), "file/x is damaged"},
		"missing":               {pack(t, head(t, nil, config(), twice), good), "it is cut short"},
		"more than listed":      {pack(t, head(t, nil, config()), good, file("file/x", "x")), "more than its manifest lists"},
		"something behind":      {append(pack(t, head(t, nil, config()), good), 'x'), "something follows its end"},
		"another one behind":    {append(pack(t, head(t, nil, config()), good), pack(t, good)...), "something follows its end"},
		"negative size":         {pack(t, head(t, func(m *backup.Manifest) { m.Files[0].Size = -1 }, config()), good), "makes no sense"},
		"too large":             {pack(t, head(t, func(m *backup.Manifest) { m.Files[1].Size = 1 << 62 }, config(), twice), good), "makes no sense"},
		"bomb":                  {bomb(t), "it goes on behind its end"},
	}
}

func compressed(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// bomb is a good archive with 4 MB of zeros behind its end, in one gzip stream.
func bomb(t testing.TB) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(pack(t, head(t, nil, config()), file("config/edgecam.yaml", cfg))))
	if err != nil {
		t.Fatal(err)
	}
	inner, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return compressed(t, string(inner)+strings.Repeat("\x00", 4<<20))
}

func TestCraftedArchives(t *testing.T) {
	if _, err := backup.Read(bytes.NewReader(pack(t, head(t, nil, config()), file("config/edgecam.yaml", cfg))), nil); err != nil {
		t.Fatalf("a good one: %v", err)
	}
	for name, c := range crafted(t) {
		t.Run(name, func(t *testing.T) {
			m, err := backup.Read(bytes.NewReader(c.archive), nil)
			if m != nil || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, %v; want …%s…", m, err, c.want)
			}
		})
	}
}

func TestIs(t *testing.T) {
	dir, whole := t.TempDir(), archive(t)
	for name, c := range map[string]struct {
		content []byte
		want    bool
	}{
		"whole": {whole, true}, "cut": {whole[:len(whole)-20], true}, "newer": {pack(t, file("manifest.json", `{"format": 7}`)), true},
		"empty": {nil, false}, "text": {[]byte("version: 1\n"), false}, "another archive": {pack(t, file("x", "y")), false},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, c.content, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := backup.Is(path); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if backup.Is(dir) || backup.Is(filepath.Join(dir, "none")) {
		t.Error("no file, and yet a backup")
	}
}

// The visitor's failure is not the archive's.
func TestVisitorFails(t *testing.T) {
	_, err := backup.Read(bytes.NewReader(archive(t)), func(*backup.Manifest, backup.File, io.Reader) error { return unix.ENOSPC })
	if !errors.Is(err, unix.ENOSPC) || strings.Contains(err.Error(), "backup") {
		t.Error(err)
	}
	whole := archive(t)
	_, err = backup.Read(bytes.NewReader(whole[:len(whole)/2]), func(_ *backup.Manifest, _ backup.File, content io.Reader) error {
		_, err := io.Copy(io.Discard, content)
		return fmt.Errorf("stage: %w", err)
	})
	if err == nil || !strings.HasPrefix(err.Error(), "stage: ") && !strings.Contains(err.Error(), "cut short") {
		t.Error(err)
	}
}

func TestWriteRefuses(t *testing.T) {
	all := sources(t)
	if err := os.WriteFile(all[1].From, []byte("another model"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := backup.Write(io.Discard, manifest(), all); err == nil || !strings.Contains(err.Error(), "it changed meanwhile") {
		t.Error(err)
	}
	if err := backup.Write(io.Discard, manifest(), sources(t)[1:]); err == nil || !strings.Contains(err.Error(), "0 configurations") {
		t.Error(err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	s := backup.Source{From: pipe}
	if err := s.Measure(); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Error(err)
	}
}

// Whatever comes in, what comes out is bounded and stays below its places.
func FuzzRead(f *testing.F) {
	f.Add(archive(f))
	for name, c := range crafted(f) {
		if name != "bomb" {
			f.Add(c.archive)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		check := func(t *testing.T, data []byte) {
			sizes := map[string]int64{}
			m, err := backup.Read(bytes.NewReader(data), func(_ *backup.Manifest, file backup.File, content io.Reader) error {
				if file.Base != backup.Elsewhere && !filepath.IsLocal(file.Path) || file.Base == backup.Elsewhere && filepath.Clean(file.Path) != file.Path {
					t.Errorf("path %q", file.Path)
				}
				n, err := io.Copy(io.Discard, content)
				sizes[file.Name] = n
				return err
			})
			if err != nil {
				return
			}
			for _, file := range m.Files {
				if sizes[file.Name] != file.Size {
					t.Errorf("%s has %d bytes, not %d", file.Name, sizes[file.Name], file.Size)
				}
			}
		}
		check(t, data)
		check(t, compressed(t, string(data))) // so that what is inside of gzip is reached
	})
}
