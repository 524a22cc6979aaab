package web

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
)

// viewers counts the open streams of one kind.
type viewers struct {
	most int64
	open atomic.Int64
}

func (v *viewers) enter() bool {
	if v.open.Add(1) > v.most {
		v.open.Add(-1)
		return false
	}
	return true
}

func (v *viewers) leave() { v.open.Add(-1) }

// pieceBytes is how much is written under one deadline. A client that takes
// that much within the stall timeout (364 bytes a second) is slow, not dead.
const pieceBytes = 16 << 10

// errCut ends the writing of a stream that was cut.
var errCut = errors.New("stream was cut")

// streamGroup is what ends together: the streams of a session, or all.
type streamGroup struct {
	mu      sync.Mutex
	over    bool
	members map[*stream]struct{}
}

func newStreamGroup() *streamGroup { return &streamGroup{members: make(map[*stream]struct{})} }

// join adds a stream, or ends it where the group has ended.
func (g *streamGroup) join(st *stream) {
	g.mu.Lock()
	over := g.over
	if !over {
		g.members[st] = struct{}{}
	}
	g.mu.Unlock()
	if over {
		st.end()
	}
}

func (g *streamGroup) leave(st *stream) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.members, st)
}

// end ends every member and those that join later. It may be called twice.
func (g *streamGroup) end() {
	g.mu.Lock()
	g.over = true
	members := g.members
	g.members = nil // deleting from it is allowed, adding is over
	g.mu.Unlock()
	for st := range members {
		st.end()
	}
}

// stream is an answer without end. Its context ends when the client leaves,
// the session ends, or the server stops; then a write that waits for the
// client ends, too. Write and flush are for one goroutine.
type stream struct {
	w      http.ResponseWriter
	rc     *http.ResponseController
	stall  time.Duration
	cancel context.CancelFunc // of its context
	kind   *viewers
	groups []*streamGroup

	mu   sync.Mutex // guards the write deadline and cut
	over bool       // cut, or closed: the deadline is no longer ours
}

// openStream counts a viewer and returns its context and stream; the caller
// closes the stream. Nothing is written yet, so that the caller may still fail.
func (s *Server) openStream(c echo.Context, kind *viewers) (context.Context, *stream, error) {
	if !kind.enter() {
		return nil, nil, fail(http.StatusServiceUnavailable, "too_many_viewers",
			"%d viewers are connected and more are not served; close one", kind.most)
	}
	w := c.Response().Writer
	ctx, cancel := context.WithCancel(c.Request().Context())
	st := &stream{
		w: c.Response(), rc: http.NewResponseController(w), stall: s.timing.stall,
		cancel: cancel, kind: kind, groups: []*streamGroup{s.streams},
	}
	if g, ok := c.Get(sessionKey).(*streamGroup); ok {
		st.groups = append(st.groups, g)
	}
	for _, g := range st.groups {
		g.join(st)
	}
	return ctx, st, nil
}

// start sends the headers at once, so that a client knows that it is
// connected before there is anything to send.
func (st *stream) start(contentType string) error {
	h := st.w.Header()
	h.Set(echo.HeaderContentType, contentType)
	h.Set("X-Accel-Buffering", "no") // nginx would collect what is meant to be live
	if err := st.extend(); err != nil {
		return err
	}
	st.w.WriteHeader(http.StatusOK)
	return st.flush()
}

// Write writes p piece by piece, each within the stall timeout.
func (st *stream) Write(p []byte) (int, error) {
	for done := 0; done < len(p); {
		if err := st.extend(); err != nil {
			return done, err
		}
		n, err := st.w.Write(p[done:min(done+pieceBytes, len(p))])
		done += n
		if err != nil {
			return done, err
		}
	}
	return len(p), nil
}

// flush sends what was written.
func (st *stream) flush() error {
	if err := st.extend(); err != nil {
		return err
	}
	return st.rc.Flush()
}

// extend gives the client the stall timeout from now.
func (st *stream) extend() error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.over {
		return errCut
	}
	return st.rc.SetWriteDeadline(time.Now().Add(st.stall))
}

// end ends the stream's context and makes the write that runs, and every later
// one, fail at once.
func (st *stream) end() {
	st.cancel()
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.over {
		return
	}
	st.over = true
	// It fails for a connection that is closed, which is what is wanted.
	_ = st.rc.SetWriteDeadline(time.Unix(1, 0))
}

// close undoes openStream. The connection belongs to net/http again after it.
func (st *stream) close() {
	st.mu.Lock()
	st.over = true
	st.mu.Unlock()
	for _, g := range st.groups {
		g.leave(st)
	}
	st.cancel()
	st.kind.leave()
}
