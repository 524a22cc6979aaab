package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"edgecam/capture/decode"
	"edgecam/infer"
	"edgecam/infer/candidates"
	"edgecam/infer/ort"
	"edgecam/platform"
	"edgecam/platform/avcodec"
	"edgecam/platform/cuda"
	"edgecam/preprocess"
)

// gpuStepLimit bounds the steps of opening and closing on the GPU's goroutine.
const gpuStepLimit = 30 * time.Second

// GPUOptions say which card is used and for what.
type GPUOptions struct {
	Driver *cuda.Driver
	Card   platform.GPU
	Engine ort.DeviceOptions // without Stream
	NMSIoU float32
	Memory string // gpu.memory of the configuration
	// Codecs have the card's decoder. nil = the card is not asked to decode.
	Codecs *avcodec.Library
	// SetUps is where decoders are set up, the same for all cards of the process. nil =
	// the card has its own.
	SetUps *decode.SetUps
	// CallTimeout is cuda.DeviceOptions'.
	CallTimeout time.Duration
	Logger      *slog.Logger

	life   int          // how often it was lost and opened again
	mapper *cuda.Mapper // of the card's life before; nil = it is the first
}

// GPU is a graphics card at work: it decodes where it can, reads the frames
// where they lie, runs the model and filters its outputs. One goroutine, the
// device's, makes all calls.
type GPU struct {
	options   GPUOptions // it was opened with
	driver    *cuda.Driver
	card      platform.GPU
	rules     preprocess.Rules
	dev       *cuda.Device
	mapper    *cuda.Mapper            // nil where the device cannot register memory
	decoder   *avcodec.HardwareDevice // nil where it does not decode
	noDecoder string                  // why
	queue     *decode.Queue           // in front of decoder; nil where it does not decode
	closer    *decode.Closer          // of decoder and its decoders; nil where it does not decode
	engines   int                     // of decoder; 0 = unknown
	engine    *ort.DeviceEngine
	how       *strategies
	life      int // how often it was lost and opened again
	logger    *slog.Logger
	of        *GPU // the owner of dev, decoder and viewers; nil = itself

	unloading, closing, retiring sync.Once

	putOffMu sync.Mutex
	putOff   []*GPU // models on the card that are to be closed; guarded by putOffMu

	opened bool // all stages are; set before OpenGPU returns

	// of the device's goroutine
	prep       *preprocess.GPU
	feed       *preprocess.Feed
	preparing  cuda.Stream // pictures are prepared on it
	collecting cuda.Stream // candidates are found on it
	sides      gpuSides
	viewers    gpuViewers
	decoded    decodedMark

	nms   ort.Reader // of the worker
	zeros zeroStreak
}

// decodedMark orders streams behind the card's decoders.
type decodedMark struct {
	event  cuda.Event
	source cuda.Stream // the decoders'; 0 without them
}

// after makes work that is queued on s from now on wait for the pictures that
// the decoders have handed out so far.
func (m *decodedMark) after(c *cuda.Context, s cuda.Stream) error {
	if m.source == 0 {
		return nil
	}
	if err := c.Record(m.event, m.source); err != nil {
		return err
	}
	return c.After(s, m.event)
}

