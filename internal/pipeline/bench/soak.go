package bench

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"edgecam/capture/decode"
	"edgecam/framepool"
)

// Stream takes batches through a card, some at once.
type Stream interface {
	Depth() int
	Begin(pictures []*framepool.Frame) error // borrows the pictures until Finish
	Finish() error                           // of the oldest
	Close()
}

// SoakOptions say how long memory is watched.
type SoakOptions struct {
	Card     Card
	Duration time.Duration // after the warm-up
	WarmUp   time.Duration
	Seed     uint64
	Now      func() time.Time // It defaults to time.Now.
}

// SoakReport is what became of the memory.
type SoakReport struct {
	Machine  string  `json:"machine"`
	GPU      string  `json:"gpu"`
	Driver   string  `json:"driver"`
	Provider string  `json:"provider"`
	Seconds  float64 `json:"seconds"`
	Batches  int     `json:"batches"`
	Images   int     `json:"images"`
	Cameras  int     `json:"cameras"` // that came and went
	UsedWarm int64   `json:"device_bytes_after_warm_up"`
	UsedMost int64   `json:"device_bytes_at_most"`
	UsedEnd  int64   `json:"device_bytes_at_the_end"`
	RSSWarm  int64   `json:"rss_after_warm_up"`
	RSSEnd   int64   `json:"rss_at_the_end"`
}

// soakRise is how much more device memory the end may show: the driver gives and
// takes in pieces of 2 MiB, for whatever else runs on the card too.
const soakRise = 16 << 20

// Rise is how much the device's memory has grown since the warm-up.
func (r *SoakReport) Rise() int64 { return r.UsedEnd - r.UsedWarm }

// Verdict is an error where memory was lost.
func (r *SoakReport) Verdict() error {
	if r.Rise() > soakRise {
		return fmt.Errorf("bench soak: device memory grew by %.1f MiB in %.0f s", mib(r.Rise()), r.Seconds)
	}
	return nil
}

// Table prints the report for people.
func (r *SoakReport) Table(w io.Writer) error {
	var t bytes.Buffer
	fmt.Fprintf(&t, "%s, driver %s, %s; %s serves\n", r.GPU, r.Driver, r.Machine, r.Provider)
	fmt.Fprintf(&t, "%.0f s: %d batches, %d pictures, %d cameras that came and went\n", r.Seconds, r.Batches, r.Images, r.Cameras)
	fmt.Fprintf(&t, "device memory: %.1f MiB after warm-up, %.1f at most, %.1f at the end: %+.1f MiB\n", mib(r.UsedWarm), mib(r.UsedMost), mib(r.UsedEnd), mib(r.Rise()))
	fmt.Fprintf(&t, "resident: %.1f MiB after warm-up, %.1f at the end\n", mib(r.RSSWarm), mib(r.RSSEnd))
	_, err := w.Write(t.Bytes())
	return err
}

// The cameras of a soak: so many at once, of sizes up to 4K, each for some
// batches.
const (
	soakCameras = 8
	soakSlots   = 8
	soakLife    = 40 // batches, on average, until a camera makes place for another
	soakWidth   = 3840
	soakHeight  = 2160
)

// soak is one run.
type soak struct {
	o       SoakOptions
	random  *rand.Rand
	memory  decode.Options // what the card gives to pools
	stream  Stream
	cameras []*soakCamera
	flying  [][]*framepool.Frame
	report  *SoakReport
	free    uint64 // at the least, since the warm-up
}

// soakCamera is a pool whose slots are pictures.
type soakCamera struct {
	pool *framepool.Pool
	meta framepool.Meta
}

// Soak takes batches of random sizes, of pictures of random sizes and formats,
// through the card until the time is over.
func Soak(ctx context.Context, o SoakOptions) (*SoakReport, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &soak{o: o, random: rand.New(rand.NewPCG(o.Seed, 0)), report: &SoakReport{Provider: o.Card.Info().Provider}} //nolint:gosec // the same every time
	o.Card.Serve(&s.memory)
	s.stream = o.Card.Stream(ctx)
	defer s.close()
	if err := s.largest(ctx); err != nil {
		return nil, err
	}
	if err := s.play(ctx, o.WarmUp); err != nil {
		return nil, err
	}
	warm, total, err := o.Card.FreeMemory(ctx)
	if err != nil {
		return nil, err
	}
	s.free, s.report.RSSWarm = warm, residentBytes()
	s.report.Batches, s.report.Images, s.report.Cameras = 0, 0, 0
	start := o.Now()
	if err := s.play(ctx, o.Duration); err != nil {
		return nil, err
	}
	end, _, err := o.Card.FreeMemory(ctx)
	r := s.report
	r.Seconds = o.Now().Sub(start).Seconds()
	r.UsedWarm, r.UsedMost, r.UsedEnd, r.RSSEnd = int64(total-warm), int64(total-min(s.free, end)), int64(total-end), residentBytes()
	return r, err
}

