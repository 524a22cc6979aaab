package rtsp

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bluenviron/gortsplib/v4/pkg/base"
)

const (
	// defaultSessionTimeout is how long a camera keeps a session of which it
	// hears nothing, unless it says otherwise (RFC 2326 12.37).
	defaultSessionTimeout = 60

	// maxRetryAfter bounds how long a camera can make us stay away.
	maxRetryAfter = 10 * time.Minute
)

// upkeep keeps the requests and answers of one connection in step: their
// numbers, the session's id, and the signs of life that keep it. It is used on
// the client's goroutine.
type upkeep struct {
	cseq    string          // of the request under way
	seen    map[string]bool // numbers that answers came with
	playing bool            // PLAY was accepted: requests are signs of life, nobody waits for their answers
	methods []base.Method   // for signs of life, the one to use first
	timeout time.Duration   // what the camera said of its sessions; 0 = nothing
	retry   time.Duration   // when the camera said to come back; 0 = it did not
}

// sent notes a request before it is written, and gives a sign of life the
// method that the camera takes.
func (u *upkeep) sent(req *base.Request) {
	if v := req.Header["CSeq"]; len(v) > 0 {
		u.cseq = v[0]
	}
	if u.playing && len(u.methods) > 0 && (req.Method == base.Options || req.Method == base.GetParameter) {
		req.Method = u.methods[0]
	}
}

// answered looks at the answer to a request and puts right what gortsplib
// would stumble over; done says that nothing else is to be made of it.
func (u *upkeep) answered(method string, res *base.Response) (done bool) {
	switch {
	case res.StatusCode < base.StatusOK:
		// An interim answer; gortsplib waits for one with its number.
		res.Header["CSeq"] = base.HeaderValue{"interim"}
		return true
	case u.playing:
		u.rotate(method, res.StatusCode)
		return false
	}
	u.renumber(res)
	u.readRetry(res)
	if session := res.Header["Session"]; len(session) > 0 {
		u.readSession(res, session[0])
	}
	switch {
	case method == string(base.Options) && res.StatusCode == base.StatusOK:
		u.readPublic(res)
	case method == string(base.Play) && res.StatusCode == base.StatusOK:
		u.playing = true
	}
	return false
}

// renumber gives an answer the number of the request under way: some cameras
// count otherwise, and until video plays there is only one. A number that came
// before belongs to an answer that was repeated.
func (u *upkeep) renumber(res *base.Response) {
	v := res.Header["CSeq"]
	if len(v) == 0 {
		return // gortsplib takes it
	}
	number := strings.TrimSpace(v[0])
	if number != u.cseq && u.seen[number] {
		return
	}
	if u.seen == nil {
		u.seen = map[string]bool{}
	}
	u.seen[number] = true
	res.Header["CSeq"] = base.HeaderValue{u.cseq}
}

// readSession writes the header as gortsplib reads it. Its signs of life come
// after 8/10 of the timeout that it reads, which is too late where one gets
// lost: half of the true one is aimed at, and half a minute at most.
func (u *upkeep) readSession(res *base.Response, value string) {
	id, params, _ := strings.Cut(value, ";")
	if id = strings.TrimSpace(id); id == "" {
		delete(res.Header, "Session")
		return
	}
	seconds := defaultSessionTimeout
	if u.timeout > 0 {
		seconds = int(u.timeout / time.Second) // not every answer repeats it
	}
	for param := range strings.SplitSeq(params, ";") {
		name, text, _ := strings.Cut(param, "=")
		if n := leadingNumber(strings.TrimSpace(text)); n > 0 && strings.EqualFold(strings.TrimSpace(name), "timeout") {
			seconds = n
			u.timeout = min(time.Duration(n)*time.Second, maxRetryAfter)
		}
	}
	told := max(1, min(seconds, defaultSessionTimeout)*10/16)
	res.Header["Session"] = base.HeaderValue{id + ";timeout=" + strconv.Itoa(told)}
}

// leadingNumber reads the digits that a text begins with, at most eight.
func leadingNumber(text string) int {
	n := 0
	for i := 0; i < len(text) && i < 8 && text[i] >= '0' && text[i] <= '9'; i++ {
		n = n*10 + int(text[i]-'0')
	}
	return n
}

// readPublic notes which of the methods that change nothing the camera has.
func (u *upkeep) readPublic(res *base.Response) {
	public := strings.ToUpper(strings.Join(res.Header["Public"], ","))
	has := strings.FieldsFunc(public, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
	u.methods = nil
	for _, m := range []base.Method{base.GetParameter, base.Options, base.SetParameter} {
		if slices.Contains(has, string(m)) {
			u.methods = append(u.methods, m)
		}
	}
	for _, m := range []base.Method{base.Options, base.GetParameter} {
		if !slices.Contains(u.methods, m) {
			u.methods = append(u.methods, m)
		}
	}
}

// rotate turns to another method for signs of life where the camera refuses
// the one in use. Whether it counts refused ones is not known.
func (u *upkeep) rotate(method string, code base.StatusCode) {
	refused := code >= base.StatusBadRequest && code != base.StatusUnauthorized && code != base.StatusSessionNotFound
	if refused && len(u.methods) > 1 && method == string(u.methods[0]) {
		u.methods = append(u.methods[1:], u.methods[0])
	}
}

// readRetry reads Retry-After, in seconds.
func (u *upkeep) readRetry(res *base.Response) {
	u.retry = 0
	if v := res.Header["Retry-After"]; len(v) > 0 {
		u.retry = min(time.Duration(leadingNumber(strings.TrimSpace(v[0])))*time.Second, maxRetryAfter)
	}
}
