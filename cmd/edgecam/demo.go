package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"edgecam/internal/config"
	"edgecam/internal/sim"
	"edgecam/web"
)

// statusEvery is how often demo prints a line.
const statusEvery = 5 * time.Second

// demoCameras bounds --cameras: the built-in clip at 10 frames a second each
// fills a large machine well before.
const demoCameras = 64

func newDemo() *cobra.Command {
	var listen string
	var cameras int
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run the appliance with simulated cameras: no camera, no GPU, no questions",
		Args:  exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cameras < 1 || cameras > demoCameras {
				return &usageError{fmt.Errorf("--cameras %d: 1 to %d", cameras, demoCameras)}
			}
			return demo(cmd.Context(), listen, cameras, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().IntVar(&cameras, "cameras", 2, "number of simulated cameras")
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8080", "address of the dashboard (loopback only)")
	return cmd
}

// demo plays the built-in clip on an RTSP server of its own and runs the
// appliance against it, over real RTSP.
func demo(ctx context.Context, listen string, cameras int, out, errs io.Writer) error {
	logger := newLogger(errs, "warn", "text")
	s, err := sim.New(sim.Options{Listen: "127.0.0.1:0", Cameras: simCameras(cameras, "", "", ""), Logger: logger})
	if err != nil {
		return err
	}
	cfg := demoConfig(s, listen, cameras)
	a, err := newAppliance(ctx, cfg, nil, logger)
	if err != nil {
		s.Close()
		return err
	}
	defer a.Close()
	fmt.Fprintf(out, "\n  edgecam demo: %d simulated cameras\n  dashboard: %s\n  stop with Ctrl-C\n\n", cameras, a.URL())

	g, ctx := errgroup.WithContext(ctx)
	// The cameras go last, so that sessions with them can be closed in good order:
	// a camera that is gone is waited for.
	playing, stopCameras := context.WithCancel(context.WithoutCancel(ctx))
	defer stopCameras()
	g.Go(func() error { return s.Run(playing) })
	g.Go(func() error {
		defer stopCameras()
		return a.Run(ctx, "", nil)
	})
	g.Go(func() error { printStatus(ctx, out, a); return nil })
	return g.Wait()
}

func demoConfig(s *sim.Server, listen string, cameras int) *config.Config {
	cfg := config.Default()
	cfg.Server.Listen = listen
	cfg.Cameras = map[string]config.Camera{}
	for i := range cameras {
		c := config.DefaultCamera()
		c.Name = fmt.Sprintf("Simulated camera %d", i+1)
		c.URL = config.NewSecret(s.URL(i))
		cfg.Cameras[fmt.Sprintf("cam%d", i+1)] = c
	}
	return cfg
}

// printStatus prints a short line now and then until ctx ends.
func printStatus(ctx context.Context, out io.Writer, a *appliance) {
	tick := time.NewTicker(statusEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			fmt.Fprintln(out, "  stopping")
			return
		case <-tick.C:
			var parts []string
			for _, c := range a.pipeline.Cameras() {
				parts = append(parts, statusOf(c))
			}
			fmt.Fprintf(out, "  %s  %s\n", time.Now().Format("15:04:05"), strings.Join(parts, " | "))
		}
	}
}

func statusOf(c web.Camera) string {
	line := fmt.Sprintf("%s %s", c.ID, c.State)
	if c.AgeMS == nil {
		return line + ", nothing analysed"
	}
	return line + fmt.Sprintf(" %.1f fps analysed, age p95 %.0f ms", c.InferredFPS, c.AgeMS.P95)
}
