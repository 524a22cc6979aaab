package rtsp_test

import (
	"context"
	"errors"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"edgecam/capture"
	"edgecam/capture/rtsp"
)

// udpCamera answers SETUP for UDP with words of the test's, and sends video
// from a socket of the test's.
type udpCamera struct {
	answer string       // Transport header; CLIENT, SERVER and PEER are filled in
	from   *net.UDPConn // nil = nothing is sent
	refuse int          // status of a SETUP for TCP; 0 = it is taken

	mu     sync.Mutex
	setups []string
}

var clientPort = regexp.MustCompile(`client_port=(\d+)-(\d+)`)

func (u *udpCamera) talk(c *scriptConn) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	var to *net.UDPAddr
	obedient(func(c *scriptConn, req scriptRequest) bool {
		switch {
		case req.method == "SETUP" && strings.Contains(req.header.Get("Transport"), "TCP"):
			u.note("tcp")
			if u.refuse != 0 {
				c.reply(req, u.refuse, "", "")
			}
			return u.refuse != 0
		case req.method == "SETUP":
			u.note("udp")
			m := clientPort.FindStringSubmatch(req.header.Get("Transport"))
			if m == nil {
				c.t.Errorf("SETUP asks for %s", req.header.Get("Transport"))
				return false
			}
			port, _ := strconv.Atoi(m[1]) // digits by the pattern
			to = &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}
			server := "0"
			if u.from != nil {
				server = strconv.Itoa(u.from.LocalAddr().(*net.UDPAddr).Port)
			}
			c.reply(req, 200, "Session: 1234;timeout=60\r\nTransport: "+strings.NewReplacer("CLIENT", m[1]+"-"+m[2], "SERVER", server).Replace(u.answer), "")
			return true
		case req.method == "PLAY" && to != nil:
			c.reply(req, 200, "Session: 1234", "")
			if u.from != nil {
				wg.Go(func() {
					sendPictures(ctx, func(p []byte) { _, _ = u.from.WriteToUDP(p, to) }) // a viewer that is gone is of no interest
				})
			}
			return true
		}
		return false
	})(c)
}

func (u *udpCamera) note(setup string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.setups = append(u.setups, setup)
}

// sendPictures sends a picture in a packet every few milliseconds.
func sendPictures(ctx context.Context, send func(packet []byte)) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for seq := uint16(0); ; seq++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		ts := uint32(seq) * 900
		p := []byte{0x80, 0x80 | 96, byte(seq >> 8), byte(seq), byte(ts >> 24), byte(ts >> 16), byte(ts >> 8), byte(ts), 0, 0, 0, 7, 0x65, 0x80, 1, 2, 3, 4}
		send(p)
	}
}

// sendInterleaved sends a packet within the connection.
func (c *scriptConn) sendInterleaved(packet []byte) {
	_ = c.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = c.Write(append([]byte{'$', 0, byte(len(packet) >> 8), byte(len(packet))}, packet...)) // as above
}

func udpSocket(t *testing.T, ip string) *net.UDPConn {
	t.Helper()
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(ip)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// Whatever a camera says of ports and addresses, its packets are taken.
func TestUDPAnswersOfTheField(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, answer, from string }{
		{"as it should be", "RTP/AVP;unicast;client_port=CLIENT;server_port=SERVER-SERVER", "127.0.0.1"},
		{"ports 0 and 1", "RTP/AVP;unicast;client_port=CLIENT;server_port=0-1", "127.0.0.1"},
		{"no ports", "RTP/AVP;unicast;client_port=CLIENT", "127.0.0.1"},
		{"ports that are words", "RTP/AVP;unicast;client_port=CLIENT;server_port=x-y;ssrc=zzz;mode=\"PLAY\"", "127.0.0.1"},
		{"another port than it says", "RTP/AVP/UDP;unicast;client_port=CLIENT;server_port=40000-40001", "127.0.0.1"},
		{"an address behind NAT", "RTP/AVP;unicast;source=192.168.7.9;client_port=CLIENT;server_port=6970-6971", "127.0.0.1"},
		{"no address", "RTP/AVP;unicast;source=0.0.0.0;client_port=CLIENT;server_port=6970-6971", "127.0.0.1"},
		{"a name for an address", "RTP/AVP;unicast;source=cam.invalid;client_port=CLIENT;server_port=6970-6971", "127.0.0.1"},
		{"another machine sends", "RTP/AVP;unicast;source=127.0.0.2;client_port=CLIENT;server_port=SERVER-SERVER", "127.0.0.2"},
		{"nothing at all", "", "127.0.0.1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, transport := range []rtsp.Transport{rtsp.UDP, rtsp.Auto} {
				u := &udpCamera{answer: tt.answer, from: udpSocket(t, tt.from), refuse: 461}
				addr := startScript(t, u.talk)
				r := receive(t, rtsp.Options{URL: "rtsp://" + addr + "/x", Transport: transport}, 5)
				if got := r.infos[len(r.infos)-1].Transport; got != "udp" {
					t.Errorf("plays over %s", got)
				}
			}
		})
	}
}

