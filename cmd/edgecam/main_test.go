package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"edgecam/internal/testkit"
	"edgecam/web"
)

// asProgram makes the test binary behave as the program itself.
const asProgram = "EDGECAM_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// run executes a command line in this process.
func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	root := newRoot()
	root.SetOut(&out)
	root.SetErr(&errs)
	code = execute(t.Context(), root, args, &errs)
	return code, out.String(), errs.String()
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestUsage(t *testing.T) {
	cases := []struct {
		name string
		args []string
		code int
		want string // in standard error
	}{
		{"unknown command", []string{"fly"}, exitUsage, `edgecam: unknown command "fly"`},
		{"unknown flag", []string{"run", "--speed"}, exitUsage, "edgecam: unknown flag: --speed"},
		{"run without a file", []string{"run"}, exitUsage, "edgecam: run needs --config FILE"},
		{"check without a file", []string{"check"}, exitUsage, "edgecam check takes one configuration file"},
		{"sim with a bad fault", []string{"sim", "--fault", "explode"}, exitUsage, "--fault: parse fault"},
		{"sim without cameras", []string{"sim", "--cameras", "0"}, exitUsage, "--cameras 0: at least one is needed"},
		{"demo with too many cameras", []string{"demo", "--cameras", "1000"}, exitUsage, "--cameras 1000: 1 to 64"},
		{"file that is not there", []string{"check", "/nonexistent/edgecam.yaml"}, exitConfig, "read config /nonexistent/edgecam.yaml: no such file or directory"},
		{"bench of a file that is no clip", []string{"bench", "pipeline", "--clip", "main_test.go"}, exitFailed, "open clip main_test.go"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			code, _, stderr := run(t, c.args...)
			if code != c.code || !strings.Contains(stderr, c.want) {
				t.Errorf("exit code %d, %q; want %d, …%s…", code, stderr, c.code, c.want)
			}
		})
	}
}

func TestHelpEverywhere(t *testing.T) {
	for _, args := range [][]string{
		{"--help"},
		{"run", "--help"},
		{"demo", "--help"},
		{"check", "--help"},
		{"sim", "--help"},
		{"doctor", "--help"},
		{"model", "inspect", "--help"},
		{"bench", "--help"},
		{"bench", "pipeline", "--help"},
		{"hash-password", "--help"},
		{"version", "--help"},
	} {
		code, stdout, stderr := run(t, args...)
		if code != exitOK || !strings.Contains(stdout, "Usage:") || stderr != "" {
			t.Errorf("%v: exit code %d, %q, %q", args, code, stdout, stderr)
		}
	}
}

func TestVersion(t *testing.T) {
	code, stdout, _ := run(t, "version")
	if code != exitOK || !strings.HasPrefix(stdout, "edgecam dev, go") || !strings.Contains(stdout, "libavcodec ") {
		t.Errorf("exit code %d, %q", code, stdout)
	}
}

func TestCheck(t *testing.T) {
	good := write(t, "good.yaml", "version: 1\ncameras:\n  gate:\n    url: rtsp://192.0.2.21/stream1\n")
	if code, stdout, stderr := run(t, "check", good); code != exitOK || !strings.Contains(stdout, "is fine: 1 cameras") {
		t.Errorf("good file: exit code %d, %q, %q", code, stdout, stderr)
	}
	bad := write(t, "bad.yaml", `version: 1
servre: {}
cameras:
  gate:
    url: rtsp://user:hunter2@192.0.2.21:99999/stream1
    transprot: tcp
  Yard:
    url: http://192.0.2.22/
`)
	code, _, stderr := run(t, "check", bad)
	if code != exitConfig {
		t.Errorf("bad file: exit code %d", code)
	}
	for _, want := range []string{"bad.yaml:2:1: servre: unknown key: did you mean server?", "bad.yaml:5:", "transprot", "did you mean transport?", "bad.yaml:7:"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("standard error lacks %q:\n%s", want, stderr)
		}
	}
	if strings.Contains(stderr, "hunter2") {
		t.Errorf("the password is printed:\n%s", stderr)
	}
}

