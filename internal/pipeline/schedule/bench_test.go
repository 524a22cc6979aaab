package schedule_test

import (
	"testing"
	"time"

	"edgecam/internal/pipeline/schedule"
)

// BenchmarkBoard is what a frame costs the rules when 300 cameras send as fast as
// they are served, in batches of 64.
func BenchmarkBoard(b *testing.B) {
	lanes := make([]schedule.Lane[int], 300)
	board := schedule.Board[int]{PerLane: 2}
	offer := func(l *schedule.Lane[int], at time.Time) {
		board.Offer(l, schedule.Sent{Received: at, Decoded: at, Due: at.Add(80 * time.Millisecond)})
	}
	times := schedule.NewTimes(64)
	times.Observe(64, 10*time.Millisecond)
	flight := schedule.NewFlight(times)
	now := time.Now()
	for i := range lanes {
		offer(&lanes[i], now.Add(time.Duration(i)*time.Microsecond))
	}
	batch := make([]*schedule.Lane[int], 0, 64)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		now = now.Add(100 * time.Microsecond)
		waiting, due := board.Pressing()
		flight.Wait(now, waiting, 64, due)
		l := board.Next(now)
		if batch = append(batch, l); len(batch) < 64 {
			offer(l, now)
			continue
		}
		flight.Begun(64, now, now, false)
		for _, l := range batch {
			offer(l, now)
			board.Done(l)
		}
		flight.Finished(now, true, 0)
		batch = batch[:0]
	}
}

// BenchmarkGovernor is one look at 300 cameras, which comes once a second.
func BenchmarkGovernor(b *testing.B) {
	claims := make([]schedule.Claim, 300)
	for i := range claims {
		claims[i] = schedule.Claim{Wish: float64(5 + i%25), Weight: float64(1 + i%10), Idle: i%7 == 0}
	}
	g := schedule.NewGovernor()
	now := time.Now()
	w := schedule.Window{Length: time.Second, Due: 5000, Lost: 2000, Analysed: 3000, Use: 1}
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Second)
		g.Step(now, w, claims)
		for i := range claims {
			claims[i].Limit(g.Level())
		}
	}
}
