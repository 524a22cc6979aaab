package onnxruntime

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// The versions of the C API: the minor number of the release. The library is
// asked for the highest that both sides know.
const (
	oldestAPI = 17
	newestAPI = 31
)

// logFatal is ORT_LOGGING_LEVEL_FATAL. Whatever is less than fatal comes back
// as a status, and the library would write it to standard error as well.
const logFatal = 4

// Library is an opened ONNX Runtime. It is safe for concurrent use.
type Library struct {
	path    string
	version string
	api     int
	table   [tableSize22]uintptr

	env       uintptr // OrtEnv, one a process: the library counts its references
	allocator uintptr // the default OrtAllocator, never released
	cpuMemory uintptr // OrtMemoryInfo

	mu       sync.Mutex
	sessions int // open sessions and tensors, which need the environment
	closed   bool
	plugins  map[string]string // registered provider libraries: path and the name given
}

// Open loads the library at path. Errors are *UnavailableError.
func Open(path string) (*Library, error) {
	absolute, err := filepath.Abs(path) // dlopen searches for a name without a slash
	if err != nil {
		return nil, &UnavailableError{Path: path, Err: err, Hint: hintInstall}
	}
	if err := checkFile(absolute); err != nil {
		return nil, &UnavailableError{Path: path, Err: err, Hint: hintInstall}
	}
	handle, base, err := load(absolute)
	if err != nil {
		return nil, &UnavailableError{Path: path, Err: err, Hint: hintLoad(err)}
	}
	l := &Library{path: absolute}
	if err := l.negotiate(base); err != nil {
		// Nothing of the library runs yet: it can be unloaded. A usable one
		// never is, its threads may outlive every session.
		_ = purego.Dlclose(handle)
		return nil, &UnavailableError{Path: path, Err: err, Hint: hintInstall}
	}
	if err := l.start(); err != nil {
		return nil, &UnavailableError{Path: path, Err: err, Hint: hintInstall}
	}
	return l, nil
}

// noReports is read by the library when it is started. Official builds from
// 1.29 on otherwise keep an identifier of the machine on disk and send what runs
// on it to their maker: https://github.com/microsoft/onnxruntime/pull/27379
const noReports = "ORT_DISABLE_TELEMETRY"

// load opens the library and finds its entry point.
func load(path string) (handle, getBase uintptr, err error) {
	if err := os.Setenv(noReports, "1"); err != nil {
		return 0, 0, err
	}
	// dlerror answers for the calling thread only.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	handle, err = purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return 0, 0, errors.New(strings.TrimPrefix(err.Error(), path+": "))
	}
	getBase, err = purego.Dlsym(handle, "OrtGetApiBase")
	if err != nil {
		_ = purego.Dlclose(handle)
		return 0, 0, errors.New("is no ONNX Runtime: it lacks OrtGetApiBase")
	}
	return handle, getBase, nil
}

func hintLoad(err error) string {
	if strings.Contains(err.Error(), "cannot open shared object file") {
		return "install the library that it names, or use another build: " + hintInstall
	}
	return hintInstall
}

// negotiate reads the version and copies the function table.
// struct OrtApiBase { const OrtApi* (*GetApi)(uint32_t); const char* (*GetVersionString)(void); }
func (l *Library) negotiate(getBase uintptr) error {
	base, _, _ := purego.SyscallN(getBase)
	if base == 0 {
		return errors.New("OrtGetApiBase gave nothing")
	}
	getAPI, getVersion := words(base, 2)[0], words(base, 2)[1]
	if getAPI == 0 || getVersion == 0 {
		return errors.New("OrtGetApiBase gave an empty table")
	}
	text, _, _ := purego.SyscallN(getVersion)
	l.version = goString(text)
	minor, err := parseVersion(l.version)
	if err != nil {
		return err
	}
	if minor < oldestAPI {
		return fmt.Errorf("version %s is too old, 1.%d or newer is needed", l.version, oldestAPI)
	}
	// Asking for a version that the library does not know makes it complain on
	// standard error, hence from its own version downwards.
	for v := min(minor, newestAPI); v >= oldestAPI; v-- {
		if api, _, _ := purego.SyscallN(getAPI, uintptr(v)); api != 0 {
			l.api = v
			size := tableSize17
			if v >= pluginAPI {
				size = tableSize22
			}
			copy(l.table[:], words(api, int(size)))
			return nil
		}
	}
	return fmt.Errorf("version %s offers none of the API versions %d to %d", l.version, oldestAPI, newestAPI)
}

