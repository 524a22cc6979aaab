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
			cfg, err := readConfig(args[0], newModelFiles().check)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is fine: %d cameras, dashboard at http://%s\n", args[0], len(cfg.Cameras), cfg.Server.Listen)
			return nil
		},
	}
}

// loadConfig reads a file with all checks but one: whether a model's file can be
// read. A file may be missing for a while, as on a disk that is still being
// mounted: loading the model says so, and is tried again.
func loadConfig(path string) (*config.Config, error) {
	return readConfig(path, newModelFiles().checkReadable)
}

// modelCheck is config.Options.CheckModel.
type modelCheck = func(m config.Model, precision string) ([]string, []config.ModelProblem)

func readConfig(path string, check modelCheck) (*config.Config, error) {
	cfg, err := config.Load(path, configOptions(check))
	if err != nil {
		err = &configError{err}
	}
	return cfg, err
}

// configError is any reason why a configuration cannot be used as it is.
type configError struct{ err error }

func (e *configError) Error() string { return e.err.Error() }
func (e *configError) Unwrap() error { return e.err }

func configOptions(check modelCheck) config.Options {
	return config.Options{
		Env: os.Environ(), CheckURL: checkURL, CheckBuiltin: builtin.Check,
		Families: model.Names(), CheckModel: check,
	}
}

func checkURL(raw, username, password string) error {
	_, err := rtsp.ParseURL(raw, username, password)
	return err
}
