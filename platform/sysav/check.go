//go:build linux && (amd64 || arm64)

package sysav

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"sync"
	"time"
)

// The known picture: a grid of 4 by 3 fields, each of one colour, in full range.
// Its width is no multiple of 64, so that rows that are taken for longer or shorter
// than they are show.
//
//go:embed check/grid.h264
var gridH264 []byte

//go:embed check/grid.h265
var gridH265 []byte

const (
	gridWidth, gridHeight = 208, 144
	gridColumns, gridRows = 4, 3

	// near is how far a sample may be off: the pictures were coded with loss.
	near = 3
)

// gridColours are Y, Cb and Cr of the fields, row by row.
func gridColours() [gridRows * gridColumns][3]int {
	return [...][3]int{
		{235, 128, 128},
		{16, 128, 128},
		{250, 128, 128},
		{4, 128, 128},
		{82, 90, 240},
		{145, 54, 34},
		{41, 240, 110},
		{170, 166, 16},
		{106, 202, 222},
		{210, 16, 146},
		{128, 128, 128},
		{60, 160, 90},
	}
}

// checkup is what the known picture said of a decoder.
type checkup struct {
	once     sync.Once
	began    time.Time
	squeezed bool // pictures of full range come out in the other one
	err      error
}

// checkAgain is how long a decoder stays failed that did not give the known
// picture. A device may have been busy; but every camera waits for the answer.
const checkAgain = time.Minute

// checkSelf proves with a decoder in software that the library is understood.
func (l *Library) checkSelf() error {
	for _, d := range l.decoders {
		if (d.Name != "h264" && d.Name != "hevc") || d.Hardware {
			continue
		}
		c := l.checkup(d.Name, defaultTimeout)
		if c.err == nil && c.squeezed {
			c.err = errors.New("it gives colours of another range")
		}
		if c.err != nil {
			return fmt.Errorf("fails the test picture with its decoder %s: %w", d.Name, c.err)
		}
		return nil
	}
	return errors.New("has no decoder in software to test it with")
}

// checkup sends the known picture through a decoder before its first camera. What
// passes is not asked again.
func (l *Library) checkup(decoder string, timeout time.Duration) *checkup {
	l.mu.Lock()
	c := l.checked[decoder]
	if c == nil {
		c = &checkup{began: time.Now()}
		l.checked[decoder] = c
	}
	l.mu.Unlock()
	c.once.Do(func() { c.squeezed, c.err = l.tryGrid(decoder, timeout) })
	return c
}

// failed forgets in time that a decoder did not serve.
func (l *Library) failed(decoder string, c *checkup) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(c.began) > checkAgain && l.checked[decoder] == c {
		delete(l.checked, decoder)
	}
}

// Hardware gives a picture for a unit when it has one, and not when it is asked: so
// the known picture is sent again and again, with pauses, for as long as a slow
// driver may take to set up.
const (
	gridPause = 20 * time.Millisecond
	gridWait  = 3 * time.Second
)

func (l *Library) tryGrid(decoder string, timeout time.Duration) (squeezed bool, err error) {
	info, _ := l.Decoder(decoder)
	units := gridUnits(info.Codec)
	if units == nil {
		return false, nil // nothing to try it with
	}
	s, err := l.newSession(decoder, settingsOf(Shape{Width: gridWidth, Height: gridHeight, Full: true}, 1), timeout)
	if err != nil {
		err = s.explain(err)
		s.close()
		return false, err
	}
	defer s.close()
	pause := time.NewTicker(gridPause)
	defer pause.Stop()
	for i := range int(gridWait / gridPause) {
		got, err := s.tryUnit(units[i%len(units)], int64(i+1))
		if err != nil {
			return false, s.explain(err)
		}
		if got {
			p := s.read()
			return p.isGrid()
		}
		if !info.Hardware && i > len(units) {
			break
		}
		<-pause.C
	}
	return false, s.explain(errSilent)
}

// errSilent says that units go in and nothing comes out.
var errSilent = errors.New("it opens and gives no picture")

// gridUnits are access units that a decoder can begin with. Successive ones
// differ, or a decoder might take them for one.
func gridUnits(codec string) [][]byte {
	switch codec {
	case "h264":
		// Each begins with a sequence parameter set.
		mark := gridH264[:5]
		second := len(mark) + bytes.Index(gridH264[len(mark):], mark)
		return [][]byte{gridH264[:second], gridH264[second:]}
	case "hevc":
		return [][]byte{gridH265}
	}
	return nil
}

func (s *session) tryUnit(unit []byte, pts int64) (bool, error) {
	if code := s.load([][]byte{unit}, false, pts); code < 0 {
		return false, s.lib.errorOf(code)
	}
	for _, j := range []job{jobSend, jobReceive} {
		code, err := s.do(j)
		switch {
		case err != nil:
			return false, err
		case j == jobReceive && code == 0:
			return true, nil
		case code < 0 && code != tryAgain:
			return false, s.lib.errorOf(code)
		}
	}
	if s.loaded {
		return false, errors.New("it neither takes a unit nor gives a picture")
	}
	return false, nil
}

// explain adds what the decoder logged.
func (s *session) explain(err error) error {
	if s.lost {
		return err // its goroutine may be at work on the context
	}
	if lines := logs.take(s.context); len(lines) > 0 {
		return fmt.Errorf("%w: %s", err, lines[0].Text)
	}
	return err
}

// isGrid looks at the middle of every field.
func (p *picture) isGrid() (squeezed bool, err error) {
	if p.width != gridWidth || p.height != gridHeight || !p.whole() || planesOf(p.format).shiftY != 1 || planesOf(p.format).sample != 1 {
		return false, fmt.Errorf("its test picture is %dx%d in %s", p.width, p.height, p.name)
	}
	same, other := true, true
	for i, want := range gridColours() {
		x := i%gridColumns*(gridWidth/gridColumns) + gridWidth/gridColumns/2
		y := i/gridColumns*(gridHeight/gridRows) + gridHeight/gridRows/2
		got := p.sample(x, y)
		limited := [3]int{16 + want[0]*219/255, 128 + (want[1]-128)*224/255, 128 + (want[2]-128)*224/255}
		same = same && closeTo(got, want)
		other = other && closeTo(got, limited)
		if !same && !other {
			return false, fmt.Errorf("its test picture has colour %d at %d, %d, not %d", got, x, y, want)
		}
	}
	return !same, nil
}

func (p *picture) sample(x, y int) [3]int {
	luma := p.planes[0].row(y)
	if planesOf(p.format).pairs {
		pair := p.planes[1].row(y / 2)[x/2*2:]
		return [3]int{int(luma[x]), int(pair[0]), int(pair[1])}
	}
	return [3]int{int(luma[x]), int(p.planes[1].row(y / 2)[x/2]), int(p.planes[2].row(y / 2)[x/2])}
}

func closeTo(a, b [3]int) bool {
	for i := range a {
		if d := a[i] - b[i]; d < -near || d > near {
			return false
		}
	}
	return true
}
