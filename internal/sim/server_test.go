package sim_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/bluenviron/gortsplib/v4"
	"github.com/bluenviron/gortsplib/v4/pkg/base"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"edgecam/internal/sim"
	"edgecam/internal/testkit"
)

const patience = 20 * time.Second

func start(t *testing.T, o sim.Options) *sim.Server {
	t.Helper()
	s, err := sim.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

// watch plays a camera with gortsplib's own client and gives its packets.
func watch(t *testing.T, url string) (<-chan *rtp.Packet, <-chan rtcp.Packet) {
	t.Helper()
	u, err := base.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	tcp := gortsplib.TransportTCP
	c := &gortsplib.Client{Scheme: u.Scheme, Host: u.Host, Transport: &tcp}
	if err := c.Start2(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	desc, _, err := c.Describe(u)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SetupAll(desc.BaseURL, desc.Medias); err != nil {
		t.Fatal(err)
	}
	packets, reports := make(chan *rtp.Packet, 4096), make(chan rtcp.Packet, 64)
	c.OnPacketRTP(desc.Medias[0], desc.Medias[0].Formats[0], func(p *rtp.Packet) { packets <- p })
	c.OnPacketRTCP(desc.Medias[0], func(p rtcp.Packet) { reports <- p })
	if _, err := c.Play(nil); err != nil {
		t.Fatal(err)
	}
	return packets, reports
}

func next[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// Timestamps and sequence numbers go on over the end of the clip.
func TestLoopIsContinuous(t *testing.T) {
	path := testkit.MP4(t, "libx264", "64x48", 25, 1)
	s := start(t, sim.Options{Cameras: []sim.Camera{{Clip: path}}})
	packets, _ := watch(t, s.URL(0))
	var last *rtp.Packet
	for frames := 0; frames < 60; { // more than two rounds
		p := next(t, packets)
		if last != nil {
			if p.SequenceNumber != last.SequenceNumber+1 {
				t.Fatalf("sequence number %d after %d", p.SequenceNumber, last.SequenceNumber)
			}
			if d := p.Timestamp - last.Timestamp; d != 0 && (d < 3599 || d > 3601) {
				t.Fatalf("frame %d comes %d ticks after the one before, want 3600", frames, d)
			}
		}
		last = p
		if p.Marker {
			frames++
		}
	}
}

// Cameras with the same clip show different parts of it.
func TestCamerasDiffer(t *testing.T) {
	s := start(t, sim.Options{Cameras: make([]sim.Camera, 3)})
	seen := map[string]bool{}
	for i := range 3 {
		packets, _ := watch(t, s.URL(i))
		var first strings.Builder
		for p := next(t, packets); ; p = next(t, packets) {
			first.Write(p.Payload)
			if p.Marker {
				break
			}
		}
		seen[first.String()] = true
	}
	if len(seen) != 3 {
		t.Errorf("3 cameras begin with %d different pictures", len(seen))
	}
}

// A stalled camera keeps its session and its reports, and gives pictures again
// to whoever comes anew.
func TestStall(t *testing.T) {
	s := start(t, sim.Options{Fault: "stall:3"})
	for range 2 {
		packets, reports := watch(t, s.URL(0))
		markers := 0
		for markers < 3 {
			if next(t, packets).Marker {
				markers++
			}
		}
		for range 2 {
			if _, ok := next(t, reports).(*rtcp.SenderReport); !ok {
				t.Error("a report that is no sender report")
			}
		}
		select {
		case <-packets:
			t.Error("video after the stall")
		default:
		}
	}
}

// The sender report maps the stream's clock to the wall clock of its pictures.
func TestSenderReport(t *testing.T) {
	s := start(t, sim.Options{})
	packets, reports := watch(t, s.URL(0))
	first := next(t, packets)
	report, ok := next(t, reports).(*rtcp.SenderReport)
	if !ok {
		t.Fatal("no sender report")
	}
	if report.SSRC != first.SSRC {
		t.Errorf("report of source %x, video of %x", report.SSRC, first.SSRC)
	}
	at := time.Unix(int64(report.NTPTime>>32)-2208988800, 0)
	if d := time.Since(at); d < -2*time.Second || d > patience {
		t.Errorf("the report's time is %v", at)
	}
	// first was sent within a moment of its own timestamp
	ahead := time.Duration(report.RTPTime-first.Timestamp) * time.Second / 90000
	if ahead < 0 || ahead > patience {
		t.Errorf("the report is %v ahead of the first picture", ahead)
	}
}

func TestNewRefuses(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	addr := busy.Addr().String()
	for _, tt := range []struct {
		name string
		o    sim.Options
		want string
	}{
		{"port in use", sim.Options{Listen: addr}, "start simulated cameras: listen tcp " + addr + ": bind: address already in use"},
		{"fault", sim.Options{Fault: "auth:1"}, `parse fault "auth:1": auth takes no value`},
		{"authentication", sim.Options{Auth: "kerberos"}, `unknown authentication "kerberos": use basic, digest or sha256`},
		{"two of a path", sim.Options{Cameras: []sim.Camera{{Path: "a"}, {Path: "a"}}}, `two simulated cameras have the path "a"`},
		{"addresses of their own in a network", sim.Options{Listen: "0.0.0.0:0", Apart: true}, `start simulated cameras: cameras have addresses of their own behind 127.0.0.1 only, not behind "0.0.0.0"`},
		{"addresses of their own with faults", sim.Options{Fault: "loss", Apart: true}, "start simulated cameras: cameras with faults have no addresses of their own"},
		{"no clip", sim.Options{Cameras: []sim.Camera{{Clip: "/none.mp4"}}}, "open clip: open /none.mp4: no such file or directory"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := sim.New(tt.o)
			if err == nil {
				s.Close()
				t.Fatal("accepted")
			}
			if err.Error() != tt.want {
				t.Errorf("error is %q,\nwant        %q", err, tt.want)
			}
		})
	}
}

// Each camera has an address of its own, and serves there.
func TestApart(t *testing.T) {
	const cameras = 260 // more than one network of them
	s, err := sim.New(sim.Options{Apart: true, Cameras: make([]sim.Camera, cameras)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	hosts := map[string]bool{}
	for i := range cameras {
		u, err := url.Parse(s.URL(i))
		if err != nil {
			t.Fatal(err)
		}
		hosts[u.Host] = true
		if i%50 != 0 && i != cameras-1 {
			continue
		}
		c, err := net.Dial("tcp", u.Host)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "OPTIONS %s RTSP/1.0\r\nCSeq: 1\r\n\r\n", s.URL(i))
		if line, err := bufio.NewReader(c).ReadString('\n'); !strings.HasPrefix(line, "RTSP/1.0 200") {
			t.Errorf("%s: %q, %v", s.URL(i), line, err)
		}
		c.Close()
	}
	if len(hosts) != cameras {
		t.Errorf("%d addresses of %d cameras", len(hosts), cameras)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A server that is closed before it runs gives its port back.
func TestCloseWithoutRun(t *testing.T) {
	s, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	s.Close()
	l, err := net.Listen("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := s.Run(context.Background()); err == nil || err.Error() != "run simulated cameras: the server is closed" {
		t.Errorf("Run gives %v", err)
	}
}
