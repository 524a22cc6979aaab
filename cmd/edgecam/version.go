package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"edgecam/platform/avcodec"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintf(cmd.OutOrStdout(), "edgecam %s %s %s/%s, libavcodec %s\n",
				version, runtime.Version(), runtime.GOOS, runtime.GOARCH, avcodec.Version())
			return nil
		},
	}
}
