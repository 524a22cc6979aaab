package cameras

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"edgecam/capture"
	"edgecam/capture/decode"
	"edgecam/internal/config"
	"edgecam/internal/pipeline"
	"edgecam/internal/pipeline/schedule"
	"edgecam/internal/sim"
	"edgecam/internal/testkit"
	"edgecam/platform/avcodec"
	"edgecam/platform/cuda"
	"edgecam/platform/nvml"
	"edgecam/web"
)

func TestMain(m *testing.M) { testkit.CheckFrames(m) }

func TestSpread(t *testing.T) {
	var s spread
	if p := s.percentiles(); p != (Percentiles{}) {
		t.Errorf("of nothing: %+v", p)
	}
	for i := range 1000 {
		s.add(time.Duration(i+1) * time.Millisecond)
	}
	s.add(-time.Second)
	s.add(time.Hour)
	p := s.percentiles()
	for _, c := range []struct{ got, want float64 }{{p.P50, 500}, {p.P95, 950}, {p.P99, 990}} {
		if math.Abs(c.got-c.want) > c.want*0.02 {
			t.Errorf("percentile %.1f ms, want %.1f", c.got, c.want)
		}
	}
	s.reset()
	if p := s.percentiles(); p != (Percentiles{}) {
		t.Errorf("after a reset: %+v", p)
	}
}

// box is a pipeline that keeps up with so many cameras and no more.
type box struct {
	b       *Bench
	takes   int // cameras
	n       int
	began   time.Time
	reloads []int
	broken  string // a camera that does not come up
	flaps   bool   // cameras are called again and again
}

func (x *box) Reload(cfg *config.Config) (config.Changes, error) {
	x.n, x.began = len(cfg.Cameras), time.Now()
	x.reloads = append(x.reloads, x.n)
	return config.Changes{}, nil
}

func (x *box) TakeAway(string) error { return errors.New("it has none") }

func (x *box) OnGPU(context.Context, string, string, func(*cuda.Context) error) error {
	return errors.New("it has none")
}

func (x *box) Claims() map[string]schedule.Claim { return nil }

func (x *box) System() web.System { return web.System{Memory: web.Memory{Slots: 5 * x.n}} }

func (x *box) Cameras() []web.Camera {
	seconds := time.Since(x.began).Seconds()
	late := max(1, float64(x.n)/float64(x.takes))
	var out []web.Camera
	for i := range x.n {
		c := web.Camera{ID: fmt.Sprintf("cam%03d", i+1), State: "live", Frames: uint64(30 * seconds), Inferred: uint64(30 * seconds / late)}
		if x.flaps {
			c.Attempts = uint64(seconds)
		}
		if c.ID == x.broken {
			c.State, c.Reason = "backoff", "connection refused"
		}
		c.Dropped = map[string]uint64{"busy": c.Frames - c.Inferred}
		out = append(out, c)
		x.b.Observe(pipeline.Result{Camera: c.ID, Decoded: 5 * time.Millisecond, Published: time.Duration(40*late) * time.Millisecond})
	}
	return out
}

func configOf(n int) *config.Config {
	cfg := config.Default()
	cfg.Cameras = map[string]config.Camera{}
	for i := range n {
		cfg.Cameras[fmt.Sprintf("cam%03d", i+1)] = config.DefaultCamera()
	}
	return cfg
}

func search(t *testing.T, x *box, o Options) *Report {
	t.Helper()
	x.b = New()
	o.Pipeline, o.Config, o.FindMax, o.SourceFPS = x, configOf, true, 30
	o.P95, o.Duration = 80*time.Millisecond, 10*time.Second
	r, err := x.b.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFindMax(t *testing.T) {
	for _, c := range []struct {
		takes, from, most, want int
		trials                  int
	}{
		{takes: 100, from: 4, most: 512, want: 100, trials: 12},
		{takes: 1, from: 8, most: 512, want: 1, trials: 5},
		{takes: 1000, from: 16, most: 300, want: 300, trials: 7},
		{takes: 7, from: 7, most: 512, want: 7, trials: 5},
		{takes: 3, from: 3, most: 3, want: 3, trials: 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			x := &box{takes: c.takes}
			r := search(t, x, Options{Cameras: c.from, Most: c.most})
			if r.Max > c.want || r.Max < c.want-c.want/fine || r.Best == nil || r.Best.Cameras != r.Max || r.Best.Fails != "" || len(r.Trials) > c.trials {
				t.Errorf("a box that takes %d, from %d of %d: found %d in the trials %v", c.takes, c.from, c.most, r.Max, x.reloads)
			}
			if r.Stops == "" {
				t.Error("it does not say what stops more")
			}
		})
	}
}

