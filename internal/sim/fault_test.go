package sim_test

import (
	"testing"

	"edgecam/internal/sim"
)

func TestParseFault(t *testing.T) {
	tests := []struct {
		spec string
		want sim.Fault
	}{
		{"", sim.Fault{}},
		{"  ", sim.Fault{}},
		{"refuse", sim.Fault{Refuse: true}},
		{"silent", sim.Fault{Silent: true}},
		{"auth", sim.Fault{Auth: true}},
		{"notfound", sim.Fault{NotFound: true}},
		{"novideo", sim.Fault{NoVideo: true}},
		{"codec", sim.Fault{Codec: true}},
		{"stall:25", sim.Fault{StallAfter: 25}},
		{"close:1", sim.Fault{CloseAfter: 1}},
		{"loss:2.5", sim.Fault{Loss: 0.025}},
		{"udponly, loss:10 ,stall:100", sim.Fault{UDPOnly: true, Loss: 0.1, StallAfter: 100}},
		{"tcponly", sim.Fault{TCPOnly: true}},
	}
	for _, tt := range tests {
		t.Run(tt.spec, func(t *testing.T) {
			got, err := sim.ParseFault(tt.spec)
			if err != nil || got != tt.want {
				t.Errorf("got %+v, %v; want %+v", got, err, tt.want)
			}
		})
	}
}

func TestParseFaultRefuses(t *testing.T) {
	tests := []struct{ spec, want string }{
		{"slow", `parse fault "slow": unknown fault "slow": use one of refuse, silent, auth, notfound, novideo, codec, udponly, tcponly, stall:N, close:N, loss:PERCENT`},
		{"auth,", `parse fault "auth,": unknown fault "": use one of refuse, silent, auth, notfound, novideo, codec, udponly, tcponly, stall:N, close:N, loss:PERCENT`},
		{"auth:1", `parse fault "auth:1": auth takes no value`},
		{"stall", `parse fault "stall": stall needs a number of frames from 1 on, such as stall:25`},
		{"close:0", `parse fault "close:0": close needs a number of frames from 1 on, such as close:25`},
		{"loss:101", `parse fault "loss:101": loss needs a percentage from 0 to 100, such as loss:2.5`},
		{"loss:NaN", `parse fault "loss:NaN": loss needs a percentage from 0 to 100, such as loss:2.5`},
		{"auth,auth", `parse fault "auth,auth": auth is given twice`},
		{"udponly,tcponly", "parse fault: udponly and tcponly leave no transport"},
		{"novideo,codec", "parse fault: novideo and codec contradict each other"},
	}
	for _, tt := range tests {
		t.Run(tt.spec, func(t *testing.T) {
			_, err := sim.ParseFault(tt.spec)
			if err == nil || err.Error() != tt.want {
				t.Errorf("error is %v,\nwant      %s", err, tt.want)
			}
		})
	}
}

func FuzzParseFault(f *testing.F) {
	for _, s := range []string{"", "auth", "stall:25,loss:2.5", "loss:1e400", "close:99999999999999999999", "udponly,tcponly", "a:b:c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		got, err := sim.ParseFault(spec)
		if err != nil {
			return
		}
		if got.Loss < 0 || got.Loss > 1 || got.StallAfter < 0 || got.CloseAfter < 0 {
			t.Fatalf("%q gives %+v", spec, got)
		}
	})
}