func TestHashPassword(t *testing.T) {
	root := newRoot()
	var out, errs bytes.Buffer
	root.SetOut(&out)
	root.SetIn(strings.NewReader("a long password\n"))
	if code := execute(t.Context(), root, []string{"hash-password"}, &errs); code != exitOK || !strings.HasPrefix(out.String(), "$argon2id$") {
		t.Errorf("exit code %d, %q, %q", code, out.String(), errs.String())
	}
	root = newRoot()
	root.SetIn(strings.NewReader("short\n"))
	errs.Reset()
	if code := execute(t.Context(), root, []string{"hash-password"}, &errs); code != exitFailed || !strings.Contains(errs.String(), "at least 8 are needed") {
		t.Errorf("exit code %d, %q", code, errs.String())
	}
}

// program is edgecam in a process of its own.
type program struct {
	*exec.Cmd
	lines chan string // of standard output and error, closed at the end
}

func startProgram(t *testing.T, env []string, args ...string) *program {
	t.Helper()
	p := &program{Cmd: exec.Command(os.Args[0], args...), lines: make(chan string, 1000)}
	p.Env = append(append(os.Environ(), asProgram+"=1", "EDGECAM_ONNXRUNTIME="+testkit.ONNXRuntime(t)), env...)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.Stdout, p.Stderr = w, w
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close() //nolint:errcheck // the child has it
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(r); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		p.Process.Kill() //nolint:errcheck // usually gone by now
		p.Wait()         //nolint:errcheck // likewise
	})
	return p
}

// line waits for a line that holds text.
func (p *program) line(t *testing.T, text string) string {
	t.Helper()
	var seen []string
	timeout := time.After(60 * time.Second)
	for {
		select {
		case l, ok := <-p.lines:
			if !ok {
				t.Fatalf("the program ended without a line with %q:\n%s", text, strings.Join(seen, "\n"))
			}
			if seen = append(seen, l); strings.Contains(l, text) {
				return l
			}
		case <-timeout:
			t.Fatalf("no line with %q:\n%s", text, strings.Join(seen, "\n"))
		}
	}
}

// end waits for the exit and gives the code.
func (p *program) end(t *testing.T) int {
	t.Helper()
	for range p.lines { //nolint:revive // drained to its end
	}
	_ = p.Wait() // the state tells
	return p.ProcessState.ExitCode()
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// get waits until the program answers and gives the body.
func get(ctx context.Context, t *testing.T, url string) string {
	t.Helper()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err == nil {
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			return string(body)
		}
		if ctx.Err() != nil {
			t.Fatalf("get %s: %v", url, err)
		}
	}
}

