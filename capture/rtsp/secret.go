package rtsp

import (
	"encoding/base64"
	"net/url"
	"strings"
)

// withheld stands for a text from outside that quoted the login.
const withheld = "(text withheld: it quoted the login)"

// scrub gives back a text that came from a camera or a library, or withheld
// where it holds a secret of the target in any form that a protocol would write
// it.
func (t Target) scrub(text string) string {
	lower := strings.ToLower(text)
	for _, secret := range t.secrets() {
		for _, form := range forms(secret) {
			if strings.Contains(lower, strings.ToLower(form)) {
				return withheld
			}
		}
	}
	return text
}

// secrets are the password, and what is behind the host: cameras of many makers
// carry a login there, and any of them may quote it.
func (t Target) secrets() []string {
	var all []string
	if t.password != "" {
		login := []byte(t.username + ":" + t.password)
		all = append(all, t.password, base64.StdEncoding.EncodeToString(login), base64.URLEncoding.EncodeToString(login))
	}
	// "/" and the like are no secrets, and stand in most texts.
	const least = 4
	for _, part := range []string{t.path, t.query} {
		if len(part) >= least {
			all = append(all, part)
		}
		all = append(all, loginValues(part)...)
	}
	return all
}

// forms are the ways in which URLs and headers write a text.
func forms(text string) []string {
	all := []string{text, url.QueryEscape(text), url.PathEscape(text), url.UserPassword("", text).String()}
	if plain, err := url.PathUnescape(text); err == nil && plain != text {
		all = append(all, plain)
	}
	return all
}

// loginValues are the values of names that sound like a login, as in
// /cgi?user=admin&pwd=… and /user=admin_password=…_channel=1.sdp.
func loginValues(part string) []string {
	var values []string
	for field := range strings.FieldsFuncSeq(part, func(r rune) bool { return strings.ContainsRune("/?&;_,", r) }) {
		name, value, found := strings.Cut(field, "=")
		if found && value != "" && soundsSecret(strings.ToLower(name)) {
			values = append(values, value)
		}
	}
	return values
}

func soundsSecret(name string) bool {
	for _, word := range []string{"pass", "pwd", "psw", "pw", "token", "auth", "secret", "key", "sign", "session"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}
