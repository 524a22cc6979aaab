package rtsp_test

import (
	"bytes"
	"slices"
	"testing"

	"edgecam/capture"
	"edgecam/capture/rtsp"
)

func interleaved(channel byte, b []byte) []byte {
	return append([]byte{'$', channel, byte(len(b) >> 8), byte(len(b))}, b...)
}

// What belongs into a session passes unchanged, in whichever pieces it comes,
// but for heads of messages that gortsplib would not read.
func TestFramerLetsThrough(t *testing.T) {
	s := newStream(capture.H264)
	all := slices.Concat(
		[]byte("RTSP/1.0 200 OK\r\nCSeq: 1\r\nContent-Length: 12\r\n\r\n$v=0\r\nabc$PL"),
		[]byte("RTSP/1.0 200 OK\r\nCSeq: 2\r\nTransport: RTP/AVP/TCP;unicast;interleaved=2-3\r\n\r\n"),
		interleaved(2, s.marshal([]byte{0x65, 0x88, '$', 2, 0, 20})),
		interleaved(3, []byte{0x80, 201, 0, 1, 1, 2, 3, 4}),
		[]byte("OPTIONS rtsp://camera/ RTSP/1.0\r\nCSeq: 1\r\n\r\n"),
		interleaved(2, s.marshal(bytes.Repeat([]byte{'$'}, 60000))),
		interleaved(4, s.marshal([]byte("another track"))),
		interleaved(2, s.marshal([]byte{0x41, 0x9a})),
		[]byte("RTSP/1.0 401 Unauthorized\nCSeq: 3\n\n"),
		interleaved(2, s.marshal([]byte{0x41, 0x9a})),
	)
	for _, size := range []int{1, 3, 1000, 4096, len(all)} {
		var f rtsp.Framer
		var got []byte
		for piece := range slices.Chunk(all, size) {
			got = append(got, f.Feed(piece)...)
		}
		want := bytes.Replace(all, []byte("Unauthorized\nCSeq: 3\n\n"), []byte("Unauthorized\r\nCSeq: 3\r\n\r\n"), 1)
		if !bytes.Equal(got, want) {
			t.Errorf("in pieces of %d, %d of %d bytes pass", size, len(got), len(want))
		}
	}
}

// Other protocols are none of its business.
func TestFramerLeavesOthersAlone(t *testing.T) {
	for _, text := range []string{"HTTP/1.1 400 Bad Request\r\n\r\n", "\x16\x03\x03\x00\x7a$$$", "SSH-2.0-x\r\n"} {
		var f rtsp.Framer
		if got := string(f.Feed([]byte(text))); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

// A damaged size costs that frame and no other.
func TestFramerFindsTheNextFrame(t *testing.T) {
	s := newStream(capture.H264)
	var f rtsp.Framer
	frame := func() []byte { return interleaved(0, s.marshal(bytes.Repeat([]byte{0x41}, 500))) }
	for range 3 {
		f.Feed(frame())
	}
	broken := frame()
	broken[2] = 3 // says 256 bytes more than there are
	next, last := frame(), frame()
	got := f.Feed(slices.Concat(broken, next, last))
	if !bytes.HasSuffix(got, last) || !bytes.Contains(got, next) {
		t.Errorf("%d bytes pass of %d", len(got), len(next)+len(last))
	}
}

func FuzzFramer(f *testing.F) {
	s := newStream(capture.H264)
	good := interleaved(0, s.marshal([]byte{0x65, 0x88}))
	f.Add(slices.Concat([]byte("RTSP/1.0 200 OK\r\nTransport: RTP/AVP/TCP;interleaved=0-1\r\n\r\n"), good, good), uint16(7))
	f.Add(slices.Concat(good, []byte("$\x24\xff\xfe"), good, []byte("PLzz\n"), good), uint16(1))
	f.Add([]byte("RTSP/1.0 200 OK\r\nContent-Length: 99999\r\n\r\n"), uint16(3))
	f.Fuzz(func(t *testing.T, in []byte, size uint16) {
		var pieces, whole rtsp.Framer
		var got []byte
		for piece := range slices.Chunk(in, int(size)+1) {
			got = append(got, pieces.Feed(piece)...)
		}
		if len(got) > 2*len(in)+8 { // line ends of heads are completed
			t.Fatalf("%d bytes become %d", len(in), len(got))
		}
		whole.Feed(in)
	})
}
