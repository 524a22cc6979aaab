package rtsp_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"edgecam/capture"
	"edgecam/capture/rtsp"
)

// testClock is set by a test, and read by the receiver's timer too.
type testClock struct{ ns atomic.Int64 }

func newTestClock() *testClock {
	c := &testClock{}
	c.ns.Store(1_800_000_000 * int64(time.Second))
	return c
}

func (c *testClock) now() time.Time       { return time.Unix(0, c.ns.Load()) }
func (c *testClock) pass(d time.Duration) { c.ns.Add(int64(d)) }

// FuzzReceiver takes packets and reports of any bytes, as they come from a
// network, all the way to access units.
func FuzzReceiver(f *testing.F) {
	s := newStream(capture.H264)
	var script []byte
	for n := range uint32(4) {
		for _, p := range s.simple(n) {
			p.Payload = p.Payload[:min(len(p.Payload), 40)]
			b, err := p.Marshal()
			if err != nil {
				f.Fatal(err)
			}
			script = append(append(script, byte(len(b)), 0), b...)
		}
	}
	sr, err := (&rtcp.SenderReport{SSRC: s.ssrc, NTPTime: 1 << 40, RTPTime: s.rtp}).Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(append(append(script, byte(len(sr)), 1), sr...), byte(0))
	f.Add(script, byte(1))
	f.Fuzz(func(t *testing.T, script []byte, kind byte) {
		clock := newTestClock()
		year := clock.now().UTC().Year()
		codec := []capture.Codec{capture.H264, capture.H265, capture.MJPEG}[kind%3]
		var size atomic.Int64
		r := rtsp.NewReceiver(codec, rtsp.UDP, clock.now, func(au *capture.AccessUnit) {
			if len(au.NALUs) == 0 {
				t.Fatal("an access unit without content")
			}
			if au.CapturedAt.UTC().Year() != year {
				t.Fatalf("a picture of %v", au.CapturedAt)
			}
			for _, nalu := range au.NALUs {
				size.Add(int64(len(nalu)))
			}
		})
		defer r.Stop()
		in := 0
		// two bytes before each packet: its size, and what it is with the time
		// that passes
		for len(script) >= 2 {
			n, flags := min(int(script[0]), len(script)-2), script[1]
			b := script[2:][:n:n]
			script = script[2+n:]
			clock.pass(time.Duration(flags>>4) * 20 * time.Millisecond)
			in += n
			if flags&1 != 0 {
				if reports, err := rtcp.Unmarshal(b); err == nil {
					for _, report := range reports {
						r.Report(report)
					}
				}
				continue
			}
			pkt := new(rtp.Packet)
			if pkt.Unmarshal(b) == nil {
				r.Packet(pkt)
			}
		}
		clock.pass(time.Minute)
		r.Expire()
		if codec != capture.MJPEG && size.Load() > 2*int64(in) {
			t.Fatalf("%d bytes in, %d out", in, size.Load())
		}
	})
}

// second makes the packets of a second of 1080p with 4 Mb/s: 25 pictures, one of
// them a key picture.
func second(s *stream) (packets []*rtp.Packet) {
	for n := range uint32(25) {
		size := 16_500
		if n == 0 {
			size = 100_000
			packets = append(packets, s.parts(false, h264Units['S'], h264Units['Q'], slice('I', n, size))...)
			packets[len(packets)-1].Marker = true
			s.rtp += s.step
			continue
		}
		packets = append(packets, s.picture(slice('P', n, size))...)
	}
	return packets
}

// player hands a second of video to a receiver, again and again.
type player struct {
	r       *rtsp.Receiver
	clock   *testClock
	packets []*rtp.Packet
	frames  atomic.Int64
	bytes   atomic.Int64
}

func newPlayer() *player {
	s := newStream(capture.H264)
	s.step, s.mtu = 3600, 1400
	p := &player{clock: newTestClock(), packets: second(s)}
	p.r = rtsp.NewReceiver(capture.H264, rtsp.TCP, p.clock.now, func(au *capture.AccessUnit) {
		p.frames.Add(1)
		p.bytes.Add(int64(len(au.NALUs[len(au.NALUs)-1])))
	})
	return p
}

func (p *player) play() {
	for _, pkt := range p.packets {
		p.r.Packet(pkt)
		pkt.SequenceNumber += uint16(len(p.packets))
		pkt.Timestamp += 90000
	}
	p.clock.pass(time.Second)
}

func BenchmarkReceiver(b *testing.B) {
	p := newPlayer()
	defer p.r.Stop()
	b.ReportAllocs()
	for b.Loop() {
		p.play()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(p.frames.Load()), "ns/frame")
	b.SetBytes(p.bytes.Load() / int64(b.N))
}

// What a frame costs on its way from packets to the decoder is a handful of
// allocations, however many packets it has.
func TestReceiverAllocates(t *testing.T) {
	p := newPlayer()
	defer p.r.Stop()
	p.play() // learns
	p.frames.Store(0)
	perFrame := testing.AllocsPerRun(20, p.play) / 25
	if frames := p.frames.Load(); frames != 25*21 || perFrame > 3 {
		t.Errorf("%.1f allocations a frame, %d frames", perFrame, frames)
	}
}
