// Package sdnotify tells systemd how the service is: ready, reloading,
// stopping, a status line, and a heartbeat that is withheld when work stands
// still. Without systemd (no NOTIFY_SOCKET) every call does nothing.
//
// The protocol is sd_notify(3); sending is left to go-systemd, what to say and
// when is decided here.
package sdnotify

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"
)

// statusPeriod is how often the status line is looked at where systemd wants
// no heartbeat.
const statusPeriod = 5 * time.Second

// Options for Run.
type Options struct {
	// Alive says whether work goes on; false withholds the heartbeat, so that
	// systemd restarts the service after WatchdogSec. It must not block. It is
	// required.
	Alive func() bool
	// Status gives one line for `systemctl status`. nil = none.
	Status func() string
	Logger *slog.Logger

	ticks func(time.Duration) (<-chan time.Time, func()) // defaults to a ticker
}

// Run says that the service is ready, keeps systemd up to date until ctx ends,
// and then says that it is stopping. It always returns nil: a service that
// cannot be reported still serves.
func Run(ctx context.Context, o Options) error {
	if o.ticks == nil {
		o.ticks = ticker
	}
	limit, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		o.Logger.Warn("no watchdog heartbeat: systemd's settings cannot be read", "err", err)
	}
	r := reporter{o: o, watched: limit > 0}
	r.status()
	Ready(o.Logger)
	ticks, stop := o.ticks(period(limit))
	defer stop()
	for {
		select {
		case <-ctx.Done():
			send(o.Logger, daemon.SdNotifyStopping)
			return nil
		case <-ticks:
			r.beat()
			r.status()
		}
	}
}

// Ready says that the service is ready, at the start or after a reload.
func Ready(l *slog.Logger) { send(l, daemon.SdNotifyReady) }

// Reloading says that a reload began; Ready must follow. systemd wants the time
// of it on the monotonic clock to tell it from an earlier one.
func Reloading(l *slog.Logger) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		l.Warn("notify systemd of a reload", "err", fmt.Errorf("read monotonic clock: %w", err))
		return
	}
	send(l, fmt.Sprintf("%s\nMONOTONIC_USEC=%d", daemon.SdNotifyReloading, now.Nano()/int64(time.Microsecond)))
}

// reporter is the state of one Run.
type reporter struct {
	o       Options
	watched bool   // systemd wants a heartbeat
	stuck   bool   // the last one was withheld
	last    string // status line that systemd has
}

// beat sends the heartbeat if there is progress, and logs when that changes.
func (r *reporter) beat() {
	alive := r.o.Alive()
	if !alive && !r.stuck {
		r.o.Logger.Error("work stands still: the watchdog heartbeat is withheld", "watched", r.watched)
	}
	if alive && r.stuck {
		r.o.Logger.Info("work goes on again")
	}
	r.stuck = !alive
	if alive && r.watched {
		send(r.o.Logger, daemon.SdNotifyWatchdog)
	}
}

// status sends the status line where it has changed.
func (r *reporter) status() {
	if r.o.Status == nil {
		return
	}
	line := strings.Join(strings.Fields(r.o.Status()), " ") // a line break would begin another assignment
	if r.stuck {
		line = "stands still; " + line
	}
	if line != r.last {
		r.last = line
		send(r.o.Logger, "STATUS="+line)
	}
}

// period is a third of the limit, so that two lost beats do no harm.
func period(limit time.Duration) time.Duration {
	if limit <= 0 {
		return statusPeriod
	}
	return max(limit/3, time.Millisecond)
}

func ticker(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTicker(d)
	return t.C, t.Stop
}

// send passes assignments on. Logger is borrowed.
func send(l *slog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		l.Warn("notify systemd", "state", strings.SplitN(state, "\n", 2)[0], "err", err)
	}
}
