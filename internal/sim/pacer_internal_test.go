package sim

import (
	"bytes"
	"net"
	"slices"
	"testing"
	"time"
)

func testClip(t *testing.T) *ClipData {
	t.Helper()
	clip, err := BuiltinClip()
	if err != nil {
		t.Fatal(err)
	}
	return clip
}

// Key frames of a crowd are spread over the time between two, whichever part of
// the crowd plays; a handful begins at once.
func TestCrowdIsSpread(t *testing.T) {
	clip := testClip(t) // a key frame every 2 s
	for index := range crowd {
		if w := waitOf(clip, index, crowd); w != 0 {
			t.Errorf("camera %d of a handful waits %v", index, w)
		}
	}
	for _, playing := range []int{20, 50, 300} {
		var waits []time.Duration
		for index := range playing {
			waits = append(waits, waitOf(clip, index, 300))
		}
		slices.Sort(waits)
		fair := 2 * time.Second / time.Duration(playing)
		for i, w := range waits[1:] {
			if gap := w - waits[i]; gap > 3*fair {
				t.Errorf("of %d playing cameras none begins for %v, evenly it would be %v", playing, gap, fair)
			}
		}
		if last := waits[len(waits)-1]; last > 2*time.Second {
			t.Errorf("a camera waits %v", last)
		}
	}
}

// Every packet of the clip is there once, numbered through.
func TestPacketisedOnce(t *testing.T) {
	clip := testClip(t)
	p, err := packetise(clip)
	if err != nil {
		t.Fatal(err)
	}
	var want uint16
	for i, packets := range p.samples {
		for k, packet := range packets {
			if packet.SequenceNumber != want {
				t.Fatalf("packet %d of picture %d has number %d, want %d", k, i, packet.SequenceNumber, want)
			}
			want++
			if packet.Marker != (k == len(packets)-1) {
				t.Errorf("packet %d of %d of picture %d: marker %v", k, len(packets), i, packet.Marker)
			}
		}
	}
	if p.total != want {
		t.Errorf("%d packets in all, want %d", p.total, want)
	}
}

// recorder is a connection that keeps what is written, by call.
type recorder struct {
	net.Conn

	calls [][]byte
}

func (r *recorder) Write(b []byte) (int, error) {
	r.calls = append(r.calls, bytes.Clone(b))
	return len(b), nil
}

func frame(channel byte, marker bool, size int) []byte {
	b := make([]byte, frameHeader+size)
	b[0], b[1], b[2], b[3] = '$', channel, byte(size>>8), byte(size)
	b[4] = 0x80
	if marker {
		b[5] = 0x80
	}
	return b
}

func TestPictureIsOneWrite(t *testing.T) {
	part, last, report := frame(0, false, 1400), frame(0, true, 200), frame(1, false, 28)
	answer := []byte("RTSP/1.0 200 OK\r\n\r\n")
	for _, c := range []struct {
		name   string
		writes [][]byte
		calls  []int // bytes of each
	}{
		{"a picture", [][]byte{part, part, last}, []int{2*1404 + 204}},
		{"one packet", [][]byte{last}, []int{204}},
		{"two pictures", [][]byte{part, last, part, last}, []int{1608, 1608}},
		{"an answer does not wait", [][]byte{answer}, []int{len(answer)}},
		{"a report ends what is kept", [][]byte{part, report, last}, []int{1404 + 32, 204}},
		{"an answer ends what is kept", [][]byte{part, answer, last}, []int{1404 + len(answer), 204}},
		{"a large picture", append(slices.Repeat([][]byte{part}, 50), last), []int{47 * 1404, 3*1404 + 204}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &recorder{}
			conn := &pictureConn{Conn: r}
			for _, w := range c.writes {
				if n, err := conn.Write(w); n != len(w) || err != nil {
					t.Fatalf("write: %d, %v", n, err)
				}
			}
			var got []int
			for _, call := range r.calls {
				got = append(got, len(call))
			}
			if !slices.Equal(got, c.calls) {
				t.Errorf("calls of %v bytes, want %v", got, c.calls)
			}
			if !bytes.Equal(slices.Concat(r.calls...), slices.Concat(c.writes...)) {
				t.Error("the bytes differ")
			}
		})
	}
}
