//go:build linux && (amd64 || arm64)

package sysav

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"

	"edgecam/platform"
	"edgecam/platform/avcodec"
)

// Library is an opened libavcodec. It is safe for concurrent use, and stays open:
// threads of its decoders may outlive them.
type Library struct {
	path, util string // files of libavcodec and of the libavutil that it works with
	version    string
	major      int
	fn         [symbols]uintptr
	frame      layout
	ours       bool // it is the one that this program is linked with
	decoders   []avcodec.DecoderInfo

	mu      sync.Mutex
	checked map[string]*checkup
	stuck   int // decoders in a call that was given up
}

// rtldDeepbind is glibc's RTLD_DEEPBIND: a library's own symbols, and those of what
// it needs, come before the program's.
const rtldDeepbind = 8

// Open loads the library at path, or of that name, and does not believe it before
// it has decoded a known picture. Errors are *platform.UnavailableError.
func Open(path string) (*Library, error) {
	l := &Library{path: path, checked: map[string]*checkup{}}
	handle, err := l.load(path)
	if err == nil {
		err = l.verify()
		if err != nil && !l.ours {
			// Nothing of it runs yet.
			_ = purego.Dlclose(handle)
		}
	}
	if err != nil {
		ue := &platform.UnavailableError{Lib: filepath.Base(path), Path: l.path, Err: err, Hint: hintInstall}
		if ue.Path == ue.Lib { // it was asked for by name, and no file was found
			ue.Path = ""
		}
		return nil, ue
	}
	return l, nil
}

func (l *Library) load(path string) (uintptr, error) {
	// dlerror answers for the calling thread only.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	mode := purego.RTLD_NOW | purego.RTLD_LOCAL
	linked, _ := purego.Dlsym(purego.RTLD_DEFAULT, fnAllocFrame.String())
	if linked != 0 {
		// The program shows the loader a libavutil, and symbols without a version
		// would be taken from there.
		mode |= rtldDeepbind
	}
	if strings.Contains(path, "/") {
		openUtil(path, mode)
	}
	handle, err := purego.Dlopen(path, mode)
	if err != nil {
		return 0, loadError(path, err)
	}
	for s := range symbols {
		if l.fn[s], err = purego.Dlsym(handle, s.String()); err != nil {
			_ = purego.Dlclose(handle)
			return 0, fmt.Errorf("is no libavcodec: it lacks %s", s)
		}
	}
	l.ours = linked == l.fn[fnAllocFrame]
	if file := fileOf(l.fn[fnCodecVersion]); file != "" {
		l.path = file
	}
	l.util = fileOf(l.fn[fnUtilVersion])
	return handle, nil
}

// openUtil opens the libavutil beside a libavcodec that is opened by its path. The
// loader would else take one of the same name from where it looks by itself.
func openUtil(path string, mode int) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return // the libavcodec will say so
	}
	_, text, _ := strings.Cut(filepath.Base(path), ".so.")
	var major int
	if n, _ := fmt.Sscanf(text, "%d", &major); n != 1 {
		return
	}
	for _, dir := range []string{filepath.Dir(path), filepath.Dir(real)} {
		// libavutil's number is two less: 56 goes with 58.
		if _, err := purego.Dlopen(filepath.Join(dir, fmt.Sprintf("libavutil.so.%d", major-2)), mode); err == nil {
			return
		}
	}
}

var errAbsent = errors.New("is not installed")

func loadError(path string, err error) error {
	text := strings.TrimPrefix(err.Error(), path+": ")
	if strings.HasPrefix(text, "cannot open shared object file") {
		if strings.Contains(path, "/") && exists(path) {
			return errors.New("is no library for this machine") // the loader's words are the same
		}
		return errAbsent
	}
	return errors.New(text)
}

// fileOf names the file that holds the code at an address (dladdr).
func fileOf(code uintptr) string {
	dladdr, err := purego.Dlsym(purego.RTLD_DEFAULT, "dladdr")
	if err != nil {
		return ""
	}
	var info [4]uintptr // Dl_info: file, base, symbol, address
	if ok, _, _ := purego.SyscallN(dladdr, code, uintptr(unsafe.Pointer(&info[0]))); ok == 0 {
		return ""
	}
	file := goString(info[0])
	if real, err := filepath.EvalSymlinks(file); err == nil {
		return real
	}
	return file
}

// call calls a function of the library. It allocates nothing.
//
//go:uintptrescapes
func (l *Library) call(s symbol, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(l.fn[s], args...)
	return r
}

// verify holds every assumption about the library against the library.
func (l *Library) verify() error {
	v := l.call(fnCodecVersion)
	l.major, l.version = int(v>>16), dotted(v)
	var err error
	if l.frame, err = layoutOf(l.major); err != nil {
		return err
	}
	if u := l.call(fnUtilVersion); int(u>>16) != l.major-2 {
		return fmt.Errorf("is version %s of libavcodec, but works with version %s of libavutil at %s", l.version, dotted(u), l.util)
	}
	f := l.call(fnAllocFrame)
	if f == 0 {
		return errors.New("gives no frame")
	}
	err = l.frame.verify(view(f, frameBytes))
	l.call(fnFreeFrame, uintptr(unsafe.Pointer(&f)))
	if err != nil {
		return err
	}
	if l.decoders, err = l.list(); err != nil {
		return err
	}
	if !l.ours {
		// The library that the program is linked with has its log in other hands.
		l.call(fnSetLog, logs.callback())
	}
	return l.checkSelf()
}

func dotted(v uintptr) string { return fmt.Sprintf("%d.%d.%d", v>>16, v>>8&0xff, v&0xff) }

// list gives the decoders for the codecs of cameras.
func (l *Library) list() (out []avcodec.DecoderInfo, err error) {
	var state uintptr
	for range 1 << 12 {
		c := l.call(fnIterate, uintptr(unsafe.Pointer(&state)))
		if c == 0 {
			break
		}
		if int32(l.call(fnIsDecoder, c)) == 0 {
			continue
		}
		codec := goString(l.call(fnCodecName, uintptr(uint32(*at[int32](c, codecID)))))
		switch codec {
		case "h264", "hevc", "mjpeg":
		default:
			continue
		}
		caps := *at[int32](c, codecCapabilities)
		out = append(out, avcodec.DecoderInfo{
			Name: goString(*at[uintptr](c, 0)), LongName: goString(*at[uintptr](c, 8)), Codec: codec,
			Hardware: caps&capHardware != 0, Direct: caps&capDirect != 0,
		})
	}
	if len(out) == 0 {
		return nil, errors.New("has no decoder for H.264, H.265 or MJPEG")
	}
	return out, nil
}

// Decoder describes the decoder of that name.
func (l *Library) Decoder(name string) (avcodec.DecoderInfo, bool) {
	for _, d := range l.decoders {
		if d.Name == name {
			return d, true
		}
	}
	return avcodec.DecoderInfo{}, false
}

// Major is libavcodec's major version.
func (l *Library) Major() int { return l.major }

// Version is libavcodec's, e.g. "58.134.100".
func (l *Library) Version() string { return l.version }

// Path is the file of libavcodec.
func (l *Library) Path() string { return l.path }

func (l *Library) errorOf(code int32) error {
	var text [128]byte
	l.call(fnErrorText, uintptr(code), uintptr(unsafe.Pointer(&text[0])), uintptr(len(text)))
	s, _, _ := strings.Cut(string(text[:]), "\x00")
	return &avcodec.Error{Code: int(code), Text: s}
}
