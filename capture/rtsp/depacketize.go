package rtsp

import (
	"bytes"
	"errors"

	"edgecam/capture"
)

// yield is what a packet gave.
type yield struct {
	before []byte   // a NAL unit of the packets before, whose end was not marked
	nalus  [][]byte // NAL units that are whole now, or one JPEG file; valid until the next packet
	hurt   bool     // something of a picture is missing, or is not to be understood
	open   bool     // a NAL unit has begun and not ended
	large  bool     // a NAL unit grew beyond all measure, and was let go
	err    error    // why hurt, where that may matter
}

// depacketizer takes the payloads of a stream apart, in the order of their
// sequence numbers. The units that it gives belong to nobody else; it never
// fails on any bytes.
type depacketizer interface {
	// take is told whether packets before this one are missing.
	take(p *packet, lost bool) yield
}

func newDepacketizer(t *track) depacketizer {
	switch t.codec {
	case capture.H264:
		return &h264Packets{}
	case capture.H265:
		return &h265Packets{donl: t.maxDON > 0}
	default:
		return &jpegTaker{}
	}
}

// fragments joins the parts of one NAL unit.
type fragments struct {
	head    [2]byte // the unit's header, which travels in the packets' own
	heads   int     // bytes of it
	parts   [][]byte
	size    int
	open    bool
	rtpTime uint32
	vital   bool // a picture needs the unit
	ends    bool // the camera has marked the end of a unit before
}

func (f *fragments) start(p *packet, vital bool, first []byte, head ...byte) {
	f.drop()
	f.open, f.vital, f.rtpTime = true, vital, p.rtpTime
	f.heads = copy(f.head[:], head)
	f.size = f.heads
	f.add(first)
}

// take takes a part of a unit: first where it begins one, whose header is head,
// else next. Both standards flag the ends of a unit alike (RFC 6184 5.8, RFC 7798
// 4.4.3).
func (f *fragments) take(p *packet, y *yield, flags byte, vital bool, first, next []byte, head ...byte) {
	const start, end = 0x80, 0x40
	f.ends = f.ends || flags&end != 0 // also where its beginning is not known
	if flags&start != 0 {
		f.broken(y)
		f.start(p, vital, first, head...)
	} else {
		if f.open && f.rtpTime != p.rtpTime {
			f.broken(y)
		}
		if !f.open {
			y.hurt = y.hurt || vital
			return
		}
		if !f.add(next) {
			f.drop()
			y.large = true
			return
		}
	}
	if flags&end != 0 || p.marker && !f.ends {
		y.nalus = appendUnits(y.nalus, f.join())
	}
}

// add takes another part; false when the unit is too large.
func (f *fragments) add(part []byte) bool {
	f.parts = append(f.parts, part)
	f.size += len(part)
	return f.size <= maxUnitBytes
}

// join gives the unit in one piece.
func (f *fragments) join() []byte {
	unit := append(make([]byte, 0, f.size), f.head[:f.heads]...)
	for _, part := range f.parts {
		unit = append(unit, part...)
	}
	f.drop()
	return unit
}

// drop forgets the unit, and lets go of the packets' bytes.
func (f *fragments) drop() {
	clear(f.parts)
	f.parts, f.size, f.open = f.parts[:0], 0, false
}

// broken ends a unit whose end did not come, as another one begins. A camera
// that marks no ends is taken at its word: nothing was lost on the way.
func (f *fragments) broken(y *yield) {
	switch {
	case !f.open:
	case f.ends:
		y.hurt = y.hurt || f.vital
		f.drop()
	default:
		y.before = f.join()
	}
}

var startCode = []byte{0, 0, 1} //nolint:gochecknoglobals // a constant

// appendUnits appends the NAL units that b holds: one as the standards demand,
// several where a camera leaves the start codes of its encoder in. Inside of a
// NAL unit no start code can be.
func appendUnits(to [][]byte, b []byte) [][]byte {
	for {
		at := bytes.Index(b, startCode)
		if at < 0 {
			break
		}
		if unit := bytes.TrimRight(b[:at], "\x00"); len(unit) > 0 {
			to = append(to, unit)
		}
		b = b[at+len(startCode):]
	}
	if len(b) > 0 {
		to = append(to, b)
	}
	return to
}

// errIncomplete says that a packet completed no picture yet.
var errIncomplete = errors.New("more packets needed")

// jpegTaker gives the files that jpegPackets puts together.
type jpegTaker struct {
	packets jpegPackets
}

func (d *jpegTaker) take(p *packet, _ bool) (y yield) {
	if len(p.payload) == 0 {
		return y // padding alone
	}
	files, err := d.packets.decode(p.from)
	if err == nil {
		y.nalus = files
	} else if !errors.Is(err, errIncomplete) {
		y.hurt, y.err = true, err
	}
	return y
}
