package rtsp_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"edgecam/capture"
	"edgecam/capture/rtsp"
)

func TestDepacketizer(t *testing.T) {
	// A packet is written in hex, with | and then: m = marker, ! = packets before
	// it are missing, t = it has the next time. Units come out in hex; < is before
	// one of the packets before, ? says that something is missing.
	tests := []struct {
		name  string
		codec capture.Codec
		donl  bool
		in    string
		want  string
	}{
		{"single", capture.H264, false, "4101 0605 6588|m", "4101 0605 6588"},
		{"FU-A", capture.H264, false, "7c85aa 7c05bb 7c45cc|m", "65aabbcc"},
		{"FU-A with start and end", capture.H264, false, "7cc5aabb|m", "65aabb"},
		{"FU-A without start", capture.H264, false, "7c05bb 7c45cc|m 4101|m", "? ? 4101"},
		{"FU-A of SEI without start", capture.H264, false, "7c46bb 4101|m", "4101"},
		{"FU-A with a gap", capture.H264, false, "7c85aa 7c45cc|!m 4101|m", "? 4101"},
		{"FU-A without end", capture.H264, false, "7c85aa 7c45bb 7c85cc|t 4101|t", "65aabb 4101 ?"},
		{"FU-A that never has an end: by marker", capture.H264, false, "7c85aa 7c05bb|m 5c81cc|t 5c01dd|m", "65aabb 41ccdd"},
		{"FU-A that never has an end: by time", capture.H264, false, "7c85aa 7c05bb 5c81cc|t 5c01dd 4101|t", "<65aabb <41ccdd 4101"},
		{"FU-A without content", capture.H264, false, "7c 7c85 7c45", "? 65"},
		{"FU-B", capture.H264, false, "7d850001aa 7c05bb 7c45cc|m", "65aabbcc"},
		{"STAP-A", capture.H264, false, "78000267010002680100034101bb", "6701 6801 4101bb"},
		{"STAP-A ends in zeros", capture.H264, false, "780002670100000000", "6701"},
		{"STAP-A with an empty unit", capture.H264, false, "7800000002670100024101", "6701 4101"},
		{"STAP-A with half a set", capture.H264, false, "78000241010009670102", "4101 ?"},
		{"STAP-A with half an SEI", capture.H264, false, "78000241010009060102", "4101"},
		{"STAP-A in STAP-A", capture.H264, false, "780005780002410100024102", "4102"},
		{"STAP-B", capture.H264, false, "790001000267010002680100024101", "6701 6801 4101"},
		{"MTAP16", capture.H264, false, "7a00010002000000670100020000006801", "6701 6801"},
		{"MTAP24", capture.H264, false, "7b0001000200000000670100020000000068010000", "6701 6801"},
		{"start codes", capture.H264, false, "00000001674200000168ce0000000165880000", "6742 68ce 65880000"},
		{"start codes in fragments", capture.H264, false, "7c87420000 7c4700000168ce|m", "6742 68ce"},
		{"single", capture.H265, false, "0201aa 2601bb|m", "0201aa 2601bb"},
		{"header alone", capture.H265, false, "0201 02 2601bb|m", "2601bb"},
		{"AP", capture.H265, false, "600100034001aa00034201bb", "4001aa 4201bb"},
		{"AP with half a unit", capture.H265, false, "600100034001aa000942", "4001aa ?"},
		{"AP in AP", capture.H265, false, "6001000460010000" + "00034001aa", "4001aa"},
		{"FU", capture.H265, false, "620193aa 620113bb 620153cc|m", "2601aabbcc"},
		{"FU with start and end", capture.H265, false, "6201d3aa|m", "2601aa"},
		{"FU without start", capture.H265, false, "620113bb 620153cc|m", "? ?"},
		{"FU of SEI without start", capture.H265, false, "620167bb 0201aa|m", "0201aa"},
		{"FU without content", capture.H265, false, "6201 620193 620153", "2601"},
		{"PACI", capture.H265, false, "64012600", ""},
		{"PACI with a unit", capture.H265, false, "64012610ffaabb", "2601aabb"},
		{"PACI with a fragment", capture.H265, false, "6401620093aa 6401620053bb", "2601aabb"},
		{"PACI in PACI", capture.H265, false, "64016400aabbcc 0201aa", "0201aa"},
		{"decoding order numbers: single", capture.H265, true, "02010007aa", "0201aa"},
		{"decoding order numbers: AP", capture.H265, true, "6001000700034001aa0000034201bb", "4001aa 4201bb"},
		{"decoding order numbers: FU", capture.H265, true, "6201930007aa 620153bb|m", "2601aabb"},
	}
	for _, tt := range tests {
		t.Run(string(tt.codec)+" "+tt.name, func(t *testing.T) {
			d := rtsp.NewDepacketizer(tt.codec, tt.donl)
			var got []string
			rtpTime := uint32(0)
			for packet := range strings.FieldsSeq(tt.in) {
				text, flags, _ := strings.Cut(packet, "|")
				payload, err := hex.DecodeString(text)
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(flags, "t") {
					rtpTime++
				}
				before, nalus, hurt, _ := d.Take(payload, rtpTime, strings.Contains(flags, "m"), strings.Contains(flags, "!"))
				if before != nil {
					got = append(got, "<"+hex.EncodeToString(before))
				}
				for _, nalu := range nalus {
					got = append(got, hex.EncodeToString(nalu))
				}
				if hurt {
					got = append(got, "?")
				}
			}
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("%s gives %q, want %q", tt.in, s, tt.want)
			}
		})
	}
}

