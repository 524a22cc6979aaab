package rtsp

import (
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h264"
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h265"

	"edgecam/capture"
)

// role is what a NAL unit means for the borders of access units.
type role uint8

const (
	rolePicture  role = iota // first slice of a picture
	roleSlice                // another slice of the same picture
	rolePrefix               // comes before the picture that it belongs to: parameter sets, AUD, SEI
	roleBorder               // comes first in an access unit: AUD
	roleTrailing             // belongs to the picture before: suffix SEI, end of sequence
	roleNone                 // nothing that a decoder of the base layer needs: filler, extensions, what no standard defines
)

// nalUnit is what the assembler must know of a NAL unit.
type nalUnit struct {
	role   role
	random bool // decoding can start at the access unit that holds it
}

// readNAL looks at the head of a NAL unit; it does not fail on any bytes.
func readNAL(codec capture.Codec, nalu []byte) nalUnit {
	var u nalUnit
	if len(nalu) == 0 {
		return nalUnit{role: roleNone}
	}
	content := 2 // bytes of a slice that says anything
	if codec == capture.H265 {
		u, content = readH265(nalu), 3
	} else {
		u = readH264(nalu)
	}
	if (u.role == rolePicture || u.role == roleSlice) && len(nalu) < content {
		return nalUnit{role: roleNone}
	}
	return u
}

func readH264(nalu []byte) nalUnit {
	switch typ := h264.NALUType(nalu[0] & 0x1f); typ {
	case h264.NALUTypeNonIDR, h264.NALUTypeDataPartitionA, h264.NALUTypeIDR:
		u := nalUnit{role: roleSlice, random: typ == h264.NALUTypeIDR}
		// first_mb_in_slice is the slice header's first field, ue(v): a leading
		// 1 bit is the value 0 (H.264 7.3.3).
		if len(nalu) > 1 && nalu[1]&0x80 != 0 {
			u.role = rolePicture
		}
		return u
	case h264.NALUTypeDataPartitionB, h264.NALUTypeDataPartitionC:
		return nalUnit{role: roleSlice}
	case h264.NALUTypeSEI:
		return nalUnit{role: rolePrefix, random: hasRecoveryPoint(nalu[1:])}
	case h264.NALUTypeSPS, h264.NALUTypePPS, h264.NALUTypeSPSExtension, h264.NALUTypeSubsetSPS:
		return nalUnit{role: rolePrefix}
	case h264.NALUTypeAccessUnitDelimiter:
		return nalUnit{role: roleBorder}
	case h264.NALUTypeEndOfSequence, h264.NALUTypeEndOfStream:
		return nalUnit{role: roleTrailing}
	default:
		return nalUnit{role: roleNone}
	}
}

func readH265(nalu []byte) nalUnit {
	typ := h265.NALUType((nalu[0] >> 1) & 0x3f)
	switch {
	case nalu[0]&1 != 0, len(nalu) > 1 && nalu[1]>>3 != 0:
		return nalUnit{role: roleNone} // a layer above the base
	case typ <= h265.NALUType_RASL_R, typ >= h265.NALUType_BLA_W_LP && typ <= h265.NALUType_CRA_NUT:
		u := nalUnit{role: roleSlice, random: typ >= h265.NALUType_BLA_W_LP && typ <= h265.NALUType_CRA_NUT}
		// first_slice_segment_in_pic_flag (H.265 7.3.6.1)
		if len(nalu) > 2 && nalu[2]&0x80 != 0 {
			u.role = rolePicture
		}
		return u
	case typ == h265.NALUType_PREFIX_SEI_NUT:
		return nalUnit{role: rolePrefix, random: len(nalu) > 2 && hasRecoveryPoint(nalu[2:])}
	case typ >= h265.NALUType_VPS_NUT && typ <= h265.NALUType_PPS_NUT:
		return nalUnit{role: rolePrefix}
	case typ == h265.NALUType_AUD_NUT:
		return nalUnit{role: roleBorder}
	case typ == h265.NALUType_SUFFIX_SEI_NUT, typ == h265.NALUType_EOS_NUT, typ == h265.NALUType_EOB_NUT:
		return nalUnit{role: roleTrailing}
	default:
		return nalUnit{role: roleNone}
	}
}

// recoveryPoint is the payload type of the recovery point SEI message
// (H.264 D.1.8, H.265 D.2.8): streams without IDR pictures mark with it where
// decoding may start.
const recoveryPoint = 6

// hasRecoveryPoint walks the messages of an SEI unit's payload. Emulation
// prevention bytes are left in: the message that we look for comes first or
// after short ones in practice, and a miss only means a later start.
func hasRecoveryPoint(payload []byte) bool {
	for len(payload) > 2 {
		kind, rest := seiNumber(payload)
		size, rest := seiNumber(rest)
		if kind == recoveryPoint && size > 0 {
			return true
		}
		if size >= len(rest) {
			return false
		}
		payload = rest[size:]
	}
	return false
}

// seiNumber reads a count coded as 0xff bytes and a last byte (H.264 7.3.2.3.1).
func seiNumber(b []byte) (n int, rest []byte) {
	for len(b) > 0 {
		last := b[0]
		n += int(last)
		b = b[1:]
		if last != 0xff {
			break
		}
	}
	return n, b
}
