package rtsp_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"slices"
	"strings"
	"testing"

	"github.com/pion/rtp"

	"edgecam/capture"
	"edgecam/capture/rtsp"
	"edgecam/internal/testkit"
)

// jpegParts is a JPEG file taken apart.
type jpegParts struct {
	tables        [][]byte // quantisation, by id
	frame         []byte   // SOF with marker
	restart       []byte   // content of DRI
	huffman       []byte
	header        []byte // all of it
	data          []byte // behind SOS, with EOI
	width, height int
	sampling      byte // of the first component
}

func takeApart(t testing.TB, file []byte) (p jpegParts) {
	t.Helper()
	b := file[2:]
	for b[0] == 0xff {
		n := 2 + int(binary.BigEndian.Uint16(b[2:]))
		content := b[4:n]
		switch b[1] {
		case 0xdb:
			for len(content) > 0 {
				p.tables = append(p.tables, content[1:65])
				content = content[65:]
			}
		case 0xc4:
			p.huffman = append(p.huffman, b[:n]...)
		case 0xc0, 0xc1:
			p.frame = b[:n]
			p.height, p.width = int(binary.BigEndian.Uint16(content[1:])), int(binary.BigEndian.Uint16(content[3:]))
			p.sampling = content[7]
		case 0xdd:
			p.restart = content
		case 0xda:
			p.header, p.data = file[:len(file)-len(b)], b[n:]
			return p
		}
		b = b[n:]
	}
	t.Fatalf("no scan in a file of %d bytes", len(file))
	return p
}

// sender is a camera that sends JPEG in its own way.
type sender struct {
	kind, q       byte
	specific      byte
	width, height int
	restart       []byte
	tables        []byte // with header; nil = none
	extension     []byte
	size          int  // of a packet's data
	noMarker      bool // never
	seq           uint16
	time          uint32
}

func (s *sender) send(data []byte) (out []*rtp.Packet) {
	s.time += 9000
	for offset := 0; offset < len(data) || offset == 0; {
		n := min(s.size, len(data)-offset)
		b := []byte{s.specific, byte(offset >> 16), byte(offset >> 8), byte(offset), s.kind, s.q, byte(s.width / 8), byte(s.height / 8)}
		if s.kind >= 64 && s.kind < 128 {
			b = append(append(b, s.restart...), 0xff, 0xff)
		}
		pkt := &rtp.Packet{Header: rtp.Header{Version: 2, SequenceNumber: s.seq, Timestamp: s.time}}
		if offset == 0 {
			b = append(b, s.tables...)
			if s.extension != nil {
				pkt.Extension, pkt.ExtensionProfile = true, 0xffd8
				if err := pkt.SetExtension(0, s.extension); err != nil {
					panic(err)
				}
			}
		}
		s.seq++
		pkt.Payload = append(b, data[offset:offset+n]...)
		offset += n
		pkt.Marker = offset == len(data) && !s.noMarker
		out = append(out, pkt)
	}
	return out
}

func tableHeader(wide byte, tables ...[]byte) []byte {
	data := slices.Concat(tables...)
	return append([]byte{0, wide, byte(len(data) >> 8), byte(len(data))}, data...)
}

// widen makes a table one of 16 bits.
func widen(table []byte) (out []byte) {
	for _, v := range table {
		out = append(out, 0, v)
	}
	return out
}

// goJPEG is a picture in 4:2:0 with the standard's tables, scaled as Q says.
func goJPEG(t testing.TB, width, height, quality int) []byte {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			m.SetRGBA(x, y, color.RGBA{byte(x * 3), byte(y * 5), byte(x + y), 255})
		}
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: quality}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func ffmpegJPEG(t testing.TB, format string, args ...string) []byte {
	t.Helper()
	all := slices.Concat([]string{"-f", "lavfi", "-i", "testsrc2=size=320x240", "-frames:v", "1", "-pix_fmt", format, "-c:v", "mjpeg", "-q:v", "5", "-huffman", "default"}, args, []string{"-f", "mjpeg"})
	return testkit.FFmpeg(t, "p.jpg", all...)
}

