package rtsp_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"edgecam/capture"
	"edgecam/capture/rtsp"
)

// A picture now and then is no silent connection, however short the limit for
// answers is.
func TestPicturesFarApart(t *testing.T) {
	t.Parallel()
	url := startWire(t, capture.H264, func(w *wire) {
		s := newStream(capture.H264)
		for n := range uint32(3) {
			w.send(s.simple(n)...)
			<-time.After(1500 * time.Millisecond) // longer than the limit, and than the library's looks at it are apart
		}
	})
	if _, err := attempt(t, rtsp.Options{URL: url, Transport: rtsp.TCP, ReadTimeout: 500 * time.Millisecond}, 2); !errors.Is(err, errEnough) {
		t.Errorf("the session ended with %v", err)
	}
}

// A camera that has TCP alone, and sends its first packet after UDP was tried
// already, is waited for the next time.
func TestFirstPacketIsLate(t *testing.T) {
	t.Parallel()
	const limit = 300 * time.Millisecond
	var mu sync.Mutex
	var asked []string
	addr := startScript(t, func(c *scriptConn) {
		w := &wire{t: t, conn: c}
		var wg sync.WaitGroup
		defer wg.Wait()
		obedient(func(c *scriptConn, req scriptRequest) bool {
			switch req.method {
			case "SETUP":
				transport := "udp"
				if strings.Contains(req.header.Get("Transport"), "TCP") {
					transport = "tcp"
				}
				mu.Lock()
				defer mu.Unlock()
				asked = append(asked, transport)
			case "PLAY":
				c.reply(req, 200, "Session: 1234", "")
				wg.Go(func() {
					<-time.After(3 * limit)
					newStream(capture.H264).settle(w)
				})
				return true
			}
			return false
		})(c)
	})
	o := rtsp.Options{URL: "rtsp://" + addr + "/x", ReadTimeout: limit, Memory: &rtsp.TransportMemory{}}
	_, err := attempt(t, o, 2)
	var stalled *capture.StalledError
	if !errors.As(err, &stalled) || stalled.Phase != capture.PhaseFirstFrame || stalled.Transport != "tcp" {
		t.Errorf("the first session ended with %v", err)
	}
	if _, err := attempt(t, o, 2); !errors.Is(err, errEnough) {
		t.Errorf("the second session ended with %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"tcp", "udp", "tcp"}; !slices.Equal(asked, want) {
		t.Errorf("SETUP asks for %v, want %v", asked, want)
	}
}
