// Command edgecam is an edge video analytics appliance: RTSP cameras in,
// detections and a dashboard out.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// version is set by the build.
var version = "dev" //nolint:gochecknoglobals // the linker writes it

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process at once: the first one has already put
	// the default handling back.
	context.AfterFunc(ctx, stop)
	code := execute(ctx, newRoot(), os.Args[1:], os.Stderr)
	stop()
	os.Exit(code)
}
