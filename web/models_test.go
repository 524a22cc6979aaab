package web_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"edgecam/web"
)

// The preview is made of what the query says, and of nothing else.
func TestPreview(t *testing.T) {
	b := newBackend()
	asked := ""
	b.preview = func(_ context.Context, model, camera string, score, iou float32) (web.Preview, error) {
		asked = fmt.Sprint(model, camera, score, iou)
		if model == "plates" {
			return web.Preview{}, fmt.Errorf("%w: the model is refused", web.ErrNoPicture)
		}
		if camera == "yard" {
			return web.Preview{}, web.ErrBusy
		}
		return web.Preview{Picture: picture(camera, 7), Objects: 3}, nil
	}
	s := serve(t, web.Options{Backend: b}, web.Timing{})
	const path = "/api/v1/models/default/preview.jpg"
	for _, tt := range []struct {
		path   string
		status int
		want   string // what the backend was asked, or a part of the answer
	}{
		{path + "?camera=gate", 200, "defaultgate0.45 0.6"},
		{path + "?camera=gate&threshold=0.1&iou=0", 200, "defaultgate0.1 0"},
		{path + "?camera=gate&threshold=1", 200, "defaultgate1 0.6"},
		{path, 400, "camera must be given once"},
		{path + "?camera=gate&camera=yard", 400, "camera must be given once"},
		{path + "?camera=nobody", 404, "camera_not_found"},
		{path + "?camera=../x", 400, "invalid_parameter"},
		{path + "?camera=gate&threshold=NaN", 400, "threshold must be one number of 0 to 1"},
		{path + "?camera=gate&threshold=1.1", 400, "threshold must be"},
		{path + "?camera=gate&threshold=0.1&threshold=0.2", 400, "threshold must be"},
		{path + "?camera=gate&iou=0.61", 400, "iou must be at most the model's own, 0.6"},
		{path + "?camera=yard", 503, "too_many_viewers"},
		{"/api/v1/models/plates/preview.jpg?camera=gate", 503, "no_picture"},
		{"/api/v1/models/other/preview.jpg?camera=gate", 404, "model_not_found"},
	} {
		asked = ""
		resp, body := s.get(tt.path)
		if resp.StatusCode != tt.status {
			t.Errorf("%s: %s, want %d: %s", tt.path, resp.Status, tt.status, body)
		}
		if tt.status != http.StatusOK {
			if !strings.Contains(body, tt.want) {
				t.Errorf("%s: %s, want %s", tt.path, body, tt.want)
			}
			continue
		}
		if asked != tt.want || body != string(noJPEG) || resp.Header.Get("X-Objects") != "3" || resp.Header.Get("X-Camera") != "gate" {
			t.Errorf("%s: asked %s, want %s; headers %v", tt.path, asked, tt.want, resp.Header)
		}
	}
}
