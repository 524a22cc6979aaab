package web

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"edgecam/internal/event"
)

const eventStream = "text/event-stream"

// getDetections streams detections as Server-Sent Events.
func (s *Server) getDetections(c echo.Context) error {
	cams, err := s.cameras(c)
	if err != nil {
		return err
	}
	if c.Request().Method == http.MethodHead {
		c.Response().Header().Set(echo.HeaderContentType, eventStream)
		return c.NoContent(http.StatusOK)
	}
	ctx, st, err := s.openStream(c, &s.detections)
	if err != nil {
		return err
	}
	defer st.close()
	// Subscribed before the headers go out: a client that has them misses nothing.
	sub := s.backend.Detections(cams)
	defer sub.Close()
	if err := st.start(eventStream); err != nil {
		return err
	}
	return s.sendDetections(ctx, st, sub)
}

// sendDetections ends with the client, the session or the server. Its error
// goes no further: the answer has begun.
func (s *Server) sendDetections(ctx context.Context, st *stream, sub Subscription) error {
	var out bytes.Buffer
	out.WriteString("retry: 2000\n\n")
	enc := json.NewEncoder(&out)
	told := false
	for {
		if _, err := st.Write(out.Bytes()); err != nil {
			return err
		}
		if err := st.flush(); err != nil {
			return err
		}
		out.Reset()
		wait, cancel := context.WithTimeout(ctx, s.timing.heartbeat)
		ds, err := sub.Next(wait)
		silent := ctx.Err() == nil && wait.Err() != nil
		cancel()
		switch {
		case err != nil && silent:
			out.WriteString(": nothing new\n\n")
			continue
		case err != nil:
			return err
		}
		for _, d := range ds {
			if err := appendEvent(&out, enc, d); err != nil && !told {
				// A value that JSON does not have: that event is lost, the
				// stream and the other cameras are not.
				s.log.Error("encode detection", "camera", d.Camera, "seq", d.Seq, "err", err)
				told = true
			}
		}
	}
}

// appendEvent appends one event to out, which enc writes to. The encoder ends
// its one line with the line feed that ends the data.
func appendEvent(out *bytes.Buffer, enc *json.Encoder, d *event.Detection) error {
	start := out.Len()
	out.WriteString("id: ")
	out.WriteString(d.Camera)
	out.WriteByte(':')
	out.WriteString(strconv.FormatUint(d.Seq, 10))
	out.WriteString("\ndata: ")
	v := *d
	if v.Objects == nil {
		v.Objects = []event.Object{}
	}
	if err := enc.Encode(&v); err != nil {
		out.Truncate(start)
		return err
	}
	out.WriteByte('\n')
	return nil
}
