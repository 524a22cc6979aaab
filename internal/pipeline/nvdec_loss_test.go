package pipeline_test

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"edgecam/internal/config"
	"edgecam/internal/event"
	"edgecam/internal/pipeline"
	"edgecam/internal/testkit"
	"edgecam/platform/avcodec"
	"edgecam/platform/cuda"
	"edgecam/platform/nvdectest"
)

// startNVDEC starts a box whose cards decode. No picture of GPU-0 may be published that
// is younger than lost, until it is opened again.
func startNVDEC(t *testing.T, fake *nvdectest.Driver, n, cameras int, decoder string) (b *cards, said *testkit.Journal, lost *atomic.Pointer[time.Time]) {
	t.Helper()
	fake.Set("devices", 2)
	codecs, err := avcodec.Open()
	if err != nil {
		t.Fatal(err)
	}
	said, lost = &testkit.Journal{}, &atomic.Pointer[time.Time]{}
	of := cardsOf{decoder: decoder, nvdec: codecs, logger: slog.New(slog.NewTextHandler(said, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	b = startCardsAs(t, n, cameras, of, func(p *pipeline.Pipeline) {
		p.Observe(func(r pipeline.Result) {
			if at := lost.Load(); at != nil && r.GPU == "GPU-0" && r.Life == 0 && r.At.After(*at) {
				t.Error("a picture of the lost card was published")
			}
		})
	})
	t.Cleanup(func() {
		b.stop()
		if t.Failed() {
			t.Log(said)
		}
	})
	return b, said, lost
}

// analysed waits for a detection of each camera that is newer than now.
func (b *cards) analysed(t *testing.T) {
	t.Helper()
	now := time.Now()
	for _, id := range b.ids() {
		b.detection(t, id, func(d *event.Detection) bool { return d.CapturedAt.After(now) })
	}
}

// decodedBy fails the test where a camera is decoded otherwise.
func (b *cards) decodedBy(t *testing.T, name string) {
	t.Helper()
	waitFor(t, "the cameras to be decoded by "+name, func() bool {
		return !slices.ContainsFunc(b.ids(), func(id string) bool {
			c, ok := b.Camera(id)
			return !ok || c.State != "live" || c.Decoder != name
		})
	})
}

func (b *cards) waitReason(t *testing.T, text string) {
	t.Helper()
	waitFor(t, "the reason: "+text, func() bool { return strings.Contains(b.System().Platform.GPUs[0].Reason, text) })
}

// Cameras that only a card may decode leave one that is lost while their decoders are
// inside of it. It is opened again when the last of them has come out and is closed, not
// before, and has its cameras again.
func TestNVDECCamerasLeaveALostCard(t *testing.T) {
	fake := nvdectest.Run(t)
	if fake == nil {
		return
	}
	b, said, lost := startNVDEC(t, fake, 2, 4, "nvdec")
	b.analysed(t)
	b.decodedBy(t, "h264 (nvdec)")
	ordered := b.order(t)

	fake.Set("decode_hangs", 1)
	waitFor(t, "decoders to be inside", func() bool { return fake.Count("hanging") > 0 })
	if err := b.TakeAway("GPU-0"); !errors.As(err, new(*cuda.LostError)) {
		t.Fatalf("taken away: %v", err)
	}
	began := time.Now()
	lost.Store(&began)
	waitFor(t, "the cameras to move", func() bool {
		cameras, states := b.on(t)
		return fmt.Sprint(cameras, states) == "[0 4] [lost ok]"
	})
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the move took %v", took)
	}
	b.analysed(t)
	b.decodedBy(t, "h264 (nvdec)")
	b.waitReason(t, "cameras have not left it yet")
	fake.Set("hangs", 1)
	fake.Set("decode_hangs", 0)
	b.waitReason(t, "decoders are still being closed")
	b.analysed(t)

	fake.Set("hangs", 0)
	waitFor(t, "the card to come back", func() bool {
		cameras, states := b.on(t)
		return fmt.Sprint(cameras, states) == "[2 2] [ok ok]"
	})
	b.analysed(t)
	b.decodedBy(t, "h264 (nvdec)")
	ordered()
	b.stop()
	if text := said.String(); strings.Contains(text, "unsupported") {
		t.Error("a camera was called unsupported")
	}
	fake.CheckIdle(t)
}

// The only card is lost, and comes back: cameras that may be decoded in software are, the
// others say why they are not, and all of them have the card again.
func TestNVDECOnlyCardIsLost(t *testing.T) {
	fake := nvdectest.Run(t)
	if fake == nil {
		return
	}
	for _, decoder := range []string{"auto", "nvdec"} {
		t.Run(decoder, func(t *testing.T) {
			b, _, lost := startNVDEC(t, fake, 1, 2, decoder)
			b.analysed(t)
			b.decodedBy(t, "h264 (nvdec)")
			fake.Set("hangs", 1)
			if err := b.TakeAway("GPU-0"); err == nil {
				t.Fatal("it is not lost")
			}
			now := time.Now()
			lost.Store(&now)
			b.waitWithoutCard(t, decoder)
			b.waitReason(t, "decoders are still being closed")
			fake.Set("hangs", 0)
			waitFor(t, "the card to come back", func() bool { _, states := b.on(t); return states[0] == "ok" })
			b.analysed(t)
			b.decodedBy(t, "h264 (nvdec)")
			if ok, why := b.Ready(); !ok || b.LostErr() != nil {
				t.Errorf("not ready: %s", why)
			}
			b.stop()
			fake.CheckIdle(t)
		})
	}
}

// waitWithoutCard waits for the cameras of a card that is lost and has no other beside it.
func (b *cards) waitWithoutCard(t *testing.T, decoder string) {
	t.Helper()
	if decoder == "auto" {
		b.decodedBy(t, "h264")
		return
	}
	waitFor(t, "the cameras to say why", func() bool {
		c, _ := b.Camera("cam1")
		return c.State == "backoff" && strings.Contains(c.Reason, "goes on when a GPU serves it again")
	})
}

// The only card is lost by what a decoder says of its context, for good.
func TestNVDECDecoderFault(t *testing.T) {
	fake := nvdectest.Run(t)
	if fake == nil {
		return
	}
	b, _, lost := startNVDEC(t, fake, 1, 2, "auto")
	b.analysed(t)
	b.decodedBy(t, "h264 (nvdec)")
	fake.Set("decode_fails", 719)
	<-b.gpus[0].Lost()
	now := time.Now()
	lost.Store(&now)
	b.waitWithoutCard(t, "auto")
	fake.Set("decode_fails", 0)
	b.waitReason(t, "used again when edgecam is started anew")
	b.decodedBy(t, "h264")
	b.stop()
	fake.CheckIdle(t)
}

// A reload ends most cameras at once. It does not wait for their decoders, which are
// closed one by one, and the card is not taken for lost meanwhile.
func TestNVDECReloadClosesMany(t *testing.T) {
	fake := nvdectest.Run(t)
	if fake == nil {
		return
	}
	fake.Set("strict", 1)
	fake.Set("lock_us", 20000)
	b, _, _ := startNVDEC(t, fake, 1, 10, "nvdec")
	b.decodedBy(t, "h264 (nvdec)")
	next := *b.cfg
	next.Cameras = map[string]config.Camera{"cam1": b.cfg.Cameras["cam1"], "new": b.cfg.Cameras["cam2"]}
	fake.Set("hangs", 1)
	if _, err := b.Reload(&next); err != nil {
		t.Error(err)
	}
	if n := fake.Count("decoders"); n < 10 {
		t.Errorf("%d decoders are open, and none can be closed", n)
	}
	fake.Set("hangs", 0)
	b.cfg = &next
	b.analysed(t)
	b.decodedBy(t, "h264 (nvdec)")
	waitFor(t, "the decoders to be closed", func() bool { return fake.Count("decoders") == 2 })
	if _, states := b.on(t); states[0] != "ok" {
		t.Errorf("the card is %s", states[0])
	}
	b.stop()
	fake.CheckIdle(t)
}

// The driver sets up one decoder at a time, whatever the card.
func TestNVDECCardsSetUpInTurn(t *testing.T) {
	fake := nvdectest.Run(t)
	if fake == nil {
		return
	}
	fake.Set("strict", 1)
	fake.Set("lock_us", 20000)
	b, _, _ := startNVDEC(t, fake, 2, 10, "nvdec")
	b.analysed(t)
	b.decodedBy(t, "h264 (nvdec)")
	if cameras, _ := b.on(t); cameras[0] != 5 || cameras[1] != 5 {
		t.Errorf("cameras of the cards: %v", cameras)
	}
	b.stop()
	fake.CheckIdle(t)
}

// A reload does not wait for cameras whose decoders do not come back from a lost card.
func TestNVDECReloadOfALostCard(t *testing.T) {
	fake := nvdectest.Run(t)
	if fake == nil {
		return
	}
	b, _, _ := startNVDEC(t, fake, 1, 2, "nvdec")
	b.decodedBy(t, "h264 (nvdec)")
	fake.Set("decode_hangs", 1)
	waitFor(t, "both decoders to be inside", func() bool { return fake.Count("hanging") == 2 })
	if err := b.TakeAway("GPU-0"); err == nil {
		t.Error("it is not lost")
	}
	next := *b.cfg
	next.Cameras = map[string]config.Camera{"cam1": b.cfg.Cameras["cam1"], "new": b.cfg.Cameras["cam2"]}
	if _, err := b.Reload(&next); err != nil {
		t.Error(err)
	}
	if n := fake.Count("hanging"); n != 2 {
		t.Errorf("%d decoders are inside: the reload has waited", n)
	}
	b.waitReason(t, "1 cameras have not left it yet")
	fake.Set("decode_hangs", 0)
	b.cfg = &next
	waitFor(t, "the card to come back", func() bool { _, states := b.on(t); return states[0] == "ok" })
	b.analysed(t)
	b.decodedBy(t, "h264 (nvdec)")
	b.stop()
	fake.CheckIdle(t)
}
