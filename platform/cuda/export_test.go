package cuda

// Ended is closed when the device's goroutine has ended.
func (dev *Device) Ended() <-chan struct{} { return dev.done }

// DecoderEngines asks a library of the test's.
func DecoderEngines(library string) (int, error) { return decoderEngines(library) }
