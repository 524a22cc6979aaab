package rtsp

import "github.com/bluenviron/mediacommon/v2/pkg/codecs/h265"

// h265Packets is RFC 7798. Where decoding order numbers are announced they are
// skipped: cameras that send them send in decoding order.
type h265Packets struct {
	donl bool
	frag fragments
	out  [][]byte
}

// headH265 is the size of a NAL unit's header, and of a payload's.
const headH265 = 2

// vitalH265 says whether a picture is not whole without units of the type.
func vitalH265(typ h265.NALUType) bool { return typ <= h265.NALUType_PPS_NUT }

func typeH265(b []byte) h265.NALUType { return h265.NALUType(b[0] >> 1 & 0x3f) }

func (d *h265Packets) take(p *packet, lost bool) yield {
	clear(d.out)
	y := yield{nalus: d.out[:0]}
	if lost {
		d.frag.drop()
	}
	d.payload(p, p.payload, &y)
	d.out, y.open = y.nalus, d.frag.open
	return y
}

func (d *h265Packets) payload(p *packet, b []byte, y *yield) {
	if len(b) <= headH265 {
		return // padding alone, or a unit without content
	}
	if typeH265(b) == h265.NALUType_PACI {
		if b = unwrapPACI(b); b == nil {
			return
		}
	}
	switch typeH265(b) {
	case h265.NALUType_FragmentationUnit:
		d.fragment(p, b, y)
	case h265.NALUType_AggregationUnit:
		d.frag.broken(y)
		d.aggregate(b[headH265:], y)
	case h265.NALUType_PACI:
		// They do not nest: see RFC 7798 4.4.4.
	default:
		d.frag.broken(y)
		if d.donl {
			b = without(b, headH265, headH265+2)
		}
		y.nalus = appendUnits(y.nalus, b)
	}
}

func (d *h265Packets) aggregate(b []byte, y *yield) {
	order := 0
	if d.donl {
		order = 2 // of the first unit; one byte of difference before each other
	}
	for len(b) > order+2 {
		b = b[order:]
		size := int(b[0])<<8 | int(b[1])
		b = b[2:]
		if size > len(b) {
			y.hurt = y.hurt || len(b) > 0 && vitalH265(typeH265(b))
			return
		}
		if size > 0 && typeH265(b) < h265.NALUType_AggregationUnit {
			y.nalus = appendUnits(y.nalus, b[:size])
		}
		b = b[size:]
		order = min(order, 1)
	}
}

func (d *h265Packets) fragment(p *packet, b []byte, y *yield) {
	typ, head := h265.NALUType(b[2]&0x3f), headH265+1
	if d.donl {
		head += 2
	}
	d.frag.take(p, y, b[2], vitalH265(typ), skip(b, head), b[3:], b[0]&0x81|byte(typ)<<1, b[1])
}

// unwrapPACI gives the payload that a PACI packet carries, with its own header;
// nil where it carries none (RFC 7798 4.4.4).
func unwrapPACI(b []byte) []byte {
	if len(b) < headH265+2 {
		return nil
	}
	a, kind := b[2]&0x80, b[2]>>1&0x3f
	extra := int(b[2]&1)<<4 | int(b[3]>>4) // PHSsize
	inner := headH265 + 2 + extra
	if inner >= len(b) {
		return nil
	}
	out := make([]byte, 0, len(b))
	out = append(out, a|kind<<1|b[0]&1, b[1])
	return append(out, b[inner:]...)
}

// without gives b less the bytes from..to; it does not change b.
func without(b []byte, from, to int) []byte {
	out := make([]byte, 0, len(b))
	out = append(out, b[:min(from, len(b))]...)
	return append(out, skip(b, to)...)
}
