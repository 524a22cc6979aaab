package pipeline

import (
	"context"
	"slices"

	"edgecam/infer/ort"
	"edgecam/platform/cuda"
)

// Beside opens another model on the card, while g serves. What it gives shares
// the card, its decoder and its viewers with g, and is closed before that.
func (g *GPU) Beside(ctx context.Context, engine ort.DeviceOptions, iou float32) (*GPU, error) {
	h := g.host()
	o := h.options
	o.Engine, o.NMSIoU = engine, iou
	n := &GPU{
		options: o, driver: h.driver, card: h.card, rules: h.rules, dev: h.dev, mapper: h.mapper,
		decoder: h.decoder, noDecoder: h.noDecoder, queue: h.queue, decoded: h.decoded, logger: h.logger, of: h,
	}
	if err := n.openModel(ctx, o); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// host is what owns the card: g, or what it was opened beside. Without a card it
// is nil.
func (g *GPU) host() *GPU {
	if g == nil || g.of == nil {
		return g
	}
	return g.of
}

// Options are what g was opened with.
func (g *GPU) Options() GPUOptions { return g.options }

// openModel opens the engine and the stages around it.
func (g *GPU) openModel(ctx context.Context, o GPUOptions) (err error) {
	if g.engine, err = ort.NewDevice(ctx, g.dev, o.Engine); err != nil {
		return err
	}
	info := g.engine.Info()
	if g.nms, err = g.engine.NewReader(o.NMSIoU); err != nil {
		return err
	}
	if err := g.openStrategies(info, o); err != nil {
		return err
	}
	err = g.dev.DoWithin(ctx, "open pipeline", gpuStepLimit, func(c *cuda.Context) error { return g.openStages(c, info) })
	g.opened = err == nil
	return err
}

// closeModel unloads the model and leaves the card at work. On a lost card that is put
// off: until it serves again for that, or to the end. It may be called twice.
func (g *GPU) closeModel() {
	if g.dev.Serves() {
		g.endModel()
		return
	}
	h := g.host()
	h.putOffMu.Lock()
	defer h.putOffMu.Unlock()
	if !slices.Contains(h.putOff, g) {
		h.putOff = append(h.putOff, g)
	}
}

// endModel is closeModel whatever the card says to it.
func (g *GPU) endModel() {
	g.unloading.Do(func() {
		g.report("close gpu pipeline", g.dev.DoWithin(context.Background(), "close pipeline", gpuStepLimit, g.closeStages))
		if g.opened {
			g.feed.Release()
			g.feed.Abandon() // nothing is left of it, but on a lost card
		}
		// The stages queue on the engine's stream: it goes after them.
		if g.engine != nil {
			g.report("close gpu engine", g.engine.Close())
		}
	})
}

// endPutOff ends the models on the card whose closing was put off.
func (g *GPU) endPutOff() {
	g.putOffMu.Lock()
	all := g.putOff
	g.putOff = nil
	g.putOffMu.Unlock()
	for _, m := range all {
		m.endModel()
	}
}
