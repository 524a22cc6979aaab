package ort

import (
	"errors"
	"sync/atomic"
	"time"

	"edgecam/infer"
)

// Stats count since New, the test runs of New left out.
type Stats struct {
	Runs   uint64 // that the library answered
	Images uint64 // in them
	Failed uint64 // runs that the library refused

	Unhealthy     uint64 // runs with impossible values
	LastUnhealthy string // the last of them, in words

	Zero       uint64 // images whose scores were all exactly 0
	ZeroStreak uint64 // of the last images, how many in a row were: a network at work gives none

	Infer  time.Duration // time in the library, over all runs
	Decode time.Duration // time from there to detections
}

type counters struct {
	runs, images, failed, unhealthy, zeros, streak atomic.Uint64
	infer, decode                                  atomic.Int64
	last                                           atomic.Pointer[string]
}

func (c *counters) count(images int, inferred, decoded time.Duration, err error) {
	c.runs.Add(1)
	c.images.Add(uint64(images))
	c.infer.Add(int64(inferred))
	c.decode.Add(int64(decoded))
	var unhealthy *infer.UnhealthyError
	if errors.As(err, &unhealthy) {
		c.unhealthy.Add(1)
		text := unhealthy.Error()
		c.last.Store(&text)
	}
}

func (c *counters) zero(all bool) {
	if !all {
		c.streak.Store(0)
		return
	}
	c.zeros.Add(1)
	c.streak.Add(1)
}

func (c *counters) snapshot() Stats {
	s := Stats{
		Runs: c.runs.Load(), Images: c.images.Load(), Failed: c.failed.Load(),
		Unhealthy: c.unhealthy.Load(), Zero: c.zeros.Load(), ZeroStreak: c.streak.Load(),
		Infer: time.Duration(c.infer.Load()), Decode: time.Duration(c.decode.Load()),
	}
	if text := c.last.Load(); text != nil {
		s.LastUnhealthy = *text
	}
	return s
}
