package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"edgecam/capture"
	"edgecam/capture/decode"
	"edgecam/internal/config"
	"edgecam/internal/pipeline/bench/cameras"
	"edgecam/internal/sim"
	"edgecam/platform"
	"edgecam/platform/avcodec"
	"edgecam/platform/cuda"
)

// camerasFlags are the flags of `bench cameras`.
type camerasFlags struct {
	count, most              int
	findMax                  bool
	p95, duration, limit     time.Duration
	size, codec, clip        string
	fps, detectFPS           float64
	bitrate                  string
	urls                     []string
	file                     string
	decoder, stateDir        string
	model, provider          string
	precision, library       string
	memory                   string
	maxBatch                 int
	budget                   time.Duration
	asJSON                   bool
	lose                     string
	width, height, bitrateOf int // of size and bitrate
	loseGPU                  int
	loseAfter                time.Duration
	loseByTrap               bool
	overload                 float64
}

func newBenchCameras() *cobra.Command {
	var f camerasFlags
	cmd := &cobra.Command{
		Use:   "cameras",
		Short: "Measure how many cameras this machine takes, and how old their frames get",
		Long: "Cameras runs the appliance as `edgecam run` builds it against simulated cameras in a process of their own,\n" +
			"over real RTSP, and measures it once every camera is live. --find-max looks for the most cameras whose p95\n" +
			"stays under --p95 with no stall and 99 % of the frames analysed: it doubles their number from --count on\n" +
			"until that fails, then bisects, without loading the model again. A trial takes --duration and some seconds\n" +
			"of warm-up, a search up to 15 trials; none is begun after --limit.\n" +
			"--lose 1@5s takes GPU 1 away 5 s into the measured time, and reports how its cameras fare on the others; it\n" +
			"is for the next process to use it again. --lose 1@5s:trap has a kernel fault instead, which takes every GPU\n" +
			"from the process: `edgecam run` ends for that.\n" +
			"--overload 2 compares half of --count, or of what --find-max found, with twice as many, priorities 1, 2 and 4.\n" +
			"It says whether p95 stays within 20 %, memory flat, and every camera within 10 % of its weighted share.\n" +
			"For a size that is not the built-in clip's a clip is made with ffmpeg, once; --clip names one of your own.",
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return &usageError{err}
			}
			return benchCameras(cmd.Context(), f, cmd.ErrOrStderr(), func(r *cameras.Report) error { return printReport(cmd, r, f.asJSON) })
		},
	}
	f.add(cmd)
	return cmd
}

