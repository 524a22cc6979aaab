package rtsp_test

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"edgecam/capture/rtsp"
)

// blocksJPEG makes a JPEG file of flat blocks of 8×8 samples, with any sampling
// of the brightness and with restart markers: other encoders here have their own
// mind about both. Width and height are multiples of an MCU.
func blocksJPEG(sampling byte, width, height, restart int, value func(part, block int) int) []byte {
	codes := huffmanCodes()
	w := &bitWriter{}
	h, v := int(sampling>>4), int(sampling&15)
	var last [3]int
	var count [3]int
	mcus := width / (8 * h) * (height / (8 * v))
	for mcu := range mcus {
		if restart > 0 && mcu > 0 && mcu%restart == 0 {
			w.flush()
			w.out = append(w.out, 0xff, byte(0xd0+(mcu/restart-1)%8))
			last = [3]int{}
		}
		for part := range 3 {
			blocks := 1
			if part == 0 {
				blocks = h * v
			}
			for range blocks {
				dc := 8 * (value(part, count[part]) - 128)
				count[part]++
				tables := codes[min(part, 1)]
				w.value(tables[0], dc-last[part])
				w.code(tables[1][0]) // end of block
				last[part] = dc
			}
		}
	}
	w.flush()
	ones := slices.Repeat([]byte{1}, 64)
	b := []byte{0xff, 0xd8}
	b = jpegSegment(b, 0xdb, append([]byte{0}, ones...))
	b = jpegSegment(b, 0xdb, append([]byte{1}, ones...))
	b = jpegSegment(b, 0xc0, []byte{8, byte(height >> 8), byte(height), byte(width >> 8), byte(width), 3, 1, sampling, 0, 2, 0x11, 1, 3, 0x11, 1})
	b = jpegSegment(b, 0xc4, rtsp.StandardHuffman())
	if restart > 0 {
		b = jpegSegment(b, 0xdd, []byte{byte(restart >> 8), byte(restart)})
	}
	b = jpegSegment(b, 0xda, []byte{3, 1, 0, 2, 0x11, 3, 0x11, 0, 63, 0})
	return append(append(b, w.out...), 0xff, 0xd9)
}

func jpegSegment(b []byte, marker byte, content []byte) []byte {
	b = binary.BigEndian.AppendUint16(append(b, 0xff, marker), uint16(2+len(content)))
	return append(b, content...)
}

// huffCode is a code and its length.
type huffCode struct{ code, length int }

// huffmanCodes are the standard's, by table id and class (DC, AC) and symbol.
func huffmanCodes() (out [2][2]map[byte]huffCode) {
	b := rtsp.StandardHuffman()
	for len(b) > 0 {
		class, id, lengths := b[0]>>4, b[0]&15, b[1:17]
		b = b[17:]
		m, code := map[byte]huffCode{}, 0
		for i, n := range lengths {
			for range n {
				m[b[0]] = huffCode{code, i + 1}
				b = b[1:]
				code++
			}
			code <<= 1
		}
		out[id][class] = m
	}
	return out
}

type bitWriter struct {
	out  []byte
	word uint64
	n    int
}

func (w *bitWriter) bits(v, n int) {
	w.word = w.word<<n | uint64(v)&(1<<n-1)
	for w.n += n; w.n >= 8; w.n -= 8 {
		b := byte(w.word >> (w.n - 8))
		if w.out = append(w.out, b); b == 0xff {
			w.out = append(w.out, 0)
		}
	}
}

func (w *bitWriter) code(c huffCode) { w.bits(c.code, c.length) }

func (w *bitWriter) value(table map[byte]huffCode, v int) {
	size := bits.Len(uint(max(v, -v)))
	w.code(table[byte(size)])
	if v < 0 {
		v--
	}
	w.bits(v, size)
}

func (w *bitWriter) flush() {
	if w.n > 0 {
		w.bits(1<<(8-w.n)-1, 8-w.n)
	}
}
