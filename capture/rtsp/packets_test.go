package rtsp_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/pion/rtp"

	"edgecam/capture"
	"edgecam/capture/rtsp"
)

var transports = []rtsp.Transport{rtsp.TCP, rtsp.UDP}

// simple sends picture n as parameter sets and a key slice each tenth, else a
// slice; each is cut into a few packets.
func (s *stream) simple(n uint32) []*rtp.Packet {
	if n%10 == 0 {
		return s.picture(h264Units['S'], h264Units['Q'], slice('I', n, 5000))
	}
	return s.picture(slice('P', n, 3000))
}

// settle sends the pictures 0 to 4, after which markers are believed.
func (s *stream) settle(w *wire) {
	for n := range uint32(5) {
		w.send(s.simple(n)...)
	}
}

func TestReorderedAndRepeated(t *testing.T) {
	t.Parallel()
	for _, transport := range transports {
		t.Run(string(transport), func(t *testing.T) {
			t.Parallel()
			r := watchWire(t, capture.H264, transport, 45, func(w *wire) {
				s := newStream(capture.H264)
				s.settle(w)
				var all []*rtp.Packet
				for n := uint32(5); n < 45; n++ {
					all = append(all, s.simple(n)...)
				}
				for i := 0; i+1 < len(all); i += 2 { // each pair swapped, each third packet sent twice
					w.send(all[i+1], all[i])
					if i%3 == 0 {
						w.send(all[i+1], all[i])
					}
				}
			})
			wantUnits(t, r, 0, 45)
		})
	}
}

// A lost packet is given up after a moment, however few packets follow it.
func TestLossIsBoundedInTime(t *testing.T) {
	t.Parallel()
	for _, transport := range transports {
		t.Run(string(transport), func(t *testing.T) {
			t.Parallel()
			r := watchWire(t, capture.H264, transport, 7, func(w *wire) {
				s := newStream(capture.H264)
				s.settle(w)
				packets := s.simple(5)
				w.send(packets[:1]...)
				w.send(packets[2:]...)
				w.send(s.simple(6)...)
				w.send(s.simple(7)...)
			})
			// Number 5 had one slice, so that nothing is left of it.
			if number(r.units[5]) != 6 || !r.units[5].LossBefore || number(r.units[6]) != 7 || r.units[6].LossBefore {
				t.Errorf("after the loss came %d (loss %v) and %d", number(r.units[5]), r.units[5].LossBefore, number(r.units[6]))
			}
		})
	}
}

// A camera that begins a new stream in the same session is followed at once.
func TestStreamBeginsAnew(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*stream)
	}{
		{"another ssrc", func(s *stream) { s.ssrc++ }},
		{"another ssrc with other numbers", func(s *stream) { s.ssrc, s.seq, s.rtp = 7, 12, 12345 }},
		{"sequence numbers far back", func(s *stream) { s.seq -= 20000 }},
		{"sequence numbers a little back", func(s *stream) { s.seq -= 15; s.rtp += 90000 }},
		{"sequence numbers a little back, times at 0", func(s *stream) { s.seq -= 15; s.rtp = 0 }},
		{"sequence numbers far ahead", func(s *stream) { s.seq += 20000 }},
		{"all at 0", func(s *stream) { s.seq, s.rtp = 0, 0 }},
	}
	for _, tt := range tests {
		for _, transport := range transports {
			t.Run(tt.name+"/"+string(transport), func(t *testing.T) {
				t.Parallel()
				r := watchWire(t, capture.H264, transport, 30, func(w *wire) {
					s := newStream(capture.H264)
					for n := range uint32(30) {
						if n == 20 {
							tt.change(s)
						}
						w.send(s.simple(n)...)
					}
				})
				wantUnits(t, r, 0, 30, 20)
				for i := 1; i < len(r.units); i++ {
					if step := r.units[i].PTS - r.units[i-1].PTS; step < 0 || step > 5*time.Second {
						t.Errorf("from unit %d to the next it is %v", i-1, step)
					}
				}
			})
		}
	}
}

// Packets of another stream among those of the one that plays do no harm.
func TestStrayPackets(t *testing.T) {
	t.Parallel()
	r := watchWire(t, capture.H264, rtsp.UDP, 20, func(w *wire) {
		s, other := newStream(capture.H264), newStream(capture.H264)
		other.ssrc, other.seq = 99, 1000
		for n := range uint32(20) {
			w.send(s.simple(n)...)
			stray := other.packet(slice('I', 1000, 10), true)
			other.seq += 5
			w.send(stray)
		}
	})
	wantUnits(t, r, 0, 20)
}

