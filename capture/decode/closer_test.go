//go:build cgo

package decode_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"edgecam/capture"
	"edgecam/capture/decode"
	"edgecam/framepool"
	"edgecam/platform/cuda"
	"edgecam/platform/nvdectest"
)

var errTest = errors.New("the test took it away")

// lentCard is a card that counts what holds it.
type lentCard struct {
	mu    sync.Mutex
	lost  chan struct{}
	err   error
	holds int
}

func newLentCard() *lentCard { return &lentCard{lost: make(chan struct{})} }

func (c *lentCard) Lost() <-chan struct{} { return c.lost }

func (c *lentCard) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *lentCard) Lose(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = &cuda.LostError{Cause: cause}
		close(c.lost)
	}
}

func (c *lentCard) Hold() (end func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil, c.err
	}
	c.holds++
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.holds--
	}), nil
}

func (c *lentCard) held() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.holds
}

// free waits until nothing holds the card. It ends with the test's time limit where
// something is forgotten.
func (c *lentCard) free(t *testing.T) {
	t.Helper()
	for c.held() > 0 {
		runtime.Gosched()
	}
}

func (c *lentCard) closer(t *testing.T, q *decode.Queue) *decode.Closer {
	t.Helper()
	closer, err := decode.NewCloser(q, c)
	if err != nil {
		t.Fatal(err)
	}
	return closer
}

// Hundreds of cameras end while others decode and others start: no camera waits for
// the closing of its decoder, the driver is never asked to set up or to close two at
// once, and a decoder whose picture somebody has is closed after that, in its turn.
func TestNVDECMassClose(t *testing.T) {
	fake := nvdectest.Run(t)
	if fake == nil {
		return
	}
	fake.Set("strict", 1)
	fake.Set("lock_us", 500)
	clip, dev, on := gops(t, "h264", 10), gpu(t), newLentCard()
	q := decode.NewQueue(4, nil)
	closer := on.closer(t, q)
	o := decode.Options{CUDA: dev, Decoder: "nvdec", Queue: q, Lost: on.Lost(), Closer: closer}
	play := func(d *decode.Decoder, emit func(*framepool.Frame)) {
		for i := range clip.Units {
			if err := d.Decode(unit(clip, i), emit); err != nil {
				t.Error(err)
			}
		}
	}
	release := func(f *framepool.Frame) { f.Release() }
	const many = 60
	var leaving, fresh []*decode.Decoder
	held := make(chan *framepool.Frame, many*10)
	var wg sync.WaitGroup
	for i := range many {
		d := forClip(t, clip, o)
		leaving, fresh = append(leaving, d), append(fresh, forClip(t, clip, o))
		kept := false
		wg.Go(func() {
			play(d, func(f *framepool.Frame) {
				if i%2 == 0 && !kept {
					kept = true
					held <- f
					return
				}
				f.Release()
			})
		})
	}
	wg.Wait()
	if n := closer.Open(); n != 2*many || fake.Count("decoders") != many {
		t.Fatalf("%d decoders of %d are set up", fake.Count("decoders"), n)
	}

	fake.Set("hangs", 1) // the first that closes does not come back
	for i, d := range leaving {
		if i%2 != 0 {
			d.Close()
		}
	}
	if n := fake.Count("decoders"); n != many {
		t.Errorf("%d decoders of %d are left, and none can be closed", n, many)
	}
	fake.Set("hangs", 0)
	for i, d := range leaving {
		if i%2 == 0 {
			d.Close()
		}
	}
	for _, d := range fresh {
		wg.Go(func() { play(d, release) })
	}
	for range len(held) {
		wg.Go(func() { (<-held).Release() })
	}
	wg.Wait()
	for _, d := range fresh {
		if d.Stats().Frames != 10 {
			t.Errorf("a camera that came meanwhile gave %d pictures", d.Stats().Frames)
		}
		d.Close()
	}
	closer.Close(dev.Close, time.Minute)
	if n := closer.Open(); n != 0 || on.held() != 0 {
		t.Errorf("%d decoders, %d holds are left", n, on.held())
	}
	fake.CheckIdle(t)
}

