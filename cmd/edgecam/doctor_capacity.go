package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"edgecam/internal/config"
	"edgecam/internal/pipeline/bench/cameras"
	"edgecam/internal/pipeline/capacity"
	"edgecam/internal/state"
	"edgecam/web"
)

const (
	// capacityTime is how long the cameras run before the figures are read: two of
	// the pipeline's looks at the resources.
	capacityTime = 12 * time.Second
	// capacityWait is how long a first camera may take to come up.
	capacityWait = 40 * time.Second
	// capacityCameras are simulated where none is configured.
	capacityCameras = 4
)

// capacityFlags are those of `doctor --capacity`.
type capacityFlags struct {
	on             bool
	size, codec    string
	fps, detectFPS float64
}

func (f *capacityFlags) add(cmd *cobra.Command) {
	o := cmd.Flags()
	o.BoolVar(&f.on, "capacity", false, "run the configured cameras (or simulated ones) for some seconds and say how many more fit")
	o.StringVar(&f.size, "size", "", "with --capacity: size of the further cameras, as 1080p, 4k or 1280x720 (default: the mean of those that run)")
	o.Float64Var(&f.fps, "fps", 0, "with --capacity: their frames a second")
	o.StringVar(&f.codec, "codec", "", "with --capacity: their codec, h264 or h265")
	o.Float64Var(&f.detectFPS, "detect-fps", 0, "with --capacity: their analysed frames a second")
}

// kind is what the flags ask for.
func (f *capacityFlags) kind() (*capacity.Kind, error) {
	k := &capacity.Kind{FPS: f.fps, DetectFPS: f.detectFPS, Codec: f.codec}
	if f.fps < 0 || f.detectFPS < 0 {
		return nil, errors.New("--fps and --detect-fps must not be negative")
	}
	if f.codec != "" && f.codec != "h264" && f.codec != "h265" {
		return nil, fmt.Errorf("--codec %s: use h264 or h265", f.codec)
	}
	if f.size == "" {
		return k, nil
	}
	var err error
	if k.Width, k.Height, err = cameras.ParseSize(f.size); err != nil {
		return nil, fmt.Errorf("--size: %w", err)
	}
	return k, nil
}

// capacityReport is what `doctor --capacity` prints.
type capacityReport struct {
	Cameras   int  `json:"cameras"` // live ones that were measured
	Simulated bool `json:"simulated"`
	web.Capacity
}

// examineCapacity runs the appliance for a while and reads what it measured.
func examineCapacity(ctx context.Context, cfg *config.Config, kind *capacity.Kind, progress io.Writer) (*capacityReport, error) {
	r := &capacityReport{}
	run := *cfg
	run.Server.Listen, run.Server.Auth = "127.0.0.1:0", nil
	if state.Locked(run.StateDir) { // by the service, which is not to be disturbed
		run.StateDir = ""
	}
	if !hasCameras(cfg) {
		stop, err := simulate(ctx, &run)
		if err != nil {
			return nil, err
		}
		defer stop()
		r.Simulated = true
	}
	a, err := newAppliance(ctx, &run, nil, newLogger(progress, "error", "text"))
	if err != nil {
		return nil, err
	}
	defer a.Close()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return a.Run(ctx, "", nil) })
	g.Go(func() error {
		if err := awaitLive(ctx, a, len(run.Cameras)); err != nil {
			return err
		}
		fmt.Fprintf(progress, "measuring for %s\n", capacityTime)
		if err := wait(ctx, capacityTime); err != nil {
			return err
		}
		r.Cameras = live(a)
		r.Capacity = a.pipeline.Capacity(kind)
		return errBenchDone
	})
	if err := g.Wait(); !errors.Is(err, errBenchDone) {
		return nil, err
	}
	return r, nil
}

func hasCameras(cfg *config.Config) bool {
	for _, c := range cfg.Cameras {
		if c.Enabled {
			return true
		}
	}
	return false
}

// simulate puts simulated cameras into cfg; they play in another process.
func simulate(ctx context.Context, cfg *config.Config) (stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start simulated cameras: %w", err)
	}
	s, err := cameras.StartSimulator(ctx, self, capacityCameras, "")
	if err != nil {
		return nil, err
	}
	cfg.Cameras = map[string]config.Camera{}
	for i, url := range s.URLs {
		c := config.DefaultCamera()
		c.URL, c.Transport = config.NewSecret(url), "tcp"
		cfg.Cameras[fmt.Sprintf("cam%d", i+1)] = c
	}
	return s.Stop, nil
}

// awaitLive waits until all cameras are live, or those that are when the time is
// over.
func awaitLive(ctx context.Context, a *appliance, want int) error {
	for end := time.Now().Add(capacityWait); live(a) < want; {
		if time.Now().After(end) {
			if live(a) == 0 {
				return fmt.Errorf("measure capacity: no camera came up in %s", capacityWait)
			}
			return nil
		}
		if err := wait(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

func live(a *appliance) (n int) {
	for _, c := range a.pipeline.Cameras() {
		if c.State == "live" {
			n++
		}
	}
	return n
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *capacityReport) write(w io.Writer, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	what := "cameras"
	if r.Simulated {
		what = "simulated cameras"
	}
	fmt.Fprintf(w, "Measured with %d %s.\n\nIn use:\n", r.Cameras, what)
	for _, s := range []struct {
		name  string
		share *float64
	}{
		{"decoders of the cards", r.Shares.NVDEC},
		{"engines of the cards", r.Shares.GPU},
		{"processors", r.Shares.CPU},
		{"frame memory", r.Shares.Memory},
		{"link to the cards", r.Shares.Link},
	} {
		if s.share != nil {
			fmt.Fprintf(w, "  %-22s %4.0f %%\n", s.name, *s.share*100)
		}
	}
	if r.CamerasMore == nil {
		_, err := fmt.Fprintln(w, "\nHow many more fit is not known: nothing was measured.")
		return err
	}
	k := r.Kind
	_, err := fmt.Fprintf(w, "\n%d more cameras fit, of %dx%d, %.3g frames/s, %.3g analysed, %s. First used up: %s.\n",
		*r.CamerasMore, k.Width, k.Height, k.FPS, k.DetectFPS, strings.ToUpper(k.Codec), resourceWords(r.LimitedBy))
	return err
}

func resourceWords(r string) string {
	words := map[capacity.Resource]string{
		capacity.NVDEC: "the cards' decoders", capacity.GPU: "the cards' engines", capacity.CPU: "the processors",
		capacity.Memory: "the frame memory", capacity.Link: "the link to the cards",
	}
	return words[capacity.Resource(r)]
}
