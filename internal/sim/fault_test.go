package sim_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"edgecam/internal/sim"
)

func TestParseFaults(t *testing.T) {
	for _, spec := range []string{
		"", "  ", "refuse", "silent", "auth", "401", "notfound", "404", "novideo", "codec", "udponly", "udp-only", "tcponly",
		"stall:25", "stall=25", "stall", "stall=5s", "close:1", "loss:2.5", "loss=2%", "loss", "udponly, loss:10 ,stall:100",
		"stall@30s-60s", "stall@30-60", "stall@30s", "loss=2%@10s-20s/1m,dup", "cam1:loss=2%", "cam1:stall:25", "cam[12]:stall", "cam*:stall,dup=3%",
		"redirect=rtsp://user@127.0.0.1:1/cam2", "redirect=rtsp://user@127.0.0.1:1/cam2@5s-10s", "drift=-0.5%", "drift=0.5", "reorder=8",
		"nonce-rotate", "nonce-rotate=3s", "session-lost=0", "flap", "flap=3s", "loss=2%@1s-2s,loss=5%@3s-4s",
	} {
		t.Run(spec, func(t *testing.T) {
			if _, err := sim.ParseFaults(spec); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestParseFaultsRefuses(t *testing.T) {
	tests := []struct{ spec, want string }{
		{"stal", `unknown fault "stal": did you mean stall?`},
		{"stal:25", `unknown fault "stal": did you mean stall?`},
		{"cam2:stal", `unknown fault "stal": did you mean stall?`},
		{"halfopen", `unknown fault "halfopen": did you mean half-open?`},
		{"Loss", `unknown fault "Loss": did you mean loss?`},
		{"ssrc", `unknown fault "ssrc": did you mean ssrc-change?`},
		{"zzz", `unknown fault "zzz": use one of ` + strings.Join(sim.FaultNames(), ", ")},
		{"auth,", `unknown fault "": use one of ` + strings.Join(sim.FaultNames(), ", ")},
		{"auth:1", "auth takes no value"},
		{"stall:x", "stall needs a number of frames or a time, such as stall=25 or stall=5s"},
		{"close:0", "close needs a number of frames from 1 on, such as close=25"},
		{"close", "close needs a number of frames from 1 on, such as close=25"},
		{"reset-every=0", "reset-every needs a time up to an hour, such as reset-every=5s"},
		{"loss:101", "loss needs a percentage from 0 to 100, such as loss=2.5%"},
		{"loss:NaN", "loss needs a percentage from 0 to 100, such as loss=2.5%"},
		{"auth,auth", "auth is given twice"},
		{"redirect", "redirect needs a URL, such as redirect=rtsp://127.0.0.1:8554/cam2"},
		{"stall@5s-2s", `times "5s-2s": use @FROM-TO or @FROM-TO/EVERY, such as @30s-60s or @5s-10s/30s`},
		{"stall@x", `times "x": use @FROM-TO or @FROM-TO/EVERY, such as @30s-60s or @5s-10s/30s`},
		{"stall@1s-5s/2s", `times "1s-5s/2s": use @FROM-TO or @FROM-TO/EVERY, such as @30s-60s or @5s-10s/30s`},
		{"udponly,tcponly", "udp-only and tcp-only contradict each other"},
		{"novideo,codec", "novideo and codec contradict each other"},
		{"cam[:stall", `cameras "cam[": syntax error in pattern`},
	}
	for _, tt := range tests {
		t.Run(tt.spec, func(t *testing.T) {
			_, err := sim.ParseFaults(tt.spec)
			if want := `parse fault "` + tt.spec + `": ` + tt.want; err == nil || err.Error() != want {
				t.Errorf("error is %v,\nwant      %s", err, want)
			}
		})
	}
}

func TestFaultHelpNamesAll(t *testing.T) {
	var b strings.Builder
	if err := sim.WriteFaultHelp(&b); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	for _, name := range sim.FaultNames() {
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), name) }) {
			t.Errorf("help says nothing of %s", name)
		}
	}
}

func TestFaultsAreDocumented(t *testing.T) {
	docs, err := os.ReadFile("../../docs/cameras.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows strings.Builder
	if err := sim.WriteFaultTable(&rows); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(docs), rows.String()) {
		t.Errorf("docs/cameras.md lacks the table of faults as it is:\n%s", rows.String())
	}
}

func FuzzParseFaults(f *testing.F) {
	for _, s := range []string{"", "auth", "stall:25,loss:2.5", "loss:1e400", "close:99999999999999999999", "udponly,tcponly", "a:b:c", "cam3:loss=2%@1s-2s/9s", "stall@-1-2", "x@y@z", "redirect=a//b@c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		if _, err := sim.ParseFaults(spec); err != nil {
			return
		}
		s, err := sim.New(sim.Options{Fault: spec})
		if err != nil {
			return // a file that is not there, a login, a camera of another name
		}
		s.Close()
	})
}
