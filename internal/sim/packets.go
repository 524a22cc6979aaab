package sim

import (
	"fmt"

	"github.com/pion/rtp"
)

// packetised is a clip cut into RTP packets once for all cameras that play it.
// It is read-only: a camera sends copies of the headers, with a sequence number
// and a timestamp of its own, over the same payloads.
type packetised struct {
	samples [][]rtp.Packet // by sample; sequence numbers count from 0 within the clip
	total   uint16         // packets of the whole clip, modulo what a sequence number holds
}

// packetise cuts all of the clip.
func packetise(clip *ClipData) (*packetised, error) {
	encode, _, err := encoder(clip)
	if err != nil {
		return nil, fmt.Errorf("packetise clip: %w", err)
	}
	p := &packetised{samples: make([][]rtp.Packet, len(clip.Samples))}
	for i := range clip.Samples {
		packets, err := encode(clip.nalus(i))
		if err != nil {
			return nil, fmt.Errorf("packetise picture %d of the clip: %w", i, err)
		}
		for _, packet := range packets {
			packet.SequenceNumber = p.total
			p.total++
			p.samples[i] = append(p.samples[i], *packet)
		}
	}
	return p, nil
}

// nalus gives what is sent of sample i: parameter sets go before each random
// access point, as cameras do it.
func (c *ClipData) nalus(i int) [][]byte {
	s := &c.Samples[i]
	if !s.RandomAccess {
		return s.NALUs
	}
	return append(c.ParameterSets(), s.NALUs...)
}
