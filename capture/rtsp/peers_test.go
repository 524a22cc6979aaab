package rtsp_test

import (
	"errors"
	"testing"
	"time"

	"edgecam/capture"
	"edgecam/capture/rtsp"
	"edgecam/internal/testkit"
)

// receiveSoon is receive for a peer that needs a moment before it has the
// stream that is asked for.
func receiveSoon(t *testing.T, o rtsp.Options, n int) *recorder {
	t.Helper()
	for limit := time.Now().Add(patience); ; {
		r, err := attempt(t, o, n)
		if errors.Is(err, errEnough) {
			return r
		}
		if time.Now().After(limit) {
			t.Fatalf("session ended with %v after %d access units, want %d", err, len(r.units), n)
		}
		<-time.After(100 * time.Millisecond)
	}
}

// mustDecode checks that a decoder could start with what came.
func mustDecode(t *testing.T, r *recorder, transport string) {
	t.Helper()
	if r.infos[0].Codec != capture.H264 || r.infos[0].Transport != transport {
		t.Errorf("stream is %+v", r.infos[0])
	}
	if len(r.infos[0].ParameterSets) != 2 {
		t.Errorf("%d parameter sets in the description", len(r.infos[0].ParameterSets))
	}
	random := false
	last := time.Duration(-1)
	for i, au := range r.units {
		random = random || au.RandomAccess
		if au.PTS <= last {
			t.Errorf("unit %d is at %v, the one before at %v", i, au.PTS, last)
		}
		last = au.PTS
		if au.LossBefore && i > 0 { // a viewer may join in the middle of the first
			t.Errorf("unit %d: loss on loopback", i)
		}
	}
	if !random {
		t.Error("no random access point came")
	}
}

func TestGStreamerAsCamera(t *testing.T) {
	t.Parallel()
	clip := testkit.MP4(t, "libx264", "320x240", 25, 20)
	for _, transport := range []rtsp.Transport{rtsp.TCP, rtsp.UDP} {
		t.Run(string(transport), func(t *testing.T) {
			url := testkit.GStreamerCamera(t, clip, "", "")
			mustDecode(t, receiveSoon(t, rtsp.Options{URL: url, Transport: transport}, 40), string(transport))
		})
	}
	t.Run("digest", func(t *testing.T) {
		url := testkit.GStreamerCamera(t, clip, "admin", secret)
		mustDecode(t, receiveSoon(t, rtsp.Options{URL: url, Username: "admin", Password: secret}, 40), "tcp")
		_, err := attempt(t, rtsp.Options{URL: url, Username: "admin", Password: "wrong"}, 1)
		var auth *capture.AuthError
		if !errors.As(err, &auth) {
			t.Errorf("with a wrong password the error is %v", err)
		}
	})
}

func TestVLCAsCamera(t *testing.T) {
	t.Parallel()
	clip := testkit.MP4(t, "libx264", "320x240", 25, 20)
	url := testkit.VLCCamera(t, clip)
	for _, transport := range []rtsp.Transport{rtsp.Auto, rtsp.UDP} {
		t.Run(string(transport), func(t *testing.T) {
			r := receiveSoon(t, rtsp.Options{URL: url, Transport: transport, Memory: &rtsp.TransportMemory{}}, 40)
			mustDecode(t, r, r.infos[len(r.infos)-1].Transport)
		})
	}
}
