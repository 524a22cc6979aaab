package sim

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/abema/go-mp4"

	"edgecam/capture"
)

// The bounds of what is taken from a file, so that a broken one cannot ask for
// more memory than it has bytes.
const (
	maxSamples     = 1 << 20  // ten hours at 29 frames a second
	maxSampleBytes = 64 << 20 // of one picture
	maxClipBytes   = 1 << 30  // of all
)

// mjpegObject is MPEG-4's object type of JPEG pictures (ISO/IEC 14496-1 table 5).
const mjpegObject = 0x6c

// mp4Track is the tables of one track.
type mp4Track struct {
	clip    *ClipData // with the codec and its parameter sets
	lengths int       // bytes of a NAL unit's length; 0 = samples are whole pictures
	scale   uint32    // ticks a second
	times   *mp4.Stts
	shifts  *mp4.Ctts // nil = none
	syncs   *mp4.Stss // nil = every sample is one
	chunks  *mp4.Stsc
	sizes   *mp4.Stsz
	places  []uint64
}

// findTrack gives the first video track that can be played; nil = none.
func findTrack(r io.ReadSeeker) (*mp4Track, error) {
	traks, err := mp4.ExtractBox(r, nil, mp4.BoxPath{mp4.BoxTypeMoov(), mp4.BoxTypeTrak()})
	if err != nil {
		return nil, fmt.Errorf("read MP4: %w", err)
	}
	for _, trak := range traks {
		t, err := readTrack(r, trak)
		if err != nil {
			return nil, fmt.Errorf("read MP4 track: %w", err)
		}
		if t.clip != nil {
			return t, nil
		}
	}
	return nil, nil
}

func readTrack(r io.ReadSeeker, trak *mp4.BoxInfo) (*mp4Track, error) {
	table := func(last ...mp4.BoxType) mp4.BoxPath {
		return append(mp4.BoxPath{mp4.BoxTypeMdia(), mp4.BoxTypeMinf(), mp4.BoxTypeStbl()}, last...)
	}
	boxes, err := mp4.ExtractBoxesWithPayload(r, trak, []mp4.BoxPath{
		{mp4.BoxTypeMdia(), mp4.BoxTypeMdhd()},
		table(mp4.BoxTypeStts()), table(mp4.BoxTypeCtts()), table(mp4.BoxTypeStss()), table(mp4.BoxTypeStsc()),
		table(mp4.BoxTypeStsz()), table(mp4.BoxTypeStco()), table(mp4.BoxTypeCo64()),
		table(mp4.BoxTypeStsd(), mp4.BoxTypeAvc1(), mp4.BoxTypeAvcC()),
		table(mp4.BoxTypeStsd(), mp4.BoxTypeHvc1(), mp4.BoxTypeHvcC()),
		table(mp4.BoxTypeStsd(), mp4.BoxTypeHev1(), mp4.BoxTypeHvcC()),
		table(mp4.BoxTypeStsd(), mp4.BoxTypeMp4v(), mp4.BoxTypeEsds()),
	})
	if err != nil {
		return nil, err
	}
	t := &mp4Track{}
	for _, box := range boxes {
		t.take(box.Payload)
	}
	return t, nil
}

func (t *mp4Track) take(payload mp4.IBox) {
	switch box := payload.(type) {
	case *mp4.Mdhd:
		t.scale = box.Timescale
	case *mp4.Stts:
		t.times = box
	case *mp4.Ctts:
		t.shifts = box
	case *mp4.Stss:
		t.syncs = box
	case *mp4.Stsc:
		t.chunks = box
	case *mp4.Stsz:
		t.sizes = box
	case *mp4.Stco:
		for _, at := range box.ChunkOffset {
			t.places = append(t.places, uint64(at))
		}
	case *mp4.Co64:
		t.places = append(t.places, box.ChunkOffset...)
	case *mp4.AVCDecoderConfiguration:
		t.clip, t.lengths = &ClipData{Codec: capture.H264}, int(box.LengthSizeMinusOne)+1
		if len(box.SequenceParameterSets) > 0 {
			t.clip.SPS = box.SequenceParameterSets[0].NALUnit
		}
		if len(box.PictureParameterSets) > 0 {
			t.clip.PPS = box.PictureParameterSets[0].NALUnit
		}
	case *mp4.HvcC:
		t.clip, t.lengths = h265Clip(box), int(box.LengthSizeMinusOne)+1
	case *mp4.Esds:
		for _, d := range box.Descriptors {
			if c := d.DecoderConfigDescriptor; c != nil && c.ObjectTypeIndication == mjpegObject {
				t.clip = &ClipData{Codec: capture.MJPEG}
			}
		}
	}
}

func h265Clip(box *mp4.HvcC) *ClipData {
	clip := &ClipData{Codec: capture.H265}
	for _, array := range box.NaluArrays {
		if len(array.Nalus) == 0 {
			continue
		}
		switch array.NaluType { // H.265 table 7-1
		case 32:
			clip.VPS = array.Nalus[0].NALUnit
		case 33:
			clip.SPS = array.Nalus[0].NALUnit
		case 34:
			clip.PPS = array.Nalus[0].NALUnit
		}
	}
	return clip
}

