package rtsp

// agreement is what was agreed on with the camera before video plays.
type agreement struct {
	payload uint8     // type of the video's packets
	others  [128]bool // types that the description gives to other tracks
}

// adoptAfter is how many packets in a row must come from elsewhere, and none from
// where they should, before they are taken for the video.
const adoptAfter = 8

// origin is where packets come from, and what they say that they are.
type origin struct {
	channel, payload byte
	ssrc             uint32
}

// adoption gives packets of the video the channel and the payload type that were
// agreed on. Cameras were seen to send on the channels that were asked for though
// they had named others, on the one for reports, and with another type than the
// description's, or another one from some picture on.
type adoption struct {
	channel   byte
	hasOne    bool // channel is known
	current   origin
	playing   bool // current is where the video comes from
	candidate origin
	last      uint16 // sequence number of candidate's last packet
	n         int    // packets of candidate in a row
}

// adopt puts right a frame that holds RTP.
func (a *adoption) adopt(b []byte, agreed *agreement) {
	if !a.hasOne || agreed == nil {
		return
	}
	rtp := b[frameHead:]
	o := origin{channel: b[1], payload: rtp[1] & 0x7f, ssrc: ssrcOf(rtp)}
	seq := uint16(rtp[2])<<8 | uint16(rtp[3])
	if !a.belongs(o, seq, agreed) {
		return
	}
	a.current, a.playing = o, true
	b[1], rtp[1] = a.channel, rtp[1]&0x80|agreed.payload
}

// belongs says whether a packet is the video's.
func (a *adoption) belongs(o origin, seq uint16, agreed *agreement) bool {
	switch {
	case o.channel == a.channel && o.payload == agreed.payload:
		a.n = 0
		return true
	case o.payload != agreed.payload && (o.payload < 96 || agreed.others[o.payload]):
		return false
	case a.playing && o == a.current:
		return true
	case a.playing && (o.channel != a.current.channel || o.ssrc != a.current.ssrc):
		return false
	case o != a.candidate || seq != a.last+1:
		a.candidate, a.n = o, 0
	}
	a.last = seq
	a.n++
	return a.n >= adoptAfter
}

// repairExtension hides elements of a header extension that run over its end:
// the library would drop the packet, and nothing of ours needs them.
func repairExtension(rtp []byte) {
	const extension, oneByte, twoBytes = 0x10, 0xbede, 0x1000
	head := rtpHead + 4*int(rtp[0]&0x0f)
	if rtp[0]&extension == 0 || len(rtp) < head+4 {
		return
	}
	size := 4 * (int(rtp[head+2])<<8 | int(rtp[head+3]))
	if len(rtp) < head+4+size {
		return
	}
	profile := int(rtp[head])<<8 | int(rtp[head+1])
	elements := rtp[head+4 : head+4+size]
	if profile == oneByte && !fit(elements, false) || profile&0xfff0 == twoBytes && !fit(elements, true) {
		rtp[head], rtp[head+1] = 0, 0
	}
}

// fit says whether the elements of an extension (RFC 8285) end within it.
func fit(b []byte, twoBytes bool) bool {
	for len(b) > 0 {
		if b[0] == 0 { // padding
			b = b[1:]
			continue
		}
		size := 2 + int(b[0]&0x0f)
		if twoBytes {
			if len(b) < 2 {
				return false
			}
			size = 2 + int(b[1])
		} else if b[0]>>4 == 15 {
			return true // nothing behind it counts
		}
		if size > len(b) {
			return false
		}
		b = b[size:]
	}
	return true
}

// agree is what the description says of the chosen track.
func (s sessionText) agree(t *track) *agreement {
	a := &agreement{payload: t.payload}
	for _, m := range s.medias {
		for _, f := range m.formats {
			a.others[f.payload] = a.others[f.payload] || f.payload != t.payload
		}
	}
	return a
}
