package doctor

import "fmt"

// State is the directory that outlives a restart.
type State struct {
	Dir     string // "" = not looked at
	Missing bool   // it is made at the first start
	Schema  int    // 0 = from before there were schemas, or empty
	By      string // version that wrote it
	Bytes   int64
	User    string // whom the service runs as
	InUse   bool   // a process has it
	Newer   bool   // Err says that a newer program wrote it
	Err     error  // why it cannot be used
	Hint    string // what to do then
}

func stateDir(s State) Check {
	c := Check{Name: "state", Status: OK, Detail: s.Dir}
	switch {
	case s.Err != nil:
		c.Status, c.Detail, c.Fix = Warn, s.Err.Error(), s.Hint
		if s.Newer {
			c.Status = Fail
		}
		return c
	case s.Missing:
		c.Detail += ", made at the first start"
		return c
	case s.Schema > 0:
		c.Detail += fmt.Sprintf(", schema %d", s.Schema)
		if s.By != "" {
			c.Detail += ", written by edgecam " + s.By
		}
	}
	c.Detail += fmt.Sprintf(", %s, writable for %s", bytes(s.Bytes), s.User)
	if s.InUse {
		c.Detail += ", in use"
	}
	return c
}