func samplesOf(t testing.TB, file []byte) string {
	t.Helper()
	m, err := jpeg.Decode(bytes.NewReader(file))
	if err != nil {
		t.Fatalf("decode a file of %d bytes: %v", len(file), err)
	}
	switch m := m.(type) {
	case *image.YCbCr:
		return fmt.Sprint(m.SubsampleRatio, m.Rect, m.Y, m.Cb, m.Cr)
	case *image.Gray:
		return fmt.Sprint(m.Rect, m.Pix)
	}
	t.Fatalf("picture is a %T", m)
	return ""
}

// depacketize hands the packets in and gives the files that come out.
func depacketize(t testing.TB, d func(*rtp.Packet) ([][]byte, error), pkts []*rtp.Packet) (files [][]byte) {
	t.Helper()
	for _, pkt := range pkts {
		got, err := d(pkt)
		if err != nil && !errors.Is(err, rtsp.ErrIncomplete) {
			t.Fatal(err)
		}
		files = append(files, got...)
	}
	return files
}

func TestJPEGPackets(t *testing.T) {
	steps := func(part, block int) int { return (17 + 41*part + 29*block) % 256 }
	p420 := ffmpegJPEG(t, "yuvj420p")
	p422, p444 := blocksJPEG(0x21, 320, 240, 0, steps), blocksJPEG(0x11, 320, 240, 0, steps)
	marks := ffmpegJPEG(t, "yuvj420p", "-threads", "4", "-slices", "4", "-thread_type", "slice")
	gray, large := ffmpegJPEG(t, "gray"), goJPEG(t, 2576, 48, 70)
	type testCase struct {
		name string
		file []byte
		how  func(p jpegParts, s *sender)
		data func(p jpegParts) []byte
	}
	sent := func(p jpegParts, s *sender) { s.q, s.tables = 255, tableHeader(0, p.tables...) }
	cases := []testCase{
		{name: "type 0", file: p422, how: func(p jpegParts, s *sender) { sent(p, s); s.kind = 0 }},
		{name: "type 1", file: p420, how: sent},
		{name: "type 2, 4:4:4", file: p444, how: func(p jpegParts, s *sender) { sent(p, s); s.kind = 2 }},
		{name: "type 65, restart markers", file: marks, how: func(p jpegParts, s *sender) { sent(p, s); s.kind = 65 }},
		{name: "type 64, restart markers", file: blocksJPEG(0x21, 320, 240, 7, steps), how: func(p jpegParts, s *sender) { sent(p, s); s.kind = 64 }},
		{name: "two tables", file: goJPEG(t, 320, 240, 60), how: sent},
		{name: "three tables, 192 bytes", file: goJPEG(t, 320, 240, 60), how: func(p jpegParts, s *sender) {
			s.q, s.tables = 128, tableHeader(0, p.tables[0], p.tables[1], p.tables[1])
		}},
		{name: "16 bits", file: goJPEG(t, 320, 240, 60), how: func(p jpegParts, s *sender) {
			s.q, s.tables = 255, tableHeader(3, widen(p.tables[0]), widen(p.tables[1]))
		}},
		{name: "16 bits for the first alone", file: goJPEG(t, 320, 240, 60), how: func(p jpegParts, s *sender) {
			s.q, s.tables = 255, tableHeader(1, widen(p.tables[0]), p.tables[1])
		}},
		{name: "size 0, onvif extension", file: large, how: func(p jpegParts, s *sender) {
			sent(p, s)
			s.width, s.height, s.extension = 0, 0, slices.Concat(p.frame, []byte{0xff, 0xff, 0xff})
		}},
		{name: "size 0, tables in the extension too", file: large, how: func(p jpegParts, s *sender) {
			s.q, s.width, s.height, s.extension = 77, 0, 0, p.header[2:]
		}},
		{name: "size 0, a whole file", file: large, how: func(p jpegParts, s *sender) { s.width, s.height, s.q = 0, 0, 50 },
			data: func(p jpegParts) []byte { return large }},
		{name: "grey by the extension", file: gray, how: func(p jpegParts, s *sender) {
			sent(p, s)
			s.extension = p.header[2:]
		}},
		{name: "no end of image", file: p420, how: sent, data: func(p jpegParts) []byte { return p.data[:len(p.data)-2] }},
		{name: "no marker", file: p420, how: func(p jpegParts, s *sender) { sent(p, s); s.noMarker = true }},
		{name: "one packet", file: p420, how: func(p jpegParts, s *sender) { sent(p, s); s.size = 1 << 20 }},
	}
	for _, q := range []int{1, 2, 25, 49, 50, 51, 75, 98, 99, 100} {
		cases = append(cases, testCase{name: fmt.Sprintf("quality %d", q), file: goJPEG(t, 320, 240, q), how: func(_ jpegParts, s *sender) { s.q = byte(q) }})
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := takeApart(t, c.file)
			s := &sender{kind: 1, width: p.width, height: p.height, restart: p.restart, size: 1400}
			c.how(p, s)
			data := p.data
			if c.data != nil {
				data = c.data(p)
			}
			d := rtsp.NewJPEG()
			want := samplesOf(t, c.file)
			for range 3 {
				files := depacketize(t, d, s.send(data))
				if len(files) != 1 {
					t.Fatalf("%d files", len(files))
				}
				if samplesOf(t, files[0]) != want {
					t.Error("samples differ from those that were sent")
				}
			}
		})
	}
}

