package rtsp_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"edgecam/capture/rtsp"
)

func TestSequencer(t *testing.T) {
	// A packet is written seq, seq/ssrc or seq@time (RTP, in ticks; it defaults to
	// 100 a packet from sequence number 0 on). +n lets n milliseconds pass.
	tests := []struct {
		name, in, want string
	}{
		{"in order", "1 2 3", "1 2 3"},
		{"around the end of the numbers", "65534 65535 0 1", "65534 65535 0 1"},
		{"swapped around the end of the numbers", "65534 0 65535 1", "65534 65535 0 1"},
		{"far out of order", "1 5 4 3 2 6", "1 2 3 4 5 6"},
		{"repeated", "1 1 2 1 2 3 3", "1 2 3"},
		{"repeated while waiting", "1 3 3 2 3", "1 2 3"},
		{"lost", "1 3 4 +99 5 +1 6", "1 !3 4 5 6"},
		{"lost, and nothing follows", "1 3 +100", "1 !3"},
		{"two gaps, each with its own time", "1 3 +50 5 +50 +49 6 +1", "1 !3 !5 6"},
		{"too late", "1 3 +100 2 4", "1 !3 4"},
		{"before the first", "5 4 3 6", "5 6"},
		{"another ssrc", "1/1 2/1 70/2 71/2 72/2", "1 2 new !70 71 72"},
		{"one packet of another ssrc", "1/1 70/2 2/1 71/2 3/1", "1 2 3"},
		{"what was left does not come back", "1/1 2/1 70/2 71/2 3/1 4/1 72/2 5/1 73/2", "1 2 new !70 71 72 73"},
		{"what was left comes back after a silence", "1/1 70/2 71/2 +2000 5/1 6/1", "1 new !70 71 new !5 6"},
		{"two streams in turns", "1/1 2/1 70/2 71/2 3/1 4/1 72/2 73/2", "1 2 new !70 71 72 73"},
		{"numbers begin again", "5000 5001 3@600000 4@600100 5@600200", "5000 5001 new !3 4 5"},
		{"numbers begin again a little before", "500 501 498@60000 499@60100 500@60200 501@60300", "500 501 new !498 499 500 501"},
		{"one packet with a number of its own", "1 30000 2 3", "1 2 3"},
		{"a gap and a new start", "1 2 5 20000@9 20001@9", "1 2 !5 new !20000 20001"},
		{"a recording that plays in a loop", "1 2 3 +2000 1 2 3", "1 2 3 new !1 2 3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := rtsp.NewSequencer()
			now := time.Unix(1000, 0)
			for word := range strings.FieldsSeq(tt.in) {
				var seq, rtpTime, pass int
				ssrc := 1
				if _, err := fmt.Sscanf(word, "+%d", &pass); err == nil {
					now = now.Add(time.Duration(pass) * time.Millisecond)
					s.Expire(now)
					continue
				}
				if _, err := fmt.Sscanf(word, "%d@%d", &seq, &rtpTime); err != nil {
					rtpTime = seq * 100
				}
				_, _ = fmt.Sscanf(word, "%d/%d", &seq, &ssrc) // most have none
				s.Push(uint32(ssrc), uint16(seq), uint32(rtpTime), now)
			}
			if got := strings.Join(s.Out, " "); got != tt.want {
				t.Errorf("%s gives %s, want %s", tt.in, got, tt.want)
			}
		})
	}
}

// However much waits for a packet, it has an end.
func TestSequencerIsBounded(t *testing.T) {
	s := rtsp.NewSequencer()
	now := time.Unix(1000, 0)
	s.Push(1, 0, 0, now)
	for seq := range uint16(20000) {
		s.Push(1, 2+seq, uint32(seq), now) // 1 never comes, and no time passes
		if s.Held() > 3000 {
			t.Fatalf("%d packets wait", s.Held())
		}
	}
	if s.Out[1] != "!2" || len(s.Out) != 20001 {
		t.Errorf("%d packets came out, the second is %s", len(s.Out), s.Out[1])
	}
}

func FuzzSequencer(f *testing.F) {
	f.Add([]byte{0, 1, 0, 2, 0, 4, 1, 9, 0, 3})
	f.Add([]byte{0, 250, 0, 255, 0, 0, 128, 100, 128, 101, 128, 102})
	f.Fuzz(func(t *testing.T, script []byte) {
		s := rtsp.NewSequencer()
		now := time.Unix(1000, 0)
		in := 0
		for ; len(script) >= 2; script = script[2:] {
			now = now.Add(time.Duration(script[0]>>4) * 10 * time.Millisecond)
			seq := uint16(script[1]) * (uint16(script[0]>>2&3)*100 + 1)
			s.Push(uint32(script[0]&1), seq, uint32(script[0]>>1&1)*500000+uint32(seq)*100, now)
			in++
		}
		s.Expire(now.Add(time.Minute))
		out := 0
		for _, text := range s.Out {
			if text != "new" {
				out++
			}
		}
		if out > in || s.Held() != 0 {
			t.Fatalf("%d packets in, %d out, %d held", in, out, s.Held())
		}
	})
}