// One camera that works beside all kinds that do not: it is not touched by them,
// each of them says what is wrong, and no password shows anywhere.
func TestRunWithCamerasOfAllKinds(t *testing.T) {
	good := startProgram(t, nil, "sim", "--listen", "127.0.0.1:0", "--user", "viewer", "--password", "s3cret-word")
	goodURL := good.line(t, "rtsp://")
	kinds := map[string]string{} // id → URL
	for _, fault := range []string{"auth", "silent", "novideo", "codec", "notfound"} {
		s := startProgram(t, nil, "sim", "--listen", "127.0.0.1:0", "--fault", fault)
		kinds[fault] = s.line(t, "rtsp://")
	}
	kinds["refused"] = "rtsp://" + freePort(t) + "/cam1"

	var cfg strings.Builder
	listen := freePort(t)
	fmt.Fprintf(&cfg, "version: 1\nserver: {listen: %q}\nmemory: {lock: false}\nlog: {level: debug}\ncameras:\n", listen)
	fmt.Fprintf(&cfg, "  good: {url: %q, username: viewer, password: s3cret-word}\n", goodURL)
	fmt.Fprintf(&cfg, "  off: {url: %q, enabled: false}\n", goodURL)
	fmt.Fprintf(&cfg, "  wrong: {url: \"rtsp://viewer:s3cret-word@192.0.2.1:99999/\"}\n")
	fmt.Fprintf(&cfg, "  label: {url: %q, detect: {objects: {persn: 0.5}}}\n", goodURL)
	for id, url := range kinds {
		fmt.Fprintf(&cfg, "  %s: {url: %q, username: viewer, password: s3cret-word, connect_timeout: 2s}\n", id, url)
	}
	p := startProgram(t, nil, "run", "--config", write(t, "edgecam.yaml", cfg.String()))
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	p.line(t, "msg=dashboard")

	want := map[string]string{
		"good": "live", "off": "disabled", "wrong": "disabled", "label": "disabled", "auth": "auth_failed", "silent": "backoff",
		"novideo": "backoff", "codec": "unsupported", "notfound": "backoff", "refused": "backoff",
	}
	var answer string
	reached := map[string]bool{} // a camera that is tried again leaves its state now and then
	for len(reached) < len(want) {
		answer = get(ctx, t, "http://"+listen+"/api/v1/cameras")
		var cameras []struct{ ID, State, Reason string }
		if err := json.Unmarshal([]byte(answer), &cameras); err != nil {
			t.Fatalf("%v in %s", err, answer)
		}
		if len(cameras) != len(want) {
			t.Fatalf("%d cameras, want %d: %s", len(cameras), len(want), answer)
		}
		for _, c := range cameras {
			if c.Reason == "" {
				t.Errorf("camera %s is %s without a reason", c.ID, c.State)
			}
			reached[c.ID] = reached[c.ID] || c.State == want[c.ID]
			if !reached[c.ID] {
				delete(reached, c.ID)
			}
		}
		if ctx.Err() != nil {
			t.Fatalf("only %v came to their states: %s", reached, answer)
		}
	}
	everything := answer + get(ctx, t, "http://"+listen+"/metrics") + get(ctx, t, "http://"+listen+"/api/v1/system")
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for l := range p.lines {
		everything += l + "\n"
	}
	if code := p.end(t); code != exitOK {
		t.Errorf("exit code %d after SIGTERM", code)
	}
	if i := strings.Index(everything, "s3cret-word"); i >= 0 {
		t.Errorf("the password shows: …%s…", everything[max(0, i-200):min(len(everything), i+50)])
	}
}

func TestRunRefusesToStart(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	noModel := write(t, "broken.onnx", "this is no model")
	listen := "server: {listen: \"127.0.0.1:0\"}\n"
	cases := []struct {
		name, config string
		code         int
		want         string
	}{
		{"bad key", "version: 1\nsever: {}\n", exitConfig, "unknown key: did you mean server?"},
		{"port in use", "version: 1\nserver: {listen: \"" + taken.Addr().String() + "\"}\n", exitFailed, taken.Addr().String()},
		{"not loopback without login", "version: 1\nserver: {listen: \"0.0.0.0:0\"}\n", exitConfig, "server.auth"},
		{"model that is not there", "version: 1\n" + listen + "inference: {model: /nonexistent/m.onnx}\n", exitFailed, "edgecam: load model /nonexistent/m.onnx: no such file"},
		{"model says what to do", "version: 1\n" + listen + "inference: {model: /nonexistent/m.onnx}\n", exitFailed, "Try: name the path of an .onnx file"},
		{"no such built-in model", "version: 1\n" + listen + "inference: {model: \"builtin:yolo\"}\n", exitConfig, "inference.model: there is no such built-in model: use builtin:nanodet-g"},
		{"no such precision", "version: 1\n" + listen + "inference: {precision: fp16}\n", exitConfig, "precision fp16 is for GPUs"},
		{"broken model", "version: 1\n" + listen + "inference: {model: " + noModel + "}\n", exitFailed, "broken.onnx"},
		{"library that is not there", "version: 1\n" + listen + "inference: {library: /nonexistent/lib.so}\n", exitFailed, "edgecam: open onnx runtime /nonexistent/lib.so"},
		{"library says what to do", "version: 1\n" + listen + "inference: {library: /nonexistent/lib.so}\n", exitFailed, "Try: "},
		{"gpu required", "version: 1\n" + listen + "gpu: {mode: require}\n", exitFailed, "gpu.mode"},
		{"provider without gpu", "version: 1\n" + listen + "inference: {provider: cuda}\n", exitFailed, "inference.provider"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := startProgram(t, nil, "run", "--config", write(t, "edgecam.yaml", c.config))
			p.line(t, c.want)
			if code := p.end(t); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
		})
	}
}

