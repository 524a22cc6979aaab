//go:build cgo

package decode_test

import (
	"os"
	"sync"
	"testing"

	"edgecam/capture/decode"
	"edgecam/framepool"
	"edgecam/internal/testkit"
)

// crowd has n cameras decode the clip at once.
func crowd(t *testing.T, n int, clip testkit.Clip, o decode.Options) {
	t.Helper()
	var wg sync.WaitGroup
	decoders := make([]*decode.Decoder, n)
	for i := range decoders {
		decoders[i] = forClip(t, clip, o)
	}
	for _, d := range decoders {
		wg.Go(func() {
			for i := range clip.Units {
				if err := d.Decode(unit(clip, i), func(f *framepool.Frame) { f.Release() }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for i, d := range decoders {
		if d.Stats().Frames == 0 {
			t.Errorf("camera %d gave no picture", i)
		}
		d.Close()
	}
}

// threads counts those of this process.
func threads(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Skip(err)
	}
	return len(list)
}

func TestSoftwareCrowd(t *testing.T) {
	clip := demo(t)
	clip.Units = clip.Units[:5]
	before := threads(t)
	crowd(t, 100, clip, decode.Options{Decoder: "software", CPU: decode.NewQueue(2, nil)})
	if more := threads(t) - before; more > 20 {
		t.Errorf("100 cameras took %d threads more", more)
	}
}
