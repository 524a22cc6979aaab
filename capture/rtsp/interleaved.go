package rtsp

import (
	"bytes"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
)

// framedConn lets nothing through but what belongs into an RTSP connection:
// messages, with heads that gortsplib reads (head.go), and whole interleaved
// frames (RFC 2326 10.12). Cameras were seen to
// send other bytes between the two, and gortsplib would take up to 64 kB of video
// for one frame behind a stray dollar sign, or end the session for a line of
// text. It finds the next frame at once, so that nothing is lost but what the
// camera itself destroyed.
type framedConn struct {
	net.Conn
	framer framer
	owed   *atomic.Int64 // see cameraConn
	err    error         // of the connection, due once all before it is read
}

// Read implements net.Conn.
func (c *framedConn) Read(b []byte) (int, error) {
	for {
		if n := c.framer.read(b); n > 0 {
			return n, nil
		}
		if c.err != nil {
			err := c.err
			c.err = nil // a deadline may be moved
			return 0, err
		}
		if c.owed != nil {
			c.owed.Store(int64(c.framer.owes()))
		}
		var n int
		n, c.err = c.Conn.Read(c.framer.space())
		c.framer.filled(n)
	}
}

const (
	frameHead = 4 // '$', channel, size
	rtpHead   = 12
	// reportHead is what an RTCP packet has at least: that of a BYE.
	reportHead = 8

	// maxMessageHead is more than any answer of a camera has before its body.
	maxMessageHead = 32 << 10

	framerRoom = 16 << 10
)

// framer finds what belongs into a connection among the bytes that come.
type framer struct {
	room  []byte
	in    []byte // all that came and was not read yet; a part of room
	good  int    // of these, from the start, are to be read
	body  int    // bytes of a message's body that are to come behind good
	begun bool
	plain bool // no RTSP to be seen: let all through

	channels map[byte]bool   // channels that the camera has named; empty = none yet
	ssrc     map[byte]uint32 // by channel, of the last frame
	skipped  uint64          // bytes

	agreed   *atomic.Pointer[agreement] // nil = nothing is put right
	adoption adoption
}

// space is where bytes from the connection go.
func (f *framer) space() []byte {
	if cap(f.in)-len(f.in) < framerRoom/4 {
		if len(f.in) > cap(f.room)/2 || f.room == nil {
			f.room = make([]byte, max(framerRoom, 2*cap(f.room)))
		}
		f.in = f.room[:copy(f.room, f.in)]
	}
	return f.in[len(f.in):cap(f.in)]
}

func (f *framer) filled(n int) { f.in = f.in[:len(f.in)+n] }

// owes is how many bytes of the body of a message are yet to come.
func (f *framer) owes() int { return max(0, f.body-(len(f.in)-f.good)) }

// read gives bytes that are good; 0 when more must come first.
func (f *framer) read(b []byte) int {
	if f.good == 0 {
		f.advance()
	}
	n := copy(b, f.in[:f.good])
	f.good -= n
	f.in = f.in[n:]
	return n
}

// advance finds what is good as far as bytes are there.
func (f *framer) advance() {
	if !f.begun && len(f.in) > 0 {
		f.begun, f.plain = true, f.in[0] != 'R' && f.in[0] != '$'
	}
	if f.plain {
		f.good = len(f.in)
		return
	}
	for f.good < len(f.in) {
		if f.body > 0 {
			n := min(f.body, len(f.in)-f.good)
			f.good += n
			f.body -= n
			continue
		}
		size, wait := f.judge(f.in[f.good:])
		switch {
		case wait:
			return
		case size > 0:
			f.good += size
		case f.good > 0:
			return
		default:
			f.skip()
		}
	}
}

// skip takes a byte out that belongs to nothing, with those behind it that
// cannot begin anything either.
func (f *framer) skip() {
	n := 1
	for n < len(f.in) && f.in[n] != '$' && (f.in[n] < 'A' || f.in[n] > 'Z') {
		n++
	}
	f.skipped += uint64(n)
	f.in = f.in[n:]
}