// The times of a camera may do what they like: ours go on.
func TestTimesJump(t *testing.T) {
	t.Parallel()
	const second = 90000
	jumps := map[uint32]int64{10: -9800 * second, 14: 17777 * second, 18: 5 * second, 22: -5 * second}
	r := watchWire(t, capture.H264, rtsp.TCP, 40, func(w *wire) {
		s := newStream(capture.H264)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for n := range uint32(40) {
			good := s.rtp
			s.rtp += uint32(jumps[n])
			if n >= 30 {
				s.rtp = (n - 30) * 9000 // begins at 0 again, in the same stream
			}
			w.send(s.simple(n)...)
			s.rtp = good + 9000
			<-tick.C
		}
	})
	wantUnits(t, r, 0, 40)
	for i, au := range r.units {
		if d := au.CapturedAt.Sub(au.Received.Round(0)).Abs(); d > time.Millisecond {
			t.Errorf("unit %d was captured %v from its arrival", i, d)
		}
		if i > 0 && !au.Received.After(r.units[i-1].Received) {
			t.Errorf("unit %d did not come after the one before", i)
		}
		if step := au.PTS - r.units[max(i-1, 0)].PTS; step < -6*time.Second || step > 6*time.Second {
			t.Errorf("to unit %d it is %v", i, step)
		}
	}
}

func TestMarkers(t *testing.T) {
	t.Parallel()
	slices4 := func(s *stream, n uint32) []*rtp.Packet {
		units := [][]byte{slice('P', n, 900), slice('p', n, 900), slice('p', n, 3000), slice('p', n, 900)}
		if n%10 == 0 {
			units = [][]byte{h264Units['S'], h264Units['Q'], slice('I', n, 3000), slice('i', n, 900), slice('i', n, 3000), slice('i', n, 900)}
		}
		return s.picture(units...)
	}
	tests := []struct {
		name   string
		stream func(*stream)
		parts  int
		make   func(s *stream, n uint32) []*rtp.Packet
	}{
		{"on each slice", func(s *stream) { s.always = true }, 4, slices4},
		{"never", func(s *stream) { s.never = true }, 4, slices4},
		{"never, one slice a picture", func(s *stream) { s.never = true }, 1, (*stream).simple},
		{"never, and equal times", func(s *stream) { s.never, s.step = true, 0 }, 4, slices4},
		{"equal times", func(s *stream) { s.step = 0 }, 1, (*stream).simple},
		{"missing now and then", func(*stream) {}, 4, func(s *stream, n uint32) []*rtp.Packet {
			s.never = n%4 == 3
			return slices4(s, n)
		}},
		{"SEI and AUD with times of their own", func(*stream) {}, 1, func(s *stream, n uint32) []*rtp.Packet {
			var all []*rtp.Packet
			s.step = 4500
			all = append(all, s.picture(h264Units['A'])...)
			all = append(all, s.picture(h264Units['E'])...)
			return append(all, s.simple(n)...)
		}},
		{"parameter sets with a marker each", func(s *stream) { s.always = true }, 1, (*stream).simple},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			const n = 30
			r := watchWire(t, capture.H264, rtsp.TCP, n, func(w *wire) {
				s := newStream(capture.H264)
				tt.stream(s)
				for i := range uint32(n) {
					w.send(tt.make(s, i)...)
				}
			})
			wantUnits(t, r, 0, n)
			for i, au := range r.units {
				parts := 0
				for _, nalu := range au.NALUs {
					if nalu[0]&0x1f == 1 || nalu[0]&0x1f == 5 {
						parts++
					}
				}
				if parts != tt.parts || au.RandomAccess != (i%10 == 0) {
					t.Errorf("unit %d: %d slices, random access %v", i, parts, au.RandomAccess)
				}
			}
		})
	}
}

// Without markers a picture is known to be whole when it is like those before
// and nothing follows.
func TestLastPictureComesWithoutMarker(t *testing.T) {
	t.Parallel()
	r := watchWire(t, capture.H264, rtsp.TCP, 20, func(w *wire) {
		s := newStream(capture.H264)
		s.never = true
		for n := range uint32(20) {
			w.send(s.simple(n)...)
		}
	})
	wantUnits(t, r, 0, 20)
}

