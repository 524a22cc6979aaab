package avcodec

var startCode = [4]byte{0, 0, 0, 1}

// join appends the parts to dst, each after a start code if that is asked for.
// Empty parts are left out.
func join(dst []byte, parts [][]byte, startCodes bool) []byte {
	for _, p := range parts {
		if len(p) == 0 {
			continue
		}
		if startCodes {
			dst = append(dst, startCode[:]...)
		}
		dst = append(dst, p...)
	}
	return dst
}

func annexB(nalus [][]byte) []byte { return join(nil, nalus, true) }