// judge says how many bytes from the start of b are a message's head or a
// frame; 0 = none. wait: that takes more bytes to tell.
func (f *framer) judge(b []byte) (size int, wait bool) {
	if b[0] == '$' {
		return f.judgeFrame(b)
	}
	return f.judgeMessage(b)
}

func (f *framer) judgeFrame(b []byte) (size int, wait bool) {
	if len(b) < frameHead {
		return 0, true
	}
	size = frameHead + frameSize(b)
	if size < frameHead+reportHead {
		return 0, false // an empty frame says nothing
	}
	if len(b) < min(size, frameHead+rtpHead) {
		return 0, true
	}
	sure, possible := f.looks(b)
	switch {
	case !possible:
		return 0, false
	case len(b) < size:
		return 0, sure || f.nextSure(b[1:]) < 0
	case !mayBegin(b[size:]) && (!sure || f.nextSure(b[1:size]) >= 0):
		return 0, false // its size is wrong, or it is none
	}
	if isRTP(b) {
		f.learn(b)
		repairExtension(b[frameHead:size])
		repairPadding(b[frameHead:size])
		if f.agreed != nil {
			f.adoption.adopt(b, f.agreed.Load())
		}
	}
	return size, false
}

func frameSize(b []byte) int { return int(b[2])<<8 | int(b[3]) }

// mayBe says whether frames of a channel are to be expected.
func (f *framer) mayBe(channel byte) bool { return len(f.channels) == 0 || f.channels[channel] }

// looks says what the first bytes of a frame are worth: sure ones continue a
// stream, or are reports in good order.
func (f *framer) looks(b []byte) (sure, possible bool) {
	const version = 0x80
	size := frameSize(b)
	rtp := b[frameHead:]
	switch {
	case rtp[0]&0xc0 != version:
		return false, false
	case isRTP(b):
		ssrc, known := f.ssrc[b[1]]
		return known && size >= rtpHead && ssrc == ssrcOf(rtp), size >= rtpHead
	default:
		// RTCP: its own size must fit in (RFC 3550 6.4).
		fits := (int(rtp[2])<<8|int(rtp[3])+1)*4 <= size
		return fits && f.mayBe(b[1]), fits
	}
}

// isRTP tells RTP from RTCP by the payload type, as RFC 5761 does.
func isRTP(b []byte) bool { return b[frameHead+1] < 192 || b[frameHead+1] > 223 }

func ssrcOf(rtp []byte) uint32 {
	return uint32(rtp[8])<<24 | uint32(rtp[9])<<16 | uint32(rtp[10])<<8 | uint32(rtp[11])
}

func (f *framer) learn(b []byte) {
	if f.ssrc == nil {
		f.ssrc = map[byte]uint32{}
	}
	f.ssrc[b[1]] = ssrcOf(b[frameHead:])
}

// nextSure finds a frame in b that surely is one; -1 = none.
func (f *framer) nextSure(b []byte) int {
	for at := 0; ; at++ {
		i := bytes.IndexByte(b[at:], '$')
		if i < 0 || len(b)-at-i < frameHead+rtpHead {
			return -1
		}
		at += i
		if sure, _ := f.looks(b[at:]); sure && isRTP(b[at:]) {
			return at
		}
	}
}

// mayBegin says whether b can be what follows a frame.
func mayBegin(b []byte) bool {
	if len(b) == 0 || b[0] == '$' {
		return true
	}
	known, maybe := beginsMessage(b)
	return known || maybe
}

// repairPadding takes back the claim of a packet to end in padding where that
// cannot be: the claim is wrong, the payload need not be.
func repairPadding(rtp []byte) {
	const padding, extension = 0x20, 0x10
	if rtp[0]&padding == 0 {
		return
	}
	head := rtpHead + 4*int(rtp[0]&0x0f)
	if rtp[0]&extension != 0 && len(rtp) >= head+4 {
		head += 4 + 4*(int(rtp[head+2])<<8|int(rtp[head+3]))
	}
	if n := int(rtp[len(rtp)-1]); n == 0 || head+n > len(rtp) {
		rtp[0] &^= padding
	}
}

