package rtsp

import (
	"time"

	"edgecam/capture"
)

// Arrival and Assembler let tests hand NAL units in as a camera would.
type (
	Arrival   = arrival
	Assembler = assembler
	Timeline  = timeline
)

// NewArrival makes the facts of one packet.
func NewArrival(rtpTime uint32, marker bool, received time.Time) Arrival {
	return Arrival{rtpTime: rtpTime, marker: marker, received: received}
}

// NewAssembler makes one that hands its units to emit.
func NewAssembler(codec capture.Codec, emit func(*capture.AccessUnit)) *Assembler {
	return &Assembler{codec: codec, emit: emit}
}

// Packet hands a packet's NAL units in.
func (a *Assembler) Packet(at Arrival, lost bool, nalus ...[]byte) {
	a.packet(at, yield{nalus: nalus}, lost)
}

// Hurt hands a packet in that was not understood.
func (a *Assembler) Hurt(at Arrival) { a.packet(at, yield{hurt: true}, false) }

// Expire says what time it is.
func (a *Assembler) Expire(now time.Time) { a.expire(now) }

// At maps the RTP time of a picture that came at a time.
func (t *Timeline) At(rtpTime uint32, received time.Time) time.Duration {
	return t.at(rtpTime, received)
}

// ReadNAL is the classification of one unit.
func ReadNAL(codec capture.Codec, nalu []byte) (random bool) { return readNAL(codec, nalu).random }
