package rtsp_test

import (
	"testing"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"edgecam/capture"
	"edgecam/capture/rtsp"
)

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
		now := time.Unix(1_800_000_000, 0)
		codec := []capture.Codec{capture.H264, capture.H265, capture.MJPEG}[kind%3]
		size := 0
		r := rtsp.NewReceiver(codec, rtsp.UDP, func() time.Time { return now }, func(au *capture.AccessUnit) {
			if len(au.NALUs) == 0 {
				t.Fatal("an access unit without content")
			}
			if au.CapturedAt.Year() != now.UTC().Year() && !now.IsZero() {
				t.Fatalf("a picture of %v", au.CapturedAt)
			}
			for _, nalu := range au.NALUs {
				size += len(nalu)
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
			now = now.Add(time.Duration(flags>>4) * 20 * time.Millisecond)
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
		now = now.Add(time.Minute)
		r.Expire()
		if codec != capture.MJPEG && size > 2*in {
			t.Fatalf("%d bytes in, %d out", in, size)
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

func BenchmarkReceiver(b *testing.B) {
	s := newStream(capture.H264)
	s.step, s.mtu = 3600, 1400
	packets := second(s)
	now := time.Now()
	frames, bytes := 0, 0
	r := rtsp.NewReceiver(capture.H264, rtsp.TCP, func() time.Time { return now }, func(au *capture.AccessUnit) {
		frames++
		bytes += len(au.NALUs[len(au.NALUs)-1])
	})
	defer r.Stop()
	b.ReportAllocs()
	for b.Loop() {
		for _, p := range packets {
			r.Packet(p)
			p.SequenceNumber += uint16(len(packets))
			p.Timestamp += 90000
		}
		now = now.Add(time.Second)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(frames), "ns/frame")
	b.SetBytes(int64(bytes / b.N))
}

// What a frame costs on its way from packets to the decoder is a handful of
// allocations, however many packets it has.
func TestReceiverAllocates(t *testing.T) {
	s := newStream(capture.H264)
	s.step, s.mtu = 3600, 1400
	now := time.Now()
	frames := 0
	r := rtsp.NewReceiver(capture.H264, rtsp.TCP, func() time.Time { return now }, func(*capture.AccessUnit) { frames++ })
	defer r.Stop()
	packets := second(s)
	play := func() {
		for _, p := range packets {
			r.Packet(p)
			p.SequenceNumber += uint16(len(packets))
			p.Timestamp += 90000
		}
		now = now.Add(time.Second)
	}
	play() // learns
	frames = 0
	perSecond := testing.AllocsPerRun(20, play)
	if perFrame := perSecond / 25; frames != 25*21 || perFrame > 3 {
		t.Errorf("%.1f allocations a frame, %d frames", perFrame, frames)
	}
}