// One decoder learns that the context is gone, however little libavcodec makes of it:
// nothing of the card is called any more, by no decoder, and not to close it.
func TestNVDECContextGone(t *testing.T) {
	fake := nvdectest.Run(t)
	if fake == nil {
		return
	}
	for _, codec := range []string{"h264", "hevc"} {
		t.Run(codec, func(t *testing.T) {
			clip, dev, on := gops(t, codec, 30), gpu(t), newLentCard()
			closer := on.closer(t, decode.NewQueue(4, nil))
			var decoders []*decode.Decoder
			var held []*framepool.Frame
			for range 4 {
				decoders = append(decoders, forClip(t, clip, decode.Options{CUDA: dev, Decoder: "nvdec", Lost: on.Lost(), Closer: closer}))
			}
			for i := range 15 {
				for _, d := range decoders {
					if err := d.Decode(unit(clip, i), func(f *framepool.Frame) { held = append(held, f) }); err != nil {
						t.Fatal(err)
					}
				}
				if i < 13 {
					for _, f := range held {
						f.Release()
					}
					held = nil
				}
			}
			fake.Set("told", 0)
			fake.Set("tells", 1)
			fake.Set("gone", 1)
			defer fake.Set("gone", 0)
			for i := 15; i < 25; i++ {
				for _, d := range decoders {
					if err := d.Decode(unit(clip, i), func(*framepool.Frame) { t.Error("a picture") }); !errors.As(err, new(*capture.CardLostError)) {
						t.Errorf("unit %d: %v", i, err)
					}
				}
			}
			if err := on.Err(); cuda.Code(err) != 709 || !cuda.ContextGone(err) {
				t.Errorf("the card: %v", err)
			}
			for _, f := range held {
				f.Release()
			}
			for _, d := range decoders {
				d.Close()
			}
			closer.Close(dev.Close, time.Minute)
			on.free(t)
			fake.Reset(0)
			if n := fake.Count("told"); n != 1 {
				t.Errorf("%d calls into a context that is gone", n)
			}
			// The library's reference is never given back: the context has none.
			fake.Set("violations", 0)
			fake.Set("reset while it was held", 0)
			fake.CheckRules(t)
		})
	}
}

// A failure after which the context serves no more loses the card, one that may be the
// stream's does not.
func TestNVDECFailureAndTheCard(t *testing.T) {
	fake := nvdectest.Run(t)
	if fake == nil {
		return
	}
	for code, want := range map[int]string{
		719: "gpu lost: call cuvidDecodePicture: CUDA_ERROR_LAUNCH_FAILED (719): unspecified launch failure",
		999: "<nil>", 2: "<nil>",
	} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			clip, dev, on := gops(t, "h264", 40), gpu(t), newLentCard()
			closer := on.closer(t, decode.NewQueue(4, nil))
			d := forClip(t, clip, decode.Options{CUDA: dev, Lost: on.Lost(), Closer: closer})
			s := &deviceSink{t: t, fake: fake}
			for i := range clip.Units {
				if i == 14 {
					fake.Set("decode_fails", code)
				}
				_ = d.Decode(unit(clip, i), s.emit)
			}
			fake.Set("decode_fails", 0)
			if err := on.Err(); fmt.Sprint(err) != want {
				t.Errorf("the card: %v, want %s", err, want)
			}
			if !slices.Equal(s.device, span(0, 14)) || len(s.host) < 10 {
				t.Errorf("frames of units %v on the gpu, %v by software", s.device, s.host)
			}
			d.Close()
			closer.Close(dev.Close, time.Minute)
			on.free(t)
			fake.CheckIdle(t)
		})
	}
}

