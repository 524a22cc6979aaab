package rtsp

import (
	"context"

	"github.com/bluenviron/gortsplib/v4/pkg/base"
	"github.com/bluenviron/gortsplib/v4/pkg/description"
	"github.com/bluenviron/gortsplib/v4/pkg/headers"
	"github.com/bluenviron/gortsplib/v4/pkg/liberrors"

	"edgecam/capture"
)

// setUp asks for the chosen track, and for nothing else.
func (s *session) setUp(ctx context.Context, description *description.Session) error {
	if err := s.mayUse(s.media.Secure); err != nil {
		return err
	}
	s.client.Scheme = s.target.scheme // allows encrypted media where the camera has it
	select {
	case s.settingUp <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	err := s.ask(func() error {
		_, err := s.client.Setup(description.BaseURL, s.media, 0, 0)
		return err
	})
	<-s.settingUp
	if err == nil {
		err = s.setupErr
	}
	if err == nil {
		return nil
	}
	if failure := s.encryptionFailure(); failure != nil {
		return failure
	}
	return s.failure(err)
}

// encryptionFailure blames a SETUP that was refused on what is odd in the
// description, once no other transport is left to try.
func (s *session) encryptionFailure() error {
	refused := s.setupCode >= base.StatusBadRequest && s.setupCode != base.StatusUnauthorized && s.setupCode != base.StatusNotEnoughBandwidth
	if s.track.odd == "" || !refused || s.fallback {
		return nil
	}
	return &capture.UnsupportedError{
		What: s.track.odd + ", which the camera did not set up",
		Hint: "use rtsps:// in the URL, or switch the encryption of media (SRTP) off in the camera",
	}
}

// keepSession looks at the answer to SETUP. Where gortsplib would not take
// what it says of the transport, it would also forget to tear down the session
// that the camera has opened by then: the library is made to take it, and
// setUp ends the session.
func (s *session) keepSession(res *base.Response) {
	s.setupCode, s.setupErr = res.StatusCode, nil
	if res.StatusCode != base.StatusOK {
		return
	}
	var t headers.Transport
	err := t.Unmarshal(res.Header["Transport"])
	if err != nil {
		err = liberrors.ErrClientTransportHeaderInvalid{Err: err}
	} else if t.Secure && !(s.media.Secure && s.target.encrypted()) {
		err = &capture.UnsupportedError{What: "encrypted media (SRTP)", Hint: "use rtsps:// in the URL, or switch it off in the camera"}
	} else if s.transport == TCP {
		err = refuseTCP(t)
	} else {
		err = refuseUDP(t)
	}
	if err == nil {
		s.reporting = true
		return
	}
	s.setupErr = err
	res.Header["Transport"] = base.HeaderValue{"RTP/AVP/TCP;unicast;interleaved=0-1"}
	if s.transport == UDP {
		res.Header["Transport"] = base.HeaderValue{"RTP/AVP;unicast;server_port=6970-6971"} // no packet goes there
	}
}

// refuseTCP gives gortsplib's error for what it does not take, or nil.
func refuseTCP(t headers.Transport) error {
	switch {
	case t.Protocol != headers.TransportProtocolTCP:
		return liberrors.ErrClientServerRequestedUDP{}
	case t.Delivery != nil && *t.Delivery != headers.TransportDeliveryUnicast:
		return liberrors.ErrClientTransportHeaderInvalidDelivery{}
	case t.InterleavedIDs == nil:
		return liberrors.ErrClientTransportHeaderNoInterleavedIDs{}
	case t.InterleavedIDs[0]+1 != t.InterleavedIDs[1]:
		return liberrors.ErrClientTransportHeaderInvalidInterleavedIDs{}
	default:
		return nil
	}
}

// refuseUDP gives gortsplib's error for what it does not take, or nil.
func refuseUDP(t headers.Transport) error {
	switch {
	case t.Protocol == headers.TransportProtocolTCP:
		return liberrors.ErrClientServerRequestedTCP{}
	case t.Delivery != nil && *t.Delivery != headers.TransportDeliveryUnicast:
		return liberrors.ErrClientTransportHeaderInvalidDelivery{}
	case t.ServerPorts == nil || t.ServerPorts[0] <= 1 || t.ServerPorts[1] <= 1:
		return liberrors.ErrClientServerPortsNotProvided{}
	default:
		return nil
	}
}
