package farm

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"
)

// cameras is a process that simulates some.
type cameras struct {
	cmd  *exec.Cmd
	urls []string
}

// startCameras starts `edgecam sim` and waits until its cameras can be called.
func startCameras(ctx context.Context, o Options, listen string, args ...string) (*cameras, error) {
	c := &cameras{cmd: exec.CommandContext(ctx, o.Binary, append([]string{"sim", "--listen", listen}, args...)...)}
	c.cmd.Env = append(os.Environ(), o.Env...)
	said := &strings.Builder{}
	c.cmd.Stderr = said
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start simulated cameras: %w", err)
	}
	want := 1
	for i, a := range args {
		if a == "--cameras" {
			if _, err := fmt.Sscan(args[i+1], &want); err != nil {
				return nil, err
			}
		}
	}
	lines := bufio.NewScanner(out)
	for len(c.urls) < want && lines.Scan() {
		c.urls = append(c.urls, lines.Text())
	}
	if len(c.urls) < want {
		c.kill()
		return nil, fmt.Errorf("start simulated cameras: %s", strings.TrimSpace(said.String()))
	}
	return c, nil
}

// kill ends the process as a loss of power does.
func (c *cameras) kill() {
	_ = c.cmd.Process.Kill() // it may have ended by itself
	_ = c.cmd.Wait()         // killed: an error is what we expect
}

// phoenix is a camera that loses its power again and again.
type phoenix struct {
	*cameras
	url, addr string
	random    *rand.Rand
}

func newPhoenix(ctx context.Context, o Options) (*phoenix, error) {
	c, err := startCameras(ctx, o, "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(c.urls[0])
	if err != nil {
		c.kill()
		return nil, err
	}
	return &phoenix{cameras: c, url: c.urls[0], addr: u.Host, random: rand.New(rand.NewPCG(o.Seed, 1))}, nil //nolint:gosec // no secret
}

// The times of a phoenix.
const (
	phoenixUp   = 6 * time.Second // at least
	phoenixAway = 2 * time.Second // at least; both are spread up to three times
	backLimit   = 30 * time.Second
)

// run kills the camera and brings it back until ctx ends. It gives how long the
// picture took each time, from the moment that the camera can be called.
func (p *phoenix) run(ctx context.Context, o Options) []time.Duration {
	var took []time.Duration
	for sleep(ctx, phoenixUp+p.spread(phoenixUp)) {
		p.kill()
		if !sleep(ctx, phoenixAway+p.spread(phoenixAway)) {
			return took
		}
		before, _ := o.Box.Camera(phoenixName)
		c, err := startCameras(context.WithoutCancel(ctx), o, p.addr)
		if err != nil {
			// its port was given to somebody else: nothing was measured
			return took
		}
		p.cameras = c
		d, err := p.back(ctx, o, before.Frames)
		if err != nil {
			return took
		}
		took = append(took, d)
	}
	return took
}

func (p *phoenix) spread(d time.Duration) time.Duration {
	return time.Duration(p.random.Float64() * 2 * float64(d))
}

var errNotBack = errors.New("the watch ended first")

// back waits for pictures; a camera that does not come back counts with the
// limit.
func (p *phoenix) back(ctx context.Context, o Options, frames uint64) (time.Duration, error) {
	began := time.Now()
	for time.Since(began) < backLimit {
		if c, _ := o.Box.Camera(phoenixName); c.State == "live" && c.Frames > frames {
			return time.Since(began), nil
		}
		if !sleep(ctx, 5*time.Millisecond) {
			return 0, errNotBack
		}
	}
	return backLimit, nil
}
