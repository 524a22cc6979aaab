package cuda

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// stayOn keeps the calling thread, and those that the driver makes in it, on some
// processors: of those that the process may use. The thread must be locked.
func stayOn(cpus []int) error {
	if len(cpus) == 0 {
		return nil
	}
	var may, set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		return fmt.Errorf("ask for the thread's processors: %w", err)
	}
	for _, cpu := range cpus {
		if may.IsSet(cpu) {
			set.Set(cpu)
		}
	}
	if set.Count() == 0 {
		return nil // the process is kept elsewhere: it has its reasons
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("set the thread's processors: %w", err)
	}
	return nil
}
