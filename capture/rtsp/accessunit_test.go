package rtsp_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"edgecam/capture"
	"edgecam/capture/rtsp"
)

// NAL units by the letters that the tests below write: I first slice of an IDR
// picture, P first slice of another, i and p further slices, S SPS, Q PPS, E
// SEI, A AUD, X end of sequence; F filler (H.265: suffix SEI), U undefined, N prefix of
// a scalable stream, L a slice of another layer.
var h264Units = map[byte][]byte{
	'I': {0x65, 0x88}, 'i': {0x65, 0x40}, 'P': {0x41, 0x9a}, 'p': {0x41, 0x40},
	'S': {0x67, 1}, 'Q': {0x68, 1}, 'E': {0x06, 5, 1, 0}, 'A': {0x09, 0xf0}, 'X': {0x0a},
	'F': {0x0c, 0xff}, 'U': {0x18, 1}, 'N': {0x6e, 1},
}

var h265Units = map[byte][]byte{
	'I': {0x26, 1, 0x80}, 'i': {0x26, 1, 0}, 'P': {0x02, 1, 0x80}, 'p': {0x02, 1, 0},
	'V': {0x40, 1}, 'S': {0x42, 1}, 'Q': {0x44, 1}, 'E': {0x4e, 1, 5, 1, 0}, 'F': {0x50, 1}, 'A': {0x46, 1}, 'X': {0x48, 1},
	'L': {0x03, 1, 0x80},
}

// spell writes an access unit as letters, with ! before it for a loss and *
// for a random access point.
func spell(units map[byte][]byte, au *capture.AccessUnit) string {
	var b strings.Builder
	if au.LossBefore {
		b.WriteByte('!')
	}
	if au.RandomAccess {
		b.WriteByte('*')
	}
	for _, nalu := range au.NALUs {
		for letter, unit := range units {
			if string(unit) == string(nalu) {
				b.WriteByte(letter)
			}
		}
	}
	return b.String()
}