// parseVersion gives the minor number of a version like "1.30.0". A future
// major version is refused: nothing is known of its table.
func parseVersion(text string) (minor int, err error) {
	parts := strings.SplitN(text, ".", 3)
	if len(parts) < 2 {
		return 0, fmt.Errorf("version %q is not understood", text)
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	if err1 != nil || err2 != nil || major < 0 || minor < 0 {
		return 0, fmt.Errorf("version %q is not understood", text)
	}
	if major != 1 {
		return 0, fmt.Errorf("version %s has another major number than 1, which edgecam knows", text)
	}
	return minor, nil
}

// start makes what every session shares.
func (l *Library) start() error {
	name := cString("edgecam")
	if err := l.call(fnCreateEnv, logFatal, uintptr(unsafe.Pointer(name)), uintptr(unsafe.Pointer(&l.env))); err != nil {
		return err
	}
	if err := l.call(fnGetAllocatorWithDefaultOptions, uintptr(unsafe.Pointer(&l.allocator))); err != nil {
		return err
	}
	const deviceAllocator, memoryDefault = 0, 0
	return l.call(fnCreateCpuMemoryInfo, deviceAllocator, memoryDefault, uintptr(unsafe.Pointer(&l.cpuMemory)))
}

// Path is the absolute path of the file.
func (l *Library) Path() string { return l.path }

// Version is the library's own, like "1.30.0".
func (l *Library) Version() string { return l.version }

// API is the version of the C API that is spoken.
func (l *Library) API() int { return l.api }

// Providers lists the execution providers that the library was built with,
// e.g. "CPUExecutionProvider". Being built in does not mean that it works here.
func (l *Library) Providers() ([]string, error) {
	if err := l.hold(); err != nil {
		return nil, fmt.Errorf("list providers: %w", err)
	}
	defer l.drop()
	var list uintptr
	var n int32
	if err := l.call(fnGetAvailableProviders, uintptr(unsafe.Pointer(&list)), uintptr(unsafe.Pointer(&n))); err != nil {
		return nil, err
	}
	names := make([]string, 0, n)
	for _, p := range words(list, int(n)) {
		names = append(names, goString(p))
	}
	return names, l.call(fnReleaseAvailableProviders, list, uintptr(n))
}

// Close gives the environment back once the last session and tensor are
// closed. The code stays loaded. Close may be called twice.
func (l *Library) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.closed = true
	l.releaseLocked()
}

// hold keeps the environment for a session or tensor; drop ends that.
func (l *Library) hold() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosed
	}
	l.sessions++
	return nil
}

func (l *Library) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sessions--
	l.releaseLocked()
}

func (l *Library) releaseLocked() {
	if !l.closed || l.sessions > 0 || l.env == 0 {
		return
	}
	l.release(fnReleaseMemoryInfo, l.cpuMemory)
	l.release(fnReleaseEnv, l.env)
	l.cpuMemory, l.env = 0, 0
}

// call calls a function of the table that returns an OrtStatus. Pointers to Go
// memory must be converted in its argument list, nowhere else: the directive
// below then keeps them alive and in place until call returns.
//
//go:uintptrescapes
func (l *Library) call(f function, args ...uintptr) error {
	status, _, _ := purego.SyscallN(l.table[f], args...)
	if status == 0 {
		return nil
	}
	return l.statusError(f, status)
}

// statusError reads an OrtStatus and frees it.
func (l *Library) statusError(f function, status uintptr) error {
	code, _, _ := purego.SyscallN(l.table[fnGetErrorCode], status)
	text, _, _ := purego.SyscallN(l.table[fnGetErrorMessage], status)
	err := &StatusError{Call: f.name(), Code: Code(int32(code)), Text: strings.TrimSpace(goString(text))}
	l.release(fnReleaseStatus, status)
	return err
}

// release calls one of the functions that free an object and cannot fail.
func (l *Library) release(f function, object uintptr) {
	if object != 0 {
		purego.SyscallN(l.table[f], object)
	}
}