func (f *camerasFlags) add(cmd *cobra.Command) {
	o := cmd.Flags()
	byDefault := config.Default()
	o.IntVar(&f.count, "count", 4, "cameras; of a search, the first trial")
	o.BoolVar(&f.findMax, "find-max", false, "search for the largest number of cameras that meets --p95")
	o.IntVar(&f.most, "most", 512, "most cameras that a search tries")
	o.DurationVar(&f.p95, "p95", 80*time.Millisecond, "bound of the age of 95 % of the frames, from their last packet to their detections")
	o.DurationVar(&f.duration, "duration", 10*time.Second, "time that a trial is measured for")
	o.DurationVar(&f.limit, "limit", 8*time.Minute, "a search begins no trial after this time")
	o.StringVar(&f.size, "size", "1080p", "size of the cameras' pictures: 480p, 720p, 1080p, 1440p, 4k, or 1280x720")
	o.Float64Var(&f.fps, "fps", 30, "frames a second of each camera")
	o.StringVar(&f.codec, "codec", "h264", "h264 or h265")
	o.StringVar(&f.bitrate, "bitrate", "", "bits a second, such as 4M (default: usual for size, rate and codec)")
	o.StringVar(&f.clip, "clip", "", "MP4 file that the cameras play, in place of size, fps, codec and bitrate; builtin = the demo's")
	o.StringSliceVar(&f.urls, "url", nil, "use these cameras and simulate none")
	o.Float64Var(&f.detectFPS, "detect-fps", 0, "frames a second of each camera that are analysed; 0 = all")
	o.StringVarP(&f.file, "config", "c", "", "configuration for everything but cameras (default: the defaults); the flags below go before it")
	o.StringVar(&f.decoder, "decoder", "auto", "auto, software, nvdec, or the name of one of FFmpeg's decoders")
	o.StringVar(&f.model, "model", byDefault.Inference.Model.File, "builtin:nanodet-g or an ONNX file")
	o.StringVar(&f.provider, "provider", byDefault.Inference.Provider, "auto, cpu, cuda or tensorrt")
	o.StringVar(&f.precision, "precision", byDefault.Inference.Precision, "auto, fp32, fp16 or int8")
	o.StringVar(&f.library, "library", "", "path of libonnxruntime.so (default: search)")
	o.IntVar(&f.maxBatch, "max-batch", byDefault.Inference.MaxBatch, "most pictures in a run of the engine")
	o.DurationVar(&f.budget, "latency-budget", byDefault.Inference.LatencyBudget, "age that the batches are made for")
	o.StringVar(&f.memory, "memory", byDefault.GPU.Memory, "way of pixels to the GPU: auto, mapped, staged, device or heap")
	o.StringVar(&f.stateDir, "state-dir", "", "directory that keeps engines between runs")
	o.StringVar(&f.lose, "lose", "", "rehearse the loss of a GPU: its number and the time into the trial, as 1@5s: it is taken away, its cameras move, and it comes back; 1@5s:trap has a kernel fault there instead, after which it does not")
	o.Float64Var(&f.overload, "overload", 0, "rehearse so many times --count, or what --find-max found: more than 1, to 8; 0 = no rehearsal")
	o.BoolVar(&f.asJSON, "json", false, "print JSON")
}

func (f *camerasFlags) check() (err error) {
	switch {
	case f.count < 1:
		return fmt.Errorf("--count %d: at least one is needed", f.count)
	case f.most < f.count && f.findMax:
		return fmt.Errorf("--most %d: less than --count", f.most)
	case f.duration < time.Second:
		return fmt.Errorf("--duration %s: at least a second is needed", f.duration)
	case f.p95 <= 0:
		return fmt.Errorf("--p95 %s: must be more than 0", f.p95)
	case f.fps < 1 || f.fps > 240:
		return fmt.Errorf("--fps %g: 1 to 240", f.fps)
	case f.detectFPS < 0:
		return fmt.Errorf("--detect-fps %g: must not be negative", f.detectFPS)
	case f.codec != "h264" && f.codec != "h265":
		return fmt.Errorf("--codec %s: use h264 or h265", f.codec)
	}
	if err := f.checkLose(); err != nil {
		return err
	}
	if err := f.checkOverload(); err != nil {
		return err
	}
	if f.width, f.height, err = cameras.ParseSize(f.size); err != nil {
		return fmt.Errorf("--size: %w", err)
	}
	if f.bitrate != "" {
		var number float64
		var unit string
		if n, _ := fmt.Sscanf(f.bitrate, "%g%s", &number, &unit); n < 1 || number <= 0 {
			return fmt.Errorf("--bitrate %s: use a number such as 4M or 800k", f.bitrate)
		}
		factor, ok := map[string]float64{"": 1, "k": 1e3, "K": 1e3, "M": 1e6}[unit]
		if !ok {
			return fmt.Errorf("--bitrate %s: use a number such as 4M or 800k", f.bitrate)
		}
		f.bitrateOf = int(number * factor)
	}
	return nil
}

func (f *camerasFlags) checkLose() (err error) {
	if f.lose == "" {
		return nil
	}
	gpu, after, ok := strings.Cut(f.lose, "@")
	after, f.loseByTrap = strings.CutSuffix(after, ":trap")
	if f.loseGPU, err = strconv.Atoi(gpu); err == nil && ok {
		f.loseAfter, err = time.ParseDuration(after)
	}
	switch {
	case err != nil || !ok || f.loseGPU < 0 || f.loseAfter <= 0:
		return fmt.Errorf("--lose %s: use a GPU's number and a time, such as 1@5s or 1@5s:trap", f.lose)
	case f.findMax:
		return errors.New("--lose and --find-max: a search loses no GPU")
	case f.loseAfter >= f.duration:
		return fmt.Errorf("--lose %s: not within --duration %s", f.lose, f.duration)
	}
	return nil
}

