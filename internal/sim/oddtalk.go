package sim

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bluenviron/gortsplib/v4/pkg/auth"
	"github.com/bluenviron/gortsplib/v4/pkg/base"
	"github.com/bluenviron/gortsplib/v4/pkg/headers"
)

const (
	oddRealm = "edgecam sim"

	// writeLimit bounds how long a client may not read before its session ends.
	writeLimit = 10 * time.Second
)

// talk is one connection with an odd camera: its requests, and the session.
type talk struct {
	cam    *oddCamera
	conn   net.Conn
	in     *bufio.Reader
	faults string // standing ones at its begin
	nonces nonces

	ctx    context.Context //nolint:containedctx // of the connection, which is this value's life
	cancel context.CancelFunc
	frozen chan struct{} // closed when the camera stops reading and writing
	freeze sync.Once

	writing sync.Mutex
	plan    plan    // what DESCRIBE promised
	player  *player // nil before SETUP
	wg      sync.WaitGroup
}

// serve talks until the client hangs up, a fault ends it, or ctx ends.
func (c *oddCamera) serve(ctx context.Context, conn net.Conn) {
	now := c.now()
	if now.has(faultSilent) {
		discard(conn)
		return
	}
	t := &talk{cam: c, conn: conn, in: bufio.NewReader(conn), faults: now.standing(), frozen: make(chan struct{})}
	t.ctx, t.cancel = context.WithCancel(ctx)
	defer func() {
		t.cancel()
		_ = conn.Close() // ends a write of the player
		t.wg.Wait()
		if t.player != nil {
			t.player.close()
		}
	}()
	for {
		req, err := t.read()
		if err != nil {
			return
		}
		if t.isFrozen() {
			discard(conn) // the kernel acknowledges what comes, read or not
			return
		}
		if req == nil {
			continue
		}
		if err := t.answer(req); err != nil {
			c.log.Debug("sim ends a connection", "method", string(req.Method), "err", err)
			return
		}
	}
}

// read gives the next request; nil where something else came.
func (t *talk) read() (*base.Request, error) {
	head, err := t.in.Peek(1)
	if err != nil {
		return nil, err
	}
	if head[0] == '$' { // the client's reports
		head, err := t.in.Peek(4)
		if err != nil {
			return nil, err
		}
		_, err = t.in.Discard(4 + int(head[2])<<8 + int(head[3]))
		return nil, err
	}
	if word, err := t.in.Peek(5); err == nil && string(word) == "RTSP/" { // the answer to a request of ours
		var res base.Response
		return nil, res.Unmarshal(t.in)
	}
	var req base.Request
	if err := req.Unmarshal(t.in); err != nil {
		return nil, err
	}
	return &req, nil
}

func (t *talk) isFrozen() bool {
	select {
	case <-t.frozen:
		return true
	default:
		return false
	}
}

// wait waits for a time; false when the connection ends before.
func (t *talk) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-t.ctx.Done():
		return false
	}
}

// stay waits on the reading side, and notices a client that hangs up.
func (t *talk) stay(d time.Duration) bool {
	gone := make(chan error, 1)
	go func() {
		_, err := t.in.Peek(1)
		gone <- err
	}()
	timer := time.NewTimer(d)
	defer timer.Stop()
	var err error
	select {
	case <-timer.C:
		if t.conn.SetReadDeadline(time.Now()) != nil { // ends the look
			return false
		}
		<-gone
		err = t.conn.SetReadDeadline(time.Time{})
	case <-t.ctx.Done():
		_ = t.conn.Close() // ends the look
		<-gone
		return false
	case err = <-gone:
		if err == nil && !t.wait(d) { // it asks on
			return false
		}
	}
	return err == nil
}

// write sends bytes in one piece.
func (t *talk) write(b []byte) error {
	t.writing.Lock()
	defer t.writing.Unlock()
	if err := t.conn.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil {
		return err
	}
	_, err := t.conn.Write(b)
	return err
}

