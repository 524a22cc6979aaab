package rtsp

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h264"
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h265"

	"edgecam/capture"
)

// decodeSets reads comma separated base64 parameter sets and leaves out what
// is none. Some cameras put Annex B start codes before them, or several sets
// in one.
func decodeSets(value string) [][]byte {
	var sets [][]byte
	for text := range strings.SplitSeq(value, ",") {
		raw, ok := decodeBase64(strings.TrimSpace(text))
		if !ok {
			continue
		}
		for set := range bytes.SplitSeq(raw, []byte{0, 0, 1}) {
			// A start code of four bytes leaves its first one with the set before.
			if set = bytes.TrimRight(set, "\x00"); len(set) > 0 {
				sets = append(sets, set)
			}
		}
	}
	return sets
}

// decodeBase64 takes either alphabet, with and without padding.
func decodeBase64(text string) ([]byte, bool) {
	text = strings.TrimRight(text, "=")
	coding := base64.RawStdEncoding
	if strings.ContainsAny(text, "-_") {
		coding = base64.RawURLEncoding
	}
	raw, err := coding.DecodeString(text)
	return raw, err == nil
}

// The kinds of parameter sets, in the order in which a decoder wants them.
const (
	setVPS = iota
	setSPS
	setPPS
	setKinds
)

// setKind tells what a NAL unit is among parameter sets; ok is false for
// others, and for sequence parameter sets that cannot be read.
func setKind(codec capture.Codec, nalu []byte) (kind int, ok bool) {
	switch {
	case codec == capture.H264 && len(nalu) > 1:
		switch h264.NALUType(nalu[0] & 0x1f) {
		case h264.NALUTypeSPS:
			return setSPS, new(h264.SPS).Unmarshal(nalu) == nil
		case h264.NALUTypePPS:
			return setPPS, true
		}
	case codec == capture.H265 && len(nalu) > 2:
		switch h265.NALUType(nalu[0] >> 1 & 0x3f) {
		case h265.NALUType_VPS_NUT:
			return setVPS, true
		case h265.NALUType_SPS_NUT:
			return setSPS, new(h265.SPS).Unmarshal(nalu) == nil
		case h265.NALUType_PPS_NUT:
			return setPPS, true
		}
	}
	return 0, false
}

// maxSets bounds what is kept of one kind.
const maxSets = 16

// setKeeper sees to it that whoever starts to decode finds all parameter sets
// in front of the picture. Cameras send some or all of them in the description
// alone, or once at the start, or with each key picture, in any mixture.
type setKeeper struct {
	codec capture.Codec
	known [setKinds][][]byte
	begun bool
}

func newSetKeeper(codec capture.Codec, described [][]byte) *setKeeper {
	k := &setKeeper{codec: codec}
	for _, set := range described {
		if kind, ok := setKind(codec, set); ok && len(k.known[kind]) < maxSets {
			k.known[kind] = append(k.known[kind], set)
		}
	}
	return k
}

// described are the sets that are known, in order; none where a kind is
// missing, as a decoder cannot begin with those alone.
func (k *setKeeper) described() [][]byte {
	for kind := range setKinds {
		if len(k.known[kind]) == 0 && k.needs(kind) {
			return nil
		}
	}
	return slices.Concat(k.known[:]...)
}

func (k *setKeeper) needs(kind int) bool {
	return k.codec == capture.H265 || k.codec == capture.H264 && kind != setVPS
}

// fill puts the kinds that are missing in front of a picture that decoding may
// start at.
func (k *setKeeper) fill(au *capture.AccessUnit) {
	if k.codec == capture.MJPEG {
		return
	}
	present := k.learn(au.NALUs)
	if k.begun && !au.RandomAccess && !au.LossBefore {
		return
	}
	k.begun = true
	for kind := range setKinds {
		if !present[kind] && len(k.known[kind]) > 0 {
			au.NALUs = k.front(au.NALUs)
			return
		}
	}
}

// front gives all sets that are known, in order, and then the rest of a unit,
// whose own sets are among them.
func (k *setKeeper) front(nalus [][]byte) [][]byte {
	out := slices.Concat(k.known[:]...)
	for _, n := range nalus {
		if _, ok := setKind(k.codec, n); !ok {
			out = append(out, n)
		}
	}
	return out
}

// learn remembers the sets of a unit, and says which kinds it has.
func (k *setKeeper) learn(nalus [][]byte) (present [setKinds]bool) {
	for _, n := range nalus {
		kind, ok := setKind(k.codec, n)
		if !ok {
			continue
		}
		if !present[kind] {
			// What comes together is in force together: older ones go.
			present[kind] = true
			k.known[kind] = nil
		}
		if len(k.known[kind]) < maxSets {
			k.known[kind] = append(k.known[kind], n)
		}
	}
	return present
}