// A decoder that does not close loses the card, and whoever waits behind it goes on.
func TestNVDECCloseHangs(t *testing.T) {
	fake := nvdectest.Run(t)
	if fake == nil {
		return
	}
	clip, dev, on := gops(t, "h264", 10), gpu(t), newLentCard()
	q := decode.NewQueue(4, nil)
	closer := on.closer(t, q).Within(50 * time.Millisecond)
	o := decode.Options{CUDA: dev, Queue: q, Lost: on.Lost(), Closer: closer}
	first, second := forClip(t, clip, o), forClip(t, clip, o)
	s := &deviceSink{t: t, fake: fake}
	for i := range clip.Units {
		if err := first.Decode(unit(clip, i), s.emit); err != nil {
			t.Fatal(err)
		}
	}
	fake.Set("hangs", 1)
	first.Close()
	for i := range clip.Units {
		if err := second.Decode(unit(clip, i), s.emit); err != nil {
			t.Fatal(err)
		}
	}
	if err := on.Err(); fmt.Sprint(err) != "gpu lost: close decoder: no answer for 50ms" {
		t.Errorf("the card: %v", err)
	}
	if !slices.Equal(s.device, span(0, 10)) || !slices.Equal(s.host, span(0, 10)) {
		t.Errorf("frames of units %v on the gpu, %v by software", s.device, s.host)
	}
	if _, err := decode.New(decode.Options{Library: library(t), Info: capture.StreamInfo{Codec: capture.H264}, Decoder: "nvdec", CUDA: dev, Lost: on.Lost(), Closer: closer}); !errors.As(err, new(*capture.CardLostError)) {
		t.Errorf("another one: %v", err)
	}
	second.Close()
	fake.Set("hangs", 0)
	closer.Close(dev.Close, time.Minute)
	on.free(t)
	fake.CheckIdle(t)
}

// The driver sets decoders up on other cards before it closes those of the lost one.
func TestCloserLetsOthersSetUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, on := decode.NewQueue(1, nil), newLentCard()
		closer := on.closer(t, q)
		setUp := decode.Turn{SetUp: true}
		var ends []func()
		for range 3 {
			leave := q.Enter(setUp, nil)
			time.Sleep(time.Second) // bubble time
			leave()
			end, err := closer.Take()
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, end)
		}
		on.Lose(errTest)
		lost := time.Now()
		closed := make(chan time.Duration, len(ends))
		for _, end := range ends {
			closer.Later(func() { closed <- time.Since(lost) }, end)
		}
		other := decode.NewQueue(1, q.SetUps())
		for range 3 {
			leave := other.Enter(setUp, nil)
			time.Sleep(time.Second)
			leave()
		}
		if took := time.Since(lost); took != 3*time.Second || len(closed) != 0 {
			t.Errorf("the others are set up after %v, %d closed", took, len(closed))
		}
		time.Sleep(2 * time.Second)
		if at := <-closed; at != 4500*time.Millisecond || len(closed) != 2 {
			t.Errorf("closed after %v, %d more, want 4.5 s and 2", at, len(closed))
		}
		closer.Close(func() {}, time.Minute)
		synctest.Wait()
		on.free(t)
	})
}

// A set-up that hangs loses its card, so that the cameras of others get theirs.
func TestASetUpThatHangs(t *testing.T) {
	fake := nvdectest.Run(t)
	if fake == nil {
		return
	}
	clip, dev, on := gops(t, "h264", 2), gpu(t), newLentCard()
	setUps := decode.NewSetUps()
	closer := on.closer(t, decode.NewQueue(1, setUps)).Within(50 * time.Millisecond)
	fake.Set("create_hangs", 1)
	defer fake.Set("create_hangs", 0)
	d := forClip(t, clip, decode.Options{CUDA: dev, Decoder: "nvdec", Lost: on.Lost(), Closer: closer, Queue: decode.NewQueue(1, setUps)})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = d.Decode(unit(clip, 0), func(f *framepool.Frame) { f.Release() }) // it may give any error
		d.Close()
	}()
	<-on.Lost()
	other := decode.NewQueue(1, setUps)
	other.Enter(decode.Turn{SetUp: true}, nil)() // it comes, although the call has not returned
	select {
	case <-ended:
		t.Error("the set-up did not hang")
	default:
	}
	fake.Set("create_hangs", 0)
	<-ended
	closer.Close(dev.Close, time.Minute)
	on.free(t)
}

// The end of the program does not wait for hundreds of decoders.
func TestCloserEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := newLentCard()
		closer := on.closer(t, decode.NewQueue(1, nil))
		for range 10 {
			closer.Later(func() { time.Sleep(time.Second) }, func() {})
		}
		began := time.Now()
		if closer.Close(func() {}, 5*time.Second) || time.Since(began) != 5*time.Second {
			t.Errorf("gave up after %v", time.Since(began))
		}
		time.Sleep(10 * time.Second)
		on.free(t)
	})
}