func (t *talk) reply(req *base.Request, code base.StatusCode, header base.Header, body []byte) error {
	if header == nil {
		header = base.Header{}
	}
	header["CSeq"] = req.Header["CSeq"]
	header["Server"] = base.HeaderValue{oddRealm}
	b, err := base.Response{StatusCode: code, Header: header, Body: body}.Marshal()
	if err != nil {
		return err
	}
	return t.write(b)
}

var errTorn = errors.New("torn down")

// answer answers one request; an error ends the connection.
func (t *talk) answer(req *base.Request) error {
	now := t.cam.now()
	if req.Method != base.Options {
		if challenge := t.login(req, now); challenge != nil {
			return t.reply(req, base.StatusUnauthorized, base.Header{"WWW-Authenticate": challenge}, nil)
		}
	}
	if t.player != nil && t.player.forgotten() && req.Method != base.Describe {
		return t.reply(req, base.StatusSessionNotFound, nil, nil)
	}
	switch req.Method {
	case base.Options:
		return t.reply(req, base.StatusOK, base.Header{"Public": {"OPTIONS, DESCRIBE, SETUP, PLAY, PAUSE, GET_PARAMETER, TEARDOWN"}}, nil)
	case base.Describe:
		return t.describe(req, now)
	case base.Setup:
		return t.setup(req, now)
	case base.Play:
		return t.play(req, now)
	case base.GetParameter, base.SetParameter, base.Pause:
		return t.reply(req, base.StatusOK, t.sessionHeader(), nil)
	case base.Teardown:
		return errors.Join(t.reply(req, base.StatusOK, nil, nil), errTorn)
	default:
		return t.reply(req, base.StatusNotImplemented, nil, nil)
	}
}

func (t *talk) describe(req *base.Request, now Faults) error {
	if slow := now.find(faultSlowSDP); slow != nil && !t.stay(slow.span) {
		return errTorn
	}
	n := t.cam.describes.Add(1)
	switch {
	case now.has(faultNotFound):
		return t.reply(req, base.StatusNotFound, nil, nil)
	case now.has(faultRedirect):
		return t.reply(req, base.StatusFound, base.Header{"Location": {now.find(faultRedirect).text}}, nil)
	case now.has(faultLoop):
		there := "rtsp://" + t.conn.LocalAddr().String() + "/" + t.cam.Path + "?hop=" + strconv.FormatUint(n, 10)
		return t.reply(req, base.StatusFound, base.Header{"Location": {there}}, nil)
	}
	var err error
	if t.plan, err = t.cam.plan(now, n%2 == 0); err != nil {
		return err
	}
	where := "rtsp://" + t.conn.LocalAddr().String() + "/" + t.cam.Path + "/"
	return t.reply(req, base.StatusOK, base.Header{"Content-Type": {"application/sdp"}, "Content-Base": {where}}, t.plan.sdp)
}

func (t *talk) setup(req *base.Request, now Faults) error {
	if now.has(faultBusy) {
		return t.reply(req, base.StatusNotEnoughBandwidth, nil, nil)
	}
	var offers headers.Transports
	if err := offers.Unmarshal(req.Header["Transport"]); err != nil {
		return t.reply(req, base.StatusBadRequest, nil, nil)
	}
	for i := range offers {
		o := &offers[i]
		tcp := o.Protocol == headers.TransportProtocolTCP
		multicast := o.Delivery != nil && *o.Delivery == headers.TransportDeliveryMulticast
		if tcp && now.has(faultUDPOnly) || !tcp && now.has(faultTCPOnly) || multicast || !tcp && o.ClientPorts == nil {
			continue
		}
		return t.accept(req, o)
	}
	return t.reply(req, base.StatusUnsupportedTransport, nil, nil)
}

