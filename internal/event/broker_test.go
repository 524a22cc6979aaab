package event_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"edgecam/internal/event"
)

func detection(camera string, seq uint64) *event.Detection {
	return &event.Detection{Camera: camera, Seq: seq, Objects: []event.Object{}}
}

func names(ds []*event.Detection) []string {
	var out []string
	for _, d := range ds {
		out = append(out, fmt.Sprintf("%s:%d", d.Camera, d.Seq))
	}
	return out
}

func next(t *testing.T, s *event.Subscription) []string {
	t.Helper()
	ds, err := s.Next(t.Context())
	if err != nil {
		t.Fatalf("Next: %v", err)
	}
	return names(ds)
}

func TestSubscriptionGivesNewestOfEachCamera(t *testing.T) {
	cases := []struct {
		name    string
		cameras []string
		publish []string
		want    []string
		missed  uint64
	}{
		{"one", nil, []string{"a:1"}, []string{"a:1"}, 0},
		{"newest wins", nil, []string{"a:1", "a:2", "a:3"}, []string{"a:3"}, 2},
		{"longest waiting first", nil, []string{"b:1", "a:1", "b:2"}, []string{"b:2", "a:1"}, 1},
		{"filtered", []string{"a", "c"}, []string{"a:1", "b:1", "c:1", "b:2"}, []string{"a:1", "c:1"}, 0},
		{"filter named twice", []string{"a", "a"}, []string{"a:1", "b:1"}, []string{"a:1"}, 0},
		{"empty filter is all", []string{}, []string{"a:1", "b:1"}, []string{"a:1", "b:1"}, 0},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			b := event.NewBroker()
			s := b.Subscribe(tc.cameras)
			defer s.Close()
			for _, p := range tc.publish {
				b.Publish(detection(p[:1], uint64(p[2]-'0')))
			}
			if got := next(t, s); !slices.Equal(got, tc.want) {
				t.Errorf("Next = %v, want %v", got, tc.want)
			}
			if got := s.Replaced(); got != tc.missed {
				t.Errorf("Replaced = %d, want %d", got, tc.missed)
			}
		})
	}
}

func TestSubscriptionSharesDetections(t *testing.T) {
	b := event.NewBroker()
	s1, s2 := b.Subscribe(nil), b.Subscribe(nil)
	defer s1.Close()
	defer s2.Close()
	d := detection("a", 1)
	b.Publish(d)
	for i, s := range []*event.Subscription{s1, s2} {
		ds, err := s.Next(t.Context())
		if err != nil || len(ds) != 1 || ds[0] != d {
			t.Errorf("reader %d got %v, %v, want the published value itself", i, ds, err)
		}
	}
}

func TestNextWaitsAndWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := event.NewBroker()
		s := b.Subscribe(nil)
		defer s.Close()
		got := make(chan []string)
		go func() { got <- next(t, s) }()
		synctest.Wait() // the reader is blocked
		b.Publish(detection("a", 7))
		if ds := <-got; !slices.Equal(ds, []string{"a:7"}) {
			t.Errorf("Next = %v, want [a:7]", ds)
		}
	})
}

func TestNextLosesNothingWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := event.NewBroker()
		s := b.Subscribe(nil)
		defer s.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if ds, err := s.Next(ctx); !errors.Is(err, context.DeadlineExceeded) || ds != nil {
			t.Fatalf("Next = %v, %v, want deadline exceeded", ds, err)
		}
		b.Publish(detection("a", 1))
		if got := next(t, s); !slices.Equal(got, []string{"a:1"}) {
			t.Errorf("Next = %v, want [a:1]", got)
		}
	})
}

func TestCloseEndsNext(t *testing.T) {
	cases := map[string]func(*event.Broker, *event.Subscription){
		"subscription closed": func(_ *event.Broker, s *event.Subscription) { s.Close(); s.Close() },
		"broker closed":       func(b *event.Broker, _ *event.Subscription) { b.Close(); b.Close() },
	}
	for name, end := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := event.NewBroker()
				s := b.Subscribe(nil)
				errs := make(chan error)
				go func() { _, err := s.Next(t.Context()); errs <- err }()
				synctest.Wait()
				end(b, s)
				if err := <-errs; !errors.Is(err, event.ErrClosed) {
					t.Errorf("Next = %v, want ErrClosed", err)
				}
				b.Publish(detection("a", 1)) // must not panic, must not be kept
				if _, err := s.Next(t.Context()); !errors.Is(err, event.ErrClosed) {
					t.Errorf("Next after close = %v, want ErrClosed", err)
				}
				s.Close()
			})
		})
	}
}

