package rtsp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"edgecam/capture"
)

// Markers of JPEG files (Rec. ITU-T T.81 table B.1), each behind a byte 0xff.
const (
	markerSOF0 = 0xc0 // baseline
	markerSOF1 = 0xc1 // extended: as baseline, with tables of up to 16 bits
	markerDHT  = 0xc4
	markerSOI  = 0xd8
	markerEOI  = 0xd9
	markerSOS  = 0xda
	markerDQT  = 0xdb
	markerDRI  = 0xdd
)

// onvifExtension is the profile of the RTP header extension of the ONVIF
// Streaming Specification (5.1.3): the first two bytes of a JPEG file, and
// segments of its header behind them. What it says goes before the RTP header.
const onvifExtension = 0xff<<8 | markerSOI

var errJPEGTables = errors.New("jpeg picture comes without the tables that it needs")

// jpegFile writes the header that the data of a picture lacks. It stays the same
// from picture to picture, mostly.
type jpegFile struct {
	of            jpegHead // what header was made of
	extension     []byte
	header        []byte
	width, height int // of the last extension: it need not come with each picture
}

// complete gives the file of a picture in new memory.
func (f *jpegFile) complete(h *jpegHead, data []byte) ([]byte, error) {
	if bytes.HasPrefix(data, []byte{0xff, markerSOI, 0xff}) {
		return endJPEG(bytes.Clone(data)), nil // a whole file: nothing is left to say
	}
	if err := f.describe(h); err != nil {
		return nil, err
	}
	file := make([]byte, 0, len(f.header)+len(data)+2)
	return endJPEG(append(append(file, f.header...), data...)), nil
}

func endJPEG(b []byte) []byte {
	if endsJPEG(b) {
		return b
	}
	return append(b, 0xff, markerEOI)
}

// describe makes the header, if it is not there already.
func (f *jpegFile) describe(h *jpegHead) error {
	same := len(f.header) > 0 && f.of.kind == h.kind && f.of.q == h.q && f.of.restart == h.restart &&
		f.of.width == h.width && f.of.height == h.height && f.of.tables == h.tables && bytes.Equal(f.extension, h.extension)
	if same {
		return nil
	}
	f.header = f.header[:0]
	s := readSegments(h.extension)
	frame, err := f.frame(h, s.frame)
	if err != nil {
		return err
	}
	tables := s.tables
	if len(tables) == 0 {
		if tables, err = quantisers(h); err != nil {
			return err
		}
	}
	b := append(f.header, 0xff, markerSOI)
	switch {
	case len(s.restart) > 0:
		b = append(b, s.restart...)
	case h.restart > 0:
		b = append(b, 0xff, markerDRI, 0, 4, byte(h.restart>>8), byte(h.restart))
	}
	b = append(b, tables...)
	b = append(b, frame.segment()...)
	if len(s.huffman) == 0 {
		b = segment(b, markerDHT, standardHuffman[:])
	}
	b = append(b, s.huffman...)
	b = segment(b, markerSOS, frame.scan())
	f.header, f.of, f.extension = b, *h, append(f.extension[:0], h.extension...)
	return nil
}

// segment appends a marker and what belongs to it.
func segment(b []byte, marker byte, content []byte) []byte {
	b = append(b, 0xff, marker)
	b = binary.BigEndian.AppendUint16(b, uint16(len(content)+2))
	return append(b, content...)
}

// jpegFrame is the frame header (T.81 B.2.2).
type jpegFrame struct {
	marker        byte
	width, height int
	parts         [][3]byte // id, sampling and table of each component
}

// frame says what the picture looks like: by the sender's own frame header in
// the extension, or by the RTP header's few numbers.
func (f *jpegFile) frame(h *jpegHead, own []byte) (jpegFrame, error) {
	if fr, ok := readFrame(own); ok {
		f.width, f.height = fr.width, fr.height
		return fr, nil
	}
	width, height := h.width, h.height
	if width == 0 || height == 0 {
		width, height = f.width, f.height // the RTP header has no room for more than 2040 samples a side
	}
	if width == 0 || height == 0 {
		return jpegFrame{}, &capture.UnsupportedError{
			What: "MJPEG over RTP without a picture size",
			Hint: "choose a picture of at most 2040 samples a side in the camera, or H.264",
		}
	}
	sampling := map[byte]byte{0: 0x21, 1: 0x22, 2: 0x11}[h.kind]
	if sampling == 0 {
		return jpegFrame{}, &capture.UnsupportedError{
			What: fmt.Sprintf("MJPEG over RTP of type %d", h.kind), Hint: "choose another profile in the camera, or H.264",
		}
	}
	fr := jpegFrame{marker: markerSOF0, width: width, height: height}
	if h.tables.wide != 0 {
		fr.marker = markerSOF1
	}
	last := byte(h.tables.count() - 1)
	for i, s := range []byte{sampling, 0x11, 0x11} {
		fr.parts = append(fr.parts, [3]byte{byte(i + 1), s, min(byte(i), last)})
	}
	if last == 1 || h.q < jpegTablesIn {
		fr.parts[2][2] = 1
	}
	return fr, nil
}

