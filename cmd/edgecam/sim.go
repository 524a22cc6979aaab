package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"edgecam/internal/sim"
)

func newSim() *cobra.Command {
	var listen, clip, user, password string
	var faults []string
	var seed uint64
	var cameras int
	var apart bool
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Serve simulated RTSP cameras that play a clip",
		Long:  simHelp(),
		Example: `  edgecam sim --cameras 4 --fault cam2:loss=2% --fault 'cam[34]:half-open@30s-60s'
  edgecam sim --cameras 16 --fault flap=20s --seed 7`,
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cameras < 1 {
				return &usageError{fmt.Errorf("--cameras %d: at least one is needed", cameras)}
			}
			for _, fault := range faults {
				if _, err := sim.ParseFaults(fault); err != nil {
					return &usageError{fmt.Errorf("--fault: %w", err)}
				}
			}
			logger := newLogger(cmd.ErrOrStderr(), "info", "text")
			s, err := sim.New(sim.Options{
				Listen: listen, Cameras: simCameras(cameras, clip, user, password), Apart: apart,
				Faults: faults, Seed: seed, Logger: logger,
			})
			if err != nil {
				return err
			}
			for i := range cameras {
				fmt.Fprintln(cmd.OutOrStdout(), s.URL(i))
			}
			return s.Run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8554", "address of the RTSP server")
	cmd.Flags().IntVar(&cameras, "cameras", 1, "number of cameras, at /cam1, /cam2, …")
	cmd.Flags().BoolVar(&apart, "apart", false, "give each camera a loopback address of its own, from 127.0.0.1 on, as real cameras have (without faults, over TCP)")
	cmd.Flags().StringVar(&clip, "clip", "", "MP4 file with H.264 or H.265 video to play in a loop (default: the built-in clip)")
	cmd.Flags().StringArrayVar(&faults, "fault", nil, "[CAMERAS:]FAULT[=VALUE][@FROM-TO[/EVERY]],… as above; may be given more than once")
	cmd.Flags().Uint64Var(&seed, "seed", 0, "of what faults leave to chance: the same seed gives the same faults")
	cmd.Flags().StringVar(&user, "user", "", "user name that the cameras ask for (default: none)")
	cmd.Flags().StringVar(&password, "password", "", "password that the cameras ask for")
	return cmd
}

func simHelp() string {
	var b strings.Builder
	b.WriteString(`Serve simulated RTSP cameras that play a clip, in good health or with faults.

A fault is a word, with a value where it takes one, and with the times in which
it is at work, counted from the start: loss, loss=2%, stall@30s-60s,
reset-every=5s@10s-20s/1m (from 10 s to 20 s of every minute). Several are joined
by commas. CAMERAS is a path or a pattern of paths: cam3:loss, 'cam[12]:stall';
without it all cameras have the fault.

`)
	_ = sim.WriteFaultHelp(&b) // a builder takes everything
	return b.String()
}

func simCameras(n int, clip, user, password string) []sim.Camera {
	out := make([]sim.Camera, n)
	for i := range out {
		out[i] = sim.Camera{Path: fmt.Sprintf("cam%d", i+1), Clip: clip, User: user, Password: password}
	}
	return out
}