// OpenGPU takes a card into use. The error says what of it cannot be used; it
// then holds nothing.
func OpenGPU(ctx context.Context, o GPUOptions) (*GPU, error) {
	rules, err := preprocess.RulesFor(o.Card).Force(o.Memory, o.Card)
	if err != nil {
		return nil, err
	}
	g := &GPU{options: o, driver: o.Driver, card: o.Card, rules: rules, life: o.life, logger: o.Logger}
	if err := g.open(ctx, o); err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

func (g *GPU) open(ctx context.Context, o GPUOptions) (err error) {
	if g.dev, err = o.Driver.NewDevice(ctx, cuda.DeviceOptions{
		Index: g.card.Index, CallTimeout: o.CallTimeout, CPUs: platform.NodeCPUs(g.card.NUMANode), Logger: o.Logger,
	}); err != nil {
		return err
	}
	if g.mapper = o.mapper; g.rules.Register && g.mapper == nil {
		g.mapper = cuda.NewMapper(g.dev)
	}
	if err = g.openDecoder(o.Codecs); err != nil {
		return err
	}
	if g.decoder != nil {
		g.openQueue(ctx)
		if g.closer, err = decode.NewCloser(g.queue, g.dev); err != nil {
			return err
		}
	}
	return g.openModel(ctx, o)
}

func (g *GPU) openDecoder(codecs *avcodec.Library) (err error) {
	if codecs == nil {
		g.noDecoder = "it was not asked to"
		return nil
	}
	if g.decoder, err = codecs.OpenCUDA(g.card.Index); err != nil {
		if g.rules.OnDevice {
			return fmt.Errorf("gpu.memory is device: %w", err)
		}
		g.noDecoder = err.Error()
	}
	return nil
}

func (g *GPU) openStrategies(info infer.Info, o GPUOptions) error {
	path := ""
	if o.Engine.StateDir != "" && g.of == nil { // one beside it measures again, as each writes all of its file
		name := "memory-strategies.json"
		if g.card.Index > 0 { // each card has a file of its own, as each writes all of it
			name = fmt.Sprintf("memory-strategies-%d.json", g.card.Index)
		}
		path = filepath.Join(o.Engine.StateDir, name)
	}
	_, half := g.engine.Input(0)
	ch, err := preprocess.NewChooser(g.dev, preprocess.ChooserOptions{
		Rules: g.rules, Spec: info.Input, Half: half, Driver: o.Engine.Driver, Path: path, Logger: o.Logger,
	})
	g.how = &strategies{chooser: ch, byRule: g.rules.Candidates[0], logger: o.Logger, known: map[geometry]preprocess.Strategy{}}
	return err
}

func (g *GPU) openStages(c *cuda.Context, info infer.Info) (err error) {
	_, halfInput := g.engine.Input(0)
	if g.prep, err = preprocess.NewGPU(c, info.Input, preprocess.GPUOptions{Half: halfInput, MaxBatch: info.MaxBatch}); err != nil {
		return err
	}
	// The engine's stream is urgent too: the next batch is prepared in the gaps that
	// this one leaves, and does not hold it up.
	if g.preparing, err = c.NewStream(); err != nil {
		return err
	}
	if g.collecting, err = c.NewUrgentStream(); err != nil {
		return err
	}
	plan, half, why := g.engine.Filter()
	if why != "" {
		g.logger.Info("outputs are read whole from the card", "reason", why)
	}
	for side := range g.sides {
		err = g.sides[side].open(c, why == "", candidates.Options{
			MaxBatch: info.MaxBatch, Boxes: g.engine.Boxes(), Classes: len(info.Labels), Half: half, Plan: plan,
		})
		if err != nil {
			return err
		}
	}
	if g.feed, err = preprocess.NewFeed(c, g.preparing); err != nil {
		return err
	}
	if g.of != nil {
		return nil // viewers are served by the owner, whose mark it has
	}
	if g.decoder != nil {
		g.decoded.source = cuda.Stream(g.decoder.Stream())
		if g.decoded.event, err = c.NewEvent(false); err != nil {
			return err
		}
	}
	return g.viewers.open(c)
}

// Info is what is known of the engine.
func (g *GPU) Info() infer.Info { return g.engine.Info() }

// NoDecoder says why the card does not decode, "" where it does.
func (g *GPU) NoDecoder() string { return g.noDecoder }

// Lost is closed when the card does not answer any more.
func (g *GPU) Lost() <-chan struct{} { return g.dev.Lost() }

// lostOrNever is Lost, or nil without a card.
func (g *GPU) lostOrNever() <-chan struct{} {
	if g == nil {
		return nil
	}
	return g.Lost()
}

// Strategy says how pictures come to the card's kernels, in one word and in a
// sentence.
func (g *GPU) Strategy() (strategy, why string) {
	if g.decoder != nil {
		return string(preprocess.Device), "pictures are decoded in the card's memory; for those that it does not decode: " + g.rules.Why
	}
	return string(g.rules.Candidates[0]), g.rules.Why + "; the card does not decode: " + g.noDecoder
}

// lookLimit is how long a card may be too busy to be looked at.
const lookLimit = 2 * time.Second

// look asks whether the card still serves this process and its decoders, and gives it
// up where it does not. A card that is busy with something else keeps its place.
func (g *GPU) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	err := g.dev.Do(ctx, "look after the loss of another gpu", g.check)
	if err != nil && g.dev.Err() == nil && ctx.Err() == nil && !errors.Is(err, cuda.ErrDeviceClosed) && cuda.Code(err) != cuda.CodeOutOfMemory {
		g.dev.Lose(fmt.Errorf("look after the loss of another gpu: %w", err))
	}
}

