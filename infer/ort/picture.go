package ort

import (
	"bytes"
	_ "embed"
	"fmt"
	"image"
	"image/jpeg"

	"edgecam/infer"
)

// pictureFile shows people large enough that half a pixel of a box matters
// little: a part of a frame of the clip that edgecam ships (see
// THIRD_PARTY_NOTICES.md).
//
//go:embed picture.jpg
var pictureFile []byte

// picture is the model input that every engine is tried with: the built-in
// photograph, stretched over the input.
func picture(spec infer.InputSpec) ([]float32, error) {
	img, err := jpeg.Decode(bytes.NewReader(pictureFile))
	if err != nil {
		return nil, fmt.Errorf("decode the test picture: %w", err)
	}
	photo, ok := img.(*image.YCbCr)
	if !ok {
		return nil, fmt.Errorf("decode the test picture: it is a %T", img)
	}
	size := photo.Bounds().Size()
	plane := spec.Width * spec.Height
	in := make([]float32, 3*plane)
	for y := range spec.Height {
		for x := range spec.Width {
			r, g, b, _ := photo.YCbCrAt(x*size.X/spec.Width, y*size.Y/spec.Height).RGBA()
			rgb := [3]uint32{r, g, b}
			for c := range 3 {
				from := c
				if spec.Order == infer.BGR {
					from = 2 - c
				}
				in[c*plane+y*spec.Width+x] = (float32(rgb[from]>>8) - spec.Mean[c]) / spec.Std[c]
			}
		}
	}
	return in, nil
}
