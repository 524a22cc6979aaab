//go:build linux && (amd64 || arm64)

package sysav

import (
	"strings"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"

	"edgecam/platform/avcodec"
)

// logs are FFmpeg's lines. It has one log callback in a process and libavutil,
// and tells which decoder a line is about by the address of its context.
var logs logbook //nolint:gochecknoglobals // see above

type logbook struct {
	once sync.Once
	c    uintptr

	mu    sync.Mutex
	pages map[uintptr]*page // by AVCodecContext
}

// page holds the lines of one decoder.
type page struct {
	library *Library
	lines   []avcodec.Line
}

const (
	maxLines  = 16
	lineBytes = 240
)

// callback is what av_log_set_callback takes. There is one for all libraries,
// since purego never gives the memory of one back.
func (b *logbook) callback() uintptr {
	b.once.Do(func() {
		b.pages = map[uintptr]*page{}
		// A va_list is handed on as an address on both architectures.
		b.c = purego.NewCallback(func(context uintptr, level int32, format, args uintptr) {
			b.line(context, level, format, args)
		})
	})
	return b.c
}

func (b *logbook) open(context uintptr, l *Library) {
	b.callback()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pages[context] = &page{library: l}
}

func (b *logbook) close(context uintptr) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.pages, context)
}

// line keeps a line. Those that belong to no decoder of ours are nobody's.
func (b *logbook) line(context uintptr, level int32, format, args uintptr) {
	if level > int32(avcodec.LevelWarning) {
		return
	}
	b.mu.Lock()
	p := b.pages[context]
	b.mu.Unlock()
	if p == nil {
		return
	}
	var text [lineBytes]byte
	prefix := int32(1)
	p.library.call(fnFormatLine, context, uintptr(level), format, args,
		uintptr(unsafe.Pointer(&text[0])), lineBytes, uintptr(unsafe.Pointer(&prefix)))
	s, _, _ := strings.Cut(string(text[:]), "\x00")
	b.keep(p, avcodec.Line{Level: avcodec.Level(level), Text: tidy(s)})
}

// tidy takes the name and address off that FFmpeg puts before a line.
func tidy(s string) string {
	s = strings.TrimSpace(s)
	if strings.HasPrefix(s, "[") {
		if _, rest, ok := strings.Cut(s, "] "); ok {
			return rest
		}
	}
	return s
}

func (b *logbook) keep(p *page, line avcodec.Line) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(p.lines); n > 0 && (p.lines[n-1].Text == line.Text || n == maxLines) {
		p.lines[n-1].Repeated++
		return
	}
	if line.Text != "" {
		p.lines = append(p.lines, line)
	}
}

// take gives the lines of a decoder since the call before.
func (b *logbook) take(context uintptr) []avcodec.Line {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.pages[context]
	if p == nil || len(p.lines) == 0 {
		return nil
	}
	lines := p.lines
	p.lines = nil
	return lines
}