// A unit that never ends is let go of.
func TestDepacketizerIsBounded(t *testing.T) {
	for codec, payloads := range map[capture.Codec][2][]byte{
		capture.H264: {append([]byte{0x7c, 0x85}, make([]byte, 60000)...), append([]byte{0x7c, 0x05}, make([]byte, 60000)...)},
		capture.H265: {append([]byte{0x62, 1, 0x93}, make([]byte, 60000)...), append([]byte{0x62, 1, 0x13}, make([]byte, 60000)...)},
	} {
		d := rtsp.NewDepacketizer(codec, false)
		d.Take(payloads[0], 0, false, false)
		larges := 0
		for range 300 {
			if _, _, _, large := d.Take(payloads[1], 0, false, false); large {
				larges++
			}
		}
		if larges != 1 {
			t.Errorf("%s: told %d times that a unit is too large", codec, larges)
		}
	}
}

func FuzzDepacketizer(f *testing.F) {
	for i, text := range []string{
		"7c85aa00 7c05bb 7c45cc", "7800026701000268010003", "7a00010002000000", "000000016742000001",
		"620193aa 620153bb", "600100034001aa", "64012610ffaabb", "00000000ff1401010100",
	} {
		var script []byte
		for packet := range strings.FieldsSeq(text) {
			b, err := hex.DecodeString(packet)
			if err != nil {
				f.Fatal(err)
			}
			script = append(append(script, byte(len(b)), byte(i)), b...)
		}
		f.Add(script, byte(i/4))
	}
	f.Fuzz(func(t *testing.T, script []byte, kind byte) {
		codec := []capture.Codec{capture.H264, capture.H265, capture.H265, capture.MJPEG}[kind&3]
		d := rtsp.NewDepacketizer(codec, kind&3 == 2)
		in, out := 0, 0
		// two bytes before each packet: its size, and flags with the time
		for len(script) >= 2 {
			size, flags := min(int(script[0]), len(script)-2), script[1]
			payload := script[2:][:size:size]
			sum := bytes.Clone(payload)
			before, nalus, _, _ := d.Take(payload, uint32(flags>>4), flags&1 != 0, flags&2 != 0)
			if !bytes.Equal(sum, payload) {
				t.Fatal("the payload was changed")
			}
			in += size
			for _, nalu := range append(nalus, before) {
				out += len(nalu)
			}
			for _, nalu := range nalus {
				if len(nalu) == 0 {
					t.Fatal("an empty unit")
				}
			}
			script = script[2+size:]
		}
		// A fragment's head of three bytes becomes one of two; JPEG files have heads.
		if codec != capture.MJPEG && out > 2*in {
			t.Fatalf("%d bytes in, %d out", in, out)
		}
	})
}
