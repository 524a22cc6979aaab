package rtsp_test

import (
	"fmt"
	"slices"
	"testing"

	"edgecam/capture"
	"edgecam/capture/rtsp"
	"edgecam/internal/sim"
	"edgecam/internal/testkit"
)

func TestLogins(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"basic", "digest", "sha256"} {
		for _, transport := range []rtsp.Transport{rtsp.TCP, rtsp.UDP} {
			t.Run(method+" over "+string(transport), func(t *testing.T) {
				s := startSim(t, sim.Options{Auth: method, Cameras: []sim.Camera{{User: "admin", Password: secret}}})
				receive(t, rtsp.Options{URL: s.URL(0), Username: "admin", Password: secret, Transport: transport}, 3)
			})
		}
	}
	t.Run("in the URL", func(t *testing.T) {
		s := startSim(t, sim.Options{Cameras: []sim.Camera{{User: "admin", Password: "P@ss:word"}}})
		receive(t, rtsp.Options{URL: "rtsp://admin:P@ss:word@" + s.Addr().String() + "/cam1"}, 3)
	})
}

// Auto finds the transport that works, and begins with it the next time.
func TestAutoFallsBackAndRemembers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		fault string
		works string
	}{
		{"udponly", "udp"},
		{"tcponly", "tcp"},
	} {
		t.Run(tt.fault, func(t *testing.T) {
			s := startSim(t, sim.Options{Fault: tt.fault})
			memory := &rtsp.TransportMemory{}
			for range 2 {
				r := receive(t, rtsp.Options{URL: s.URL(0), Memory: memory}, 3)
				if got := r.infos[len(r.infos)-1].Transport; got != tt.works {
					t.Errorf("plays over %s, want %s", got, tt.works)
				}
			}
			if first := memory.First(); string(first) != tt.works {
				t.Errorf("the next session would begin with %s", first)
			}
		})
	}
	t.Run("a camera that changes its mind", func(t *testing.T) {
		memory := &rtsp.TransportMemory{}
		for _, fault := range []string{"udponly", "tcponly", "udponly"} {
			s := startSim(t, sim.Options{Fault: fault})
			receive(t, rtsp.Options{URL: s.URL(0), Memory: memory}, 3)
		}
	})
}

// Packets that do not arrive are seen, and flagged in the pictures they miss
// from.
func TestLossIsFlagged(t *testing.T) {
	t.Parallel()
	for _, transport := range []rtsp.Transport{rtsp.TCP, rtsp.UDP} {
		t.Run(string(transport), func(t *testing.T) {
			s := startSim(t, sim.Options{Fault: "loss:20"})
			r := receive(t, rtsp.Options{URL: s.URL(0), Transport: transport}, 20)
			if !slices.ContainsFunc(r.units, func(au *capture.AccessUnit) bool { return au.LossBefore }) {
				t.Error("no access unit is flagged although a fifth of the packets is lost")
			}
		})
	}
}

// Codecs other than the built-in clip's, made for the purpose.
func TestCodecs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		encoder string
		codec   capture.Codec
		sets    int
	}{
		{"libx264", capture.H264, 2},
		{"libx265", capture.H265, 3},
		{"mjpeg", capture.MJPEG, 0},
	} {
		t.Run(string(tt.codec), func(t *testing.T) {
			path := testkit.MP4(t, tt.encoder, "320x240", 25, 2)
			clip, err := sim.OpenClip(path)
			if err != nil {
				t.Fatal(err)
			}
			s := startSim(t, sim.Options{Cameras: []sim.Camera{{Clip: path}}})
			for _, transport := range []rtsp.Transport{rtsp.TCP, rtsp.UDP} {
				r := receive(t, rtsp.Options{URL: s.URL(0), Transport: transport}, 30)
				if r.infos[0].Codec != tt.codec || len(r.infos[0].ParameterSets) != tt.sets {
					t.Errorf("stream is %+v", r.infos[0])
				}
				random := 0
				for i, au := range r.units {
					if au.RandomAccess {
						random++
					}
					if tt.codec == capture.MJPEG {
						mustBeJPEG(t, au)
					}
					if au.LossBefore {
						t.Errorf("unit %d: loss on loopback", i)
					}
				}
				// One key picture in 25: 30 in a row hold one or two, wherever the
				// session begins, which is later on a busy machine.
				if tt.codec == capture.MJPEG && random != 30 || tt.codec != capture.MJPEG && (random < 1 || random > 2) {
					t.Errorf("%d of 30 units are random access points", random)
				}
			}
			if clip.Codec != tt.codec || len(clip.Samples) != 50 {
				t.Errorf("the clip has %d samples of %s", len(clip.Samples), clip.Codec)
			}
		})
	}
}

func mustBeJPEG(t *testing.T, au *capture.AccessUnit) {
	t.Helper()
	if len(au.NALUs) != 1 {
		t.Fatalf("%d parts", len(au.NALUs))
	}
	b := au.NALUs[0]
	if n := len(b); n < 200 || fmt.Sprintf("%x", b[:2]) != "ffd8" || fmt.Sprintf("%x", b[n-2:]) != "ffd9" {
		t.Errorf("%d bytes are no JPEG file", n)
	}
}
