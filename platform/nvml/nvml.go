package nvml

import "edgecam/platform"

// Unknown stands for a figure that the card does not tell.
const Unknown = -1

// Sample is how busy a card is now. Figures that the card does not tell are
// Unknown. Shares are 0 to 1, averaged by the driver over up to a second.
type Sample struct {
	GPU      float64 // share of the time in which a kernel ran
	Decoder  float64 // share of the decoding engines' time
	RXBytes  float64 // a second, from the host to the card, over the last 20 ms
	TXBytes  float64 // a second, from the card to the host
	UsedMem  int64   // bytes of the card's memory, by all processes
	TotalMem int64
}

// names of the library; the second is for Windows Subsystem for Linux.
func candidates() []string {
	return []string{"libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1"}
}

// Open opens the library of the driver. The error is a
// *platform.UnavailableError where there is none.
func Open() (*Library, error) { return openFirst(candidates()) }

func openFirst(names []string) (l *Library, err error) {
	for _, name := range names {
		if l, err = open(name); err == nil {
			return l, nil
		}
	}
	return nil, err
}

func unavailable(name string, err error) error {
	return &platform.UnavailableError{Lib: name, Err: err, Hint: "it comes with NVIDIA's driver"}
}
