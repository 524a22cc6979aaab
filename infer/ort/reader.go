package ort

import "edgecam/infer"

// Reader makes detections of an image's outputs, which stand at their places among
// the session's. It belongs to one goroutine.
type Reader interface {
	SetThresholds(threshold func(class int) float32)
	// Read appends the detections of an image of a batch, see infer.Decoder.Decode.
	Read(image int, outputs [][]float32, dst []infer.Detection) (dets []infer.Detection, zero bool, err error)
	// DecodeCandidates is Read of what a filter on a GPU left.
	DecodeCandidates(c *infer.Candidates, dst []infer.Detection) (dets []infer.Detection, zero bool, err error)
}

// plainReader reads boxes in input pixels and finished scores.
type plainReader struct{ *infer.Decoder }

func (r plainReader) Read(_ int, outputs [][]float32, dst []infer.Detection) ([]infer.Detection, bool, error) {
	return r.Decode(outputs[0], outputs[1], dst)
}

// layoutReader reads all other outputs.
type layoutReader struct{ *infer.LayoutDecoder }

func (r layoutReader) Read(image int, outputs [][]float32, dst []infer.Detection) ([]infer.Detection, bool, error) {
	return r.DecodeImage(image, outputs, dst)
}

// newReader makes a reader. iou is what NMS takes where nothing is known better.
func (m *model) newReader(iou float32) (Reader, error) {
	if m.nms.IoU != 0 {
		iou = m.nms.IoU
	}
	in, classes := m.meta.Input, len(m.meta.Labels)
	if m.layout == nil {
		d, err := infer.NewDecoder(infer.DecoderOptions{Width: in.Width, Height: in.Height, Boxes: m.boxes, Classes: classes, IoU: iou})
		return plainReader{d}, err
	}
	d, err := m.layoutDecoder(iou)
	return layoutReader{d}, err
}

func (m *model) layoutDecoder(iou float32) (*infer.LayoutDecoder, error) {
	return infer.NewLayoutDecoder(*m.layout, infer.LayoutOptions{
		Width: m.meta.Input.Width, Height: m.meta.Input.Height, Labels: len(m.meta.Labels),
		IoU: iou, ClassAgnostic: m.nms.ClassAgnostic, NoNMS: m.nms.Inside,
	})
}
