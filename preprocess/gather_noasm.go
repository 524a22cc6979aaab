//go:build !(amd64 || arm64) || purego || noasm

package preprocess

// reader is for assembly, which this build has none of.
type reader struct{}

func newReader(*sampling, int, uint, bool) reader { return reader{} }

func (*reader) gather(_ []uint32, _ rows, _ []tap, _ uint32) int { return 0 }

func (*reader) gatherPair(_ []uint64, _, _ rows, _ []tap, _ uint32) int { return 0 }