// What a picture may lack once it was told.
func TestJPEGPacketsRemember(t *testing.T) {
	file := goJPEG(t, 2576, 48, 70)
	p := takeApart(t, file)
	d := rtsp.NewJPEG()
	s := &sender{kind: 1, q: 130, size: 1000, tables: tableHeader(0, p.tables...), extension: p.frame}
	first := depacketize(t, d, s.send(p.data))
	s.tables, s.extension = tableHeader(0), nil
	second := depacketize(t, d, s.send(p.data))
	if len(first) != 1 || len(second) != 1 || samplesOf(t, second[0]) != samplesOf(t, file) {
		t.Errorf("%d and %d files, or wrong ones", len(first), len(second))
	}
	s.q = 131
	for _, pkt := range s.send(p.data) {
		if got, err := d(pkt); len(got) > 0 || err == nil {
			t.Fatalf("%d files without tables, error %v", len(got), err)
		} else if !errors.Is(err, rtsp.ErrIncomplete) && err.Error() != "jpeg picture comes without the tables that it needs" {
			t.Error(err)
		}
	}
}

// A camera that neither sets markers nor ends its pictures is one picture late.
func TestJPEGWithoutMarkersAndEnds(t *testing.T) {
	p := takeApart(t, goJPEG(t, 64, 48, 70))
	s := &sender{kind: 1, q: 70, width: 64, height: 48, size: 100, noMarker: true}
	d := rtsp.NewJPEG()
	var files [][]byte
	for range 4 {
		files = append(files, depacketize(t, d, s.send(p.data[:len(p.data)-2]))...)
	}
	if len(files) != 3 {
		t.Fatalf("%d files, want 3", len(files))
	}
}

// A lost packet costs its picture and no other.
func TestJPEGLoss(t *testing.T) {
	p := takeApart(t, goJPEG(t, 64, 48, 70))
	want := samplesOf(t, goJPEG(t, 64, 48, 70))
	for lost := range 4 {
		s := &sender{kind: 1, q: 70, width: 64, height: 48, size: (len(p.data) + 3) / 4}
		d := rtsp.NewJPEG()
		var files [][]byte
		for i := range 3 {
			for k, pkt := range s.send(p.data) {
				if i == 1 && k == lost {
					continue
				}
				got, _ := d(pkt)
				files = append(files, got...)
			}
		}
		if len(files) != 2 {
			t.Errorf("packet %d lost: %d files, want 2", lost, len(files))
		}
		for _, f := range files {
			if samplesOf(t, f) != want {
				t.Errorf("packet %d lost: a wrong picture", lost)
			}
		}
	}
}

