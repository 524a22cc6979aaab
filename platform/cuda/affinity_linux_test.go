package cuda_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"edgecam/platform/cuda"
)

// The device's thread stays on the processors that it is given, of those that the
// process may use, and no other thread is held there.
func TestDeviceStaysNearItsCard(t *testing.T) {
	var may unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		t.Fatal(err)
	}
	last := -1
	for cpu := range 1024 {
		if may.IsSet(cpu) {
			last = cpu
		}
	}
	for name, c := range map[string]struct {
		cpus []int
		want int // processors
	}{
		"one":               {[]int{last}, 1},
		"one of the others": {[]int{1023, last}, 1},
		"none of ours":      {[]int{1023}, may.Count()},
		"any":               {nil, may.Count()},
	} {
		t.Run(name, func(t *testing.T) {
			if may.IsSet(1023) {
				t.Skip("this machine has 1024 processors")
			}
			f := newFake(t)
			dev := f.open(cuda.DeviceOptions{CPUs: c.cpus})
			do(t, dev, func(*cuda.Context) error {
				var set unix.CPUSet
				err := unix.SchedGetaffinity(0, &set)
				if set.Count() != c.want || c.want == 1 && !set.IsSet(last) {
					t.Errorf("the thread may use %d processors, want %d", set.Count(), c.want)
				}
				return err
			})
			var here unix.CPUSet
			if err := unix.SchedGetaffinity(0, &here); err != nil || here != may {
				t.Errorf("the test's thread may use %d processors, before %d; error %v", here.Count(), may.Count(), err)
			}
		})
	}
}