func TestAssembler(t *testing.T) {
	// A packet is written time:units, with a dot for the marker and ! for a
	// loss before it.
	tests := []struct {
		name  string
		codec capture.Codec
		in    string
		want  string
	}{
		{"markers that tell the truth", capture.H264, "0:SQI. 1:P. 2:P. 3:P. 4:P. 5:P.", "*SQI P P P P P"},
		{"no marker ever", capture.H264, "0:SQI 1:P 2:P 3:P 4:P", "*SQI P P P"},
		{"slices in packets of their own", capture.H264, "0:SQ 0:I 0:i 0:i. 1:P 1:p 1:p. 2:P", "*SQIii Ppp"},
		{"marker on each slice from the start", capture.H264, "0:I. 0:i. 0:i. 1:P. 1:p. 1:p. 2:P. 2:p. 3:P. 3:p. 4:P", "*Iii Ppp Pp Pp"},
		{"marker starts to lie later", capture.H264, "0:I. 1:P. 2:P. 3:P. 4:P. 4:p. 5:P. 5:p. 6:P", "*I P P P P !p Pp"},
		{"parameter sets with a marker and a time of their own", capture.H264, "0:S. 1:Q. 2:I. 3:P. 4:P", "*SQI P"},
		{"SEI alone before each picture", capture.H264, "0:E. 1:I. 2:E. 3:P. 4:E. 5:P. 6:E", "*EI EP EP"},
		{"equal times on three pictures", capture.H264, "7:I. 7:P. 7:P. 8:P", "*I P P"},
		{"AUD begins a picture", capture.H264, "0:AI 0:AP 0:AP 1:A", "*AI AP AP"},
		{"end of sequence belongs to the picture before", capture.H264, "0:I 0:X. 1:P. 2:X. 3:P. 4:P", "*IX P P"},
		{"lost marker keeps no delay", capture.H264, "0:I. 1:P. 2:P. 3:P. 4:P 5:!P. 6:P.", "*I P P P !P !P P"},
		{"loss in a picture", capture.H264, "0:I 0:i. 1:P 1:!p. 2:P 2:p. 3:P", "*Ii !Pp Pp"},
		{"loss between pictures flags both sides", capture.H264, "0:I 0:i. 1:!P. 2:P. 3:P", "!Ii !P P"},
		{"loss of whole pictures after a confirmed one", capture.H264, "0:I. 1:P. 2:P. 3:P. 4:P. 9:!P. 10:P.", "*I P P P P !P P"},
		{"loss in front of a whole picture", capture.H264, "0:P. 1:P. 2:P. 3:P. 9:!SQI. 10:P.", "P P P P !*SQI P"},
		{"loss of the first slice of a key picture", capture.H264, "0:P. 1:P. 2:P. 3:P. 4:!Qi. 5:P.", "P P P P !Qi P"},
		{"loss in a key picture that goes on", capture.H264, "0:P. 1:P. 2:P. 3:P. 4:SQI 4:!i. 5:P.", "P P P P !SQIi P"},
		{"joined in the middle of a key picture", capture.H264, "0:i. 1:P. 2:P", "!i P"},
		{"SEI between the slices of a picture", capture.H264, "0:I 0:E 0:i. 1:P 1:E 1:p. 2:P", "*IEi PEp"},
		{"parameter sets between the slices of a picture", capture.H264, "0:SQI 0:SQ 0:i. 1:P 1:p. 2:P", "*SQISQi Pp"},
		{"parameter sets with the time of the picture before", capture.H264, "0:I. 1:P 1:SQ. 2:I. 3:P", "*I P *SQI"},
		{"SEI behind a picture, with the marker", capture.H264, "0:I 0:E. 1:P 1:E. 2:P 2:E. 3:P 3:E. 4:P 4:E.", "*I EP EP EP EP"},
		{"filler and undefined units between slices", capture.H264, "0:I 0:F 0:U 0:i. 1:P", "*Ii"},
		{"prefix units of a scalable stream", capture.H264, "0:NINi. 1:NPNp. 2:P", "*Ii Pp"},
		{"hevc of two layers", capture.H265, "0:VSQILi. 1:PLp. 2:P", "*VSQIi Pp"},
		{"hevc", capture.H265, "0:VSQI 0:i. 1:P 1:p. 2:EP. 3:P", "*VSQIi Pp EP"},
		{"hevc suffix SEI", capture.H265, "0:I 0:F. 1:P 1:F. 2:P", "*IF PF"},
		{"hevc suffix SEI behind a trusted marker", capture.H265, "0:I. 1:P. 2:P. 3:P. 3:F. 4:P. 5:P.", "*I P P P P P"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			units := h264Units
			if tt.codec == capture.H265 {
				units = h265Units
			}
			var got []string
			a := rtsp.NewAssembler(tt.codec, func(au *capture.AccessUnit) { got = append(got, spell(units, au)) })
			at := time.Now()
			for packet := range strings.FieldsSeq(tt.in) {
				var ts uint32
				when, letters, _ := strings.Cut(packet, ":")
				if _, err := fmt.Sscan(when, &ts); err != nil {
					t.Fatal(err)
				}
				letters, lost := strings.CutPrefix(letters, "!")
				letters, marker := strings.CutSuffix(letters, ".")
				var nalus [][]byte
				for _, l := range []byte(letters) {
					nalus = append(nalus, units[l])
				}
				a.Packet(rtsp.NewArrival(ts, marker, at), lost, nalus...)
			}
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("%s gives\n%s, want\n%s", tt.in, s, tt.want)
			}
		})
	}
}

