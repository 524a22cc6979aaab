package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"edgecam/framepool"
	"edgecam/platform/cuda"
)

// Result tells of one analysed picture how old it was, from the arrival of its
// last packet on, as it left each stage.
type Result struct {
	Camera string
	Seq    uint64 // of the picture, as it is published
	GPU    string // UUID of the card that analysed it; "" = the processor
	Life   int    // how often that card had been lost and opened again

	At                                    time.Time // of its publication
	Decoded, Batched, Inferred, Published time.Duration
}

// Observe has f called for each analysed picture, from the workers, which it must
// not hold up. It is called before Run.
func (p *Pipeline) Observe(f func(Result)) { p.observe = f }

// observed tells the observer, if there is one.
func (c *camera) observed(m *framepool.Meta, at stamps, published time.Time) {
	if c.p.observe == nil {
		return
	}
	card, life := "", 0
	if g := c.gpu(); g != nil {
		card, life = g.card.UUID, g.life
	}
	c.p.observe(Result{
		Camera: c.id, Seq: m.Seq, GPU: card, Life: life, At: published, Decoded: m.Decoded.Sub(m.Received), Batched: at.batched.Sub(m.Received),
		Inferred: at.inferred.Sub(m.Received), Published: published.Sub(m.Received),
	})
}

// OnGPU carries out f on the goroutine of a card. The card is lost once f gives an
// error that its context does not recover from.
func (p *Pipeline) OnGPU(ctx context.Context, uuid, name string, f func(*cuda.Context) error) error {
	g := p.gpu(uuid)
	if g == nil {
		return fmt.Errorf("%s: there is no gpu %s at work", name, uuid)
	}
	return g.dev.Do(ctx, name, f)
}

// errTakenAway is why a card is lost that TakeAway took.
var errTakenAway = errors.New("it was taken away for a rehearsal")

// TakeAway has a card be lost. Nothing calls it from now on but to close what is open
// on it, and its context lives until that is done, as with any loss. The error is the
// *cuda.LostError of the card.
func (p *Pipeline) TakeAway(uuid string) error {
	g := p.gpu(uuid)
	if g == nil {
		return fmt.Errorf("take a gpu away: there is no gpu %s at work", uuid)
	}
	g.dev.Lose(errTakenAway)
	return g.dev.Err()
}

func (p *Pipeline) gpu(uuid string) *GPU {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.bays {
		if g := b.st.gpu; g != nil && g.card.UUID == uuid {
			return g
		}
	}
	return nil
}
