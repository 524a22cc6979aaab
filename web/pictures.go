package web

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
)

// boundary separates the parts of a stream of pictures. Every part carries its
// length, so that a picture which holds it by chance is no harm.
const boundary = "edgecam-next-picture"

// getSnapshot answers the newest picture of a camera.
func (s *Server) getSnapshot(c echo.Context) error {
	cam, err := s.camera(c)
	if err != nil {
		return err
	}
	q, err := query(c)
	if err != nil {
		return err
	}
	draw, err := annotated(q)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), s.timing.snapshot)
	defer cancel()
	p, err := s.backend.Snapshot(ctx, cam.ID, draw)
	if err != nil {
		if ctx.Err() == context.DeadlineExceeded {
			return fail(http.StatusServiceUnavailable, "no_picture", "the camera gave no picture within %v", s.timing.snapshot)
		}
		return err
	}
	c.Response().Header().Set(echo.HeaderContentDisposition, `inline; filename="`+cam.ID+p.CapturedAt.UTC().Format("-20060102T150405Z")+`.jpg"`)
	return writePicture(c, p)
}

// writePicture answers one picture and says which.
func writePicture(c echo.Context, p Picture) error {
	h := c.Response().Header()
	h.Set("X-Camera", p.Camera)
	h.Set("X-Seq", strconv.FormatUint(p.Seq, 10))
	h.Set("X-Captured-At", p.CapturedAt.UTC().Format(time.RFC3339Nano))
	h.Set(echo.HeaderContentLength, strconv.Itoa(len(p.JPEG)))
	return c.Blob(http.StatusOK, "image/jpeg", p.JPEG)
}

// getMJPEG streams one camera for img elements and players.
func (s *Server) getMJPEG(c echo.Context) error {
	cam, err := s.camera(c)
	if err != nil {
		return err
	}
	return s.servePictures(c, []string{cam.ID}, "multipart/x-mixed-replace; boundary="+boundary)
}

// getLive streams many cameras in one connection for the dashboard.
func (s *Server) getLive(c echo.Context) error {
	cams, err := s.cameras(c)
	if err != nil {
		return err
	}
	return s.servePictures(c, cams, "multipart/mixed; boundary="+boundary)
}

// servePictures sends pictures until the client leaves or takes no more.
func (s *Server) servePictures(c echo.Context, cams []string, contentType string) error {
	q, err := query(c)
	if err != nil {
		return err
	}
	draw, err := annotated(q)
	if err != nil {
		return err
	}
	if c.Request().Method == http.MethodHead {
		c.Response().Header().Set(echo.HeaderContentType, contentType)
		return c.NoContent(http.StatusOK)
	}
	ctx, st, err := s.openStream(c, &s.pictures)
	if err != nil {
		return err
	}
	defer st.close()
	pics, err := s.backend.Pictures(cams, draw)
	if err != nil {
		return err
	}
	defer pics.Close()
	if err := st.start(contentType); err != nil {
		return err
	}
	return sendPictures(ctx, st, pics)
}

// sendPictures ends with the client, the session, the server or the camera. Its
// error goes no further: the answer has begun.
func sendPictures(ctx context.Context, st *stream, pics PictureStream) error {
	// The boundary follows each picture at once: browsers show a picture only
	// when they see where it ends.
	if _, err := st.Write([]byte("--" + boundary + "\r\n")); err != nil {
		return err
	}
	if err := st.flush(); err != nil {
		return err
	}
	var head []byte
	for {
		p, err := pics.Next(ctx)
		if err != nil {
			return err
		}
		head = appendPartHeader(head[:0], p)
		for _, b := range [][]byte{head, p.JPEG, []byte("\r\n--" + boundary + "\r\n")} {
			if _, err := st.Write(b); err != nil {
				return err
			}
		}
		if err := st.flush(); err != nil {
			return err
		}
	}
}

// appendPartHeader appends the headers of a picture's part.
func appendPartHeader(b []byte, p Picture) []byte {
	b = append(b, "Content-Type: image/jpeg\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(len(p.JPEG)), 10)
	b = append(b, "\r\nX-Camera: "...)
	b = append(b, p.Camera...)
	b = append(b, "\r\nX-Seq: "...)
	b = strconv.AppendUint(b, p.Seq, 10)
	b = append(b, "\r\nX-Captured-At: "...)
	b = p.CapturedAt.UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, "\r\nX-Width: "...)
	b = strconv.AppendInt(b, int64(p.Width), 10)
	b = append(b, "\r\nX-Height: "...)
	b = strconv.AppendInt(b, int64(p.Height), 10)
	return append(b, "\r\n\r\n"...)
}