func (f *camerasFlags) checkOverload() error {
	if f.overload == 0 {
		return nil
	}
	needs := f.count
	if f.findMax {
		needs = 1 // the search goes no further than there are cameras for
	}
	switch needs = cameras.CamerasFor(f.overload, needs); {
	case !(f.overload > 1 && f.overload <= 8):
		return fmt.Errorf("--overload %g: more than 1, to 8", f.overload)
	case f.lose != "":
		return errors.New("--overload and --lose: one rehearsal at a time")
	case len(f.urls) > 0 && len(f.urls) < needs:
		return fmt.Errorf("--overload %g: %d cameras are needed, and --url names %d", f.overload, needs, len(f.urls))
	}
	return nil
}

// number is how many cameras there must be.
func (f *camerasFlags) number() int {
	n := f.count
	if f.findMax {
		n = f.most
	}
	switch {
	case len(f.urls) > 0:
		return len(f.urls)
	case f.overload > 0:
		return cameras.CamerasFor(f.overload, n)
	}
	return n
}

// camerasBench is a bench with what it needs around it.
type camerasBench struct {
	f        camerasFlags
	progress io.Writer
	clip     *sim.ClipData // nil with --url
	video    string        // of the cameras, in words
	sim      *cameras.Simulator
	cards    []cameras.CardOptions
}

func benchCameras(ctx context.Context, f camerasFlags, progress io.Writer, show func(*cameras.Report) error) error {
	b := &camerasBench{f: f, progress: progress}
	cfg, err := b.config()
	if err != nil {
		return err
	}
	if err := b.startCameras(ctx); err != nil {
		return err
	}
	if b.sim != nil {
		defer b.sim.Stop()
	}
	logger := newLogger(progress, "warn", "text")
	a, err := newAppliance(ctx, cfg, nil, logger)
	if err != nil {
		return err
	}
	defer a.Close()
	if a.infer.problem != "" {
		return errors.New(a.infer.problem)
	}
	a.lossWatch.restart = false // a loss is what may be looked at
	b.findCards(a)
	if f.lose != "" {
		if _, err := b.toLose(); err != nil {
			return err
		}
	}
	return b.measure(ctx, a, cfg, show)
}

// config is what the appliance runs with: no camera at first.
func (b *camerasBench) config() (*config.Config, error) {
	f := b.f
	cfg := config.Default()
	if f.file != "" {
		var err error
		if cfg, err = loadConfig(f.file); err != nil {
			return nil, err
		}
	}
	byDefault := config.Default()
	set := func(to *string, flag, unset string) {
		if flag != unset {
			*to = flag
		}
	}
	set(&cfg.Inference.Model.File, f.model, byDefault.Inference.Model.File)
	set(&cfg.Inference.Provider, f.provider, byDefault.Inference.Provider)
	set(&cfg.Inference.Precision, f.precision, byDefault.Inference.Precision)
	set(&cfg.Inference.Library, f.library, "")
	set(&cfg.GPU.Memory, f.memory, byDefault.GPU.Memory)
	set(&cfg.StateDir, f.stateDir, "")
	if f.maxBatch != byDefault.Inference.MaxBatch {
		cfg.Inference.MaxBatch = f.maxBatch
	}
	if f.budget != byDefault.Inference.LatencyBudget {
		cfg.Inference.LatencyBudget = f.budget
	}
	cfg.Server.Listen, cfg.Server.Auth = "127.0.0.1:0", nil
	cfg.Cameras = map[string]config.Camera{}
	return cfg, nil
}

// withCameras gives cfg with the first n cameras.
func (b *camerasBench) withCameras(cfg *config.Config, n int) *config.Config {
	next := *cfg
	next.Cameras = map[string]config.Camera{}
	urls := b.f.urls
	if b.sim != nil {
		urls = b.sim.URLs
	}
	for i, url := range urls[:n] {
		c := config.DefaultCamera()
		c.URL = config.NewSecret(url)
		c.Transport, c.Decoder, c.Detect.FPS = "tcp", b.f.decoder, b.f.detectFPS
		next.Cameras[fmt.Sprintf("cam%03d", i+1)] = c
	}
	return &next
}

