package main

import (
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"edgecam/internal/config"
)

func newRun() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "run --config FILE",
		Short: "Run the appliance with the cameras of a configuration file",
		Long: "Run captures, analyses and serves the dashboard until it is told to stop. A camera whose settings are\n" +
			"wrong is left out and shown with the reason; any other mistake ends the start with exit code 78.\n" +
			"SIGHUP reads FILE again: cameras that changed are restarted, all others go on untouched. A changed model\n" +
			"is loaded beside the old one and takes its place once it has proved itself. A broken file or model changes\n" +
			"nothing.",
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return &usageError{errors.New("run needs --config FILE; see `edgecam run --help`")}
			}
			// From here on, for the default is to end the program.
			hangups := make(chan os.Signal, 1)
			signal.Notify(hangups, syscall.SIGHUP)
			defer signal.Stop(hangups)
			cfg, err := loadConfig(file)
			if cfg == nil {
				return err
			}
			logger := newLogger(cmd.ErrOrStderr(), cfg.Log.Level, cfg.Log.Format)
			logger.Info("starting", "version", version, "config", file)
			a, err := newAppliance(cmd.Context(), cfg, badCameras(err, logger), logger)
			if err != nil {
				return err
			}
			defer a.Close()
			logger.Info("dashboard", "url", a.URL(), "cameras", len(cfg.Cameras))
			return a.Run(cmd.Context(), file, hangups)
		},
	}
	cmd.Flags().StringVarP(&file, "config", "c", "", "configuration file (YAML)")
	return cmd
}

// badCameras gives the cameras that a configuration names and that cannot be
// used, with the reason, and logs each problem.
func badCameras(err error, logger *slog.Logger) map[string]string {
	var problems config.Errors
	if !errors.As(err, &problems) {
		return nil
	}
	bad := map[string]string{}
	for _, p := range problems {
		logger.Error("camera left out: its settings are wrong", "problem", p.Error())
		id := p.Camera()
		if bad[id] != "" {
			bad[id] += "; "
		}
		bad[id] += p.Error()
	}
	return bad
}
