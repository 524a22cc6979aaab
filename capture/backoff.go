package capture

import "time"

// The waits between sessions.
const (
	retryMin = time.Second
	retryMax = 30 * time.Second

	// Cameras lock an account after a handful of wrong logins.
	authRetryMin = 2 * time.Minute
	authRetryMax = 15 * time.Minute

	// Somebody has to change a setting first.
	unsupportedRetryMin = time.Minute
	unsupportedRetryMax = 10 * time.Minute

	// A camera that says 453 frees old sessions after its session timeout,
	// which is a minute unless it says otherwise (RFC 2326 12.37).
	busyRetryMin = time.Minute

	// stableAfter is how long pictures must have come for the next failure to
	// count as a first one.
	stableAfter = 10 * time.Second
)

// backoff gives waits that double from min to max. Each is spread by a quarter
// to both sides, so that the cameras of one recorder do not come back in the
// same second.
type backoff struct {
	min, max time.Duration
	failures int
	jitter   func() float64 // 0..1
}

func (b *backoff) next() time.Duration {
	d := b.max
	if b.failures < 16 { // min × 2^16 is beyond any max
		d = min(b.min<<b.failures, b.max)
	}
	b.failures++
	return time.Duration(float64(d) * (0.75 + b.jitter()/2))
}

func (b *backoff) reset() { b.failures = 0 }
