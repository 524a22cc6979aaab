package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"edgecam/capture"
	"edgecam/capture/decode"
	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/internal/sim"
	"edgecam/platform/avcodec"
)

// Card is a graphics card at work, as the pipeline uses it.
type Card interface {
	Info() infer.Info
	// Serve gives a decoder what it needs of the card.
	Serve(*decode.Options)
	// Measure takes batches of n pictures, which it repeats as needed, through all
	// stages, and through the engine alone.
	Measure(ctx context.Context, pictures []*framepool.Frame, n int) (GPURow, error)
	Stream(ctx context.Context) Stream
	// FreeMemory gives the card's free and total memory in bytes.
	FreeMemory(ctx context.Context) (free, total uint64, err error)
}

// GPUOptions say what is measured.
type GPUOptions struct {
	Clip     *sim.ClipData
	Card     Card
	Decoders []string // as in a camera's configuration
	Pictures int      // to decode. It defaults to 300.
	Budget   *framepool.Budget
	Codecs   *avcodec.Library
	Logger   *slog.Logger
	Progress func(decoder string, images int) // nil = nobody
}

// GPUReport is what a card does with a clip.
type GPUReport struct {
	Machine   string   `json:"machine"`
	GPU       string   `json:"gpu"`
	Driver    string   `json:"driver"`
	Clip      string   `json:"clip"`
	Model     string   `json:"model"`
	Precision string   `json:"precision"`
	Provider  string   `json:"provider"`
	Graphs    []int    `json:"cuda_graphs"` // batch sizes that are replayed
	Notes     []string `json:"notes"`
	Ways      []GPUWay `json:"ways"`
}

// GPUWay are the figures of pictures from one decoder.
type GPUWay struct {
	Decoder     string   `json:"decoder"`
	Problem     string   `json:"problem,omitempty"` // why there are no figures
	Width       int      `json:"width"`
	Height      int      `json:"height"`
	Format      string   `json:"format"`
	Memory      string   `json:"memory"` // where pictures lie
	DecodeMS    float64  `json:"decode_ms"`
	DecodeCPUMS float64  `json:"decode_cpu_ms"`
	CopiedBytes float64  `json:"copied_bytes"` // by the processor, of a picture
	Pictures    int      `json:"pictures"`     // different ones in the batches
	Rows        []GPURow `json:"rows"`
}

// GPURow is what a card does with batches of one size. Times are of a batch.
type GPURow struct {
	Images       int     `json:"images"`
	Bare         float64 `json:"bare_images_per_second"` // the engine alone, batch on batch
	Path         float64 `json:"path_images_per_second"` // all stages, as many batches under way as there can be
	PreprocessUS float64 `json:"preprocess_us"`          // on the card, alone
	EngineUS     float64 `json:"engine_us"`              // on the card, alone
	CandidatesUS float64 `json:"candidates_us"`          // on the card, alone
	ResultsUS    float64 `json:"results_us"`             // NMS, places in the picture and tracking, on the processor
	BatchMS      float64 `json:"batch_ms"`               // from begin to results, nothing beside it, median
	DMABytes     float64 `json:"dma_bytes"`              // copied to the card in front of the kernels, of a picture
	Graph        bool    `json:"cuda_graph"`
}

// Ratio is how much of the bare engine's rate the whole path reaches.
func (r GPURow) Ratio() float64 { return r.Path / max(r.Bare, 1e-9) }

const (
	gpuPictures = 300 // to decode
	// heldPooled and heldOnDevice are how many different pictures batches have: a
	// decoder on the card has few surfaces.
	heldPooled, heldOnDevice = 64, 8
)

// GPU decodes the clip in each way and takes batches of the pictures through the
// card.
func GPU(ctx context.Context, o GPUOptions) (*GPUReport, error) {
	if o.Pictures == 0 {
		o.Pictures = gpuPictures
	}
	info := o.Card.Info()
	r := &GPUReport{
		Clip:  fmt.Sprintf("%s %d pictures", o.Clip.Codec, len(o.Clip.Samples)),
		Model: info.Model, Precision: info.Precision, Provider: info.Provider, Graphs: info.Graphs, Notes: info.ProbeNotes,
	}
	for _, name := range o.Decoders {
		w, err := gpuWay(ctx, o, name)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			w.Problem = err.Error()
		}
		r.Ways = append(r.Ways, w)
	}
	return r, nil
}

func gpuWay(ctx context.Context, o GPUOptions, name string) (w GPUWay, err error) {
	w.Decoder = name
	held := heldPooled
	if name == "nvdec" {
		held = heldOnDevice
	}
	pictures, err := w.decode(ctx, o, held)
	defer func() {
		for _, f := range pictures {
			f.Release()
		}
	}()
	if err != nil {
		return w, err
	}
	m := pictures[0].Meta()
	w.Width, w.Height, w.Format, w.Memory, w.Pictures = m.Width, m.Height, m.Format.String(), pictures[0].Memory().String(), len(pictures)
	for n := 1; ; n = min(2*n, o.Card.Info().MaxBatch) {
		if o.Progress != nil {
			o.Progress(name, n)
		}
		row, err := o.Card.Measure(ctx, pictures, n)
		if err != nil {
			return w, fmt.Errorf("measure batches of %d: %w", n, err)
		}
		w.Rows = append(w.Rows, row)
		if n == o.Card.Info().MaxBatch {
			return w, nil
		}
	}
}

