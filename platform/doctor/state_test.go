package doctor_test

import (
	"errors"
	"testing"

	"edgecam/platform"
	"edgecam/platform/doctor"
)

func TestState(t *testing.T) {
	for _, c := range []struct {
		name  string
		state doctor.State
		want  doctor.Check
	}{
		{
			"well",
			doctor.State{Dir: "/var/lib/edgecam", Schema: 1, By: "1.2", Bytes: 3 << 20, User: "edgecam", InUse: true},
			doctor.Check{Status: doctor.OK, Detail: "/var/lib/edgecam, schema 1, written by edgecam 1.2, 3 MiB, writable for edgecam, in use"},
		},
		{"missing", doctor.State{Dir: "/s", Missing: true}, doctor.Check{Status: doctor.OK, Detail: "/s, made at the first start"}},
		{"by nobody that can be told", doctor.State{Dir: "/s", Schema: 1, User: "root"}, doctor.Check{Status: doctor.OK, Detail: "/s, schema 1, 0 B, writable for root"}},
		{"before schemas", doctor.State{Dir: "/s", User: "root"}, doctor.Check{Status: doctor.OK, Detail: "/s, 0 B, writable for root"}},
		{"unusable", doctor.State{Dir: "/s", Err: errors.New("no"), Hint: "do"}, doctor.Check{Status: doctor.Warn, Detail: "no", Fix: "do"}},
		{"newer", doctor.State{Dir: "/s", Newer: true, Err: errors.New("no"), Hint: "do"}, doctor.Check{Status: doctor.Fail, Detail: "no", Fix: "do"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.want.Name = "state"
			found := false
			for _, got := range doctor.Examine(platform.Platform{}, doctor.Probes{State: c.state}).Checks {
				if got.Name == "state" {
					found = true
					if got != c.want {
						t.Errorf("got %+v, want %+v", got, c.want)
					}
				}
			}
			if !found {
				t.Error("not in the report")
			}
		})
	}
}
