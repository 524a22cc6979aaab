package rtsp

import "github.com/bluenviron/mediacommon/v2/pkg/codecs/h264"

// h264Packets is RFC 6184. The packet types of its interleaved mode are read
// too, in the order in which they come: a camera that uses them out of place
// means nothing by it.
type h264Packets struct {
	frag fragments
	out  [][]byte
}

// vitalH264 says whether a picture is not whole without units of the type.
func vitalH264(typ h264.NALUType) bool {
	return typ >= h264.NALUTypeNonIDR && typ <= h264.NALUTypeIDR || typ == h264.NALUTypeSPS || typ == h264.NALUTypePPS
}

func (d *h264Packets) take(p *packet, lost bool) yield {
	clear(d.out)
	y := yield{nalus: d.out[:0]}
	if lost {
		d.frag.drop()
	}
	if len(p.payload) > 0 { // else padding alone
		d.payload(p, &y)
	}
	d.out, y.open = y.nalus, d.frag.open
	return y
}

func (d *h264Packets) payload(p *packet, y *yield) {
	b := p.payload
	typ := h264.NALUType(b[0] & 0x1f)
	switch {
	case typ == h264.NALUTypeFUA:
		d.fragment(p, y, 2)
		return
	case typ == h264.NALUTypeFUB:
		d.fragment(p, y, 4) // a decoding order number behind the header
		return
	}
	d.frag.broken(y)
	switch typ {
	case h264.NALUTypeSTAPA:
		d.aggregate(b[1:], 0, y)
	case h264.NALUTypeSTAPB:
		d.aggregate(skip(b, 3), 0, y)
	case h264.NALUTypeMTAP16:
		d.aggregate(skip(b, 3), 3, y)
	case h264.NALUTypeMTAP24:
		d.aggregate(skip(b, 3), 4, y)
	default:
		y.nalus = appendUnits(y.nalus, b)
	}
}

// aggregate reads units with a size before each, and between the two some bytes
// of no interest here. What is before a break in the list is good.
func (d *h264Packets) aggregate(b []byte, between int, y *yield) {
	for len(b) > 2 {
		size := int(b[0])<<8 | int(b[1])
		b = skip(b, 2+between)
		if size > len(b) {
			y.hurt = y.hurt || len(b) > 0 && vitalH264(h264.NALUType(b[0]&0x1f))
			return
		}
		// Aggregates do not nest: see RFC 6184 5.7.
		if size > 0 && h264.NALUType(b[0]&0x1f) < h264.NALUTypeSTAPA {
			y.nalus = appendUnits(y.nalus, b[:size])
		}
		b = b[size:]
	}
}

// fragment takes a part of a unit, whose bytes come after head bytes.
func (d *h264Packets) fragment(p *packet, y *yield, head int) {
	b := p.payload
	if len(b) < 2 {
		y.hurt = true
		return
	}
	typ := h264.NALUType(b[1] & 0x1f)
	d.frag.take(p, y, b[1], vitalH264(typ), skip(b, head), b[2:], b[0]&0xe0|byte(typ))
}

// skip leaves out the first n bytes, as far as there are any.
func skip(b []byte, n int) []byte { return b[min(n, len(b)):] }
