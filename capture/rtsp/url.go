package rtsp

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/bluenviron/gortsplib/v4/pkg/base"
)

// Target is the address of a stream and the login for it. Its String and
// GoString never show the login, the path or the query: cameras of some makers
// carry the password in the path.
type Target struct {
	scheme   string // rtsp or rtsps
	host     string // without brackets; may end in a %zone
	port     int
	path     string // as written, from the first '/' on; may be empty
	query    string // as written, without the '?'
	hasQuery bool
	username string
	password string
	login    bool
}

// The reasons why ParseURL refuses a URL. None quotes it, since any part of a
// malformed URL may be a piece of the password.
var (
	errURLScheme     = errors.New("the URL must begin with rtsp:// or rtsps://")
	errURLControl    = errors.New("the URL holds a line break or another control character")
	errURLHost       = errors.New("the URL names no host")
	errURLHostChar   = errors.New("the host of the URL holds a character that no host name has; if the password holds one of / ? # write it %-encoded, or use the keys username and password")
	errURLPort       = errors.New("the port of the URL is not a number from 1 to 65535; if the password holds one of / ? # write it %-encoded, or use the keys username and password")
	errURLBrackets   = errors.New("an IPv6 address in the URL needs brackets: rtsp://[2001:db8::10]:554/")
	errURLIPv6       = errors.New("the text between the brackets of the URL is not an IPv6 address")
	errURLAmbiguous  = errors.New("the URL has an @ after the host: if the password holds one of / ? # write it %-encoded, or use the keys username and password; in a path write @ as %40")
	errURLFragment   = errors.New("the URL holds a #: if it belongs to the password write it as %23, or use the keys username and password")
	errURLEscape     = errors.New("the login in the URL holds a % that is not followed by two hex digits: write % as %25, or use the keys username and password")
	errURLBlank      = errors.New("the path of the URL holds a blank: write %20")
	errURLLoginBlank = errors.New("the login in the URL holds a blank: write it as %20, or use the keys username and password")
	errURLPath       = errors.New("the path of the URL holds a % that is not followed by two hex digits: write % as %25")
	errPassword      = errors.New("a password is set and no username")
)

// ParseURL reads the URL of a stream. Blanks around it are ignored. username
// and password, where not empty, are taken literally and win over the login in
// the URL; an empty password is a password. Errors never quote any part of
// the URL, and so can be shown to anybody.
func ParseURL(raw, username, password string) (Target, error) {
	raw = strings.TrimSpace(raw)
	if strings.ContainsFunc(raw, unicode.IsControl) {
		return Target{}, errURLControl
	}
	scheme, rest, found := strings.Cut(raw, "://")
	t := Target{scheme: strings.ToLower(scheme)}
	if !found || (t.scheme != "rtsp" && t.scheme != "rtsps") {
		return Target{}, errURLScheme
	}

	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	userinfo, hostport, hasLogin := cutLast(authority, '@')
	if !hasLogin {
		userinfo, hostport = "", authority
	}
	// rtsp://user:pa/ss@host/ reads like host "user", port "pa": refuse what
	// could be a piece of a password before anything is looked up or dialled.
	if !hasLogin && username == "" && strings.Contains(tail, "@") && mayBeLogin(authority) {
		return Target{}, errURLAmbiguous
	}
	if err := t.setHost(hostport); err != nil {
		return Target{}, err
	}
	if err := t.setTail(tail); err != nil {
		return Target{}, err
	}
	if err := t.setLogin(userinfo, hasLogin, username, password); err != nil {
		return Target{}, err
	}
	return t, nil
}

// Addr is host:port, with brackets where they are needed.
func (t Target) Addr() string { return net.JoinHostPort(t.host, strconv.Itoa(t.port)) }

// Username is the user that logs in; "" = no login.
func (t Target) Username() string { return t.username }

// String shows scheme, host and port alone.
func (t Target) String() string {
	text := t.scheme + "://" + t.Addr()
	if t.path != "" || t.hasQuery {
		text += "/…"
	}
	return text
}

// GoString is String, so that %#v shows no secret either.
func (t Target) GoString() string { return t.String() }