// readFrame reads a frame header with its marker.
func readFrame(b []byte) (fr jpegFrame, ok bool) {
	if len(b) < 10 || len(b) < 10+3*int(b[9]) || b[9] == 0 {
		return fr, false
	}
	fr = jpegFrame{marker: b[1], height: int(b[5])<<8 | int(b[6]), width: int(b[7])<<8 | int(b[8])}
	for i := range int(b[9]) {
		fr.parts = append(fr.parts, [3]byte(b[10+3*i:]))
	}
	return fr, fr.width > 0 && fr.height > 0
}

func (fr *jpegFrame) segment() []byte {
	b := []byte{8, byte(fr.height >> 8), byte(fr.height), byte(fr.width >> 8), byte(fr.width), byte(len(fr.parts))}
	for _, p := range fr.parts {
		b = append(b, p[:]...)
	}
	return segment(nil, fr.marker, b)
}

// scan is the content of the scan header: all components, the first with the
// Huffman tables for brightness.
func (fr *jpegFrame) scan() []byte {
	b := []byte{byte(len(fr.parts))}
	for i, p := range fr.parts {
		b = append(b, p[0], byte(min(i, 1))*0x11)
	}
	return append(b, 0, 63, 0)
}

// jpegSegments are the segments of an extension that matter, with markers.
type jpegSegments struct{ frame, tables, huffman, restart []byte }

// readSegments stops at what is not understood, such as the filling at the end.
func readSegments(b []byte) (s jpegSegments) {
	for len(b) >= 4 && b[0] == 0xff {
		if b[1] == 0xff || b[1] == markerSOI {
			b = b[1+btoi(b[1] == markerSOI):]
			continue
		}
		n := 2 + int(binary.BigEndian.Uint16(b[2:]))
		if n < 4 || n > len(b) {
			break
		}
		switch b[1] {
		case markerSOF0, markerSOF1:
			s.frame = b[:n]
		case markerDQT:
			s.tables = append(s.tables, b[:n]...)
		case markerDHT:
			s.huffman = append(s.huffman, b[:n]...)
		case markerDRI:
			s.restart = b[:n]
		}
		b = b[n:]
	}
	return s
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// count is the number of tables that the data holds.
func (t *jpegTables) count() (n int) {
	for left := len(t.data); left >= t.bytes(n); n++ {
		left -= t.bytes(n)
	}
	return n
}

// bytes is the size of table i.
func (t *jpegTables) bytes(i int) int { return 64 << (t.wide >> min(i, 7) & 1) }

// maxTables is what a JPEG file has room for.
const maxTables = 4

// quantisers are the segments of the tables that the RTP header means.
func quantisers(h *jpegHead) ([]byte, error) {
	if h.q < jpegTablesIn {
		return standardQuantisers(h.q)
	}
	t := h.tables
	if t.count() == 0 {
		return nil, errJPEGTables
	}
	var out []byte
	data := []byte(t.data)
	for i := range min(t.count(), maxTables) {
		content := append([]byte{t.wide>>i&1<<4 | byte(i)}, data[:t.bytes(i)]...)
		out, data = segment(out, markerDQT, content), data[t.bytes(i):]
	}
	return out, nil
}

// standardQuantisers scales the tables of T.81 annex K as RFC 2435 and libjpeg
// do. Beyond 99 the RFC says nothing; 100 is libjpeg's best.
func standardQuantisers(q byte) ([]byte, error) {
	if q == 0 || q > 100 {
		return nil, &capture.UnsupportedError{
			What: fmt.Sprintf("MJPEG over RTP of quality %d", q), Hint: "choose another quality in the camera, or H.264",
		}
	}
	scale := 200 - 2*int(q)
	if q < 50 {
		scale = 5000 / int(q)
	}
	var out []byte
	for i, table := range [...]*[64]byte{&standardLuma, &standardChroma} {
		content := []byte{byte(i)}
		for _, v := range table {
			content = append(content, byte(min(max((int(v)*scale+50)/100, 1), 255)))
		}
		out = segment(out, markerDQT, content)
	}
	return out, nil
}