// A silence ends a picture that seems complete, and no other.
func TestAssemblerAfterSilence(t *testing.T) {
	// A packet is written as above, with + while the slice of it has not ended. s
	// is a silence, written where it is; the units that came by then follow |.
	tests := []struct{ name, in, want string }{
		{"the first with its marker", "0:SQI. s 1:P. s", "*SQI | P |"},
		{"the first without marker", "0:SQI s 1:P s", "| *SQI |"},
		{"as many slices as always", "0:Ii 1:Pp 2:Pp 3:Pp 4:Pp 5:Pp 6:Pp 7:Pp 8:Pp s 9:P s 9:p s", "*Ii Pp Pp Pp Pp Pp Pp Pp Pp | | Pp |"},
		{"not always as many", "0:I 1:Pp 2:P 3:Pp 4:P 5:Pp 6:P 7:Pp 8:P s 9:P", "*I Pp P Pp P Pp P Pp | P"},
		{"a slice that has not ended", "0:I 1:P 2:P 3:P 4:P 5:P 6:P 7:P 8:P+ s 9:P+", "*I P P P P P P P | P"},
		{"markers on each slice", "0:I. 0:i. 1:P. 1:p. s 2:P. s 2:p. s", "*Ii | Pp | |"},
		{"markers that are believed", "0:I. 1:P. 2:P. 3:P. 4:P s 4:p. s", "*I P P P | Pp |"},
		{
			"one slice more than ever", "0:I 1:P 2:P 3:P 4:P 5:P 6:P 7:P 8:P s 8:p s 9:P s 9:p s A:P",
			"*I P P P P P P P P | | !p | | Pp",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			a := rtsp.NewAssembler(capture.H264, func(au *capture.AccessUnit) { got = append(got, spell(h264Units, au)) })
			now := time.Unix(1000, 0)
			for word := range strings.FieldsSeq(tt.in) {
				if word == "s" {
					now = now.Add(250 * time.Millisecond)
					a.Expire(now)
					got = append(got, "|")
					continue
				}
				when, letters, _ := strings.Cut(word, ":")
				letters, open := strings.CutSuffix(letters, "+")
				letters, marker := strings.CutSuffix(letters, ".")
				var nalus [][]byte
				for _, l := range []byte(letters) {
					nalus = append(nalus, h264Units[l])
				}
				a.Part(rtsp.NewArrival(uint32(when[0]), marker, now), open, nalus...)
			}
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("%s gives %s, want %s", tt.in, s, tt.want)
			}
		})
	}
}

// A picture that is too large is dropped once, and the stream goes on.
func TestAssemblerDropsHugePicture(t *testing.T) {
	var got []*capture.AccessUnit
	a := rtsp.NewAssembler(capture.H264, func(au *capture.AccessUnit) { got = append(got, au) })
	a.Packet(rtsp.NewArrival(0, true, time.Time{}), false, h264Units['I'])
	huge := make([]byte, 5<<20)
	huge[0], huge[1] = 0x41, 0x80
	rest := make([]byte, 5<<20)
	rest[0], rest[1] = 0x41, 0x40
	a.Packet(rtsp.NewArrival(1, false, time.Time{}), false, huge)
	a.Packet(rtsp.NewArrival(1, false, time.Time{}), false, rest)
	a.Packet(rtsp.NewArrival(1, true, time.Time{}), false, h264Units['p'])
	a.Packet(rtsp.NewArrival(2, true, time.Time{}), false, h264Units['P'])
	a.Packet(rtsp.NewArrival(3, true, time.Time{}), false, h264Units['P'])
	if len(got) != 2 || !got[0].RandomAccess || got[1].RTPTime != 2 || !got[1].LossBefore {
		t.Errorf("got %d units: %+v", len(got), got)
	}
}

func TestTimeline(t *testing.T) {
	const ms = time.Millisecond
	type picture struct {
		rtpTime uint32
		at      time.Duration // of arrival
	}
	tests := []struct {
		name     string
		pictures []picture
		want     []time.Duration
	}{
		{"from any start", []picture{{12345, 0}, {12345 + 3600, 45 * ms}, {12345 + 90000, 990 * ms}}, []time.Duration{0, 40 * ms, 1000 * ms}},
		{"wrap", []picture{{0xffffffff - 44999, 0}, {45000, 1000 * ms}}, []time.Duration{0, 1000 * ms}},
		{"B frames go back", []picture{{9000, 0}, {18000, 50 * ms}, {13500, 100 * ms}}, []time.Duration{0, 100 * ms, 50 * ms}},
		{"equal", []picture{{5, 0}, {5, 40 * ms}}, []time.Duration{0, 0}},
		{
			"one jumps back by 9800 s",
			[]picture{{900e6, 0}, {900e6 + 3600, 40 * ms}, {900e6 - 882e6, 80 * ms}, {900e6 + 3*3600, 120 * ms}},
			[]time.Duration{0, 40 * ms, 80 * ms, 120 * ms},
		},
		{
			"one jumps ahead by 17777 s",
			[]picture{{0, 0}, {17777 * 90000, 40 * ms}, {7200, 80 * ms}, {10800, 120 * ms}},
			[]time.Duration{0, 40 * ms, 80 * ms, 120 * ms},
		},
		{"begins again at 0", []picture{{4e9, 0}, {4e9 + 9000, 100 * ms}, {0, 200 * ms}, {9000, 300 * ms}}, []time.Duration{0, 100 * ms, 200 * ms, 300 * ms}},
		{"a pause", []picture{{0, 0}, {60 * 90000, 60 * time.Second}}, []time.Duration{0, 60 * time.Second}},
	}
	start := time.Now()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var line rtsp.Timeline
			for i, p := range tt.pictures {
				if got := line.At(p.rtpTime, start.Add(p.at)); got != tt.want[i] {
					t.Errorf("time %d is %v, want %v", p.rtpTime, got, tt.want[i])
				}
			}
		})
	}
}

