package main

import (
	"errors"

	"github.com/spf13/cobra"
)

func newRun() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "run --config FILE",
		Short: "Run the appliance with the cameras of a configuration file",
		Long: "Run captures, analyses and serves the dashboard until it is told to stop. SIGHUP reads FILE again:\n" +
			"cameras that changed are restarted, all others go on untouched; a broken file changes nothing.",
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return &usageError{errors.New("run needs --config FILE; see `edgecam run --help`")}
			}
			cfg, err := loadConfig(file)
			if err != nil {
				return err
			}
			logger := newLogger(cmd.ErrOrStderr(), cfg.Log.Level, cfg.Log.Format)
			a, err := newAppliance(cfg, logger)
			if err != nil {
				return err
			}
			defer a.Close()
			logger.Info("dashboard", "url", a.URL(), "cameras", len(cfg.Cameras))
			return a.Run(cmd.Context(), file)
		},
	}
	cmd.Flags().StringVarP(&file, "config", "c", "", "configuration file (YAML)")
	return cmd
}
