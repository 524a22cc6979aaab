package pipeline

import (
	"context"
	"fmt"
	"time"

	"edgecam/internal/config"
)

// reopen opens a lost card again as soon as its context answers and nothing uses it any
// more. It gives false when ctx ends, and where the card is left to the next process.
func (p *Pipeline) reopen(ctx context.Context, b *bay) bool {
	for wait := reopenFirst; ; {
		if !p.sleepBefore(ctx, b, wait) {
			return false
		}
		p.settle()
		if why := p.inUse(b); why != "" {
			p.failed(b, why)
			continue
		}
		wait = min(2*wait, reopenLongest) // where it fails
		p.opening.Add(1)
		back, err := p.tryAgain(ctx, b)
		p.opening.Add(-1)
		switch {
		case back:
			return true
		case ctx.Err() != nil, gone(err):
			return false
		case err != nil:
			p.failed(b, fmt.Sprintf("opening it again: %v", err))
		}
	}
}

// tryAgain opens a lost card again and puts it in its bay. Where its context is gone it
// closes what can be closed.
func (p *Pipeline) tryAgain(ctx context.Context, b *bay) (back bool, err error) {
	was, all := p.onBay(b)
	host := was.gpu.host()
	gpu, err := host.again(ctx, was.gpu, all)
	if gone(err) {
		p.failed(b, "it is used again when edgecam is started anew")
		host.abandon(all, err)
	}
	if err != nil {
		return false, err
	}
	more, err := p.openBeside(ctx, gpu, was.key.model)
	if err != nil {
		gpu.Close()
		return false, err
	}
	if !p.takeBack(b, gpu, more) {
		return false, nil
	}
	host.retire(gpu)
	return true, nil
}

// Returning says whether a lost card is being opened again just now.
func (p *Pipeline) Returning() bool { return p.opening.Load() > 0 }

// onBay gives the bay's station of inference.model, and all models there.
func (p *Pipeline) onBay(b *bay) (main *station, all []*GPU) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range b.all() {
		all = append(all, s.gpu)
	}
	return b.st, all
}

// inUse says why a lost card cannot be opened again yet, "" = it can.
func (p *Pipeline) inUse(b *bay) string {
	p.mu.Lock()
	empty, left, was := b.empty, len(p.left), b.st
	p.mu.Unlock()
	switch {
	case left > 0:
		return fmt.Sprintf("%d cameras have not left it yet", left)
	case !empty:
		return "cameras are on it"
	}
	return was.gpu.host().busy()
}

// settle tries to clear lost cards of what was slow to leave them.
func (p *Pipeline) settle() {
	p.reload.Lock()
	defer p.reload.Unlock()
	p.mu.Lock()
	still := p.left[:0]
	for _, r := range p.left {
		if !isClosed(r.done) {
			still = append(still, r)
		}
	}
	clear(p.left[len(still):])
	p.left = still
	p.mu.Unlock()
	p.rebalance()
}

func (p *Pipeline) sleepBefore(ctx context.Context, b *bay, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// failed notes why a lost card could not be opened again.
func (p *Pipeline) failed(b *bay, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if b.note != text {
		p.logger.Warn("gpu is not opened again yet", "gpu", b.st.gpu.card.Index, "why", text)
	}
	b.note = text
}

// takeBack puts a card that was opened again in its bay, with its models and with
// cameras. It is false, and the card closed, where the models have changed meanwhile or
// the pipeline is at its end.
func (p *Pipeline) takeBack(b *bay, gpu *GPU, models map[string]Loaded) bool {
	p.reload.Lock()
	defer p.reload.Unlock()
	models[b.st.key.model] = Loaded{GPU: gpu}
	p.mu.Lock()
	fits := true
	for _, e := range p.models {
		_, ok := models[e.key]
		fits = fits && (ok || e.refused != "")
	}
	if p.closed || !fits {
		p.mu.Unlock()
		closeAll(models)
		gpu.Close()
		return false
	}
	if isClosed(p.outage) {
		p.outage = make(chan struct{})
	}
	b.stations = map[string]*station{}
	for key, l := range models {
		b.stations[key] = p.newStation(key, l, true)
	}
	b.st = b.stations[p.models[config.DefaultModel].key]
	b.lost, b.note, b.opened, b.empty = false, "", true, false
	for _, s := range b.all() {
		p.startStationLocked(s)
	}
	p.mu.Unlock()
	p.logger.Info("gpu is back", "gpu", gpu.card.Index)
	p.rebalance()
	return true
}

func closeAll(models map[string]Loaded) {
	for _, l := range models {
		l.GPU.closeModel()
	}
}
