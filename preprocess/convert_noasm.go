//go:build !(amd64 || arm64) || purego || noasm

package preprocess

// lanes are for assembly, which this build has none of.
type lanes struct{}

func haveVectors() bool { return false }

func newLanes(*color, *[3]norm) lanes { return lanes{} }

func (*lanes) convertVector(_, _, _ []float32, _ []uint32, _ []uint64) int { return 0 }

func (*lanes) convertGrayVector(_, _, _ []float32, _ []uint32) int { return 0 }
