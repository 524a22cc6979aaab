package sim

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Fault is how cameras misbehave. The zero value is a camera in good health.
type Fault struct {
	Refuse   bool // the port is closed
	Silent   bool // TCP is accepted, and nothing ever answered
	Auth     bool // every login is refused
	NotFound bool // DESCRIBE is answered with 404
	NoVideo  bool // the description holds audio alone
	Codec    bool // the video is MPEG-4 part 2, which edgecam does not decode
	UDPOnly  bool // SETUP over TCP is answered with 461
	TCPOnly  bool // SETUP over UDP is answered with 461

	StallAfter int     // frames of a session before video stops for good, while RTSP and RTCP go on; 0 = never
	CloseAfter int     // frames of a session before the connection is closed; 0 = never
	Loss       float64 // share of RTP packets that are not sent, 0..1
}

// FaultHelp lists the words of a fault, for the help of a command.
const FaultHelp = faultWords

// faultWords is the list for messages and help.
const faultWords = "refuse, silent, auth, notfound, novideo, codec, udponly, tcponly, stall:N, close:N, loss:PERCENT"

// ParseFault reads a comma separated list of faults:
//
//	refuse      the port is closed
//	silent      TCP is accepted and nothing answered
//	auth        every login is refused
//	notfound    DESCRIBE is answered with 404
//	novideo     the description holds audio alone
//	codec       the video is MPEG-4 part 2
//	udponly     SETUP over TCP is answered with 461
//	tcponly     SETUP over UDP is answered with 461
//	stall:N     video stops after N frames, the session stays
//	close:N     the connection is closed after N frames
//	loss:P      P percent of the RTP packets get lost (0 to 100, may have a fraction)
//
// An empty text is no fault.
func ParseFault(spec string) (Fault, error) {
	var f Fault
	if strings.TrimSpace(spec) == "" {
		return f, nil
	}
	seen := map[string]bool{}
	for part := range strings.SplitSeq(spec, ",") {
		name, value, hasValue := strings.Cut(strings.TrimSpace(part), ":")
		if seen[name] {
			return Fault{}, fmt.Errorf("parse fault %q: %s is given twice", spec, name)
		}
		seen[name] = true
		if err := f.set(name, value, hasValue); err != nil {
			return Fault{}, fmt.Errorf("parse fault %q: %w", spec, err)
		}
	}
	return f, f.check()
}

func (f *Fault) set(name, value string, hasValue bool) error {
	flags := map[string]*bool{
		"refuse": &f.Refuse, "silent": &f.Silent, "auth": &f.Auth, "notfound": &f.NotFound,
		"novideo": &f.NoVideo, "codec": &f.Codec, "udponly": &f.UDPOnly, "tcponly": &f.TCPOnly,
	}
	if flag, ok := flags[name]; ok {
		if hasValue {
			return fmt.Errorf("%s takes no value", name)
		}
		*flag = true
		return nil
	}
	var err error
	switch name {
	case "stall":
		f.StallAfter, err = frames(name, value)
	case "close":
		f.CloseAfter, err = frames(name, value)
	case "loss":
		f.Loss, err = percent(value)
	default:
		err = fmt.Errorf("unknown fault %q: use one of %s", name, faultWords)
	}
	return err
}

func frames(name, value string) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%s needs a number of frames from 1 on, such as %s:25", name, name)
	}
	return n, nil
}

func percent(value string) (float64, error) {
	p, err := strconv.ParseFloat(value, 64)
	if err != nil || !(p >= 0 && p <= 100) { // NaN compares false
		return 0, errors.New("loss needs a percentage from 0 to 100, such as loss:2.5")
	}
	return p / 100, nil
}

func (f Fault) check() error {
	if f.UDPOnly && f.TCPOnly {
		return errors.New("parse fault: udponly and tcponly leave no transport")
	}
	if f.NoVideo && f.Codec {
		return errors.New("parse fault: novideo and codec contradict each other")
	}
	return nil
}