func TestRunWithoutRuntimeShowsPicturesAndSaysWhy(t *testing.T) {
	listen := freePort(t)
	cfg := write(t, "edgecam.yaml", fmt.Sprintf("version: 1\nserver: {listen: %q}\n", listen))
	// A program in a place of its own, without anything beside it and with a
	// library path of the environment that leads nowhere.
	p := startProgram(t, []string{"EDGECAM_ONNXRUNTIME=/nonexistent/libonnxruntime.so"}, "run", "--config", cfg)
	p.line(t, "inference is off")
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	if body := get(ctx, t, "http://"+listen+"/readyz"); !strings.Contains(body, "no inference") {
		t.Errorf("readyz says %s", body)
	}
	if body := get(ctx, t, "http://"+listen+"/healthz"); !strings.Contains(body, "ok") {
		t.Errorf("healthz says %s", body)
	}
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := p.end(t); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

// The program against servers that others wrote.
func TestRunAgainstRealServers(t *testing.T) {
	clip := filepath.Join(testkit.Root(t), "internal/sim/pets-s2l1-20s.mp4")
	vlcClip := filepath.Join(testkit.PublicDir(t), "clip.mp4")
	data, err := os.ReadFile(clip)
	if err == nil {
		err = os.WriteFile(vlcClip, data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	cameras := map[string]string{
		"gstreamer": testkit.GStreamerCamera(t, clip, "viewer", "s3cret-word"),
		"vlc":       testkit.VLCCamera(t, vlcClip),
	}
	listen := freePort(t)
	var cfg strings.Builder
	fmt.Fprintf(&cfg, "version: 1\nserver: {listen: %q}\nmemory: {lock: false}\ncameras:\n", listen)
	for id, url := range cameras {
		fmt.Fprintf(&cfg, "  %s: {url: %q, username: viewer, password: s3cret-word}\n", id, url)
	}
	p := startProgram(t, nil, "run", "--config", write(t, "edgecam.yaml", cfg.String()))
	p.line(t, "msg=dashboard")
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	for id := range cameras {
		for done := false; !done; {
			answer := get(ctx, t, "http://"+listen+"/api/v1/cameras/"+id)
			var c struct {
				State    string
				Width    int
				Inferred int
			}
			if err := json.Unmarshal([]byte(answer), &c); err != nil {
				t.Fatalf("%v in %s", err, answer)
			}
			done = c.State == "live" && c.Width == 768 && c.Inferred >= 10
			if ctx.Err() != nil {
				t.Fatalf("camera %s was not analysed: %s", id, answer)
			}
		}
	}
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.end(t); code != exitOK {
		t.Errorf("exit code %d after SIGTERM", code)
	}
}

// The demo's status line goes on where nothing can be analysed.
func TestDemoStatusWithoutAnalysis(t *testing.T) {
	const want = "cam1 live, nothing analysed"
	if got := statusOf(web.Camera{ID: "cam1", State: "live"}); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	const analysed = "cam1 live 9.5 fps analysed, age p95 42 ms"
	if got := statusOf(web.Camera{ID: "cam1", State: "live", InferredFPS: 9.5, AgeMS: &web.Percentiles{P95: 42}}); got != analysed {
		t.Errorf("%q, want %q", got, analysed)
	}
}
