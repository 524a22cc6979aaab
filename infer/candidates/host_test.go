package candidates

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebitengine/purego"

	"edgecam/infer"
	"edgecam/internal/testkit"
	"edgecam/platform/cuda"
)

// hostLibrary is the kernel's build for the processor, once it is open.
var hostLibrary atomic.Uintptr //nolint:gochecknoglobals // building takes longer than the tests

// hostKernels opens the kernel's build for the processor.
func hostKernels(t *testing.T) uintptr {
	t.Helper()
	if lib := hostLibrary.Load(); lib != 0 {
		return lib
	}
	lib, err := purego.Dlopen(testkit.HostKernels(t, "infer/candidates/candidates.cu"), purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		t.Fatal(err)
	}
	hostLibrary.Store(lib) // it stays mapped when its file goes
	return lib
}

// standIn is a device of the stand-in driver, whose kernels are carried out by
// their build for the processor.
func standIn(t *testing.T) *cuda.Device {
	t.Helper()
	path := testkit.FakeCUDA(t)
	lib, err := purego.Dlopen(path, purego.RTLD_NOW)
	if err != nil {
		t.Fatal(err)
	}
	var kernels func(run uintptr)
	purego.RegisterLibFunc(&kernels, lib, "fake_kernels")
	entry, err := purego.Dlsym(hostKernels(t), "launch_host")
	if err != nil {
		t.Fatal(err)
	}
	kernels(entry)
	dev, err := cuda.New(cuda.Options{Library: path}).NewDevice(t.Context(), cuda.DeviceOptions{CallTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return dev
}

func addressOf[T any](s []T) cuda.DevicePtr { return cuda.DevicePtr(reflect.ValueOf(s).Pointer()) }

func TestLayouts(t *testing.T) {
	for name, want := range map[string]int{"filter_size": filterBytes, "layout_filter_size": layoutBytes, "state_size": stateBytes, "head_size": headBytes, "entry_size": entryBytes} {
		var size func() int32
		purego.RegisterLibFunc(&size, hostKernels(t), name)
		if got := int(size()); got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
	if got := int(reflect.TypeFor[gpuFilter]().Size()); got != filterBytes {
		t.Errorf("gpuFilter has %d bytes, want %d", got, filterBytes)
	}
}

func TestHalfFrom(t *testing.T) {
	for _, v := range []float32{0.01, 0.25, 0.45, 0.5, 0.50001, 0.999, 0.99999, 1, math.Nextafter32(1, 2)} {
		at := halfFrom(v)
		if above := halfValue(uint16(at)); above < v {
			t.Errorf("%v: float16 %v is below it", v, above)
		}
		if below := halfValue(uint16(at - 1)); below >= v {
			t.Errorf("%v: float16 %v would do", v, below)
		}
	}
}

// rig holds a filter on the stand-in driver, and outputs that end where the
// memory does.
type rig struct {
	dev           *cuda.Device
	o             Options
	f             *Filter
	boxes, scores []byte
	// upload gives the outputs' addresses, nil where the device sees the bytes.
	upload func(c *cuda.Context, boxes, scores []byte) (b, s cuda.DevicePtr, err error)
}

func newRig(t *testing.T, o Options) *rig {
	t.Helper()
	return rigOn(t, standIn(t), o)
}

func rigOn(t *testing.T, dev *cuda.Device, o Options) *rig {
	t.Helper()
	r := &rig{dev: dev, o: o}
	size := 4
	if o.Half {
		size = 2
	}
	r.boxes = beforeGuard(t, size*4*o.Boxes*o.MaxBatch)
	r.scores = beforeGuard(t, size*o.Classes*o.Boxes*o.MaxBatch)
	r.open(t)
	return r
}

// open makes the filter.
func (r *rig) open(t *testing.T) {
	t.Helper()
	r.do(t, func(c *cuda.Context) (err error) {
		r.f, err = New(c, r.o)
		return err
	})
	t.Cleanup(func() {
		if err := r.dev.Do(context.Background(), "close", r.f.Close); err != nil {
			t.Error(err)
		}
	})
}

func (r *rig) do(t *testing.T, f func(c *cuda.Context) error) {
	t.Helper()
	if err := r.dev.Do(t.Context(), "test", f); err != nil {
		t.Fatal(err)
	}
}

// put stores outputs as the model would write them and gives their values.
func (r *rig) put(dst []byte, values []float32) []float32 {
	out := make([]float32, len(values))
	for i, v := range values {
		if r.o.Half {
			b := halfBits(v)
			binary.NativeEndian.PutUint16(dst[2*i:], b)
			out[i] = halfValue(b)
			continue
		}
		binary.NativeEndian.PutUint32(dst[4*i:], math.Float32bits(v))
		out[i] = v
	}
	return out
}

func (r *rig) launch(t *testing.T, n int, threshold func(image, class int) float32) {
	t.Helper()
	r.do(t, func(c *cuda.Context) (err error) {
		boxes, scores := addressOf(r.boxes), addressOf(r.scores)
		if r.upload != nil {
			if boxes, scores, err = r.upload(c, r.boxes, r.scores); err != nil {
				return err
			}
		}
		return errors.Join(r.f.Launch(c, 0, n, boxes, scores, threshold), c.Wait(0))
	})
}

// compare runs the kernel over a batch and judges every image by Decode.
func (r *rig) compare(t *testing.T, name string, boxes, scores []float32, threshold func(image, class int) float32) {
	t.Helper()
	boxes, scores = r.put(r.boxes, boxes), r.put(r.scores, scores)
	r.launch(t, r.o.MaxBatch, threshold)
	d, err := infer.NewDecoder(infer.DecoderOptions{Width: 416, Height: 320, Boxes: r.o.Boxes, Classes: r.o.Classes})
	if err != nil {
		t.Fatal(err)
	}
	var c infer.Candidates
	for i := range r.o.MaxBatch {
		d.SetThresholds(func(class int) float32 { return threshold(i, class) })
		perBoxes, perScores := 4*r.o.Boxes, r.o.Classes*r.o.Boxes
		want, wantZero, wantErr := d.Decode(boxes[i*perBoxes:(i+1)*perBoxes], scores[i*perScores:(i+1)*perScores], nil)
		if err := r.f.Read(i, &c); err != nil {
			t.Fatalf("%s, image %d: %v", name, i, err)
		}
		got, zero, err := d.DecodeCandidates(&c, nil)
		if !slices.Equal(got, want) || zero != wantZero || !sameError(err, wantErr) {
			t.Fatalf("%s, image %d: %d detections, zero %v, error %v; want %d, %v, %v", name, i, len(got), zero, err, len(want), wantZero, wantErr)
		}
	}
}

// sameError compares all fields: the text has them but for a NaN's bits.
func sameError(a, b error) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

// specials are the numbers that outputs may hold and healthy ones do not, and
// those at the edges.
func specials() []float32 {
	return []float32{
		0, float32(math.Copysign(0, -1)), 1e-7, 0.01, 0.4499, 0.45, 0.4501, 0.999, 1, 1.0005, 1.001, 1.002, 2, 60000,
		float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), math.Float32frombits(0xffc00000), -1e-7, -0.5, -1, 1e30, -1e30,
	}
}

// fill makes outputs like a detector's: all scores low but a few.
func fill(r *rand.Rand, images, n, classes, objects int) (boxes, scores []float32) {
	boxes, scores = make([]float32, images*n*4), make([]float32, images*n*classes)
	for i := 0; i < len(boxes); i += 4 {
		x, y := r.Float32()*400-10, r.Float32()*320-10
		boxes[i], boxes[i+1], boxes[i+2], boxes[i+3] = x, y, x+r.Float32()*90, y+r.Float32()*90
	}
	for i := range scores {
		scores[i] = r.Float32() * 0.009
	}
	for range images * objects {
		scores[r.IntN(len(scores))] = 0.3 + 0.7*r.Float32()
	}
	return boxes, scores
}

// agree judges many batches of one shape: healthy outputs, and such with numbers
// that cannot be.
func (r *rig) agree(t *testing.T, laps int) {
	t.Helper()
	o := r.o
	rng := rand.New(rand.NewPCG(5, uint64(o.Boxes)))
	for lap := range laps {
		boxes, scores := fill(rng, o.MaxBatch, o.Boxes, o.Classes, 2+lap%20)
		for range lap % 4 { // adversarial
			scores[rng.IntN(len(scores))] = specials()[rng.IntN(len(specials()))]
		}
		if lap%7 == 6 {
			boxes[rng.IntN(len(boxes))] = specials()[rng.IntN(len(specials()))]
		}
		thresholds := make([]float32, o.Classes*o.MaxBatch)
		for i := range thresholds {
			thresholds[i] = []float32{0.45, 0.45, 0.3, 0, 2, float32(math.NaN())}[rng.IntN(6)]
			if lap%2 == 0 {
				thresholds[i] = 0.45
			}
		}
		r.compare(t, fmt.Sprintf("lap %d", lap), boxes, scores, func(i, c int) float32 { return thresholds[i*o.Classes+c] })
	}
}

func TestFilterAgreesWithDecode(t *testing.T) {
	shapes := []Options{
		{MaxBatch: 1, Boxes: 3549, Classes: 80},
		{MaxBatch: 5, Boxes: 101, Classes: 7}, // no image but the first begins at a vector
		{MaxBatch: 3, Boxes: 1, Classes: 1},
		{MaxBatch: 4, Boxes: 33, Classes: 3, Capacity: 100},
	}
	for _, o := range shapes {
		for _, half := range []bool{false, true} {
			o.Half = half
			t.Run(fmt.Sprintf("%dx%dx%d half=%v", o.MaxBatch, o.Boxes, o.Classes, half), func(t *testing.T) {
				newRig(t, o).agree(t, 40)
			})
		}
	}
}

// One number of the outputs at a time is special, at every place: the first,
// the last, and those beside the border of two images.
func TestFilterAgreesWithDecodeOnSpecials(t *testing.T) {
	for _, half := range []bool{false, true} {
		newRig(t, Options{MaxBatch: 3, Boxes: 7, Classes: 5, Half: half}).agreeOnSpecials(t)
	}
}

func (r *rig) agreeOnSpecials(t *testing.T) {
	t.Helper()
	o := r.o
	rng := rand.New(rand.NewPCG(6, 7))
	for k, v := range specials() {
		for at := range o.MaxBatch * o.Boxes * o.Classes {
			boxes, scores := fill(rng, o.MaxBatch, o.Boxes, o.Classes, 2)
			scores[at] = v
			if at < len(boxes) && k%2 == 0 {
				boxes[at] = v
			}
			r.compare(t, fmt.Sprintf("%v at %d", v, at), boxes, scores, func(int, int) float32 { return 0.45 })
		}
	}
}

func TestFilterAgreesOnUniformOutputs(t *testing.T) {
	for _, half := range []bool{false, true} {
		newRig(t, Options{MaxBatch: 2, Boxes: 60, Classes: 9, Half: half}).agreeOnUniform(t)
	}
}

func (r *rig) agreeOnUniform(t *testing.T) {
	t.Helper()
	o := r.o
	boxes, scores := fill(rand.New(rand.NewPCG(8, 9)), o.MaxBatch, o.Boxes, o.Classes, 0)
	for _, v := range specials() {
		for i := range scores {
			scores[i] = v
		}
		r.compare(t, fmt.Sprintf("all scores %v", v), boxes, scores, func(_, c int) float32 { return 0.2 + 0.05*float32(c) })
	}
	for _, v := range specials() {
		for i := range boxes {
			boxes[i] = v
		}
		for i := range scores {
			scores[i] = 0.1 * float32(i%10)
		}
		r.compare(t, fmt.Sprintf("all coordinates %v", v), boxes, scores, func(int, int) float32 { return 0.45 })
	}
}

func TestFilterOverflow(t *testing.T) {
	o := Options{MaxBatch: 2, Boxes: 40, Classes: 2, Capacity: 64}
	rig := newRig(t, o)
	boxes, scores := fill(rand.New(rand.NewPCG(1, 9)), o.MaxBatch, o.Boxes, o.Classes, 0)
	threshold := func(int, int) float32 { return 0.45 }
	for i := range 65 {
		scores[i] = 0.9
	}
	rig.put(rig.boxes, boxes)
	rig.put(rig.scores, scores)
	rig.launch(t, 2, threshold)
	var c infer.Candidates
	err := rig.f.Read(0, &c)
	var overflow *OverflowError
	if want := "read candidates of image 0: 65 found, room for 64"; !errors.As(err, &overflow) || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
	if err := rig.f.Read(1, &c); err != nil || len(c.List) != 0 {
		t.Errorf("the image beside it: %d candidates, %v", len(c.List), err)
	}
	// The next launch starts from nothing.
	scores[0] = 0
	rig.compare(t, "one less", boxes, scores, threshold)
}

func TestReadRefusesWhatWasNotWritten(t *testing.T) {
	rig := newRig(t, Options{MaxBatch: 2, Boxes: 8, Classes: 2})
	threshold := func(int, int) float32 { return 0.45 }
	boxes, scores := fill(rand.New(rand.NewPCG(2, 9)), 2, 8, 2, 1)
	rig.compare(t, "first", boxes, scores, threshold)
	rig.f.filter.Stamp++ // as if a launch had been lost
	rig.f.launched = 1
	var c infer.Candidates
	want := "read candidates of image 0: the gpu wrote none (launch 2, found that of 1)"
	if err := rig.f.Read(0, &c); err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
	want = "read candidates of image 1: 1 were launched"
	if err := rig.f.Read(1, &c); err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
}

func TestRefusals(t *testing.T) {
	for _, o := range []Options{
		{MaxBatch: 0, Boxes: 1, Classes: 1},
		{MaxBatch: mostImages + 1, Boxes: 1, Classes: 1},
		{MaxBatch: 1, Boxes: 0, Classes: 1},
		{MaxBatch: 1, Boxes: 1 << 30, Classes: 80},
		{MaxBatch: 1, Boxes: 1, Classes: 1, Capacity: -1},
	} {
		if _, err := newFilter(o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
	f, err := newFilter(Options{MaxBatch: 1, Boxes: 1, Classes: 1})
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"none":      f.prepare(0, 16, 16, nil),
		"too many":  f.prepare(2, 16, 16, nil),
		"no output": f.prepare(1, 16, 0, nil),
		"unaligned": f.prepare(1, 24, 32, nil),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
