package candidates

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edgecam/infer"
	"edgecam/platform/cuda"
)

const layoutSide = 320 // of the input

// layouts are those that a filter can do, one of each kind.
func layouts() map[string]infer.Layout {
	const rows, classes = 131, 7
	joined := infer.Layout{
		Kind: infer.Joined, Rows: rows, Values: 4 + classes, Classes: classes, Box: infer.CXCYWH, Background: -1, OneClass: true,
		At: infer.Columns{Scores: 4, Object: -1, Class: -1, Image: -1}, Outputs: infer.Outputs{Scores: -1, Classes: -1, Count: -1},
	}
	byValue := joined
	byValue.ByValue, byValue.Values = true, 4+classes+3 // and numbers that do not count
	every := byValue
	every.OneClass = false
	object := joined
	object.Values, object.At.Object, object.At.Scores = 5+classes, 4, 5
	cells := object
	cells.Coding, cells.Rows, cells.Activation = infer.CellExp, 20*20+10*10, infer.Sigmoid
	cells.Grid = []infer.Level{{Stride: 16, Width: 20, Height: 20}, {Stride: 32, Width: 10, Height: 10}}
	tanh := object
	tanh.ByValue, tanh.Coding, tanh.Rows, tanh.At.Object, tanh.At.Box = true, infer.CellTanh, 100, 0, 1
	tanh.Grid, tanh.ObjectPower, tanh.ClassPower = cells.Grid[1:], 0.6, 0.4
	split := joined
	split.Kind, split.OneClass, split.Units, split.Activation, split.Values = infer.Split, false, infer.Fractions, infer.Sigmoid, 4
	split.At.Scores, split.Outputs.Scores = 0, 1
	background := split
	background.Background, background.Activation, background.Box = 0, infer.None, infer.XYXY
	return map[string]infer.Layout{
		"joined": joined, "by value": byValue, "every class": every, "objectness": object, "cells": cells, "tanh": tanh, "split": split, "background": background,
	}
}

// layoutRig filters outputs of a layout.
type layoutRig struct {
	*rig
	l      infer.Layout
	plan   *infer.FilterPlan
	joined bool
}

func newLayoutRig(t *testing.T, dev *cuda.Device, l infer.Layout, half bool, images int) *layoutRig {
	t.Helper()
	plan, err := l.FilterPlan()
	if err != nil {
		t.Fatal(err)
	}
	r := &layoutRig{rig: &rig{dev: dev, o: Options{MaxBatch: images, Half: half, Plan: plan}}, l: l, plan: plan, joined: l.Kind == infer.Joined}
	size := 4
	if half {
		size = 2
	}
	r.boxes = beforeGuard(t, size*plan.BoxValues*images)
	r.scores = r.boxes
	if !r.joined {
		r.scores = beforeGuard(t, size*plan.ScoreValues*images)
	}
	r.open(t)
	return r
}

// random makes outputs of one image: boxes that can be, low scores and some that count.
func (r *layoutRig) random(rng *rand.Rand) (boxes, scores []float32) {
	p := r.plan
	boxes, scores = make([]float32, p.BoxValues), make([]float32, p.ScoreValues)
	if r.joined {
		scores = boxes
	}
	for i := range scores {
		scores[i] = rng.Float32()
	}
	at := func(s infer.Strides, row, value int) int { return s.At + row*s.Row + value*s.Value }
	score := func(often int) float32 {
		v := 0.3 * rng.Float32()
		if rng.IntN(often) == 0 {
			v = 0.4 + 0.6*rng.Float32()
		}
		if r.l.Activation == infer.Sigmoid {
			v = float32(math.Log(float64(v+1e-3) / (1.001 - float64(v))))
		}
		return v
	}
	for row := range p.Rows {
		box := []float32{layoutSide * rng.Float32(), layoutSide * rng.Float32(), 5 + 50*rng.Float32(), 5 + 50*rng.Float32()}
		switch {
		case r.l.Box == infer.XYXY:
			box[2], box[3] = box[2]+box[0], box[3]+box[1]
		case r.l.Coding != infer.Plain:
			box = []float32{rng.Float32(), rng.Float32(), rng.Float32(), -rng.Float32()}
		}
		for i, v := range box {
			if r.l.Units == infer.Fractions {
				v /= layoutSide
			}
			boxes[at(p.Box, row, i)] = v
		}
		for c := range p.Columns {
			scores[at(p.Score, row, c)] = score(20)
		}
		if p.HasObject {
			scores[at(p.Object, row, 0)] = score(3)
		}
	}
	return boxes, scores
}

