package main

import (
	"math"

	"edgecam/internal/pipeline"
	"edgecam/platform"
	"edgecam/platform/nvml"
)

// openMeters finds the cards in use in the driver's management library. All or
// none: a mean over some of them would be no figure of the box.
func (a *appliance) openMeters() []pipeline.CardMeter {
	if len(a.infer.gpus) == 0 {
		return nil
	}
	lib, err := nvml.Open()
	if err != nil {
		a.logger.Debug("the cards do not tell how busy they are", "err", err)
		return nil
	}
	var out []pipeline.CardMeter
	for _, g := range a.infer.gpus {
		card := g.Card()
		d, err := lib.Device(card.UUID)
		if err != nil {
			a.logger.Debug("a card does not tell how busy it is", "gpu", card.Index, "err", err)
			lib.Close()
			return nil
		}
		out = append(out, pipeline.CardMeter{Sample: d.Sample, LinkBytes: linkBytes(card.PCIe)})
	}
	a.meters = lib
	return out
}

// linkBytes is what a link carries one way in a second; 0 = not known. A card at
// work raises the generation to the highest, so that counts, with the width that
// the slot has.
func linkBytes(l platform.PCIe) float64 {
	const firstLane = 250e6 // bytes a second of generation 1
	switch {
	case l.MaxGen == 0 || l.Width == 0:
		return 0
	case l.MaxGen <= 2:
		return firstLane * float64(l.MaxGen*l.Width)
	}
	// From generation 3 on the code wastes 2 bits of 130 in place of 2 of 10.
	return firstLane * 3.938 * math.Pow(2, float64(l.MaxGen-3)) * float64(l.Width)
}
