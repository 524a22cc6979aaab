package pipeline_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"edgecam/internal/config"
	"edgecam/internal/sim"
	"edgecam/internal/testkit"
)

// What becomes of a camera with each fault of the simulator, through everything
// that is between its port and the dashboard. want names what is seen of it;
// "plays" is live with pictures that go on.
func faultCases(t *testing.T) map[string]string {
	t.Helper()
	sdp := filepath.Join(t.TempDir(), "odd.sdp")
	text := "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=odd\r\nt=0 0\r\nm=video 0 RTP/AVP 103\r\na=rtpmap:103 H264/90000\r\na=fmtp:103 packetization-mode=1\r\na=control:trackID=0\r\n"
	if err := os.WriteFile(sdp, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		// sessions
		"refuse":                 "backoff: closed the session", // one of several at a port
		"silent":                 "backoff: did not describe its stream",
		"half-open=15":           "stalled: No video",
		"close=15":               "backoff: closed the session",
		"reset-every=2s":         "backoff: closed the session",
		"auth":                   "auth_failed: login",
		"nonce-rotate":           "plays",
		"nonce-rotate=2s":        "plays",
		"digest-sha256":          "plays",
		"basic+digest":           "plays",
		"notfound":               "backoff: 404",
		"busy":                   "backoff: 453",
		"session-lost=15":        "stalled: No video",
		"session-lost=0":         "backoff: 454",
		"redirect-loop":          "backoff: redirect",
		"udp-only":               "plays",
		"tcp-only":               "plays",
		"slow-describe=2s":       "plays",
		"slow-start=2s":          "plays",
		"server-requests":        "plays",
		"audio-only-second-time": "plays",
		// descriptions
		"bad-sdp":        "plays",
		"bad-sdp=" + sdp: "plays",
		"novideo":        "backoff: No video track",
		"codec":          "unsupported: MPEG-4",
		"no-sprop":       "plays",
		"h265":           "plays",
		"mjpeg":          "plays",
		// the stream
		"res-change=2s":    "plays",
		"stall=15":         "stalled: No video",
		"rtcp-only":        "stalled: sent no video",
		"metadata-only":    "stalled: sent no video",
		"no-key=15":        "stalled: Video arrives",
		"burst=3s":         "plays",
		"drift=0.5%":       "plays",
		"loss=2%":          "plays",
		"reorder=3":        "plays",
		"dup=10%":          "plays",
		"corrupt=1%":       "plays",
		"garbage=2%":       "plays",
		"ssrc-change=2s":   "plays",
		"seq-restart=2s":   "plays",
		"ts-jump=2s":       "plays",
		"ts-same":          "plays",
		"no-marker":        "plays",
		"marker-every-nal": "plays",
		"no-params":        "plays",
		"no-sr":            "plays",
		"bad-ntp":          "plays",
	}
}

// Every fault at once, each on a camera of its own, beside one in good health:
// each is told by its state and its reason or plays on, nothing that is shown is
// old, and the good one is not touched.
func TestEveryFault(t *testing.T) {
	cases := faultCases(t)
	faults := slices.Sorted(maps.Keys(cases))
	covered := strings.Join(faults, " ")
	for _, name := range sim.FaultNames() {
		if name != "redirect" && name != "flap" && !strings.Contains(covered, name) {
			t.Errorf("fault %s has no case", name)
		}
	}
	clip := testkit.MP4(t, "libx264", "160x120", 10, 4, "-g", "10")
	cameras := make([]sim.Camera, len(faults)+1)
	var specs []string
	for i, fault := range faults {
		cameras[i] = sim.Camera{Path: fmt.Sprintf("cam%d", i+1), Clip: clip, User: "admin", Password: "pa:ss@word"}
		specs = append(specs, cameras[i].Path+":"+fault)
	}
	cameras[len(faults)] = sim.Camera{Path: "good", Clip: clip}
	b := startOn(t, sim.Options{Cameras: cameras, Faults: specs, Seed: 3}, func(cfg *config.Config) {
		for id, c := range cfg.Cameras {
			c.Username, c.Password = "admin", config.NewSecret("pa:ss@word")
			c.ConnectTimeout, c.FirstFrameTimeout, c.StallTimeout = 6*time.Second, 6*time.Second, 4*time.Second
			c.Detect.FPS = 0.5 // it is about capture, and the machine may be small
			cfg.Cameras[id] = c
		}
	}, small(t))
	ids := map[string]string{}
	for i, fault := range faults {
		ids[fault] = fmt.Sprintf("cam%d", i+1)
	}
	ids["good"] = fmt.Sprintf("cam%d", len(faults)+1)
	b.becomes(t, ids, cases)
	good, _ := b.Camera(ids["good"])
	if good.State != "live" || good.Attempts != 1 || good.LastError != nil || good.Damaged != 0 {
		t.Errorf("the good camera was touched: %+v, %+v", good, good.LastError)
	}
	began := time.Now()
	b.stop() // with cameras in every state
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the end took %v", took)
	}
}

// becomes waits until every camera has shown what its fault makes of it, all at
// once: "plays", or a state and a part of its reason.
func (b *box) becomes(t *testing.T, ids, want map[string]string) {
	t.Helper()
	const pictures = 60
	waiting, first := maps.Clone(want), map[string]uint64{}
	limit, tick := time.After(2*patience), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for len(waiting) > 0 {
		select {
		case <-tick.C:
		case <-limit:
			for fault := range waiting {
				c, _ := b.Camera(ids[fault])
				t.Errorf("%s: want %s, is %s %q after %d attempts, %d pictures, dropped %v, last error %+v",
					fault, want[fault], c.State, c.Reason, c.Attempts, c.Frames, c.Dropped, c.LastError)
			}
			return
		}
		for fault, what := range waiting {
			c, _ := b.Camera(ids[fault])
			if first[fault] == 0 {
				first[fault] = c.Frames
			}
			state, reason, _ := strings.Cut(what, ": ")
			switch {
			case what == "plays" && c.State == "live" && first[fault] > 0 && c.Frames >= first[fault]+pictures:
				if c.Codec == "" || c.Width == 0 || c.Track == nil || c.Transport == "" {
					t.Errorf("%s: little is known of it: %+v", fault, c)
				}
				if strings.HasPrefix(fault, "res-change") && c.Damaged != 0 {
					t.Errorf("%s: a change of size is no damage: %+v", fault, c)
				}
			case c.State == state && strings.Contains(c.Reason, reason):
				if c.LastError == nil || !strings.Contains(c.LastError.Reason, reason) || c.NextAttemptAt == nil || !c.NextAttemptAt.After(c.Since) || c.Attempts == 0 {
					t.Errorf("%s: not all is told: %+v, last error %+v", fault, c, c.LastError)
				}
				if strings.Contains(c.Reason, "pa:ss") {
					t.Errorf("%s: the reason tells the password: %q", fault, c.Reason)
				}
			default:
				continue
			}
			delete(waiting, fault)
		}
	}
}
