package cuda

// Ended is closed when the device's goroutine has ended.
func (dev *Device) Ended() <-chan struct{} { return dev.done }