// largest takes the largest batch of the largest pictures, so that whatever grows
// with them has grown.
func (s *soak) largest(ctx context.Context) error {
	for _, mapped := range []bool{true, false} {
		c, err := s.camera(framepool.I420, soakWidth, soakHeight, mapped)
		if err != nil {
			return err
		}
		s.cameras = append(s.cameras[:0], c)
		for range s.stream.Depth() {
			if err := s.begin(ctx, s.o.Card.Info().MaxBatch); err != nil {
				return err
			}
		}
		if err := s.drain(); err != nil {
			return err
		}
		c.pool.Close()
	}
	s.cameras = s.cameras[:0]
	return nil
}

func (s *soak) play(ctx context.Context, d time.Duration) error {
	for until := s.o.Now().Add(d); s.o.Now().Before(until); {
		if err := s.change(); err != nil {
			return err
		}
		if err := s.begin(ctx, 1+s.random.IntN(s.o.Card.Info().MaxBatch)); err != nil {
			return err
		}
		if s.report.Batches%64 == 0 {
			free, _, err := s.o.Card.FreeMemory(ctx)
			if err != nil {
				return err
			}
			s.free = min(cmp.Or(s.free, free), free)
		}
	}
	return s.drain()
}

// change lets a camera go, now and then, and another come.
func (s *soak) change() error {
	for len(s.cameras) < soakCameras {
		w, h := 2*(80+s.random.IntN(soakWidth/2-80)), 2*(60+s.random.IntN(soakHeight/2-60))
		formats := []framepool.PixelFormat{framepool.I420, framepool.NV12}
		c, err := s.camera(formats[s.random.IntN(len(formats))], w, h, s.random.IntN(4) > 0)
		if err != nil {
			return err
		}
		s.cameras = append(s.cameras, c)
		s.report.Cameras++
	}
	if s.random.IntN(soakLife/soakCameras) == 0 {
		i := s.random.IntN(len(s.cameras))
		s.cameras[i].pool.Close() // it goes with its last picture
		s.cameras = slices.Delete(s.cameras, i, i+1)
		return s.change()
	}
	return nil
}

func (s *soak) camera(format framepool.PixelFormat, w, h int, mapped bool) (*soakCamera, error) {
	layout, err := framepool.NewLayout(format, w, h)
	if err != nil {
		return nil, err
	}
	o := framepool.Options{Name: "soak", Layout: layout, Slots: soakSlots, Node: -1, Lock: mapped}
	if mapped {
		o.Mapper = s.memory.Mapper
	}
	p, err := framepool.New(o)
	if err != nil {
		return nil, err
	}
	return &soakCamera{p, framepool.Meta{Camera: "soak", Format: format, Width: w, Height: h, Offset: layout.Offset, Stride: layout.Stride}}, nil
}

// begin puts a batch of n pictures on its way; the cameras' few slots are taken
// more than once.
func (s *soak) begin(ctx context.Context, n int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for len(s.flying) >= s.stream.Depth() {
		if err := s.finish(); err != nil {
			return err
		}
	}
	var pictures []*framepool.Frame
	for len(pictures) < n {
		c := s.cameras[s.random.IntN(len(s.cameras))]
		if b, ok := c.pool.TryGet(); ok {
			pictures = append(pictures, b.Seal(c.meta))
			continue
		}
		if len(pictures) == 0 { // this one's are all under way
			if len(s.flying) > 0 {
				if err := s.finish(); err != nil {
					return err
				}
			}
			continue
		}
		pictures = append(pictures, pictures[s.random.IntN(len(pictures))].Retain())
	}
	if err := s.stream.Begin(pictures); err != nil {
		releaseAll(pictures)
		return err
	}
	s.flying = append(s.flying, pictures)
	s.report.Batches++
	s.report.Images += n
	return nil
}

func (s *soak) finish() error {
	err := s.stream.Finish()
	releaseAll(s.flying[0])
	s.flying = s.flying[1:]
	return err
}

func (s *soak) drain() (err error) {
	for len(s.flying) > 0 {
		err = errors.Join(err, s.finish())
	}
	return err
}

func releaseAll(pictures []*framepool.Frame) {
	for _, f := range pictures {
		f.Release()
	}
}

func (s *soak) close() {
	_ = s.drain() // what it says has been said
	for _, c := range s.cameras {
		c.pool.Close()
	}
	s.stream.Close()
}
