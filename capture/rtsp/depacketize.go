package rtsp

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/bluenviron/gortsplib/v4/pkg/format/rtpmjpeg"
	"github.com/pion/rtp"

	"edgecam/capture"
)

// yield is what a packet gave.
type yield struct {
	before []byte   // a NAL unit of the packets before, whose end was not marked
	nalus  [][]byte // NAL units that are whole now, or one JPEG file; valid until the next packet
	hurt   bool     // something of a picture is missing, or is not to be understood
	large  bool     // a NAL unit grew beyond all measure, and was let go
}

// depacketizer takes the payloads of a stream apart, in the order of their
// sequence numbers. The units that it gives belong to nobody else; it never
// fails on any bytes.
type depacketizer interface {
	// take is told whether packets before this one are missing.
	take(p *packet, lost bool) yield
}

func newDepacketizer(t *track) (depacketizer, error) {
	switch t.codec {
	case capture.H264:
		return &h264Packets{}, nil
	case capture.H265:
		return &h265Packets{donl: t.maxDON > 0}, nil
	default:
		d := &jpegPackets{}
		if err := d.decoder.Init(); err != nil {
			return nil, fmt.Errorf("take JPEG packets: %w", err)
		}
		return d, nil
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

// jpegPackets is RFC 2435.
type jpegPackets struct {
	decoder rtpmjpeg.Decoder
	out     [1][]byte
	skip    bool // the rest of a picture that is not whole
	rtpTime uint32
}

func (d *jpegPackets) take(p *packet, lost bool) (y yield) {
	if d.skip = d.skip && p.rtpTime == d.rtpTime; lost {
		d.skip = true
	}
	if len(p.payload) >= 4 && p.payload[1]|p.payload[2]|p.payload[3] == 0 {
		d.skip = false // fragment offset 0: a picture begins
	}
	if d.rtpTime = p.rtpTime; d.skip || len(p.payload) == 0 {
		return yield{hurt: d.skip}
	}
	pkt := rtp.Packet{Payload: p.payload}
	pkt.Marker, pkt.Timestamp, pkt.SequenceNumber = p.marker, p.rtpTime, p.seq
	picture, err := d.decoder.Decode(&pkt)
	switch {
	case errors.Is(err, rtpmjpeg.ErrMorePacketsNeeded):
	case err != nil:
		y.hurt, d.skip = true, true
	default:
		d.out[0] = picture
		y.nalus = d.out[:]
	}
	return y
}
