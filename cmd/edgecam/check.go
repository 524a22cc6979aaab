package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"edgecam/capture/rtsp"
	"edgecam/infer/builtin"
	"edgecam/infer/model"
	"edgecam/internal/config"
)

func newCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Check a configuration file and say everything that is wrong with it",
		Long: "Check reads FILE as `edgecam run` would, secrets, environment and model files included, and\n" +
			"prints every problem with its line. It connects to nothing. Exit code 0: fine; 78: not.",
		Args: exactArgs(1, "one configuration file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := loadConfig(args[0])
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is fine: %d cameras, dashboard at http://%s\n", args[0], len(cfg.Cameras), cfg.Server.Listen)
			return nil
		},
	}
}

// loadConfig reads a file with the checks that need the capture package.
func loadConfig(path string) (*config.Config, error) {
	cfg, err := config.Load(path, configOptions())
	if err != nil {
		err = &configError{err}
	}
	return cfg, err
}

// configError is any reason why a configuration cannot be used as it is.
type configError struct{ err error }

func (e *configError) Error() string { return e.err.Error() }
func (e *configError) Unwrap() error { return e.err }

func configOptions() config.Options {
	return config.Options{
		Env: os.Environ(), CheckURL: checkURL, CheckBuiltin: builtin.Check,
		Families: model.Families(), CheckModel: newModelFiles().check,
	}
}

func checkURL(raw, username, password string) error {
	_, err := rtsp.ParseURL(raw, username, password)
	return err
}