func TestHugePackets(t *testing.T) {
	t.Parallel()
	r := watchWire(t, capture.H264, rtsp.TCP, 12, func(w *wire) {
		s := newStream(capture.H264)
		s.settle(w)
		s.mtu = 60000
		w.send(s.picture(slice('P', 5, 60000))...)
		w.send(s.picture(slice('P', 6, 7<<20))...) // large, but within the bounds
		s.mtu = 1400
		w.send(s.picture(slice('P', 7, 9<<20))...) // dropped
		var many [][]byte
		for range 10 {
			many = append(many, slice('p', 8, 1<<20))
		}
		w.send(s.picture(append([][]byte{slice('P', 8, 100)}, many...)...)...) // dropped
		for n := uint32(9); n < 14; n++ {
			w.send(s.simple(n)...)
		}
	})
	var got []uint32
	for _, au := range r.units {
		got = append(got, number(au))
		if loss := number(au) == 9; au.LossBefore != loss {
			t.Errorf("unit %d: loss %v", number(au), au.LossBefore)
		}
	}
	for i, want := range []uint32{0, 1, 2, 3, 4, 5, 6, 9, 10, 11, 12, 13} {
		if got[i] != want {
			t.Fatalf("units %d", got)
		}
	}
	if n := len(r.units[6].NALUs[0]); n != 7<<20 {
		t.Errorf("the large unit has %d bytes", n)
	}
}

func TestManyUnits(t *testing.T) {
	t.Parallel()
	r := watchWire(t, capture.H264, rtsp.TCP, 6, func(w *wire) {
		s := newStream(capture.H264)
		s.settle(w)
		units := [][]byte{slice('P', 5, 20)}
		for range 5000 {
			units = append(units, slice('p', 5, 20))
		}
		w.send(s.picture(units...)...)
	})
	wantUnits(t, r, 0, 6)
	if n := len(r.units[5].NALUs); n != 5001 {
		t.Errorf("%d NAL units", n)
	}
}

// What does not belong between interleaved frames costs nothing.
func TestGarbageBetweenFrames(t *testing.T) {
	t.Parallel()
	garbage := map[string][]byte{
		"seven bytes":              {1, 2, 3, 4, 5, 6, 7},
		"dollar with a large size": {'$', 0x24, 0xff, 0xfe},
		"dollar of our channel":    {'$', 0, 0xff, 0xfe},
		"a head that seems right":  {'$', 0, 0xff, 0xfe, 0x80, 0x60, 0, 1, 0, 0, 0, 1, 9, 9, 9, 9},
		"a line of text":           []byte("PLzz\n"),
		"half an answer":           []byte("RTSP/1.0 200 OK\r\nCSeq: "),
		"half a request":           []byte("PLAY rtsp"),
		"an empty frame":           {'$', 0, 0, 0},
		"an empty report":          {'$', 1, 0, 0},
		"half a frame":             append([]byte{'$', 0, 4, 0, 0x80, 0x60, 0xff, 0x10, 0, 0, 0, 1, 0x11, 0x22, 0x33, 0x44}, make([]byte, 100)...),
		"line ends":                []byte("\r\n\r\n"),
		"many dollars":             bytes.Repeat([]byte{'$'}, 1000),
		"a keepalive's answer":     []byte("RTSP/1.0 200 OK\r\nCSeq: 77\r\nContent-Length: 5\r\n\r\n$\x00\x00\xff\x80"),
	}
	for name, junk := range garbage {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := watchWire(t, capture.H264, rtsp.TCP, 40, func(w *wire) {
				s := newStream(capture.H264)
				s.settle(w)
				for n := uint32(5); n < 40; n++ {
					packets := s.simple(n)
					w.send(packets[0])
					w.raw(junk)
					w.send(packets[1:]...)
				}
			})
			wantUnits(t, r, 0, 40)
		})
	}
}

