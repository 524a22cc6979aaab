package sim

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/bluenviron/gortsplib/v4/pkg/description"
	"github.com/bluenviron/gortsplib/v4/pkg/format"
)

// plan is what a description promised, and the session then plays.
type plan struct {
	clip    *ClipData
	encode  packetizer // nil: there is nothing to play
	payload uint8
	sdp     []byte
}

// brokenAudio is an AAC track without the configuration that it must have:
// strict clients refuse the whole description for it.
const brokenAudio = "m=audio 0 RTP/AVP 97\r\na=rtpmap:97 MPEG4-GENERIC/16000/1\r\na=control:trackID=1\r\n"

var videoLine = regexp.MustCompile(`(?m)^m=video \S+ \S+ (\d+)`)

// plan describes the camera as its faults have it.
func (c *oddCamera) plan(now Faults, second bool) (plan, error) {
	p := plan{clip: c.clip}
	for _, other := range []string{faultH265, faultMJPEG} {
		if now.has(other) {
			var err error
			if p.clip, err = c.spare.get(other); err != nil {
				return plan{}, err
			}
		}
	}
	encode, f, err := encoder(p.clip)
	if err != nil {
		return plan{}, fmt.Errorf("packetise clip: %w", err)
	}
	p.encode = encode
	media := &description.Media{Type: description.MediaTypeVideo, Formats: []format.Format{f}, Control: "trackID=0"}
	switch {
	case now.has(faultNoVideo), now.has(faultSecondAudio) && second:
		media.Type, p.encode = description.MediaTypeAudio, nil
		media.Formats = []format.Format{&format.G711{PayloadTyp: 8, SampleRate: 8000, ChannelCount: 1}}
	case now.has(faultCodec):
		p.encode = nil
		// visual_object_sequence_start_code and a simple profile, enough for a
		// description
		media.Formats = []format.Format{&format.MPEG4Video{PayloadTyp: payloadType, ProfileLevelID: 1, Config: []byte{0, 0, 1, 0xb0, 1}}}
	case now.has(faultNoSprop):
		media.Formats = []format.Format{withoutSets(f)}
	}
	p.payload = media.Formats[0].PayloadType()
	session := description.Session{Title: "edgecam sim", Medias: []*description.Media{media}}
	if p.sdp, err = session.Marshal(false); err != nil {
		return plan{}, fmt.Errorf("describe clip: %w", err)
	}
	if bad := now.find(faultBadSDP); bad != nil {
		p.spoil(c.files[bad.text])
	}
	return p, nil
}

// spoil puts the text of a file in place of the description; without a file, it
// adds a track that breaks the rules.
func (p *plan) spoil(file []byte) {
	if file == nil {
		p.sdp = append(p.sdp, brokenAudio...)
		return
	}
	p.sdp = file
	if m := videoLine.FindSubmatch(file); m != nil {
		if n, err := strconv.ParseUint(string(m[1]), 10, 7); err == nil {
			p.payload = uint8(n)
		}
	}
}

func withoutSets(f format.Format) format.Format {
	switch f := f.(type) {
	case *format.H264:
		return &format.H264{PayloadTyp: f.PayloadTyp, PacketizationMode: f.PacketizationMode}
	case *format.H265:
		return &format.H265{PayloadTyp: f.PayloadTyp}
	default:
		return f
	}
}
