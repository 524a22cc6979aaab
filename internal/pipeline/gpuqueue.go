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

// openQueue makes the queue in front of the card's decoders. Two calls for each
// engine and two more keep the engines busy: on a card with seven, 8 streams fed
// flat out reach 97 % of what 32 do. Everybody else inside would wait in the
// driver, where waiting costs CPU.
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
	g.queue = decode.NewQueue(2*engines + 2)
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
// its own.
func softwareQueue() *decode.Queue { return decode.NewQueue(runtime.GOMAXPROCS(0)) }
