package rtsp

import "time"

// The camera's clock is believed within these bounds around ours.
const (
	maxCameraLag  = 10 * time.Second
	maxCameraLead = time.Second
)

const (
	// maxClockDrift is how far the camera's time of one picture, or of one
	// report, may be from what the ones before make us expect. The transport
	// alone delays by less.
	maxClockDrift = 500 * time.Millisecond

	// synchronous are clocks that are so close that it does not matter which.
	synchronous = 50 * time.Millisecond

	// maxReportDistance is how far a report's RTP time may be from the video's:
	// reports come every few seconds, and tell of now.
	maxReportDistance = 30 * clockRate
)

// ntpEpoch is the zero of NTP times, which sender reports carry (RFC 3550 4).
var ntpEpoch = time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC) //nolint:gochecknoglobals // a constant

// cameraClock says when pictures were taken. The camera's sender reports tell
// which time of its clock an RTP time stands for; where there are none, or
// where they make no sense, the time is ours. A single odd report or RTP time
// moves nothing.
type cameraClock struct {
	valid  bool
	ntp    time.Time     // the camera's time …
	rtp    uint32        // … at this RTP time
	offset time.Duration // of the camera's clock to ours, as pictures arrive

	doubt       bool // the last report did not fit
	doubtOffset time.Duration
}

// report takes the times of a sender report that came at a time of our clock.
// rtpTime is the video's own of late.
func (c *cameraClock) report(ntp uint64, rtp, rtpTime uint32, now time.Time) {
	if distance := int32(rtp - rtpTime); distance > maxReportDistance || distance < -maxReportDistance {
		return
	}
	now = now.Round(0)
	at := readNTP(ntp, now)
	offset := at.Sub(now)
	switch sane := offset >= -maxCameraLag && offset <= maxCameraLead; {
	case c.valid && near(offset, c.offset), !c.valid && sane:
		if !c.valid {
			c.offset = offset
		}
		c.valid, c.ntp, c.rtp, c.doubt = true, at, rtp, false
	case !c.valid:
	case c.doubt && near(offset, c.doubtOffset):
		// Twice the same: the camera's clock was set.
		*c = cameraClock{valid: sane, ntp: at, rtp: rtp, offset: offset}
	default:
		c.doubt, c.doubtOffset = true, offset
	}
}

// at is the time of the picture that has an RTP time and came at a time of our
// clock.
func (c *cameraClock) at(rtpTime uint32, now time.Time) time.Time {
	now = now.Round(0) // wall clock alone
	if !c.valid {
		return now
	}
	taken := c.ntp.Add(ticksToTime(int64(int32(rtpTime - c.rtp))))
	offset := taken.Sub(now)
	if !near(offset, c.offset) {
		// The RTP time jumped, or our own clock was set.
		return now.Add(c.offset)
	}
	c.offset += (offset - c.offset) / 16
	if c.offset < -maxCameraLag || c.offset > maxCameraLead {
		*c = cameraClock{}
		return now
	}
	return taken
}

// near compares two offsets of the camera's clock.
func near(a, b time.Duration) bool { return (a - b).Abs() <= maxClockDrift }

// readNTP reads a time of 32 bits of seconds and as many of their fraction. Some
// servers write nanoseconds for the fraction, as gortsplib's does: that reading
// is taken where it makes the two clocks agree.
func readNTP(ntp uint64, now time.Time) time.Time {
	seconds := ntpEpoch.Add(time.Duration(ntp>>32) * time.Second)
	fraction := ntp & 0xffffffff
	at := seconds.Add(time.Duration(fraction * uint64(time.Second) >> 32))
	if nanoseconds := seconds.Add(time.Duration(fraction)); fraction < uint64(time.Second) &&
		nanoseconds.Sub(now).Abs() < synchronous {
		return nanoseconds
	}
	return at
}
