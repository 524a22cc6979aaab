package pipeline

import (
	"context"
	"runtime"

	"edgecam/capture/decode"
	"edgecam/platform"
	"edgecam/platform/cuda"
)

// unknownEngines stands for the engines of a card that does not tell: common
// ones have one to four.
const unknownEngines = 4

// placesPerEngine is how many calls may be inside the card's decoders for each
// engine. Everybody else inside would wait in the driver, where waiting costs CPU,
// so it is no more than it takes: on a card with seven engines that 32 streams
// fed flat out drive to 5,357 frames/s, 16 places let 160 cameras have 4,493, and 70
// let 176 have 5,265. A call is inside for 4 ms on average there, so that 35 are all
// taken at times when nothing is late yet.
const placesPerEngine = 10

// openQueue makes the queue in front of the card's decoders.
func (g *GPU) openQueue(ctx context.Context) {
	err := g.dev.DoWithin(ctx, "ask the decoder", gpuStepLimit, func(c *cuda.Context) (err error) {
		g.engines, err = c.DecoderEngines()
		return err
	})
	engines := g.engines
	if err != nil {
		engines = unknownEngines
		g.logger.Debug("the card does not tell its decoding engines", "err", err, "assumed", engines)
	}
	g.queue = decode.NewQueue(placesPerEngine*engines, g.options.SetUps)
}

// DecoderEngines is how many engines of the card decode, 0 where it does not tell
// or does not decode.
func (g *GPU) DecoderEngines() int { return g.engines }

// Card is the card that was opened.
func (g *GPU) Card() platform.GPU { return g.card }

// decoderQueue is the queue in front of the card's decoders, nil without.
func (g *GPU) decoderQueue() *decode.Queue {
	if g == nil {
		return nil
	}
	return g.queue
}

// softwareQueue is the one in front of all decoders in software. More of them at
// once than there are processors only take turns on them, each with a thread of
// its own. The model's runs on the processors take places of it.
func softwareQueue() *decode.Queue { return decode.NewQueue(runtime.GOMAXPROCS(0), nil) }
