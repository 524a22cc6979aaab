package pipeline

import (
	"context"
	"errors"
	"fmt"

	"edgecam/platform/cuda"
)

// busy says what still works on a lost card, "" = nothing but the card's own goroutine
// does.
func (g *GPU) busy() string {
	own := 1 // the device's goroutine
	if g.closer != nil {
		if n := g.closer.Open(); n > 0 {
			return fmt.Sprintf("%d decoders are still being closed", n)
		}
		own++ // the closer itself
	}
	if g.driver.Users(g.card.Index) > own {
		return "not all that works on it has ended yet"
	}
	return ""
}

// again opens a card anew that is lost and not busy, with a model like that of main,
// where its context answers after all: a call that hung has returned, or the reason lay
// elsewhere. Everything that is open on it, the models of all among it, is closed first,
// as at any end; only the device stays, and with it the context, until retire. A context
// that an error has ended bears no such closing, as ONNX Runtime ends the process over
// page-locked memory that it cannot give back: the error is cuda.ErrContextGone then. It
// may be called again after an error, or when what it gave was closed.
func (g *GPU) again(ctx context.Context, main *GPU, all []*GPU) (*GPU, error) {
	limited, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	if err := g.dev.Salvage(limited, g.check); err != nil {
		return nil, err
	}
	for _, m := range all {
		m.endModel()
	}
	g.endPutOff()
	g.endModel()
	err := g.dev.DoWithin(ctx, "close viewers", gpuStepLimit, g.closeCard)
	if err != nil {
		return nil, err
	}
	if !g.closeDecoder() {
		return nil, errors.New("its decoder is still being closed")
	}
	o := g.options
	o.Engine, o.NMSIoU, o.life, o.mapper = main.options.Engine, main.options.NMSIoU, g.life+1, g.mapper
	return OpenGPU(ctx, o)
}

// abandon closes what can be closed of a lost card without asking it: err says why it
// serves this process no more.
func (g *GPU) abandon(all []*GPU, err error) {
	if g.closer != nil && cuda.ContextGone(err) {
		g.closer.Abandon()
	}
	for _, m := range all {
		m.endModel()
	}
	g.Close()
}

// retire ends the device of a lost card once fresh serves in its place, which looks after
// the frame memory from now on that pools still have mapped.
func (g *GPU) retire(fresh *GPU) {
	if g.mapper != nil {
		if err := g.mapper.Pass(fresh.dev); err != nil {
			g.logger.Warn("frame memory of a lost gpu is kept", "gpu", g.card.Index, "err", err)
		}
	}
	if err := g.dev.Close(); err != nil {
		g.logger.Warn("close the device of a lost gpu", "gpu", g.card.Index, "err", err)
	}
}

// gone says that a lost card serves this process no more.
func gone(err error) bool { return errors.Is(err, cuda.ErrContextGone) }
