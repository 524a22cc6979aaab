package framepool_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"edgecam/framepool"
)

func TestMailboxKeepsTheNewest(t *testing.T) {
	p := newPool(t, framepool.Options{})
	m := framepool.NewMailbox()
	if f, ok := m.TryTake(); ok || f != nil {
		t.Fatal("empty mailbox gives a frame")
	}
	for seq := uint64(1); seq <= 3; seq++ {
		if replaced := m.Put(get(t, p).Seal(meta(p, seq))); replaced != (seq > 1) {
			t.Errorf("put %d: replaced %v", seq, replaced)
		}
	}
	if n := p.Stats().InUse; n != 1 {
		t.Errorf("%d slots in use by a mailbox of one", n)
	}
	<-m.Ready()
	f, ok := m.TryTake()
	if !ok || f.Meta().Seq != 3 {
		t.Fatalf("took %v", ok)
	}
	f.Release()
	select {
	case <-m.Ready():
		t.Error("woken without a put")
	default:
	}
}

func TestMailboxClose(t *testing.T) {
	p := newPool(t, framepool.Options{})
	m := framepool.NewMailbox()
	m.Put(get(t, p).Seal(meta(p, 1)))
	<-m.Ready()
	m.Close()
	m.Close()
	<-m.Ready() // a reader that waits learns of it
	if _, ok := m.TryTake(); ok {
		t.Error("closed mailbox gives a frame")
	}
	if !m.Put(get(t, p).Seal(meta(p, 2))) {
		t.Error("put after close does not report the loss")
	}
	if n := p.Stats().InUse; n != 0 {
		t.Errorf("%d slots in use after close", n)
	}
}

// Every frame that is put is either taken or reported as replaced, in order,
// and a wake-up is never lost: the reader sees the last frame.
func TestMailboxLosesNothing(t *testing.T) {
	const last = 20_000
	p := newPool(t, framepool.Options{})
	m := framepool.NewMailbox()
	var replaced, taken uint64
	var wg sync.WaitGroup
	wg.Go(func() {
		r := rand.New(rand.NewPCG(1, 2))
		for seq := uint64(1); seq <= last; {
			b, ok := p.TryGet()
			if !ok {
				t.Error("more frames held than the mailbox, the reader and the writer have")
				return
			}
			if r.IntN(50) == 0 {
				b.Discard()
				continue
			}
			if m.Put(b.Seal(meta(p, seq))) {
				replaced++
			}
			seq++
		}
	})
	for seen := uint64(0); seen < last; {
		<-m.Ready()
		f, ok := m.TryTake()
		if !ok {
			continue
		}
		if got := f.Meta().Seq; got <= seen {
			t.Fatalf("frame %d after %d", got, seen)
		}
		seen = f.Meta().Seq
		taken++
		f.Release()
	}
	wg.Wait()
	if taken+replaced != last {
		t.Errorf("%d taken and %d replaced of %d", taken, replaced, last)
	}
}