// accept makes the session for a transport that was offered.
func (t *talk) accept(req *base.Request, o *headers.Transport) error {
	if t.player != nil { // a second track: we have no packets for it
		return t.reply(req, base.StatusOK, base.Header{"Transport": o.Marshal(), "Session": {t.player.id}}, nil)
	}
	if t.plan.clip == nil {
		var err error
		if t.plan, err = t.cam.plan(t.cam.now(), false); err != nil {
			return err
		}
	}
	p, err := newPlayer(t)
	if err != nil {
		return err
	}
	unicast := headers.TransportDeliveryUnicast
	answer := headers.Transport{Protocol: o.Protocol, Delivery: &unicast}
	if o.Protocol == headers.TransportProtocolTCP {
		channels := [2]int{0, 1}
		if o.InterleavedIDs != nil {
			channels = *o.InterleavedIDs
		}
		p.out = &interleaved{t: t, channels: channels}
		answer.InterleavedIDs = &channels
	} else {
		out, ports, err := newDatagrams(t.conn, *o.ClientPorts)
		if err != nil {
			return err
		}
		p.out = out
		answer.ClientPorts, answer.ServerPorts = o.ClientPorts, &ports
	}
	t.player = p
	header := t.sessionHeader()
	header["Transport"] = answer.Marshal()
	return t.reply(req, base.StatusOK, header, nil)
}

func (t *talk) sessionHeader() base.Header {
	if t.player == nil {
		return base.Header{}
	}
	return base.Header{"Session": {t.player.id + ";timeout=60"}}
}

func (t *talk) play(req *base.Request, now Faults) error {
	if t.player == nil {
		return t.reply(req, base.StatusMethodNotValidInThisState, nil, nil)
	}
	if lost := now.find(faultLost); lost != nil && lost.count == 0 && lost.span == 0 {
		return t.reply(req, base.StatusSessionNotFound, nil, nil)
	}
	if err := t.reply(req, base.StatusOK, t.sessionHeader(), nil); err != nil {
		return err
	}
	if t.player.started || t.player.encode == nil {
		return nil
	}
	t.player.started = true
	t.wg.Go(func() {
		defer t.cancel()
		if err := t.player.run(t.ctx); err != nil {
			t.cam.log.Debug("sim ends a session", "err", err)
			if errors.Is(err, errReset) {
				reset(t.conn)
			}
			_ = t.conn.Close() // ends the reading
		}
	})
	return nil
}

// nonces are the digest's: the one that is good, and the one before.
type nonces struct {
	good, old string
	since     time.Time
	used      bool
}

// login gives the challenge for a request that does not carry the login.
func (t *talk) login(req *base.Request, now Faults) base.HeaderValue {
	user, password := t.cam.User, t.cam.Password
	if now.has(faultAuth) {
		user, password = "nobody", "\x00" // nobody knows this password
	}
	if user == "" {
		return nil
	}
	methods := t.cam.methods
	switch {
	case now.has(faultSHA256):
		methods = []auth.VerifyMethod{auth.VerifyMethodDigestSHA256}
	case now.has(faultBothAuth), now.has(faultNonce):
		methods = []auth.VerifyMethod{auth.VerifyMethodDigestMD5}
	}
	n := &t.nonces
	if rotate := now.find(faultNonce); rotate != nil && n.good != "" {
		if rotate.span == 0 && n.used || rotate.span > 0 && time.Since(n.since) >= rotate.span {
			n.old, n.good = n.good, ""
		}
	}
	if n.good == "" {
		n.good, n.since, n.used = newNonce(), time.Now(), false
	}
	if auth.Verify(req, user, password, methods, oddRealm, n.good) == nil {
		n.used = true
		return nil
	}
	stale := n.old != "" && auth.Verify(req, user, password, methods, oddRealm, n.old) == nil
	return challenge(methods, n.good, stale, now.has(faultBothAuth))
}

func newNonce() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func challenge(methods []auth.VerifyMethod, nonce string, stale, both bool) base.HeaderValue {
	var h base.HeaderValue
	if both {
		h = append(h, fmt.Sprintf("Basic realm=%q", oddRealm))
	}
	for _, m := range methods {
		if m == auth.VerifyMethodBasic {
			h = append(h, fmt.Sprintf("Basic realm=%q", oddRealm))
			continue
		}
		parts := []string{fmt.Sprintf("Digest realm=%q", oddRealm), fmt.Sprintf("nonce=%q", nonce)}
		if m == auth.VerifyMethodDigestSHA256 {
			parts = append(parts, `algorithm="SHA-256"`)
		}
		if stale {
			parts = append(parts, `stale="TRUE"`)
		}
		h = append(h, strings.Join(parts, ", "))
	}
	return h
}
