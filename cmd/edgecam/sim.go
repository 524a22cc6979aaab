package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"edgecam/internal/sim"
)

func newSim() *cobra.Command {
	var listen, clip, fault, user, password string
	var cameras int
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Serve simulated RTSP cameras that play a clip",
		Args:  exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cameras < 1 {
				return &usageError{fmt.Errorf("--cameras %d: at least one is needed", cameras)}
			}
			if _, err := sim.ParseFault(fault); err != nil {
				return &usageError{fmt.Errorf("--fault: %w", err)}
			}
			logger := newLogger(cmd.ErrOrStderr(), "info", "text")
			s, err := sim.New(sim.Options{Listen: listen, Cameras: simCameras(cameras, clip, user, password), Fault: fault, Logger: logger})
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
	cmd.Flags().StringVar(&clip, "clip", "", "MP4 file with H.264 or H.265 video to play in a loop (default: the built-in clip)")
	cmd.Flags().StringVar(&fault, "fault", "", "faults, comma separated: "+sim.FaultHelp)
	cmd.Flags().StringVar(&user, "user", "", "user name that the cameras ask for (default: none)")
	cmd.Flags().StringVar(&password, "password", "", "password that the cameras ask for")
	return cmd
}

func simCameras(n int, clip, user, password string) []sim.Camera {
	out := make([]sim.Camera, n)
	for i := range out {
		out[i] = sim.Camera{Path: fmt.Sprintf("cam%d", i+1), Clip: clip, User: user, Password: password}
	}
	return out
}