// The search ends when its time is over, and says so.
func TestFindMaxIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &box{takes: 1000}
		began := time.Now()
		r := search(t, x, Options{Cameras: 1, Most: 10000, Limit: time.Minute})
		if took := time.Since(began); took > 90*time.Second || r.CutShort == "" || r.Max < 8 {
			t.Errorf("took %v, %d cameras: %q", took, r.Max, r.CutShort)
		}
	})
}

func TestTrialFails(t *testing.T) {
	for _, c := range []struct {
		name string
		box  box
		want string
	}{
		{"too many", box{takes: 2}, "only 50.0 % of the frames were analysed"},
		{"one does not come up", box{takes: 9, broken: "cam003"}, "only 3 of 4 cameras came up; cam003 is backoff: connection refused"},
		{"sessions break", box{takes: 9, flaps: true}, "40 cameras stalled or had to be called again"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := search(t, &c.box, Options{Cameras: 4, Most: 4})
				if got := r.Trials[0].Fails; got != c.want {
					t.Errorf("got %q, want %q", got, c.want)
				}
			})
		})
	}
}

func TestReportInWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := func() nvml.Sample {
			return nvml.Sample{GPU: 0.5, Decoder: 0.9, RXBytes: 2e8, TXBytes: nvml.Unknown, UsedMem: 1 << 30, TotalMem: 4 << 30}
		}
		r := search(t, &box{takes: 200}, Options{Cameras: 60, Most: 120, Cards: []CardOptions{{UUID: "GPU-0", Node: -1, Sample: busy}}})
		r.SetCeiling(4000)
		var text strings.Builder
		if err := r.Table(&text); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"largest number of cameras with p95 <= 80 ms: 120 (what stops more: there were no more than 120 cameras)", "120 cameras, 10.0 s",
			"the card's decoders give 4000 frames/s flat out; analysed are 90.0 % of that",
			"card 0: 0 cameras, 0.0 frames/s analysed, age p95 0.0 ms, engine 0 %, kernels 50 %, decoders 90 %, link to the card 200 MB/s, memory 1024 of 4096 MiB",
			"not analysed: none; stalls: 0",
		} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("no %q in\n%s", want, text.String())
			}
		}
	})
}

func TestCeiling(t *testing.T) {
	clip, err := sim.BuiltinClip()
	if err != nil {
		t.Fatal(err)
	}
	codecs, err := avcodec.Open()
	if err != nil {
		t.Fatal(err)
	}
	fps, err := ceiling(t.Context(), clip, func(info capture.StreamInfo) (*decode.Decoder, error) {
		return decode.New(decode.Options{Info: info, Library: codecs, Node: -1})
	}, 3, 300*time.Millisecond)
	if err != nil || fps < 10 {
		t.Errorf("%.1f frames/s, %v", fps, err)
	}
	refused := errors.New("no session left")
	opened := 0
	_, err = ceiling(t.Context(), clip, func(info capture.StreamInfo) (*decode.Decoder, error) {
		if opened++; opened == 3 {
			return nil, refused
		}
		return decode.New(decode.Options{Info: info, Library: codecs, Node: -1})
	}, 3, time.Hour)
	if !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string][2]int{"1080p": {1920, 1080}, "4K": {3840, 2160}, "768x576": {768, 576}} {
		if w, h, err := ParseSize(text); err != nil || w != want[0] || h != want[1] {
			t.Errorf("%s: %dx%d, %v", text, w, h, err)
		}
	}
	for _, text := range []string{"", "big", "1920", "1921x1080", "0x0", "99999x99999", "1280x720x3"} {
		if _, _, err := ParseSize(text); err == nil {
			t.Errorf("%q passes", text)
		}
	}
}

func TestMakeClip(t *testing.T) {
	v := Video{Width: 320, Height: 240, FPS: 15, Codec: capture.H264, Bitrate: 300_000}
	t.Run("without ffmpeg", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		_, err := v.Make(t.Context(), t.TempDir())
		var missing *MissingEncoderError
		if !errors.As(err, &missing) || !strings.Contains(missing.Hint(), "ffmpeg -v error -y -r 15 -stream_loop -1 -i VIDEO") {
			t.Errorf("got %v", err)
		}
	})
	testkit.RequireFFmpeg(t)
	for _, codec := range []capture.Codec{capture.H264, capture.H265} {
		v.Codec = codec
		dir := t.TempDir()
		path, err := v.Make(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		clip, err := sim.OpenClip(path)
		if err != nil {
			t.Fatal(err)
		}
		if clip.Codec != codec || len(clip.Samples) != 150 || math.Abs(Rate(clip)-15) > 0.1 {
			t.Errorf("%s: %s, %d pictures, %.2f a second", codec, clip.Codec, len(clip.Samples), Rate(clip))
		}
		if again, err := v.Make(context.Background(), dir); err != nil || again != path {
			t.Errorf("the second time: %s, %v", again, err)
		}
	}
}

