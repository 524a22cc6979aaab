package cuda

// nvcuvid is the library of the card's video decoder.
const nvcuvid = "libnvcuvid.so.1"

// DecoderEngines is how many of the card's engines decode H.264
// (cuvidGetDecoderCaps). A driver without the decoder's library is an error.
func (c *Context) DecoderEngines() (int, error) { return decoderEngines(nvcuvid) }