func TestSubscribeToClosedBroker(t *testing.T) {
	b := event.NewBroker()
	b.Close()
	s := b.Subscribe(nil)
	if _, err := s.Next(t.Context()); !errors.Is(err, event.ErrClosed) {
		t.Errorf("Next = %v, want ErrClosed", err)
	}
	s.Close()
}

func TestWatched(t *testing.T) {
	b := event.NewBroker()
	if b.Watched("a") {
		t.Error("watched without a subscription")
	}
	s := b.Subscribe([]string{"a"})
	if !b.Watched("a") || b.Watched("b") {
		t.Errorf("Watched(a), Watched(b) = %v, %v, want true, false", b.Watched("a"), b.Watched("b"))
	}
	s.Close()
	if b.Watched("a") {
		t.Error("watched after the only subscription was closed")
	}
}

// A reader never sees an older detection after a newer one of the same camera,
// and the last one published always arrives, whatever the interleaving.
func TestManyPublishersAndReaders(t *testing.T) {
	const cameras, readers, each = 4, 4, 2000
	b := event.NewBroker()
	var pubs, reads sync.WaitGroup
	for range readers {
		s := b.Subscribe(nil)
		reads.Go(func() {
			defer s.Close()
			last := map[string]uint64{}
			for finished := 0; finished < cameras; {
				ds, err := s.Next(t.Context())
				if err != nil {
					t.Errorf("Next: %v", err)
					return
				}
				if len(ds) > cameras {
					t.Errorf("Next gave %d detections of %d cameras", len(ds), cameras)
				}
				for _, d := range ds {
					if d.Seq <= last[d.Camera] {
						t.Errorf("camera %s: seq %d after %d", d.Camera, d.Seq, last[d.Camera])
					}
					last[d.Camera] = d.Seq
					if d.Seq == each {
						finished++
					}
				}
			}
		})
	}
	for c := range cameras {
		pubs.Go(func() {
			for seq := uint64(1); seq <= each; seq++ {
				b.Publish(detection(string(rune('a'+c)), seq))
				if seq%100 == 0 { // subscriptions come and go meanwhile
					b.Subscribe([]string{"a"}).Close()
				}
			}
		})
	}
	pubs.Wait()
	reads.Wait()
}

func TestPublishAllocatesNothing(t *testing.T) {
	b := event.NewBroker()
	subs := []*event.Subscription{b.Subscribe(nil), b.Subscribe(nil), b.Subscribe([]string{"a"})}
	d := detection("a", 1)
	ctx := t.Context()
	round := func() {
		b.Publish(d)
		b.Publish(d)
		for _, s := range subs {
			if _, err := s.Next(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	round()
	round() // both slices of each subscription have grown
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations a round, want 0", n)
	}
}

func TestDetectionJSON(t *testing.T) {
	d := event.Detection{
		Camera: "gate", Seq: 7, CapturedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), AgeMS: 41.5, RTPTime: 90000,
		Width: 768, Height: 576, Objects: []event.Object{{Track: 3, Label: "person", Score: 0.5, Box: [4]float32{0, 0.25, 0.5, 1}}},
	}
	const want = `{"camera":"gate","seq":7,"captured_at":"2026-01-02T03:04:05Z","age_ms":41.5,"rtp_time":90000,"width":768,"height":576,` +
		`"objects":[{"track":3,"label":"person","score":0.5,"box":[0,0.25,0.5,1]}]}`
	got, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func BenchmarkPublish(b *testing.B) {
	for _, readers := range []int{0, 1, 8, 64} {
		b.Run(fmt.Sprintf("readers=%d", readers), func(b *testing.B) {
			br := event.NewBroker()
			for range readers {
				defer br.Subscribe(nil).Close()
			}
			d := detection("a", 1)
			b.ReportAllocs()
			for b.Loop() {
				br.Publish(d)
			}
		})
	}
}