// startCameras finds the clip and starts the process that plays it.
func (b *camerasBench) startCameras(ctx context.Context) error {
	if len(b.f.urls) > 0 {
		b.f.most, b.video = len(b.f.urls), fmt.Sprintf("%d given by URL", len(b.f.urls))
		if b.f.overload > 0 {
			b.f.most = int(float64(len(b.f.urls)) / b.f.overload)
		}
		if b.f.count > len(b.f.urls) {
			b.f.count = len(b.f.urls)
		}
		return nil
	}
	path, err := b.clipFile(ctx)
	if err != nil {
		return err
	}
	if b.clip, err = sim.OpenClip(path); err != nil {
		return err
	}
	bits := 0
	for _, s := range b.clip.Samples {
		for _, n := range s.NALUs {
			bits += 8 * len(n)
		}
	}
	b.video = fmt.Sprintf("%s, %.4g frames/s, %s, %.1f Mb/s", b.nameOf(path), cameras.Rate(b.clip), b.clip.Codec, float64(bits)/b.clip.Duration.Seconds()/1e6)
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("start simulated cameras: %w", err)
	}
	b.sim, err = cameras.StartSimulator(ctx, self, b.f.number(), path)
	return err
}

func (b *camerasBench) clipFile(ctx context.Context) (string, error) {
	switch {
	case b.f.clip == "builtin":
		return "", nil
	case b.f.clip != "":
		return b.f.clip, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	video := cameras.Video{Width: b.f.width, Height: b.f.height, FPS: b.f.fps, Codec: capture.Codec(b.f.codec), Bitrate: b.f.bitrateOf}
	return video.Make(ctx, filepath.Join(cache, "edgecam", "clips"))
}

func (b *camerasBench) nameOf(path string) string {
	switch {
	case path == "":
		return "the built-in clip"
	case b.f.clip != "":
		return filepath.Base(path)
	}
	return fmt.Sprintf("%dx%d", b.f.width, b.f.height)
}

// errBenchDone ends the appliance when the bench is over.
var errBenchDone = errors.New("the bench is over")

// measure shows the report before the appliance ends: with hundreds of cameras that
// takes its time, and is a matter of libraries that may fail at it.
func (b *camerasBench) measure(ctx context.Context, a *appliance, cfg *config.Config, show func(*cameras.Report) error) error {
	bench := cameras.New()
	a.pipeline.Observe(bench.Observe)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return a.Run(ctx, "", nil) })
	g.Go(func() error {
		select {
		case <-a.pipeline.Started():
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := b.settle(ctx, a); err != nil {
			return err
		}
		ceiling := b.ceiling(ctx, a)
		report, err := bench.Run(ctx, b.options(a, cfg))
		if err != nil {
			return err
		}
		report.SetCeiling(ceiling)
		in := a.pipeline.System().Inference
		report.Machine, report.GPU, report.Video = machineOf(detect(cuda.New(cuda.Options{}))), b.gpus(), b.video
		report.Model, report.Precision, report.Provider, report.Batch, report.Notes = in.Model, in.Precision, in.Provider, in.Batch, in.Notes
		if err := show(report); err != nil {
			return err
		}
		return errBenchDone
	})
	if err := g.Wait(); !errors.Is(err, errBenchDone) {
		return err
	}
	return nil
}

// settle waits for the engines to be those that stay: TensorRT's are built, or
// loaded, while CUDA serves.
func (b *camerasBench) settle(ctx context.Context, a *appliance) error {
	for _, g := range a.infer.gpus {
		began := time.Now()
		select {
		case <-g.Settled():
		case <-ctx.Done():
			return ctx.Err()
		}
		fmt.Fprintf(b.progress, "%s serves after another %s\n", g.Info().Provider, time.Since(began).Round(time.Millisecond))
	}
	return nil
}

