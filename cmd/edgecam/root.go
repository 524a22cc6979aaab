package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"edgecam/infer"
	"edgecam/infer/ort"
	"edgecam/internal/pipeline/bench/cameras"
	"edgecam/platform"
	"edgecam/platform/cuda"
	"edgecam/platform/onnxruntime"
	"edgecam/preprocess"
)

// The exit codes of the contract.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
	exitConfig = 78 // EX_CONFIG of sysexits.h; systemd does not restart on it
)

// usageError is a command line that makes no sense.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "edgecam",
		Short:         "Video analytics on the edge: RTSP cameras in, detections and a dashboard out",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &usageError{fmt.Errorf("unknown command %q; see `edgecam --help`", args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newRun(), newDemo(), newCheck(), newSim(), newDoctor(), newBench(), newModel(), newHashPassword(), newVersion(), newMan())
	return root
}

// execute runs a command line and gives the exit code of the contract.
func execute(ctx context.Context, root *cobra.Command, args []string, stderr io.Writer) int {
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil || (ctx.Err() != nil && errors.Is(err, context.Canceled)) {
		return exitOK // one that was told to stop while it started, too
	}
	fmt.Fprintf(stderr, "edgecam: %v\n", err)
	if try := hintOf(err); try != "" {
		fmt.Fprintf(stderr, "Try: %s\n", try)
	}
	var usage *usageError
	var bad *configError
	switch {
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &bad):
		return exitConfig
	default:
		return exitFailed
	}
}

// hintOf is what the error says that the user can do.
func hintOf(err error) string {
	var library *onnxruntime.UnavailableError
	var model *infer.ModelError
	var provider *ort.ProviderError
	var strategy *preprocess.StrategyError
	var lost *cuda.LostError
	var driver *platform.DriverError
	var encoder *cameras.MissingEncoderError
	switch {
	case errors.As(err, &encoder):
		return encoder.Hint()
	case errors.As(err, &library):
		return library.Hint
	case errors.As(err, &model):
		return model.Hint
	case errors.As(err, &provider):
		return provider.Hint
	case errors.As(err, &strategy):
		return strategy.Hint
	case errors.As(err, &lost):
		return lost.Hint
	case errors.As(err, &driver):
		return driver.Hint
	}
	return ""
}

// exactArgs is cobra.ExactArgs with an error that counts as usage.
func exactArgs(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return &usageError{fmt.Errorf("%s takes %s; see `%s --help`", cmd.CommandPath(), what, cmd.CommandPath())}
		}
		return nil
	}
}