// Packets that hold nothing, or not what they say, take nothing from the video.
func TestOddPackets(t *testing.T) {
	t.Parallel()
	odd := map[string]func(*stream) []byte{
		"padding alone":                 func(s *stream) []byte { return s.padded(nil, 40) },
		"padding of 200 in few bytes":   func(s *stream) []byte { b := s.padded([]byte{0x06, 5, 1, 0}, 20); b[len(b)-1] = 200; return b },
		"padding of 0":                  func(s *stream) []byte { b := s.padded([]byte{0x06, 5, 1, 0}, 20); b[len(b)-1] = 0; return b },
		"no payload":                    func(s *stream) []byte { return s.marshal(nil) },
		"STAP-A with too large a size":  func(s *stream) []byte { return s.marshal([]byte{0x78, 0xff, 0xff, 0x06, 5, 1}) },
		"STAP-A with half a size":       func(s *stream) []byte { return s.marshal([]byte{0x78, 0xff}) },
		"STAP-A with an empty unit":     func(s *stream) []byte { return s.marshal([]byte{0x78, 0, 0, 0, 2, 0x09, 0xf0}) },
		"STAP-A in STAP-A":              func(s *stream) []byte { return s.marshal([]byte{0x78, 0, 5, 0x78, 0, 2, 0x41, 0x9a}) },
		"STAP-A of nothing":             func(s *stream) []byte { return s.marshal([]byte{0x78}) },
		"MTAP16 of an SEI":              func(s *stream) []byte { return s.marshal([]byte{0x7a, 0, 0, 0, 4, 0, 0, 0, 0x06, 5, 1, 0}) },
		"fragment of an SEI, no start":  func(s *stream) []byte { return s.marshal([]byte{0x7c, 0x46, 1, 2, 3}) },
		"empty unit":                    func(s *stream) []byte { return s.marshal([]byte{0x41}) },
		"undefined type":                func(s *stream) []byte { return s.marshal([]byte{0x1f, 1, 2, 3}) },
		"type 0":                        func(s *stream) []byte { return s.marshal([]byte{0, 0, 0, 0}) },
		"filler":                        func(s *stream) []byte { return s.marshal([]byte{0x0c, 0xff, 0xff, 0x80}) },
		"another payload type":          func(s *stream) []byte { b := s.marshal([]byte("<xml/>")); b[1] = 107; s.seq--; return b },
		"shorter than a head":           func(s *stream) []byte { return []byte{0x80, 0x60, 0} },
		"of another version":            func(s *stream) []byte { b := s.marshal([]byte{0x65, 0x88}); b[0] = 0x40; s.seq--; return b },
		"a start code before the unit":  func(s *stream) []byte { return s.marshal([]byte{0, 0, 0, 1, 0x06, 5, 1, 0}) },
		"a report that is none":         func(s *stream) []byte { return []byte{0x80, 200, 0, 6, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12} },
		"an extension beyond its end":   func(s *stream) []byte { b := s.marshal([]byte{0, 0, 0xff, 0xff}); b[0] |= 0x10; s.seq--; return b },
		"more sources than it has room": func(s *stream) []byte { b := s.marshal([]byte{0, 0}); b[0] |= 15; s.seq--; return b },
	}
	for name, make := range odd {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := watchWire(t, capture.H264, rtsp.TCP, 30, func(w *wire) {
				s := newStream(capture.H264)
				s.settle(w)
				for n := uint32(5); n < 30; n++ {
					w.bytes(0, make(s))
					w.send(s.simple(n)...)
				}
			})
			wantUnits(t, r, 0, 30)
		})
	}
}

func (s *stream) marshal(payload []byte) []byte {
	b, err := s.packet(payload, false).Marshal()
	if err != nil {
		panic(err)
	}
	return b
}

// padded makes a packet with n bytes of padding.
func (s *stream) padded(payload []byte, n byte) []byte {
	b := s.marshal(append(payload, make([]byte, n)...))
	b[0] |= 0x20
	b[len(b)-1] = n
	return b
}

// Packets that say what is missing in them flag the picture.
func TestBrokenPackets(t *testing.T) {
	t.Parallel()
	broken := map[string][]byte{
		"fragment of a slice without a start": {0x7c, 0x41, 1, 2, 3},
		"STAP-A with half a slice":            {0x78, 0, 9, 0x41, 0x9a},
		"fragment without a head":             {0x7c},
	}
	for name, payload := range broken {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := watchWire(t, capture.H264, rtsp.TCP, 12, func(w *wire) {
				s := newStream(capture.H264)
				s.settle(w)
				for n := uint32(5); n < 12; n++ {
					if n == 7 {
						w.bytes(0, s.marshal(payload))
					}
					w.send(s.simple(n)...)
				}
			})
			wantUnits(t, r, 0, 12, 7)
		})
	}
}