// Fields come as pictures of their own: one of each pair is taken.
func TestJPEGFields(t *testing.T) {
	p := takeApart(t, goJPEG(t, 64, 48, 70))
	s := &sender{kind: 1, q: 70, width: 64, height: 48, size: 1000}
	d := rtsp.NewJPEG()
	n := 0
	for i := range 10 {
		s.specific = byte(1 + i%2)
		n += len(depacketize(t, d, s.send(p.data)))
	}
	if n != 5 {
		t.Errorf("%d pictures of 5 pairs of fields", n)
	}
	n = 0
	for range 5 { // single fields that all say the same
		n += len(depacketize(t, d, s.send(p.data)))
	}
	if n != 5 {
		t.Errorf("%d of 5 single fields", n)
	}
}

// What is not taken ends the session, with a reason, once it comes all the time.
func TestJPEGRefused(t *testing.T) {
	p := takeApart(t, goJPEG(t, 64, 48, 70))
	good := sender{kind: 1, q: 70, width: 64, height: 48, size: 1000}
	for _, c := range []struct {
		name, want string
		how        func(*sender)
	}{
		{"reserved type", "unsupported MJPEG over RTP of type 3: choose another profile in the camera, or H.264", func(s *sender) { s.kind = 3 }},
		{"dynamic type", "unsupported MJPEG over RTP of type 200: choose another profile in the camera, or H.264", func(s *sender) { s.kind = 200 }},
		{"quality 0", "unsupported MJPEG over RTP of quality 0: choose another quality in the camera, or H.264", func(s *sender) { s.q = 0 }},
		{"reserved quality", "unsupported MJPEG over RTP of quality 127: choose another quality in the camera, or H.264", func(s *sender) { s.q = 127 }},
		{"no size", "unsupported MJPEG over RTP without a picture size: choose a picture of at most 2040 samples a side in the camera, or H.264", func(s *sender) { s.width = 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, s := rtsp.NewJPEG(), good
			c.how(&s)
			last := func(s *sender) (err error) {
				for _, pkt := range s.send(p.data) {
					_, err = d(pkt)
				}
				return err
			}
			for range 5 { // single ones are damage
				fine := good
				for range 7 {
					if err := last(&s); err == nil || errors.As(err, new(*capture.UnsupportedError)) {
						t.Fatalf("error %v at once", err)
					}
				}
				if err := last(&fine); err != nil {
					t.Fatal(err)
				}
			}
			var err error
			for range 8 {
				err = last(&s)
			}
			var unsupported *capture.UnsupportedError
			if !errors.As(err, &unsupported) || unsupported.Error() != c.want {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
}

func FuzzJPEGPackets(f *testing.F) {
	p := takeApart(f, goJPEG(f, 64, 48, 70))
	for _, s := range []sender{
		{kind: 1, q: 70, width: 64, height: 48, size: 300},
		{kind: 64, q: 255, restart: []byte{0, 4}, tables: tableHeader(3, widen(p.tables[0]), widen(p.tables[1])), size: 300},
		{kind: 2, q: 128, extension: p.header[2:], tables: tableHeader(0, p.tables...), size: 300},
	} {
		pkts := s.send(p.data)
		f.Add(pkts[0].Payload, pkts[len(pkts)-1].Payload, s.extension)
	}
	f.Fuzz(func(t *testing.T, first, second, extension []byte) {
		d := rtsp.NewJPEG()
		for i, payload := range [][]byte{first, second, first, second} {
			pkt := &rtp.Packet{Header: rtp.Header{SequenceNumber: uint16(i), Marker: i%2 == 1}, Payload: payload}
			if len(extension) > 0 && len(extension) < 1<<16 {
				pkt.Extension, pkt.ExtensionProfile = true, 0xffd8
				if err := pkt.SetExtension(0, extension); err != nil {
					pkt.Extension = false
				}
			}
			files, err := d(pkt)
			for _, file := range files {
				if err != nil || !strings.HasPrefix(string(file), "\xff\xd8") || !strings.HasSuffix(string(file), "\xff\xd9") {
					t.Errorf("error %v, file %.20x", err, file)
				}
			}
		}
	})
}
