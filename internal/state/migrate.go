package state

// step brings a directory from one schema to the next. It may be run again over
// what it has half done.
type step func(dir string) error

// migrations are the steps from schema 1 on; the newest schema is one more than
// there are steps.
func migrations() []step { return nil }

// Schema is the newest that this program understands, and the one that it writes.
func Schema() int { return len(migrations()) + 1 }