// decode takes the clip through the decoder as fast as it goes and keeps some
// pictures.
func (w *GPUWay) decode(ctx context.Context, o GPUOptions, held int) (pictures []*framepool.Frame, err error) {
	d := decode.Options{
		Camera: "bench", Info: capture.StreamInfo{Codec: o.Clip.Codec, ParameterSets: o.Clip.ParameterSets(), ClockRate: 90000},
		Decoder: w.Decoder, Library: o.Codecs, Budget: o.Budget, Node: -1, Lock: true, HugePages: true, ReaderSlots: held + 1, Logger: o.Logger,
	}
	o.Card.Serve(&d)
	dec, err := decode.New(d)
	if err != nil {
		return nil, err
	}
	defer dec.Close() // the pictures keep their pool
	p := &gpuPlayer{ctx: ctx, dec: dec, clip: clipPlayer{clip: o.Clip}}
	if err := p.play(warmUp, nil); err != nil { // the first pictures pay for setting up
		return nil, err
	}
	cpu, err := cpuSeconds()
	if err != nil {
		return nil, err
	}
	start := time.Now()
	if err := p.play(o.Pictures, nil); err != nil {
		return nil, err
	}
	took := time.Since(start).Seconds()
	end, err := cpuSeconds()
	if err != nil {
		return nil, err
	}
	n := float64(o.Pictures)
	w.DecodeMS, w.DecodeCPUMS, w.CopiedBytes = 1000*took/n, 1000*(end-cpu)/n, float64(dec.Stats().CopiedBytes)/float64(o.Pictures+warmUp)
	err = p.play(4*held, func(i int, f *framepool.Frame) bool { // some pictures apart
		if i%4 != 0 {
			return false
		}
		pictures = append(pictures, f)
		return true
	})
	if len(pictures) > 0 && ctx.Err() == nil {
		err = nil // a decoder may have fewer surfaces than are asked for
	}
	return pictures, err
}

// gpuPlayer takes a clip through a decoder.
type gpuPlayer struct {
	ctx  context.Context //nolint:containedctx // of the one call
	dec  *decode.Decoder
	clip clipPlayer
}

// play takes n pictures; keep may keep picture i, nil keeps none.
func (p *gpuPlayer) play(n int, keep func(i int, f *framepool.Frame) bool) error {
	seen, idle := 0, 0
	for seen < n {
		if err := p.ctx.Err(); err != nil {
			return err
		}
		if idle++; idle > 2*len(p.clip.clip.Samples) {
			return errors.New("decode clip: it gave no picture in two loops")
		}
		err := p.dec.Decode(p.clip.unit(), func(f *framepool.Frame) {
			idle = 0
			if seen++; seen > n || keep == nil || !keep(seen, f) {
				f.Release()
			}
		})
		var unsupported *capture.UnsupportedError
		if errors.As(err, &unsupported) {
			return err
		}
	}
	return nil
}

// clipPlayer gives a clip's access units, for ever.
type clipPlayer struct {
	clip *sim.ClipData
	next int           // sample
	zero time.Duration // presentation time of the current loop
}

func (p *clipPlayer) unit() *capture.AccessUnit {
	if p.next == len(p.clip.Samples) {
		p.next, p.zero = 0, p.zero+p.clip.Duration
	}
	s := p.clip.Samples[p.next]
	p.next++
	now := time.Now()
	return &capture.AccessUnit{
		NALUs: s.NALUs, PTS: p.zero + s.PTS, RTPTime: uint32((p.zero + s.PTS) * 9 / 100_000),
		Received: now, CapturedAt: now, RandomAccess: s.RandomAccess,
	}
}

// Table prints the report for people.
func (r *GPUReport) Table(w io.Writer) error {
	var t bytes.Buffer
	fmt.Fprintf(&t, "%s, driver %s, %s; %s (%s, %s), %s\n", r.GPU, r.Driver, r.Machine, r.Model, r.Precision, r.Provider, r.Clip)
	if len(r.Graphs) > 0 {
		fmt.Fprintf(&t, "batches of %v are replayed as CUDA graphs\n", r.Graphs)
	}
	for _, way := range r.Ways {
		if way.Problem != "" {
			fmt.Fprintf(&t, "\ndecoder %s: %s\n", way.Decoder, way.Problem)
			continue
		}
		fmt.Fprintf(&t, "\ndecoder %s: %dx%d %s in %s memory, %.3f ms a picture (%.3f ms of processor), %.0f bytes of pixels copied by the processor a picture; %d different pictures\n",
			way.Decoder, way.Width, way.Height, way.Format, way.Memory, way.DecodeMS, way.DecodeCPUMS, way.CopiedBytes, way.Pictures)
		fmt.Fprintf(&t, "%6s %12s %12s %8s %14s %11s %14s %11s %9s %12s\n",
			"batch", "bare img/s", "path img/s", "ratio", "preprocess us", "engine us", "candidates us", "results us", "batch ms", "DMA bytes")
		for _, row := range way.Rows {
			graph := ""
			if row.Graph {
				graph = " graph"
			}
			fmt.Fprintf(&t, "%6d %12.0f %12.0f %8.3f %14.1f %11.1f %14.1f %11.1f %9.2f %12.0f%s\n",
				row.Images, row.Bare, row.Path, row.Ratio(), row.PreprocessUS, row.EngineUS, row.CandidatesUS, row.ResultsUS, row.BatchMS, row.DMABytes, graph)
		}
	}
	_, err := w.Write(t.Bytes())
	return err
}
