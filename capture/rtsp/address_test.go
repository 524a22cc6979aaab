package rtsp_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"

	"edgecam/capture"
	"edgecam/capture/rtsp"
)

// nameServer gives one address for every name; nil = it fails.
type nameServer struct {
	mu      sync.Mutex
	address net.IP
	asked   int
}

func (n *nameServer) set(address net.IP) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.address = address
}

func (n *nameServer) lookups() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asked
}

// answer makes a DNS answer (RFC 1035 4.1) from a question.
func (n *nameServer) answer(question []byte) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	end := 12
	for end < len(question) && question[end] != 0 {
		end += int(question[end]) + 1
	}
	end += 5
	if end > len(question) {
		return nil
	}
	n.asked++
	a := append([]byte(nil), question[:end]...)
	a[2], a[3] = 0x84, 0
	a[6], a[7], a[8], a[9], a[10], a[11] = 0, 0, 0, 0, 0, 0
	if n.address == nil {
		a[3] = 2 // SERVFAIL
		return a
	}
	if question[end-3] == 1 { // type A
		a[7] = 1
		a = append(a, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4)
		a = append(a, n.address.To4()...)
	}
	return a
}

// startNameServer gives a resolver that asks it.
func startNameServer(t *testing.T) (*nameServer, *net.Resolver) {
	t.Helper()
	n := &nameServer{}
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for b := make([]byte, 1500); ; {
			size, from, err := conn.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(n.answer(b[:size]), from) // a client that is gone is of no interest
		}
	})
	t.Cleanup(func() {
		conn.Close()
		wg.Wait()
	})
	return n, &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// A camera that moves is found at its new address by the next attempt, and a
// name server that is down is a network that is down.
func TestNameIsLookedUpForEveryAttempt(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var visited []string
	note := func(where string) func(*scriptConn, scriptRequest) bool {
		return func(_ *scriptConn, req scriptRequest) bool {
			if req.method == "DESCRIBE" {
				mu.Lock()
				defer mu.Unlock()
				visited = append(visited, where)
			}
			return false
		}
	}
	first := startScriptAt(t, "127.0.0.10:0", obedient(note("first")))
	_, port, err := net.SplitHostPort(first)
	if err != nil {
		t.Fatal(err)
	}
	startScriptAt(t, "127.0.0.11:"+port, obedient(note("second")))
	names, resolver := startNameServer(t)
	o := rtsp.Options{URL: "rtsp://camera.example:" + port + "/x", Resolver: resolver, Transport: rtsp.TCP}

	names.set(net.IPv4(127, 0, 0, 10))
	receive(t, o, 3)
	names.set(nil)
	_, err = attempt(t, o, 1)
	var unreachable *capture.UnreachableError
	if !errors.As(err, &unreachable) || unreachable.Obstacle != capture.ObstacleName || !unreachable.Temporary() {
		t.Errorf("with the name server down the error is %v", err)
	}
	names.set(net.IPv4(127, 0, 0, 11))
	receive(t, o, 3)
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(visited, " "); got != "first second" {
		t.Errorf("visited %s", got)
	}
}

// What is no host is never looked up: it may be a piece of a password.
func TestNoLookupOfPasswords(t *testing.T) {
	t.Parallel()
	names, resolver := startNameServer(t)
	for _, url := range []string{
		"rtsp://user:hunter2#ss@192.0.2.10/v", "rtsp://user:hunter2/ss@192.0.2.10/v", "rtsp://user:hunter2?ss@192.0.2.10/v",
		"rtsp://user:12/hunter2@192.0.2.10/v", "rtsp://user:hunter2%ss@192.0.2.10/v",
	} {
		if _, err := rtsp.New(rtsp.Options{URL: url, Resolver: resolver}); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", url, err)
		}
	}
	if n := names.lookups(); n > 0 {
		t.Errorf("%d names were looked up", n)
	}
}

// Requests name what the URL names: nothing is added to it, lost or moved.
func TestRequestsCarryTheURL(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ url, want string }{
		{"rtsp://ADDR", "rtsp://ADDR"},
		{"rtsp://ADDR/", "rtsp://ADDR/"},
		{"RTSP://@ADDR", "rtsp://ADDR"},
		{" rtsp://ADDR?x=1\n", "rtsp://ADDR?x=1"},
		{"rtsp://u:p@ADDR/cam/realmonitor?channel=1&subtype=0", "rtsp://ADDR/cam/realmonitor?channel=1&subtype=0"},
		{"rtsp://ADDR/user=admin_password=tlJwpbo6_channel=1_stream=0.sdp?real_stream", "rtsp://ADDR/user=admin_password=tlJwpbo6_channel=1_stream=0.sdp?real_stream"},
		{"rtsp://ADDR//double//slash/%41%2f", "rtsp://ADDR//double//slash/%41%2f"},
		{"rtsp://ADDR/x?", "rtsp://ADDR/x?"},
	} {
		t.Run(tt.url, func(t *testing.T) {
			var mu sync.Mutex
			asked := map[string]string{}
			addr := startScript(t, obedient(func(c *scriptConn, req scriptRequest) bool {
				mu.Lock()
				defer mu.Unlock()
				asked[req.method] = req.url
				return false
			}))
			receive(t, rtsp.Options{URL: strings.ReplaceAll(tt.url, "ADDR", addr), Transport: rtsp.TCP}, 3)
			mu.Lock()
			defer mu.Unlock()
			want := strings.ReplaceAll(tt.want, "ADDR", addr)
			for _, method := range []string{"OPTIONS", "DESCRIBE", "PLAY"} {
				if asked[method] != want {
					t.Errorf("%s asks for %s, want %s", method, asked[method], want)
				}
			}
		})
	}
}

// A camera at an IPv6 address is reached, with and without a zone.
func TestIPv6(t *testing.T) {
	t.Parallel()
	addr := startScriptAt(t, "[::1]:0", obedient(nil))
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"[::1]", "[::1%25lo]", "[::1%lo]"} {
		receive(t, rtsp.Options{URL: "rtsp://" + host + ":" + port + "/x", Transport: rtsp.TCP}, 3)
	}
}