func (b *camerasBench) options(a *appliance, cfg *config.Config) cameras.Options {
	o := cameras.Options{
		Pipeline: a.pipeline, Config: func(n int) *config.Config { return b.withCameras(cfg, n) },
		Cameras: b.f.count, FindMax: b.f.findMax, Most: b.f.most, P95: b.f.p95, Duration: b.f.duration, Limit: b.f.limit,
		DetectFPS: b.f.detectFPS, Cards: b.cards, Overload: b.f.overload,
		Progress: func(line string) { fmt.Fprintln(b.progress, line) },
	}
	if b.sim != nil {
		o.SimulatorCPU, o.SourceFPS = b.sim.CPU, cameras.Rate(b.clip)
	}
	if b.f.lose != "" {
		o.Lose, _ = b.toLose() // checked before
	}
	return o
}

// findCards notes the cards at work.
func (b *camerasBench) findCards(a *appliance) {
	for _, g := range a.infer.gpus {
		card := g.Card()
		o := cameras.CardOptions{Index: card.Index, UUID: card.UUID, Name: card.Name, Node: card.NUMANode, CPUs: cpuList(platform.NodeCPUs(card.NUMANode))}
		if a.meters != nil {
			if d, err := a.meters.Device(card.UUID); err == nil {
				o.Sample = d.Sample
			}
		}
		b.cards = append(b.cards, o)
	}
}

// cpuList writes processors as the kernel does, "0-3,8".
func cpuList(cpus []int) string {
	var parts []string
	for i := 0; i < len(cpus); {
		j := i
		for j+1 < len(cpus) && cpus[j+1] == cpus[j]+1 {
			j++
		}
		part := strconv.Itoa(cpus[i])
		if j > i {
			part += "-" + strconv.Itoa(cpus[j])
		}
		parts = append(parts, part)
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// gpus names the cards in words.
func (b *camerasBench) gpus() string {
	var names []string
	for _, c := range b.cards {
		names = append(names, c.Name)
	}
	return strings.Join(names, " + ")
}

// toLose finds the card of --lose.
func (b *camerasBench) toLose() (*cameras.Lose, error) {
	for _, c := range b.cards {
		if c.Index == b.f.loseGPU {
			return &cameras.Lose{UUID: c.UUID, After: b.f.loseAfter, Trap: b.f.loseByTrap, Stays: b.f.loseByTrap}, nil
		}
	}
	return nil, fmt.Errorf("--lose %s: there is no GPU %d at work", b.f.lose, b.f.loseGPU)
}

// ceiling is what the decoders of all cards give flat out, 0 where they are not used.
func (b *camerasBench) ceiling(ctx context.Context, a *appliance) float64 {
	if b.clip == nil || b.f.decoder != "auto" && b.f.decoder != "nvdec" {
		return 0
	}
	each := make([]float64, len(a.infer.gpus))
	var measuring sync.WaitGroup
	for i, g := range a.infer.gpus {
		if g.NoDecoder() == "" {
			measuring.Go(func() { each[i] = b.ceilingOf(ctx, a.codecs, g.Card().Index) })
		}
	}
	measuring.Wait()
	sum := 0.0
	for _, fps := range each {
		sum += fps
	}
	return sum
}

func (b *camerasBench) ceilingOf(ctx context.Context, codecs *avcodec.Library, index int) float64 {
	dev, err := codecs.OpenCUDA(index)
	if err != nil {
		fmt.Fprintln(b.progress, "the decoders' ceiling is not measured:", err)
		return 0
	}
	defer dev.Close()
	fps, err := cameras.Ceiling(ctx, b.clip, func(info capture.StreamInfo) (*decode.Decoder, error) {
		return openCeiling(codecs, dev, info)
	})
	if err != nil {
		fmt.Fprintln(b.progress, err)
	}
	return fps
}

func openCeiling(codecs *avcodec.Library, dev *avcodec.HardwareDevice, info capture.StreamInfo) (*decode.Decoder, error) {
	return decode.New(decode.Options{Camera: "ceiling", Info: info, Decoder: "nvdec", CUDA: dev, Library: codecs, Node: -1})
}
