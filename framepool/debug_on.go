//go:build framedebug

package framepool

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"sync/atomic"
)

// handles is the profile of live handles, each with the stack that made it. A
// profile of one name can exist once in a process, hence a variable.
var handles = pprof.NewProfile("edgecam/framepool.Frame") //nolint:gochecknoglobals // see above

// leaks counts the handles that the garbage collector found unreleased.
var leaks atomic.Int64 //nolint:gochecknoglobals // as for live

// tracker follows one handle from its making to its release.
type tracker struct {
	key     *trackKey
	cleanup runtime.Cleanup
}

// trackKey stands for the handle in the profile: the profile keeps its keys
// alive and would hide every leak if it held the handle itself.
type trackKey struct {
	what  string
	stack []byte
}

func trackFrame(f *Frame) {
	f.track.start(fmt.Sprintf("frame %s/%d", f.meta.Camera, f.meta.Seq))
	f.track.cleanup = runtime.AddCleanup(f, reportLeak, f.track.key)
}

func trackBuffer(b *Buffer) {
	b.track.start("buffer of pool " + b.pool.name)
	b.track.cleanup = runtime.AddCleanup(b, reportLeak, b.track.key)
}

func (t *tracker) start(what string) {
	t.key = &trackKey{what: what, stack: debug.Stack()}
	handles.Add(t.key, 3)
}

func (t *tracker) end() {
	t.cleanup.Stop()
	handles.Remove(t.key)
}

// reportLeak runs when a handle was collected without Release. It writes to
// stderr: the handle's logger may be gone with it, and this is a debug build.
func reportLeak(k *trackKey) {
	leaks.Add(1)
	handles.Remove(k)
	fmt.Fprintf(os.Stderr, "framepool: leaked %s, made at\n%s\n", k.what, k.stack)
}

// poisoner overwrites the pixels of a slot before its last reference ends, so
// that a reader without a handle shows garbage at once, not sometimes.
func (p *Pool) poisoner(slot int) func() {
	return func() {
		b := p.slotBytes(slot)
		for i := range b {
			b[i] = poison
		}
	}
}

// poison is an odd magenta in most formats and no value of black, grey or white.
const poison = 0xdb
