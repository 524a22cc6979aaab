package rtsp

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/pion/rtp"

	"edgecam/capture"
)

// jpegPackets puts JPEG files together from RTP packets (RFC 2435). A packet
// carries a piece of the compressed data alone; what a file has before that
// follows from a few numbers. gortsplib's own takes two tables of 8 bits and no
// restart markers, and takes the size 0 by its word; cameras send more.
//
// Beyond the RFC it takes one to four tables; type 2, by which senders mean
// 4:4:4; the ONVIF header extension, which tells the size of pictures beyond 2040
// samples a side; whole files in place of the bare data; and a missing marker.
type jpegPackets struct {
	head jpegHead
	data []byte // of the picture so far
	open bool   // a picture has begun and nothing of it is missing
	last uint16 // sequence number of the packet before

	field  byte            // type-specific of the picture before
	tables [256]jpegTables // the last ones that were sent, by Q: later pictures may leave them out
	file   jpegFile
	odd    int // pictures in a row that are of a kind that edgecam does not take
}

const (
	jpegHeadBytes = 8
	jpegRestarts  = 64  // from this type on packets have a restart header
	jpegDynamic   = 128 // from this type on only the sender knows what is meant
	jpegTablesIn  = 128 // from this Q on tables are sent along

	fieldOdd, fieldEven = 1, 2 // type-specific: halves of an interlaced picture

	// oddLimit is how many pictures in a row must be of a kind that is not taken
	// before the camera is taken to send nothing else: one may be a broken packet.
	oddLimit = 8
)

var (
	errJPEGShort = errors.New("jpeg packet is too short")
	errJPEGLarge = errors.New("jpeg picture is too large")
	errJPEGGap   = errors.New("jpeg packet does not continue the one before")
)

// jpegHead is what is known of a picture from its first packet.
type jpegHead struct {
	specific      byte
	kind          byte // the RFC's type, without the offset for restart headers
	q             byte
	width, height int // 0 = not told
	restart       int // MCUs between restart markers, 0 = none
	tables        jpegTables
	extension     []byte // ONVIF's: segments of a JPEG file's header
}

// jpegTables are quantisation tables as they were sent, in zigzag order.
type jpegTables struct {
	wide byte // bit i: table i has 16 bits
	data string
}

// decode takes one packet and gives the picture that it completed.
func (d *jpegPackets) decode(pkt *rtp.Packet) ([][]byte, error) {
	next := pkt.SequenceNumber == d.last+1
	d.last = pkt.SequenceNumber
	h, offset, b, err := readJPEGHead(pkt.Payload)
	switch {
	case err != nil:
		d.open = false
		return nil, err
	case offset > 0:
		return d.append(b, offset, pkt.Marker)
	}
	before, errBefore := d.overdue(next)
	now, err := d.begin(h, b, pkt)
	if errors.Is(err, errIncomplete) && (before != nil || errBefore != nil) {
		return before, errBefore
	}
	return now, err
}

// overdue is the picture before, where the next one begins and no packet is
// missing: the camera sets no markers.
func (d *jpegPackets) overdue(next bool) ([][]byte, error) {
	if !d.open || !next {
		return nil, nil
	}
	return d.finish()
}

// readJPEGHead reads what is in front of every packet's data.
func readJPEGHead(b []byte) (h jpegHead, offset int, rest []byte, err error) {
	if len(b) < jpegHeadBytes {
		return h, 0, nil, errJPEGShort
	}
	offset = int(b[1])<<16 | int(b[2])<<8 | int(b[3])
	h = jpegHead{specific: b[0], kind: b[4], q: b[5], width: 8 * int(b[6]), height: 8 * int(b[7])}
	b = b[jpegHeadBytes:]
	if h.kind >= jpegRestarts && h.kind < jpegDynamic {
		if len(b) < 4 {
			return h, 0, nil, errJPEGShort
		}
		h.kind -= jpegRestarts
		h.restart = int(binary.BigEndian.Uint16(b))
		b = b[4:]
	}
	return h, offset, b, nil
}

// begin starts a picture with its first packet.
func (d *jpegPackets) begin(h jpegHead, b []byte, pkt *rtp.Packet) ([][]byte, error) {
	d.open = false
	if h.q >= jpegTablesIn {
		var err error
		if h.tables, b, err = d.readTables(h.q, b); err != nil {
			return nil, err
		}
	}
	if pkt.Extension && pkt.ExtensionProfile == onvifExtension {
		h.extension = pkt.GetExtension(0)
	}
	d.head, d.data, d.open = h, d.data[:0], true
	return d.append(b, 0, pkt.Marker)
}

// readTables reads the tables in front of a picture's data. None means those that
// came with the same Q before.
func (d *jpegPackets) readTables(q byte, b []byte) (jpegTables, []byte, error) {
	if len(b) < 4 {
		return jpegTables{}, nil, errJPEGShort
	}
	wide, n := b[1], int(binary.BigEndian.Uint16(b[2:]))
	b = b[4:]
	if n > len(b) {
		return jpegTables{}, nil, errJPEGShort
	}
	if t := &d.tables[q]; n > 0 && (t.wide != wide || t.data != string(b[:n])) {
		*t = jpegTables{wide: wide, data: string(b[:n])}
	}
	return d.tables[q], b[n:], nil
}

// append adds a packet's data to the picture.
func (d *jpegPackets) append(b []byte, offset int, marker bool) ([][]byte, error) {
	switch {
	case !d.open:
		return nil, errIncomplete // of a picture that is given up already
	case offset != len(d.data):
		d.open = false
		return nil, errJPEGGap
	case offset+len(b) > maxUnitBytes:
		d.open = false
		return nil, errJPEGLarge
	}
	d.data = append(d.data, b...)
	if !marker && !endsJPEG(d.data) {
		return nil, errIncomplete
	}
	return d.finish()
}

// endsJPEG says whether the data ends with the marker EOI, which cannot come in
// its midst.
func endsJPEG(b []byte) bool {
	return len(b) >= 2 && b[len(b)-2] == 0xff && b[len(b)-1] == markerEOI
}

// finish makes the file of the picture.
func (d *jpegPackets) finish() ([][]byte, error) {
	d.open = false
	before := d.field
	if d.field = d.head.specific; d.field == fieldEven && before == fieldOdd {
		// The other half of an interlaced picture, which comes as a picture of its
		// own. One of the two is shown, or the rate would be twice the true one.
		return nil, errIncomplete
	}
	b, err := d.file.complete(&d.head, d.data)
	var unsupported *capture.UnsupportedError
	if !errors.As(err, &unsupported) {
		d.odd = 0
	} else if d.odd++; d.odd < oddLimit {
		err = fmt.Errorf("take jpeg picture: %s", unsupported.Error())
	}
	if err != nil {
		return nil, err
	}
	return [][]byte{b}, nil
}