// beginnings are those of RTSP's messages: an answer, and the requests that a
// server may send.
var beginnings = []string{ //nolint:gochecknoglobals // a constant
	"RTSP/1.0 ", "OPTIONS ", "ANNOUNCE ", "GET_PARAMETER ", "SET_PARAMETER ", "REDIRECT ", "DESCRIBE ",
	"PLAY ", "PLAY_NOTIFY ", "PAUSE ", "RECORD ", "SETUP ", "TEARDOWN ",
}

// beginsMessage says whether b begins as a message does, or may when more of it
// comes.
func beginsMessage(b []byte) (known, maybe bool) {
	for _, begin := range beginnings {
		n := min(len(begin), len(b))
		if string(b[:n]) == begin[:n] {
			known, maybe = known || n == len(begin), maybe || n < len(begin)
		}
	}
	v := verdictOnVersion(b)
	return known || v > 0, maybe || v == 0
}

// verdictOnVersion says whether b begins as an answer of any version does: 1 =
// yes, -1 = no, 0 = that takes more bytes to tell.
func verdictOnVersion(b []byte) int {
	const pattern = "RTSP/0.0 "
	for i := range pattern {
		switch {
		case i == len(b):
			return 0
		case pattern[i] == '0' && b[i] >= '0' && b[i] <= '9', pattern[i] == b[i]:
		default:
			return -1
		}
	}
	return 1
}

func (f *framer) judgeMessage(b []byte) (size int, wait bool) {
	if known, maybe := beginsMessage(b); !known {
		return 0, maybe
	}
	end := messageHead(b)
	if end <= 0 {
		return 0, end == 0
	}
	if head := repairHead(b[:end]); !bytes.Equal(head, b[:end]) {
		f.replace(end, head)
		b, end = head, len(head)
	}
	f.readHead(string(b[:end]))
	return end, false
}

// replace puts other bytes in the place of the next ones behind those that are
// good.
func (f *framer) replace(n int, by []byte) {
	rest := f.in[f.good+n:]
	room := make([]byte, max(framerRoom, 2*(f.good+len(by)+len(rest))))
	end := copy(room, f.in[:f.good])
	end += copy(room[end:], by)
	end += copy(room[end:], rest)
	f.room, f.in = room, room[:end]
}

// messageHead finds the end of a message's head; 0 = it is yet to come, -1 =
// this is no message.
func messageHead(b []byte) int {
	for i, c := range b {
		switch {
		case i >= maxMessageHead, c < ' ' && c != '\r' && c != '\n' && c != '\t':
			return -1
		case c == '\n' && (bytes.HasSuffix(b[:i], []byte("\n")) || bytes.HasSuffix(b[:i], []byte("\n\r"))):
			return i + 1
		}
	}
	return 0
}

// readHead takes from a message what the bytes behind it depend on.
func (f *framer) readHead(head string) {
	for line := range strings.Lines(head) {
		name, value, _ := strings.Cut(line, ":")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "content-length":
			if n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 20); err == nil {
				f.body = int(n)
			}
		case "transport":
			f.readTransport(value)
		}
	}
}

func (f *framer) readTransport(value string) {
	for part := range strings.SplitSeq(value, ";") {
		text, ok := strings.CutPrefix(strings.TrimSpace(part), "interleaved=")
		if !ok {
			continue
		}
		first, _, _ := strings.Cut(text, "-")
		if n, err := strconv.ParseUint(strings.TrimSpace(first), 10, 8); err == nil {
			if f.channels == nil {
				f.channels = map[byte]bool{}
			}
			f.channels[byte(n)], f.channels[byte(n)+1] = true, true
			f.adoption.channel, f.adoption.hasOne = byte(n), true
		}
	}
}
