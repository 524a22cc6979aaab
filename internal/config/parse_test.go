package config_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"edgecam/internal/config"
)

// phc is an argon2id hash of the given cost and lengths.
func phc(memory, passes, lanes, salt, key int) string {
	b64 := func(n int) string { return base64.RawStdEncoding.EncodeToString(make([]byte, n)) }
	return fmt.Sprintf("$argon2id$v=19$m=%d,t=%d,p=%d$%s$%s", memory, passes, lanes, b64(salt), b64(key))
}

func TestPasswordHash(t *testing.T) {
	const (
		shape = "edgecam.yaml:1:41: server.auth.password_hash: want an argon2id hash ($argon2id$v=19$m=…,t=…,p=…$…$…), as edgecam hash-password makes it"
		harm  = "edgecam.yaml:1:41: server.auth.password_hash: the argon2id hash is damaged: make a new one with edgecam hash-password"
		cost  = "edgecam.yaml:1:41: server.auth.password_hash: the argon2id hash costs too much or too little: want m=8·p to 1048576 (KiB), t=1 to 100, p=1 to 255"
	)
	for _, tt := range []struct{ name, hash, want string }{
		{"default of the library", phc(64<<10, 1, 2, 16, 32), ""},
		{"least", phc(8, 1, 1, 8, 16), ""},
		{"most", phc(1<<20, 100, 255, 64, 128), ""},
		{"plain text", "correct horse", shape},
		{"bcrypt", "$2y$10$abcdefghijklmnopqrstuv", shape},
		{"argon2i", strings.Replace(phc(8, 1, 1, 8, 16), "argon2id", "argon2i", 1), shape},
		{"other version", strings.Replace(phc(8, 1, 1, 8, 16), "v=19", "v=16", 1), shape},
		{"cut", phc(8, 1, 1, 8, 16)[:56], harm},
		{"short salt", phc(8, 1, 1, 7, 16), harm},
		{"short key", phc(8, 1, 1, 8, 15), harm},
		{"letters too many", phc(8, 1, 1, 8, 16) + "AAA", harm},
		{"too little memory", phc(15, 1, 2, 8, 16), cost},
		{"all memory", phc(1<<20+1, 1, 1, 8, 16), cost},
		{"no pass", phc(8, 0, 1, 8, 16), cost},
		{"for ever", phc(8, 101, 1, 8, 16), cost},
		{"no lane", phc(8, 1, 0, 8, 16), cost},
		{"many lanes", phc(1<<20, 1, 256, 8, 16), cost},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := config.Parse([]byte("server: {auth: {user: x, password_hash: '"+tt.hash+"'}}"), "edgecam.yaml", config.Options{})
			if got := text(err); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestListeners(t *testing.T) {
	const open = " can be reached from other machines and needs server.auth: set user and password_hash (edgecam hash-password makes one), or listen on 127.0.0.1:80"
	const want = "want an address such as 127.0.0.1:8080, [::1]:8080 or :8080"
	for listen, problem := range map[string]string{
		"127.0.0.1:80": "", "127.3.4.5:80": "", "[::1]:80": "", "localhost:80": "", "[::ffff:127.0.0.1]:80": "", "127.0.0.1:0": "",
		":80":                   ":80" + open,
		"0.0.0.0:80":            "0.0.0.0:80" + open,
		"[::]:80":               "[::]:80" + open,
		"192.0.2.1:80":          "192.0.2.1:80" + open,
		"localhost.example:80":  "localhost.example:80" + open,
		"[::ffff:192.0.2.1]:80": "[::ffff:192.0.2.1]:80" + open,
		"80":                    want + `, not "80"`,
		"":                      want,
		"127.0.0.1":             want + `, not "127.0.0.1"`,
		"127.0.0.1:http":        want + `, not "127.0.0.1:http"`,
		"127.0.0.1:65536":       want + `, not "127.0.0.1:65536"`,
		"::1:80":                want + `, not "::1:80"`,
		"a b:80":                want + `, not "a b:80"`,
	} {
		_, err := config.Parse([]byte("server: {listen: '"+listen+"'}"), "edgecam.yaml", config.Options{})
		if problem != "" {
			problem = "edgecam.yaml:1:18: server.listen: " + problem
		}
		if got := text(err); got != problem {
			t.Errorf("%s:\ngot  %s\nwant %s", listen, got, problem)
		}
	}
}

// What people write in URLs and must not be refused.
func TestURLsThatWork(t *testing.T) {
	for _, url := range []string{
		"rtsp://192.0.2.10", "rtsp://192.0.2.10:554?x=1", "rtsp://192.0.2.10:554/", "rtsp://@192.0.2.10:554", "RTSP://cam.example/v",
		"rtsps://cam:322/v", "rtsp://user:P@ss@192.0.2.10/s", "rtsp://user:P%40ss@192.0.2.10/s", "rtsp://admin:@192.0.2.10/v", "rtsp://admin@192.0.2.10/v",
		"rtsp://192.0.2.10/cam/realmonitor?channel=1&subtype=0", "rtsp://192.0.2.10/a@b", "rtsp://[2001:db8::10]:554/v", "rtsp://[fe80::1%25eth0]/v",
		"rtsp://[fe80::1%eth0]/v", "rtsp://cam_1/v", "rtsp://u:a^b@192.0.2.10/v", "rtsp://u:pässwörd@192.0.2.10/v", "  rtsp://192.0.2.10/v\n",
	} {
		cfg, err := config.Parse(fmt.Appendf(nil, "cameras: {gate: {url: %q}}", url), "edgecam.yaml", config.Options{})
		if err != nil || cfg.Cameras["gate"].URL.Reveal() != strings.TrimSpace(url) {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestCheckURLGetsTheParts(t *testing.T) {
	var got []string
	o := config.Options{CheckURL: func(url, user, password string) error {
		got = append(got, url, user, password)
		return nil
	}}
	if _, err := config.Parse([]byte("cameras: {gate: {url: ' rtsp://h/v ', username: a@b, password: '50%25#x'}}"), "edgecam.yaml", o); err != nil {
		t.Fatal(err)
	}
	if want := []string{"rtsp://h/v", "a@b", "50%25#x"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSmallProblems(t *testing.T) {
	big := filepath.Join(t.TempDir(), "big")
	if err := os.WriteFile(big, make([]byte, 64<<10+1), 0o600); err != nil {
		t.Fatal(err)
	}
	pipe, latin := filepath.Join(t.TempDir(), "pipe"), filepath.Join(t.TempDir(), "latin")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.WriteFile(latin, []byte("h\xfcnter2"), 0o600)); err != nil {
		t.Fatal(err)
	}
	const gate = "cameras: {gate: {url: 'rtsp://h/v', "
	for _, tt := range []struct{ name, file, want string }{
		{"list of merges", "cameras: {gate: {<<: [1]}}", "e.yaml:1:22: cameras.gate: want keys and values, not a list"},
		{"tagged text", "gpu: {mode: !!str auto}", ""},
		{"anchored text", "gpu: {mode: &m auto, memory: *m}", ""},
		{"null is absent", "gpu: ~\nlog:\nserver: {auth: null}", ""},
		{"directive that quotes", "%YAML 9.9hunter2\n---\nversion: 1", "e.yaml:1:7: YAML syntax: unknown YAML version …"},
		{"long value", "log: {level: " + strings.Repeat("x", 100) + "}", `e.yaml:1:14: log.level: want debug, info, warn or error, not "` + strings.Repeat("x", 60) + `…"`},
		{"big secret", gate + "username: u, password: {file: '" + big + "'}}}", "e.yaml:1:67: cameras.gate.password: read secret file " + big + ": has more than 65536 bytes"},
		{"secret of a device", gate + "username: u, password: {file: /dev/zero}}}", "e.yaml:1:67: cameras.gate.password: read secret file /dev/zero: is not a regular file"},
		{"secret of a pipe", gate + "username: u, password: {file: '" + pipe + "'}}}", "e.yaml:1:67: cameras.gate.password: read secret file " + pipe + ": is not a regular file"},
		{"secret of a file without a size", gate + "username: u, password: {file: /proc/sys/kernel/ostype}}}", ""},
		{"secret in Latin-1", gate + "username: u, password: {file: '" + latin + "'}}}", "e.yaml:1:67: cameras.gate.password: read secret file " + latin + ": is not UTF-8 text: save the file in that encoding"},
		{"mark of UTF-8", "\xef\xbb\xbfversion: 1\n", ""},
		{"Latin-1", "version: 1\ncameras: {gate: {url: 'rtsp://h/v', name: K\xfcche}}", "e.yaml:2:44: is not UTF-8 text: save the file in that encoding"},
		{"UTF-16", "\xff\xfev\x00e\x00", "e.yaml:1:1: is not UTF-8 text: save the file in that encoding"},
		{"password alone", gate + "password: hunter2}}", "e.yaml:1:47: cameras.gate.password: without a username"},
		{"password over the URL's user", "cameras: {gate: {url: 'rtsp://u@h/v', password: x}}", ""},
		{"two lines of password", gate + `username: u, password: "hun\nter2"}}`, "e.yaml:1:60: cameras.gate.password: holds a line break or another control character"},
		{"user of two lines", gate + `username: "a\tb"}}`, "e.yaml:1:47: cameras.gate.username: want a text of at most 200 characters in one line"},
		{"label of nothing", gate + `detect: {objects: {" ": 1}}}}`, `e.yaml:1:56: cameras.gate.detect.objects. : want a label of 1 to 64 characters, not " "`},
		{"name of 200", gate + "name: " + strings.Repeat("ü", 200) + "}}", ""},
		{"name of 201", gate + "name: " + strings.Repeat("ü", 201) + "}}", `e.yaml:1:43: cameras.gate.name: want a text of at most 200 characters in one line, not "` + strings.Repeat("ü", 60) + `…"`},
		{"id of 64", "cameras: {" + strings.Repeat("x", 64) + ": {url: 'rtsp://h/v'}}", ""},
		{"id of 65", "cameras: {" + strings.Repeat("x", 65) + ": {url: 'rtsp://h/v'}}", "e.yaml:1:11: cameras." + strings.Repeat("x", 65) + ": want an id of 1 to 64 of the characters a-z 0-9 _ - (any text may be its name)"},
		{"limit too small", "memory: {limit: 5kB}", `e.yaml:1:17: memory.limit: want 0 or at least 1MiB, not "5kB"`},
		{"times at their ends", gate + "connect_timeout: 5m, first_frame_timeout: 10m, stall_timeout: 1h}}", ""},
		{"times beyond", gate + "connect_timeout: 5m1s, first_frame_timeout: 500ms, stall_timeout: 1h0m1s}}", `e.yaml:1:54: cameras.gate.connect_timeout: want 1s to 5m, not "5m1s"
e.yaml:1:81: cameras.gate.first_frame_timeout: want 1s to 10m, not "500ms"
e.yaml:1:103: cameras.gate.stall_timeout: want 1s to 1h, not "1h0m1s"`},
		{"device", "gpu: {device: MIG-1c2d/3/0}", ""},
		{"every device", "gpu: {device: all}", ""},
		{"no priority", gate + "detect: {priority: 0}}}", "e.yaml:1:56: cameras.gate.detect.priority: want 1 to 10, not \"0\""},
		{"too high a priority", gate + "detect: {priority: 11}}}", "e.yaml:1:56: cameras.gate.detect.priority: want 1 to 10, not \"11\""},
		{"no device", "gpu: {device: first}", `e.yaml:1:15: gpu.device: want auto, all, a number from 0, or a UUID like GPU-… or MIG-…, not "first"`},
		{"no model", "inference: {model: 'builtin:'}", "e.yaml:1:20: inference.model: want builtin:nanodet-g or the path of an .onnx file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := config.Parse([]byte(tt.file), "e.yaml", config.Options{})
			if got := text(err); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestRelativePathsStartAtTheFile(t *testing.T) {
	for in, want := range map[string]string{
		"{inference: {model: m.onnx}}":         "/etc/edgecam/m.onnx ",
		"{inference: {library: ./lib.so}}":     "builtin:nanodet-g /etc/edgecam/lib.so",
		"{inference: {library: libort.so}}":    "builtin:nanodet-g libort.so",
		"{inference: {library: /opt/lib.so}}":  "builtin:nanodet-g /opt/lib.so",
		"{inference: {model: /m/../x/m.onnx}}": "/m/../x/m.onnx ",
	} {
		cfg, err := config.Parse([]byte(in), "/etc/edgecam/edgecam.yaml", config.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := cfg.Inference.Model.File + " " + cfg.Inference.Library; got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}