// load reads the track's samples into its clip.
func (t *mp4Track) load(r io.ReadSeeker) error {
	switch {
	case t.scale == 0, t.times == nil, t.chunks == nil, t.sizes == nil:
		return errors.New("read MP4: the video track lacks its tables")
	case t.clip.Codec != capture.MJPEG && (len(t.clip.SPS) == 0 || len(t.clip.PPS) == 0):
		return errors.New("read MP4: the video track has no parameter sets")
	case t.sizes.SampleCount > maxSamples:
		return fmt.Errorf("read MP4: %d pictures are too many", t.sizes.SampleCount)
	}
	t.clip.Samples = make([]Sample, 0, len(t.sizes.EntrySize))
	if err := t.loadPictures(r); err != nil {
		return err
	}
	t.setTimes()
	t.setSyncs()
	switch {
	case len(t.clip.Samples) == 0 || t.clip.Duration <= 0:
		return errors.New("read MP4: the video track is empty")
	case !t.clip.Samples[0].RandomAccess:
		return errors.New("read MP4: the clip does not begin with a key frame")
	}
	return nil
}

// loadPictures walks the chunks: stsc gives runs of chunks with the same
// number of samples.
func (t *mp4Track) loadPictures(r io.ReadSeeker) error {
	total := 0
	run := -1
	for chunk, place := range t.places {
		for run+1 < len(t.chunks.Entries) && uint64(t.chunks.Entries[run+1].FirstChunk) <= uint64(chunk)+1 {
			run++
		}
		if run < 0 {
			return errors.New("read MP4: the first chunk has no samples")
		}
		for range t.chunks.Entries[run].SamplesPerChunk {
			i := len(t.clip.Samples)
			if i == int(t.sizes.SampleCount) {
				return nil
			}
			size := t.sizes.SampleSize
			if size == 0 && i < len(t.sizes.EntrySize) {
				size = t.sizes.EntrySize[i]
			}
			if total += int(size); size == 0 || size > maxSampleBytes || total > maxClipBytes {
				return fmt.Errorf("read MP4: picture %d has %d bytes", i+1, size)
			}
			nalus, err := t.loadPicture(r, int64(place), int64(size))
			if err != nil {
				return fmt.Errorf("read MP4 picture %d: %w", i+1, err)
			}
			t.clip.Samples = append(t.clip.Samples, Sample{NALUs: nalus, RandomAccess: true})
			place += uint64(size)
		}
	}
	return nil
}

func (t *mp4Track) loadPicture(r io.ReadSeeker, place, size int64) ([][]byte, error) {
	if _, err := r.Seek(place, io.SeekStart); err != nil {
		return nil, err
	}
	// Grows with what is there, not with what a broken table says.
	data, err := io.ReadAll(io.LimitReader(r, size))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) < size {
		return nil, io.ErrUnexpectedEOF
	}
	if t.lengths == 0 {
		return [][]byte{data}, nil
	}
	return splitUnits(data, t.lengths)
}

// splitUnits takes NAL units apart that have their length before them
// (ISO/IEC 14496-15 5.3.4.2).
func splitUnits(data []byte, lengths int) ([][]byte, error) {
	var units [][]byte
	for len(data) > 0 {
		if len(data) < lengths {
			return nil, errors.New("a NAL unit has no length")
		}
		n := uint64(0)
		for _, b := range data[:lengths] {
			n = n<<8 | uint64(b)
		}
		data = data[lengths:]
		if n == 0 || n > uint64(len(data)) {
			return nil, fmt.Errorf("a NAL unit of %d bytes does not fit into the %d that are left", n, len(data))
		}
		units = append(units, data[:n:n])
		data = data[n:]
	}
	return units, nil
}

func (t *mp4Track) ticks(n uint64) time.Duration {
	scale := uint64(t.scale)
	return time.Duration(n/scale)*time.Second + time.Duration(n%scale*uint64(time.Second)/scale)
}

func (t *mp4Track) setTimes() {
	samples := t.clip.Samples
	var dts uint64
	i := 0
	for _, run := range t.times.Entries {
		for k := uint32(0); k < run.SampleCount && i < len(samples); k++ {
			samples[i].DTS = t.ticks(dts)
			samples[i].PTS = samples[i].DTS
			dts += uint64(run.SampleDelta)
			i++
		}
	}
	t.clip.Samples = samples[:i] // pictures without a time cannot be played
	t.clip.Duration = t.ticks(dts)
	if t.shifts == nil {
		return
	}
	i = 0
	for k, run := range t.shifts.Entries {
		shift := t.shifts.GetSampleOffset(k)
		for n := uint32(0); n < run.SampleCount && i < len(t.clip.Samples); n++ {
			t.clip.Samples[i].PTS += time.Duration(shift) * time.Second / time.Duration(t.scale)
			i++
		}
	}
}

func (t *mp4Track) setSyncs() {
	if t.syncs == nil {
		return
	}
	for i := range t.clip.Samples {
		t.clip.Samples[i].RandomAccess = false
	}
	for _, n := range t.syncs.SampleNumber {
		if n >= 1 && int(n) <= len(t.clip.Samples) {
			t.clip.Samples[n-1].RandomAccess = true
		}
	}
}
