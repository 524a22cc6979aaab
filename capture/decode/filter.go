package decode

import (
	"bytes"
	"slices"

	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h264"
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h265"

	"edgecam/capture"
)

// kind says what a NAL unit is to the decoder.
type kind uint8

const (
	kindDrop  kind = iota
	kindVPS        // in the order in which a decoder wants them
	kindSPS        //
	kindPPS        //
	kindExtra      // goes along with a picture
	kindSlice      // part of a picture
)

// filter chooses the NAL units that the decoder gets. Supplemental information
// stays out, but for H.264's recovery points: nothing reads it, and cameras put
// private things in it which a strict decoder stumbles over.
type filter struct {
	codec capture.Codec
	need  need
	grey  bool     // H.264: pictures have no chroma
	block int      // H.265: side of the squares that pictures are coded in
	sps   []byte   // the last one that need comes from
	told  colours  // H.264: what that one says of colours
	stale bool     // H.264: libavcodec goes by what an older one said of them
	known []set    // H.264: the parameter sets of now, for a decoder that is opened again
	held  [][]byte // parameter sets that came without a picture
	out   [][]byte
}

func newFilter(c capture.Codec) filter { return filter{codec: c, need: unknownNeed(c)} }

// parts are the parts of a unit for the decoder, valid until the next call;
// none if the unit has no picture. Parameter sets that come alone go with the
// next picture: a decoder takes a unit without one as damage.
func (f *filter) parts(nalus [][]byte) [][]byte {
	if f.codec == capture.MJPEG {
		return nalus
	}
	f.out = append(f.out[:0], f.held...)
	picture := false
	for _, n := range nalus {
		k := f.kindOf(n)
		if k == kindDrop {
			continue
		}
		if k == kindSPS || k == kindPPS {
			f.learn(k, n)
		}
		picture = picture || k == kindSlice
		f.out = append(f.out, n)
	}
	f.held = f.held[:0]
	if picture {
		return f.out
	}
	f.hold(f.out)
	return nil
}

// maxHeld bounds what a stream of nothing but parameter sets can pile up: more
// than any stream has in one place.
const maxHeld = 16

func (f *filter) hold(nalus [][]byte) {
	for _, n := range nalus {
		if f.kindOf(n) != kindExtra {
			f.held = append(f.held, n)
		}
	}
	if over := len(f.held) - maxHeld; over > 0 {
		f.held = slices.Delete(f.held, 0, over)
	}
}

// parameterSets sorts the usable ones into the decoder's order; descriptions of
// sessions name them in any.
func (f *filter) parameterSets(nalus [][]byte) [][]byte {
	var sets [][]byte
	for _, n := range nalus {
		if k := f.kindOf(n); k >= kindVPS && k <= kindPPS {
			sets = append(sets, n)
		}
	}
	slices.SortStableFunc(sets, func(a, b []byte) int { return int(f.kindOf(a)) - int(f.kindOf(b)) })
	for _, n := range sets {
		f.learn(f.kindOf(n), n)
	}
	return sets
}

// learn remembers a parameter set, and takes from a sequence parameter set how
// many pictures the decoder holds.
func (f *filter) learn(k kind, n []byte) {
	if f.codec == capture.H264 {
		f.remember(k, n)
	}
	if k != kindSPS || bytes.Equal(n, f.sps) {
		return
	}
	f.sps = append(f.sps[:0], n...)
	f.need = needOf(f.codec, n)
	f.grey, f.block = false, 0
	if f.codec == capture.H265 {
		f.block = blockH265(n)
		return
	}
	told := f.told
	f.grey, f.told = coloursH264(n)
	f.stale = f.stale || told.signal && !f.told.signal || told.matrix && !f.told.matrix
}

func (f *filter) kindOf(n []byte) kind {
	switch {
	case f.codec == capture.H264 && len(n) >= 2:
		return kindH264(n)
	case f.codec == capture.H265 && len(n) >= 3:
		return kindH265(n)
	}
	return kindDrop
}

func kindH264(n []byte) kind {
	const recoveryPoint = 6 // payload type, Rec. ITU-T H.264 D.1.1
	switch h264.NALUType(n[0] & 31) {
	case h264.NALUTypeNonIDR, h264.NALUTypeDataPartitionA, h264.NALUTypeDataPartitionB,
		h264.NALUTypeDataPartitionC, h264.NALUTypeIDR:
		return kindSlice
	case h264.NALUTypeSPS:
		return kindSPS
	case h264.NALUTypePPS:
		return kindPPS
	case h264.NALUTypeSEI:
		if n[1] == recoveryPoint {
			return kindExtra
		}
	case h264.NALUTypeEndOfSequence, h264.NALUTypeEndOfStream:
		return kindExtra
	}
	return kindDrop
}

func kindH265(n []byte) kind {
	if n[0]&1 != 0 || n[1]>>3 != 0 {
		return kindDrop // a layer above the base: scalable and multiview extensions
	}
	t := h265.NALUType(n[0] >> 1 & 63)
	switch {
	case t <= h265.NALUType_RASL_R || (t >= h265.NALUType_BLA_W_LP && t <= h265.NALUType_CRA_NUT):
		return kindSlice
	case t == h265.NALUType_VPS_NUT:
		return kindVPS
	case t == h265.NALUType_SPS_NUT:
		return kindSPS
	case t == h265.NALUType_PPS_NUT:
		return kindPPS
	case t == h265.NALUType_EOS_NUT || t == h265.NALUType_EOB_NUT:
		return kindExtra
	}
	return kindDrop
}
