package rtsp_test

import (
	"testing"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"edgecam/capture/rtsp"
)

// What receiver reports tell of packets that went missing, wrapped, or began
// anew.
func TestReception(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	r := &rtsp.Reception{}
	if got := r.Report(start); len(got.Reports) != 0 {
		t.Fatalf("before the first packet: %+v", got)
	}
	at := start
	send := func(ssrc uint32, seqs ...int) {
		for _, seq := range seqs {
			at = at.Add(10 * time.Millisecond)
			r.Packet(&rtp.Packet{Header: rtp.Header{
				SSRC: ssrc, SequenceNumber: uint16(seq), Timestamp: uint32(at.Sub(start).Milliseconds() * 90),
			}}, at)
		}
	}
	check := func(want rtcp.ReceptionReport) {
		t.Helper()
		got := r.Report(at)
		if len(got.Reports) != 1 || got.Reports[0] != want {
			t.Errorf("got  %+v\nwant %+v", got.Reports, want)
		}
	}
	send(7, 65533, 65534, 65535, 0, 1)
	check(rtcp.ReceptionReport{SSRC: 7, LastSequenceNumber: 1<<16 + 1})
	send(7, 2, 5) // 3 and 4 are missing
	check(rtcp.ReceptionReport{SSRC: 7, LastSequenceNumber: 1<<16 + 5, TotalLost: 2, FractionLost: 128})
	send(7, 4) // late
	check(rtcp.ReceptionReport{SSRC: 7, LastSequenceNumber: 1<<16 + 5, TotalLost: 1})
	r.Sender(&rtcp.SenderReport{SSRC: 7, NTPTime: 0x1122334455667788}, at)
	at = at.Add(time.Second)
	check(rtcp.ReceptionReport{SSRC: 7, LastSequenceNumber: 1<<16 + 5, TotalLost: 1, LastSenderReport: 0x33445566, Delay: 65536})
	send(7, 20000) // the camera counts anew
	check(rtcp.ReceptionReport{SSRC: 7, LastSequenceNumber: 20000})
	r.Sender(&rtcp.SenderReport{SSRC: 7, NTPTime: 1 << 63}, at)
	send(8, 1, 2, 3) // another stream
	check(rtcp.ReceptionReport{SSRC: 8, LastSequenceNumber: 3})
}