// encrypted says whether nothing may be sent in the open.
func (t Target) encrypted() bool { return t.scheme == "rtsps" }

// request is the URL as gortsplib wants it. It holds no login: the answers to
// the camera's questions are our own.
func (t Target) request() (*base.URL, error) {
	u := &url.URL{Scheme: t.scheme, Host: t.hostport(), RawQuery: t.query, ForceQuery: t.hasQuery && t.query == ""}
	var err error
	if u.Path, err = url.PathUnescape(t.path); err != nil {
		return nil, errURLPath
	}
	u.RawPath = t.path
	return (*base.URL)(u), nil
}

// hostport keeps the URL's port out of the request line where it is the
// scheme's own, as players do: some cameras compare the line. A zone means
// nothing to the other side (RFC 6874 4).
func (t Target) hostport() string {
	host, _, _ := strings.Cut(t.host, "%")
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if t.port != defaultPort(t.scheme) {
		host += ":" + strconv.Itoa(t.port)
	}
	return host
}

func defaultPort(scheme string) int {
	if scheme == "rtsps" {
		return 322
	}
	return 554
}

func (t *Target) setHost(hostport string) error {
	var host, port string
	if strings.HasPrefix(hostport, "[") {
		inside, after, closed := strings.Cut(hostport[1:], "]")
		if !closed {
			return errURLIPv6
		}
		// a zone is written %25eth0 (RFC 6874) or, by hand, %eth0
		inside = strings.Replace(inside, "%25", "%", 1)
		addr, err := netip.ParseAddr(inside)
		if err != nil || !addr.Is6() || strings.ContainsFunc(inside, unicode.IsSpace) {
			return errURLIPv6
		}
		if after != "" && after[0] != ':' {
			return errURLPort
		}
		host, port = inside, strings.TrimPrefix(after, ":")
	} else {
		if strings.Count(hostport, ":") > 1 {
			return errURLBrackets
		}
		host, port, _ = strings.Cut(hostport, ":")
		if host == "" {
			return errURLHost
		}
		if !hostPattern.MatchString(host) {
			return errURLHostChar
		}
	}
	t.host, t.port = host, defaultPort(t.scheme)
	if port == "" {
		return nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return errURLPort
	}
	t.port = int(n)
	return nil
}

// hostPattern is what a name or an IPv4 address is made of. Letters of other
// scripts need their ASCII form (xn--…) to be looked up.
var hostPattern = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?$`)

// mayBeLogin says whether what looks like host:port could be user:password as
// well. No user is called like an address.
func mayBeLogin(authority string) bool {
	host, _, found := strings.Cut(authority, ":")
	if !found || strings.HasPrefix(authority, "[") {
		return false
	}
	_, err := netip.ParseAddr(host)
	return err != nil
}

func (t *Target) setTail(tail string) error {
	if strings.Contains(tail, "#") {
		return errURLFragment
	}
	if strings.ContainsFunc(tail, unicode.IsSpace) {
		return errURLBlank
	}
	t.path, t.query, t.hasQuery = strings.Cut(tail, "?")
	if _, err := url.PathUnescape(t.path); err != nil {
		return errURLPath
	}
	return nil
}

func (t *Target) setLogin(userinfo string, hasLogin bool, username, password string) error {
	if strings.ContainsFunc(userinfo, unicode.IsSpace) {
		return errURLLoginBlank
	}
	user, pass, _ := strings.Cut(userinfo, ":")
	user, err := url.PathUnescape(user)
	if err != nil {
		return errURLEscape
	}
	if pass, err = url.PathUnescape(pass); err != nil {
		return errURLEscape
	}
	if strings.ContainsFunc(user+pass, unicode.IsControl) {
		return errURLControl // %0d%0a would end a line of the request
	}
	if username != "" {
		user = username
	}
	if password != "" {
		pass = password
	}
	if user == "" && password != "" {
		return errPassword
	}
	t.username, t.password = user, pass
	t.login = username != "" || (hasLogin && userinfo != "")
	return nil
}

// cutLast splits s at the last sep: a password may hold an @, a host cannot.
func cutLast(s string, sep byte) (before, after string, found bool) {
	i := strings.LastIndexByte(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}