// A camera that plays over UDP and whose packets never come gets another
// chance over TCP, soon.
func TestAutoLeavesUDPThatDoesNotCome(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{
		"RTP/AVP;unicast;client_port=CLIENT;server_port=6970-6971",
		"RTP/AVP;unicast;source=192.0.2.9;client_port=CLIENT;server_port=6970-6971",
	} {
		u := &udpCamera{answer: answer}
		memory := &rtsp.TransportMemory{}
		memory.Begin(rtsp.UDP)
		start := time.Now()
		addr := startScript(t, u.talk)
		r := receive(t, rtsp.Options{URL: "rtsp://" + addr + "/x", Memory: memory}, 1)
		if got := r.infos[len(r.infos)-1].Transport; got != "tcp" {
			t.Errorf("plays over %s", got)
		}
		if took := time.Since(start); took < 2*time.Second || took > 10*time.Second { // 3 s, or 4 for two addresses, on a busy machine
			t.Errorf("took %v", took)
		}
		if memory.First() != rtsp.TCP {
			t.Errorf("the next session would begin with %s", memory.First())
		}
	}
}

// Fixed transports say which one the camera wants.
func TestTransportThatTheCameraDoesNotTake(t *testing.T) {
	t.Parallel()
	status := func(codes map[string]int) func(*scriptConn, scriptRequest) bool {
		return func(c *scriptConn, req scriptRequest) bool {
			if req.method != "SETUP" {
				return false
			}
			transport := "udp"
			if strings.Contains(req.header.Get("Transport"), "TCP") {
				transport = "tcp"
			}
			if codes[transport] != 0 {
				c.reply(req, codes[transport], "", "")
			}
			return codes[transport] != 0
		}
	}
	answer := func(header string) func(*scriptConn, scriptRequest) bool {
		return func(c *scriptConn, req scriptRequest) bool {
			if req.method == "SETUP" {
				c.reply(req, 200, "Session: 1\r\nTransport: "+header, "")
			}
			return req.method == "SETUP"
		}
	}
	for _, tt := range []struct {
		name      string
		change    func(*scriptConn, scriptRequest) bool
		transport rtsp.Transport
		want      string
	}{
		{"461 to tcp", status(map[string]int{"tcp": 461}), rtsp.TCP, "The camera does not send video over TCP (461): set transport to auto or udp"},
		{"406 to tcp", status(map[string]int{"tcp": 406}), rtsp.TCP, "The camera does not send video over TCP (406): set transport to auto or udp"},
		{"461 to udp", status(map[string]int{"udp": 461}), rtsp.UDP, "The camera does not send video over UDP (461): set transport to auto or tcp"},
		{"461 to both", status(map[string]int{"tcp": 461, "udp": 461}), rtsp.Auto, "The camera sends video neither over TCP nor over UDP (461): check its streaming settings"},
		{"tcp in answer to udp", answer("RTP/AVP/TCP;unicast;interleaved=0-1"), rtsp.UDP, "Unsupported transport udp: the camera answers with TCP: set transport to auto or tcp"},
		{"udp in answer to tcp", answer("RTP/AVP;unicast;client_port=5000-5001;server_port=6000-6001"), rtsp.TCP, "Unsupported transport tcp: the camera answers with UDP: set transport to auto or udp"},
		{"multicast in answer to udp", answer("RTP/AVP;multicast;destination=239.1.1.1;port=5000-5001;ttl=4"), rtsp.UDP, "Unsupported transport udp: the camera answers with multicast: set transport to auto or tcp"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			addr := startScript(t, obedient(tt.change))
			_, err := attempt(t, rtsp.Options{URL: "rtsp://" + addr + "/x", Transport: tt.transport}, 1)
			var failure capture.Failure
			if !errors.As(err, &failure) || failure.Reason() != tt.want {
				t.Errorf("error is %v", err)
			}
		})
	}
	t.Run("tcp in answer to udp, auto", func(t *testing.T) {
		memory := &rtsp.TransportMemory{}
		memory.Begin(rtsp.UDP)
		addr := startScript(t, obedient(nil)) // it answers TCP to everything
		r := receive(t, rtsp.Options{URL: "rtsp://" + addr + "/x", Memory: memory}, 3)
		if got := r.infos[0].Transport; got != "tcp" || memory.First() != rtsp.TCP {
			t.Errorf("plays over %s, then over %s", got, memory.First())
		}
	})
}

// TCP answers that leave things out.
func TestTCPAnswersOfTheField(t *testing.T) {
	t.Parallel()
	for _, header := range []string{
		"RTP/AVP/TCP;unicast", "RTP/AVP/TCP;interleaved=0", "RTP/AVP;unicast;interleaved=0-1", "RTP/AVP/TCP;interleaved=0-1;ssrc=937239728;mode=weird",
		"rtp/avp/tcp;unicast;Interleaved=0-1", "RTP/AVP/TCP;unicast;interleaved=0-1;source=cam.invalid;destination=nobody",
	} {
		addr := startScript(t, obedient(func(c *scriptConn, req scriptRequest) bool {
			if req.method == "SETUP" {
				c.reply(req, 200, "Session: 1\r\nTransport: "+header, "")
			}
			return req.method == "SETUP"
		}))
		r, err := attempt(t, rtsp.Options{URL: "rtsp://" + addr + "/x", Transport: rtsp.TCP}, 3)
		if !errors.Is(err, errEnough) {
			t.Errorf("%s: the session ended with %v after %d units", header, err, len(r.units))
		}
	}
}

func FuzzTransportAnswer(f *testing.F) {
	for _, seed := range []string{
		"RTP/AVP;unicast;client_port=5000-5001;server_port=6000-6001;ssrc=AB", "RTP/SAVP/TCP;interleaved=2-3", "RTP/AVP/TCP;interleaved=999999", ";;==", "server_port=0-1,x",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got := rtsp.TransportText(text); strings.ContainsAny(got, "\r\n") || len(got) > 200 {
			t.Errorf("%q becomes %q", text, got)
		}
	})
}