// check says whether the context serves kernels and decoders.
func (g *GPU) check(c *cuda.Context) error {
	if err := c.Synchronize(); err != nil {
		return err
	}
	s, err := c.NewStream()
	if err == nil {
		err = c.FreeStream(s)
	}
	if err != nil || g.decoder == nil {
		return err
	}
	probe, err := g.options.Codecs.OpenCUDA(g.card.Index)
	if err == nil {
		probe.Close()
	}
	return err
}

// Err is nil, or why the card is lost once Lost is closed.
func (g *GPU) Err() error { return g.dev.Err() }

// Close gives the card back, once no camera and no worker uses it: pools that
// the card sees must be gone, as it has to forget them. It may be called twice.
func (g *GPU) Close() { g.closing.Do(g.close) }

func (g *GPU) close() {
	if g.dev == nil {
		return
	}
	g.endModel()
	if g.of != nil {
		return
	}
	g.endPutOff()
	g.report("close gpu viewers", g.dev.DoWithin(context.Background(), "close viewers", gpuStepLimit, g.closeCard))
	if !g.closeDecoder() {
		g.logger.Info("decoders are still being closed: the rest is left to the end of the process", "decoders", g.closer.Open())
		return
	}
	g.report("close gpu", g.dev.Close())
}

// closeDecoderLimit is how long the end waits for decoders that are closed one after
// another, well under what systemd waits for a service.
const closeDecoderLimit = 5 * time.Second

// closeDecoder gives the decoder back behind its decoders; false where that takes too
// long.
func (g *GPU) closeDecoder() (done bool) {
	done = true
	if g.decoder == nil {
		return done
	}
	g.retiring.Do(func() {
		if g.closer == nil { // it was never handed out
			g.decoder.Close()
			return
		}
		done = g.closer.Close(g.decoder.Close, closeDecoderLimit)
	})
	return done
}

// report logs what went wrong at the end. A card that is lost says so to
// everything, and has been reported.
func (g *GPU) report(what string, err error) {
	retired := errors.Is(err, cuda.ErrDeviceClosed) && g.dev.Err() != nil
	if err != nil && !retired && (g.dev.Err() == nil || g.dev.Serves()) {
		g.logger.Warn(what, "err", err)
	}
}

func (g *GPU) closeStages(c *cuda.Context) error {
	var errs []error
	for _, s := range []cuda.Stream{g.preparing, g.collecting} {
		if s != 0 {
			errs = append(errs, c.Wait(s))
		}
	}
	if g.feed != nil {
		errs = append(errs, g.feed.Close(c))
	}
	for side := range g.sides {
		errs = append(errs, g.sides[side].close(c))
	}
	if g.prep != nil {
		errs = append(errs, g.prep.Close(c))
		g.prep = nil
	}
	errs = append(errs, c.FreeStream(g.preparing), c.FreeStream(g.collecting))
	g.preparing, g.collecting = 0, 0
	return errors.Join(errs...)
}

// closeCard closes what all models on the card share.
func (g *GPU) closeCard(c *cuda.Context) error {
	err := c.FreeEvent(g.decoded.event)
	g.decoded.event = 0
	return errors.Join(err, g.viewers.close(c))
}

// serve sets what a camera's decoder gets of the card: pools that the card sees,
// and its decoder. Without a card it changes nothing.
func (g *GPU) serve(o *decode.Options) {
	if g == nil {
		return
	}
	o.Node = g.card.NUMANode
	if g.mapper != nil {
		o.Mapper = g.mapper
	}
	o.Installed = o.Installed || g.card.Integrated
	o.CUDA, o.NoCUDA, o.Lost, o.Closer = g.decoder, g.noDecoder, g.dev.Lost(), g.closer
	if g.queue != nil {
		o.Queue = g.queue
	}
}
