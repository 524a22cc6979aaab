package rtsp

import (
	"encoding/base64"
	"net/url"
	"strings"
)

// withheld stands for a text from outside that quoted the login.
const withheld = "(text withheld: it quoted the login)"

// scrub gives back a text that came from a camera or a library, or withheld
// where it holds the password in any form that a protocol would write it.
func (t Target) scrub(text string) string {
	if t.password == "" {
		return text
	}
	lower := strings.ToLower(text)
	for _, form := range []string{
		t.password,
		url.QueryEscape(t.password),
		url.PathEscape(t.password),
		url.UserPassword("", t.password).String(),
		base64.StdEncoding.EncodeToString([]byte(t.username + ":" + t.password)),
	} {
		if strings.Contains(lower, strings.ToLower(form)) {
			return withheld
		}
	}
	return text
}