func TestProcessFigures(t *testing.T) {
	if processCPU("self") <= 0 {
		t.Skip("no /proc")
	}
	if rss, threads := statusOf("self"); rss < 1<<20 || threads < 1 {
		t.Errorf("%d bytes, %d threads", rss, threads)
	}
	if cpu := processCPU("nobody"); cpu != 0 {
		t.Errorf("a process that is not there took %v", cpu)
	}
}

// A simulator that cannot start says why.
func TestSimulatorDoesNotStart(t *testing.T) {
	path, err := exec.LookPath("false")
	if err != nil {
		t.Skip(err)
	}
	if _, err := StartSimulator(t.Context(), path, 1, ""); err == nil {
		t.Error("no error")
	}
	if _, err := StartSimulator(t.Context(), "/nowhere/edgecam", 1, ""); err == nil {
		t.Error("no error")
	}
}

// backlog is a box whose queues are full when its cameras are live, and drain, or
// do not.
type backlog struct {
	box

	lasts time.Duration // 0 = for ever
}

// publish lets frames come out until ctx ends.
func (x *backlog) publish(ctx context.Context, began time.Time) {
	for ctx.Err() == nil {
		age := 600 * time.Millisecond
		if x.lasts > 0 {
			age = time.Duration(float64(age) * (1 - float64(min(time.Since(began), x.lasts))/float64(x.lasts)))
		}
		x.b.Observe(pipeline.Result{Camera: "cam001", Published: max(age, 20*time.Millisecond)})
		sleep(ctx, 10*time.Millisecond)
	}
}

// The burst of the start is waited for, as long as it gets less.
func TestTrialWaitsForTheStart(t *testing.T) {
	for _, c := range []struct {
		lasts, most time.Duration
		fails       bool
	}{
		{lasts: 12 * time.Second, most: 40 * time.Second},
		{lasts: 0, most: 25 * time.Second, fails: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			x := &backlog{box: box{takes: 100}, lasts: c.lasts}
			x.b = New()
			began := time.Now()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go x.publish(ctx, began)
			r, err := x.b.Run(ctx, Options{
				Pipeline: x, Config: configOf, Cameras: 4, P95: 80 * time.Millisecond, Duration: 10 * time.Second, SourceFPS: 30,
			})
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > c.most || (r.Best.Fails != "") != c.fails {
				t.Errorf("a backlog of %v: took %v: %q", c.lasts, took, r.Best.Fails)
			}
		})
	}
}

// The report says what the engine is and how long it takes, for whoever finds it slow.
func TestReportTellsOfTheEngine(t *testing.T) {
	r := &Report{
		Notes: []string{"cuda: runs 96 of 98 nodes"},
		Best:  &Trial{Cameras: 2, Run: &web.Percentiles{P50: 11.5, P95: 12.25}, BatchMean: 3.5},
	}
	var text strings.Builder
	if err := r.Table(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a run of the engine: 3.5 pictures on average, p50 11.5 ms, p95 12.2 ms", "engine: cuda: runs 96 of 98 nodes"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
}

// A trial whose slowest camera had too little says what became of its frames.
func TestTheSlowestCameraIsExplained(t *testing.T) {
	tr := Trial{Seconds: 10, Dropped: map[string]uint64{}}
	before := []web.Camera{{ID: "a"}, {ID: "b", Dropped: map[string]uint64{"inference_busy": 7}}}
	tr.count(before, []web.Camera{
		{ID: "a", Frames: 300, Inferred: 300},
		{ID: "b", Frames: 300, Inferred: 150, Dropped: map[string]uint64{"inference_busy": 157}},
	}, Options{SourceFPS: 30})
	tr.Stages = make([]Stage, published+1)
	tr.AnalysedShare = 1
	b := New()
	b.o.P95 = time.Second
	want := "camera b had only 15.0 frames/s analysed, of 30.0 decoded; not analysed: inference_busy 150"
	if got := b.judge(&tr); got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}
