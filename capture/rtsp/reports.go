package rtsp

import (
	"context"
	"sync"
	"time"

	"github.com/bluenviron/gortsplib/v4/pkg/description"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
)

// reportPeriod is how often the camera hears how its packets arrive. Cameras
// were seen to stop when they heard nothing for five seconds.
const reportPeriod = 2 * time.Second

// reception is what the camera hears of its packets. It may be used
// concurrently.
type reception struct {
	local uint32 // our own SSRC; set before use

	mu     sync.Mutex
	source *source // nil before the first packet
}

// source is what a receiver report tells of one stream (RFC 3550 6.4.1).
type source struct {
	ssrc     uint32
	base     uint32 // first sequence number
	highest  uint32 // with the wraps in the upper half
	received uint32
	jitter   float64   // ticks of the RTP clock
	transit  int64     // of the packet before, ticks
	epoch    time.Time // of arrivals

	priorExpected, priorReceived uint32

	senderTime  uint32    // middle of the NTP time of the last sender report
	senderHeard time.Time // zero = none came
}

// maxStep is how far sequence numbers may jump within one stream.
const maxStep = 3000

// packet counts a packet that arrived.
func (r *reception) packet(pkt *rtp.Packet, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	seq := uint32(pkt.SequenceNumber)
	if r.source == nil || !r.source.continues(pkt) {
		r.source = &source{ssrc: pkt.SSRC, base: seq, highest: seq, epoch: now}
	}
	r.source.packet(pkt, now)
}

func (s *source) continues(pkt *rtp.Packet) bool {
	step := int16(pkt.SequenceNumber - uint16(s.highest))
	return pkt.SSRC == s.ssrc && step < maxStep && step > -maxStep
}

func (s *source) packet(pkt *rtp.Packet, now time.Time) {
	if step := int16(pkt.SequenceNumber - uint16(s.highest)); step > 0 {
		s.highest += uint32(step)
	}
	s.received++
	arrival := now.Sub(s.epoch).Microseconds() * clockRate / 1_000_000
	transit := int64(int32(uint32(arrival) - pkt.Timestamp)) // modulo 32 bits, like RTP times
	if d := max(transit-s.transit, s.transit-transit); s.received > 1 && d < 10*clockRate {
		s.jitter += (float64(d) - s.jitter) / 16 // a larger step is the camera's clock, which jumped
	}
	s.transit = transit
}

// sender notes a sender report.
func (r *reception) sender(report *rtcp.SenderReport, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.source != nil && report.SSRC == r.source.ssrc {
		r.source.senderTime, r.source.senderHeard = uint32(report.NTPTime>>16), now
	}
}

// report makes the next report: one of no stream before the first packet.
func (r *reception) report(now time.Time) rtcp.Packet {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := &rtcp.ReceiverReport{SSRC: r.local}
	if r.source != nil {
		out.Reports = []rtcp.ReceptionReport{r.source.report(now)}
	}
	// RFC 3550 6.1: reports travel with a name, and some cameras insist.
	return &rtcp.CompoundPacket{out, rtcp.NewCNAMESourceDescription(r.local, "edgecam")}
}

func (s *source) report(now time.Time) rtcp.ReceptionReport {
	expected := s.highest - s.base + 1
	out := rtcp.ReceptionReport{SSRC: s.ssrc, LastSequenceNumber: s.highest, Jitter: uint32(s.jitter)}
	if expected > s.received {
		out.TotalLost = min(expected-s.received, 1<<23-1)
	}
	interval, got := expected-s.priorExpected, s.received-s.priorReceived
	if interval > got {
		out.FractionLost = uint8(min(uint64(interval-got)*256/uint64(interval), 255))
	}
	s.priorExpected, s.priorReceived = expected, s.received
	if !s.senderHeard.IsZero() {
		out.LastSenderReport = s.senderTime
		out.Delay = uint32(now.Sub(s.senderHeard).Seconds() * 65536)
	}
	return out
}

// reports tells the camera how its packets arrive, until ctx ends. gortsplib
// does so over UDP alone, and too rarely for some.
func (s *session) reports(ctx context.Context, media *description.Media) {
	tick := time.NewTicker(reportPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if err := s.client.WritePacketRTCP(media, s.reception.report(now)); err != nil {
				return // the session has ended, and run tells why
			}
		}
	}
}
