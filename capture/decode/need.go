package decode

import (
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h264"
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h265"

	"edgecam/capture"
)

// need is how many pictures libavcodec may hold at once.
type need struct {
	refs    int // decoded picture buffer, without the picture in work
	reorder int // held for display order on top of it
}

const (
	maxRefs = 16 // both standards

	// working are the picture in work, the one just handed out, and the last one,
	// which H.264's decoder keeps for concealment.
	working = 3
)

// slots is the sum.
func (n need) slots() int { return n.refs + n.reorder + working }

// unknownNeed is what a stream needs of whose parameter sets nothing is known.
func unknownNeed(c capture.Codec) need {
	if c == capture.MJPEG {
		return need{}
	}
	return need{refs: maxRefs, reorder: 2}
}

func needOf(c capture.Codec, sps []byte) need {
	if c == capture.H265 {
		return needH265(sps)
	}
	return needH264(sps)
}

func needH264(b []byte) need {
	var s h264.SPS
	if s.Unmarshal(b) != nil {
		return unknownNeed(capture.H264)
	}
	dpb := dpbH264(&s)
	refs := min(int(s.MaxNumRefFrames), maxRefs)
	reorder := dpb
	if s.VUI != nil && s.VUI.BitstreamRestriction != nil {
		dpb = max(int(s.VUI.BitstreamRestriction.MaxDecFrameBuffering), refs)
		reorder = int(s.VUI.BitstreamRestriction.MaxNumReorderFrames)
	}
	if s.PicOrderCntType == 2 || s.ProfileIdc == profileBaseline {
		reorder = 0 // output order is decoding order, Rec. ITU-T H.264 8.2.1.3, A.2.1
	}
	// libavcodec keeps references and pictures that wait for their turn apart:
	// the latter need not be references.
	return need{refs: min(max(refs, 1), maxRefs), reorder: min(reorder, dpb, maxRefs)}
}

const profileBaseline = 66

// colours is what a parameter set says of colours at all.
type colours struct{ signal, matrix bool }

// coloursH264 says whether the pictures have no chroma, and what is told of
// their colours.
func coloursH264(b []byte) (grey bool, c colours) {
	var s h264.SPS
	if s.Unmarshal(b) != nil {
		return false, c
	}
	if s.VUI != nil {
		c.signal = s.VUI.VideoSignalTypePresentFlag
		c.matrix = c.signal && s.VUI.ColourDescriptionPresentFlag
	}
	return s.ChromaFormatIdc == 0, c
}

// dpbH264 is MaxDpbFrames of the level, Rec. ITU-T H.264 A.3.1 and table A-1.
func dpbH264(s *h264.SPS) int {
	heightMbs := int(s.PicHeightInMapUnitsMinus1) + 1
	if !s.FrameMbsOnlyFlag {
		heightMbs *= 2
	}
	frame := (int(s.PicWidthInMbsMinus1) + 1) * heightMbs
	return min(max(maxDpbMbs(s.LevelIdc)/max(frame, 1), 1), maxRefs)
}

func maxDpbMbs(level uint8) int {
	switch {
	case level <= 10:
		return 396
	case level <= 11:
		return 900
	case level <= 20:
		return 2376
	case level <= 21:
		return 4752
	case level <= 30:
		return 8100
	case level <= 31:
		return 18000
	case level <= 32:
		return 20480
	case level <= 41:
		return 32768
	case level <= 42:
		return 34816
	case level <= 50:
		return 110400
	case level <= 52:
		return 184320
	}
	return 696320
}

func needH265(b []byte) need {
	var s h265.SPS
	if s.Unmarshal(b) != nil || len(s.MaxDecPicBufferingMinus1) == 0 {
		return unknownNeed(capture.H265)
	}
	// The buffer holds what waits for its turn too, Rec. ITU-T H.265 C.5.2.
	top := len(s.MaxDecPicBufferingMinus1) - 1
	return need{refs: min(int(s.MaxDecPicBufferingMinus1[top])+1, maxRefs), reorder: 1}
}

// blockH265 is the side of the coding tree blocks, in samples, 0 if it is not known.
func blockH265(b []byte) int {
	var s h265.SPS
	if s.Unmarshal(b) != nil {
		return 0
	}
	// 4 to 6 in the standard, Rec. ITU-T H.265 A.3
	log2 := s.Log2MinLumaCodingBlockSizeMinus3 + 3 + s.Log2DiffMaxMinLumaCodingBlockSize
	if log2 < 4 || log2 > 6 {
		return 0
	}
	return 1 << log2
}
