package avcodec

// ReasonOf is reasonOf.
func ReasonOf(line, codec string) string { return reasonOf(line, codec) }

// Copying makes the decoder one whose pictures must be copied.
func (o Options) Copying() Options {
	o.copies = true
	return o
}
