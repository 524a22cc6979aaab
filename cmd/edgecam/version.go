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
			codec := "without libavcodec"
			if lib, err := avcodec.Open(); err == nil {
				codec = "libavcodec " + lib.Versions().Codec
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "edgecam %s, %s %s/%s, %s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH, codec)
			return err
		},
	}
}