// A year of video must not overflow.
func TestTimelineIsLong(t *testing.T) {
	var line rtsp.Timeline
	start := time.Now()
	var last time.Duration
	const step = 1 << 30 // 3.3 hours
	for i := range 3000 {
		at := start.Add(time.Duration(i) * step / 9 * 100 * time.Microsecond)
		now := line.At(uint32(i)*step, at) // wraps
		if i > 0 && now <= last {
			t.Fatalf("time runs backwards after %v", last)
		}
		last = now
	}
	if last < 365*24*time.Hour {
		t.Fatalf("the test covers %v alone", last)
	}
}

func TestRandomAccess(t *testing.T) {
	tests := []struct {
		name  string
		codec capture.Codec
		nalu  []byte
		want  bool
	}{
		{"H.264 IDR", capture.H264, []byte{0x65, 0x88}, true},
		{"H.264 P", capture.H264, []byte{0x41, 0x9a}, false},
		{"H.264 recovery point", capture.H264, []byte{0x06, 6, 1, 0xc4, 0x80}, true},
		{"H.264 recovery point behind another message", capture.H264, []byte{0x06, 5, 2, 1, 2, 6, 1, 0xc4, 0x80}, true},
		{"H.264 picture timing", capture.H264, []byte{0x06, 1, 2, 1, 2, 0x80}, false},
		{"H.264 SEI with a size beyond its end", capture.H264, []byte{0x06, 5, 0xff, 0xff, 0xff}, false},
		{"H.264 one byte", capture.H264, []byte{0x65}, false},
		{"H.265 IDR", capture.H265, []byte{0x26, 1, 0x80}, true},
		{"H.265 CRA", capture.H265, []byte{0x2a, 1, 0x80}, true},
		{"H.265 BLA", capture.H265, []byte{0x20, 1, 0x80}, true},
		{"H.265 trailing", capture.H265, []byte{0x02, 1, 0x80}, false},
		{"H.265 recovery point", capture.H265, []byte{0x4e, 1, 6, 1, 0xc4, 0x80}, true},
		{"H.265 one byte", capture.H265, []byte{0x4e}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := rtsp.ReadNAL(tt.codec, tt.nalu); got != tt.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func FuzzAssembler(f *testing.F) {
	f.Add([]byte{0, 1, 0x65, 0x88}, true)
	f.Add([]byte{0, 0, 0x67, 1, 0, 1, 0x65, 0x80, 1, 3, 0x41, 0x80}, false)
	f.Fuzz(func(t *testing.T, script []byte, hevc bool) {
		codec := capture.H264
		if hevc {
			codec = capture.H265
		}
		in, out := 0, 0
		a := rtsp.NewAssembler(codec, func(au *capture.AccessUnit) {
			if len(au.NALUs) == 0 {
				t.Fatal("an access unit without NAL units")
			}
			out += len(au.NALUs)
		})
		// four bytes a packet: time, marker and loss, two of the unit
		for ; len(script) >= 4; script = script[4:] {
			a.Packet(rtsp.NewArrival(uint32(script[0]), script[1]&1 != 0, time.Time{}), script[1]&2 != 0, script[2:4:4])
			in++
		}
		if out > in {
			t.Fatalf("%d units in, %d out", in, out)
		}
	})
}