// compare filters a batch and judges every image by Decode of its whole outputs.
func (r *layoutRig) compare(t *testing.T, name string, rng *rand.Rand, spoil func(boxes, scores []float32), threshold func(image, class int) float32) (found int) {
	t.Helper()
	var boxes, scores []float32
	for range r.o.MaxBatch {
		b, s := r.random(rng)
		spoil(b, s)
		boxes, scores = append(boxes, b...), append(scores, s...)
	}
	boxes = r.put(r.boxes, boxes)
	if !r.joined {
		scores = r.put(r.scores, scores)
	}
	r.launch(t, r.o.MaxBatch, threshold)
	d, err := infer.NewLayoutDecoder(r.l, infer.LayoutOptions{Width: layoutSide, Height: layoutSide})
	if err != nil {
		t.Fatal(err)
	}
	var c infer.Candidates
	for i := range r.o.MaxBatch {
		d.SetThresholds(func(class int) float32 { return threshold(i, class) })
		outputs := [][]float32{boxes[i*r.plan.BoxValues : (i+1)*r.plan.BoxValues]}
		if !r.joined {
			outputs = append(outputs, scores[i*r.plan.ScoreValues:(i+1)*r.plan.ScoreValues])
		}
		want, wantZero, wantErr := d.Decode(outputs, nil)
		if err := r.f.Read(i, &c); err != nil {
			t.Fatalf("%s, image %d: %v", name, i, err)
		}
		got, zero, err := d.DecodeCandidates(&c, nil)
		if !slices.Equal(got, want) || zero != wantZero || !sameError(err, wantErr) {
			t.Fatalf("%s, image %d: %d detections, zero %v, error %v; want %d, %v, %v", name, i, len(got), zero, err, len(want), wantZero, wantErr)
		}
		found += len(got)
	}
	return found
}

// agreeOnLayout judges many batches: healthy ones, and such with numbers that cannot be.
func (r *layoutRig) agreeOnLayout(t *testing.T, laps int) {
	t.Helper()
	rng, found := rand.New(rand.NewPCG(3, uint64(r.plan.Rows))), 0
	for lap := range laps {
		n := lap % 4 // healthy every fourth time
		found += r.compare(t, fmt.Sprintf("lap %d", lap), rng, func(boxes, scores []float32) {
			for range n {
				scores[rng.IntN(len(scores))] = specials()[rng.IntN(len(specials()))]
				if n == 3 {
					boxes[rng.IntN(len(boxes))] = specials()[rng.IntN(len(specials()))]
				}
			}
		}, func(image, class int) float32 { return []float32{0.45, 0.3, 0.01, 2, 1}[(class+image*lap)%5] })
	}
	if found < 5*laps {
		t.Errorf("%d detections in all: the test proves little", found)
	}
	none := func(_, scores []float32) { clear(scores) }
	r.compare(t, "zeros", rng, none, func(int, int) float32 { return 0.45 })
}

func TestLayoutFilterAgreesWithDecode(t *testing.T) {
	for name, l := range layouts() {
		for _, half := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s half=%v", name, half), func(t *testing.T) {
				newLayoutRig(t, standIn(t), l, half, 3).agreeOnLayout(t, 40)
			})
		}
	}
}

func TestLayoutFilterOverflow(t *testing.T) {
	r := newLayoutRig(t, standIn(t), layouts()["by value"], false, 1)
	r.o.Capacity, r.f.o.Capacity, r.f.filter.Capacity = 8, 8, 8
	boxes, _ := r.random(rand.New(rand.NewPCG(1, 2)))
	for row := range 9 {
		boxes[4*r.plan.Rows+row] = 0.9
	}
	r.put(r.boxes, boxes)
	r.launch(t, 1, func(_, class int) float32 { return []float32{0.4, 2, 2, 2, 2, 2, 2}[class] })
	var overflow *OverflowError
	if err := r.f.Read(0, &infer.Candidates{}); !errors.As(err, &overflow) || overflow.Found < 9 {
		t.Errorf("error %v", err)
	}
}

func TestFilterPlanRefuses(t *testing.T) {
	for want, change := range map[string]func(l *infer.Layout){
		"its outputs are decoded whole":                func(l *infer.Layout) { l.Kind = infer.EndToEnd },
		"its scores depend on their whole row":         func(l *infer.Layout) { l.Activation = infer.Softmax },
		"its boxes are distributions":                  func(l *infer.Layout) { l.Coding = infer.CellBins },
		"its rows are in no order that a filter keeps": func(l *infer.Layout) { l.At.Object = 9 },
	} {
		l := layouts()["joined"]
		change(&l)
		if _, err := l.FilterPlan(); err == nil || err.Error() != want {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
