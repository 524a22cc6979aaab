package cameras

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"edgecam/capture"
	"edgecam/capture/decode"
	"edgecam/framepool"
	"edgecam/internal/sim"
)

// ceilingStreams keep every engine of a card busy.
const ceilingStreams = 32

// ceilingWindow is how long the ceiling is measured.
const ceilingWindow = 3 * time.Second

// Ceiling feeds the clip to decoders as fast as they go and gives the pictures a
// second of all together.
func Ceiling(ctx context.Context, clip *sim.ClipData, open func(capture.StreamInfo) (*decode.Decoder, error)) (float64, error) {
	return ceiling(ctx, clip, open, ceilingStreams, ceilingWindow)
}

func ceiling(ctx context.Context, clip *sim.ClipData, open func(capture.StreamInfo) (*decode.Decoder, error), streams int, window time.Duration) (float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var pictures atomic.Int64
	var ready, done sync.WaitGroup
	errs := make([]error, streams)
	for i := range streams {
		d, err := open(capture.StreamInfo{Codec: clip.Codec, ParameterSets: clip.ParameterSets()})
		if err != nil {
			cancel()
			done.Wait()
			return 0, fmt.Errorf("measure the decoder's ceiling: %w", err)
		}
		ready.Add(1)
		done.Go(func() {
			defer d.Close()
			errs[i] = flatOut(ctx, d, clip, &pictures, sync.OnceFunc(ready.Done))
		})
	}
	ready.Wait()
	before, began := pictures.Load(), time.Now()
	sleep(ctx, window)
	rate := float64(pictures.Load()-before) / time.Since(began).Seconds()
	cancel()
	done.Wait()
	if err := errors.Join(errs...); err != nil {
		return 0, fmt.Errorf("measure the decoder's ceiling: %w", err)
	}
	return rate, nil
}

// flatOut decodes the clip round after round until ctx ends. It calls ready at
// its first picture, or its end.
func flatOut(ctx context.Context, d *decode.Decoder, clip *sim.ClipData, pictures *atomic.Int64, ready func()) error {
	defer ready()
	emit := func(f *framepool.Frame) {
		f.Release()
		pictures.Add(1)
		ready()
	}
	for zero := time.Duration(0); ; zero += clip.Duration {
		for i := range clip.Samples {
			if ctx.Err() != nil {
				return nil
			}
			s := &clip.Samples[i]
			now := time.Now()
			err := d.Decode(&capture.AccessUnit{
				NALUs: s.NALUs, PTS: zero + s.PTS, Received: now, CapturedAt: now, RandomAccess: s.RandomAccess,
			}, emit)
			if err != nil {
				return err
			}
		}
	}
}

// sleep waits for d or the end of ctx.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
