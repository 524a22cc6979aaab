package capture

import "fmt"

// ForeignError says that what answers does not speak RTSP as it was asked to:
// another service, or one that is encrypted where we are not, or the reverse.
type ForeignError struct {
	Addr   string // host:port
	Speaks string // e.g. "TLS", "HTTP"
	Hint   string // what to change; may be empty
	Guess  bool   // it said nothing, and may as well be overloaded
}

// Error implements error.
func (e *ForeignError) Error() string { return "talk to " + e.Addr + ": it speaks " + e.Speaks }

// Reason implements Failure.
func (e *ForeignError) Reason() string { return withHint(e.Addr+" speaks "+e.Speaks, e.Hint) }

// Temporary implements Failure.
func (e *ForeignError) Temporary() bool { return e.Guess }

// CertificateError says that a camera was not believed to be the one that was
// meant. Nothing was sent to it.
type CertificateError struct {
	Addr        string // host:port
	Problem     string // in words, e.g. "it expired on 2024-05-01"
	Fingerprint string // of the certificate that came, as the configuration takes it; may be empty
	Hint        string // what to change
}

// Error implements error.
func (e *CertificateError) Error() string {
	return "verify certificate of " + e.Addr + ": " + e.Problem
}

// Reason implements Failure.
func (e *CertificateError) Reason() string {
	text := fmt.Sprintf("The certificate of %s is not accepted: %s", e.Addr, withHint(e.Problem, e.Hint))
	if e.Fingerprint != "" {
		text += ". Its fingerprint is " + e.Fingerprint
	}
	return text
}

// Temporary implements Failure.
func (e *CertificateError) Temporary() bool { return false }

// RedirectError says that a camera sends us elsewhere and that we do not go.
type RedirectError struct {
	To      string // scheme, host and port; may be empty
	Problem string // e.g. "that is the 6th redirect in a row"
}

// Error implements error.
func (e *RedirectError) Error() string {
	if e.To == "" {
		return "follow redirect: " + e.Problem
	}
	return "follow redirect to " + e.To + ": " + e.Problem
}

// Reason implements Failure.
func (e *RedirectError) Reason() string {
	if e.To == "" {
		return "The camera's redirect is not followed: " + e.Problem
	}
	return "The camera's redirect to " + e.To + " is not followed: " + e.Problem
}

// Temporary implements Failure.
func (e *RedirectError) Temporary() bool { return true }
