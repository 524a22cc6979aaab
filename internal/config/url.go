package config

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

var (
	schemePattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]{0,15}$`)
	hostPattern   = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?$`)
)

// advice is how to write credentials that do not fit a URL as they are.
const advice = "percent-encode it (# is %23, / is %2F, ? is %3F, @ is %40, % is %25) or give username and password as keys of their own"

// checkURLForm says what is wrong with the form of a camera's URL and whether
// it names a user; apart says that the login is given beside it. net/url is not
// asked: its errors quote the URL, password and all. No error here holds any
// part of what may be a password.
func checkURLForm(text string, apart bool) (hasUser bool, err error) {
	if strings.ContainsFunc(text, unicode.IsControl) {
		return false, errors.New("holds a line break or another control character")
	}
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return false, errors.New("want rtsp://host/path")
	}
	if s := strings.ToLower(scheme); s != "rtsp" && s != "rtsps" {
		if schemePattern.MatchString(scheme) {
			return false, fmt.Errorf("want rtsp:// or rtsps://, not %s://", scheme)
		}
		return false, errors.New("want rtsp:// or rtsps://")
	}
	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	user, host := "", authority
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		user, host, hasUser = authority[:i], authority[i+1:], true
	}
	// user:pa/ss@host ends before its @, and user:12 would pass for host:port.
	if !hasUser && !apart && strings.Contains(tail, "@") && mayBeLogin(authority) {
		return false, fmt.Errorf("the user or password holds one of / ? #: %s", advice)
	}
	if strings.Contains(tail, "#") {
		return hasUser, fmt.Errorf("holds a #, which URLs of cameras do not have: if it belongs to the password, %s", advice)
	}
	if err := checkLogin(user); err != nil {
		return hasUser, err
	}
	if strings.ContainsFunc(tail, unicode.IsSpace) {
		return hasUser, errors.New("the path holds a blank: write %20")
	}
	if path, _, _ := strings.Cut(tail, "?"); !goodPercent(path) {
		return hasUser, errors.New("the path holds a % that is no escape: write %25")
	}
	return hasUser, checkHost(host)
}

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

// checkLogin wants user:password as a URL may hold it.
func checkLogin(user string) error {
	plain, err := url.PathUnescape(user)
	switch {
	case err != nil:
		return fmt.Errorf("the user or password holds a %% that is no escape: %s", advice)
	case strings.ContainsFunc(user, unicode.IsSpace):
		return fmt.Errorf("the user or password holds a blank: %s", advice)
	case hasControl(plain):
		return errors.New("the user or password holds an escaped line break or another control character")
	}
	return nil
}

// checkHost wants host, host:port, [v6] or [v6]:port. It quotes nothing, as
// what looks like a host may be the end of a password.
func checkHost(s string) error {
	if rest, ok := strings.CutPrefix(s, "["); ok {
		v6, after, closed := strings.Cut(rest, "]")
		addr, err := netip.ParseAddr(strings.Replace(v6, "%25", "%", 1))
		if err != nil || !closed || !addr.Is6() || strings.ContainsFunc(v6, unicode.IsSpace) {
			return errors.New("what stands in brackets is no IPv6 address")
		}
		return checkPort(after)
	}
	if strings.Count(s, ":") > 1 {
		return errors.New("an IPv6 address stands in brackets: rtsp://[2001:db8::10]/path")
	}
	i := strings.IndexByte(s, ':')
	if i < 0 {
		i = len(s)
	}
	if i == 0 {
		return errors.New("the host is missing: want rtsp://host/path")
	}
	if !hostPattern.MatchString(s[:i]) {
		return fmt.Errorf("the host is no name or address; if it is the end of a password, %s", advice)
	}
	return checkPort(s[i:])
}

// checkPort wants nothing, a colon, or a colon and 1 to 65535.
func checkPort(s string) error {
	if s == "" || s == ":" {
		return nil
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(s, ":"), 10, 16)
	if err != nil || n == 0 || s[0] != ':' {
		return fmt.Errorf("the port is no number from 1 to 65535; if it is part of a password, %s", advice)
	}
	return nil
}

// goodPercent says whether every % begins an escape of two hexadecimal digits.
func goodPercent(s string) bool {
	_, err := url.PathUnescape(s)
	return err == nil
}
