package web

import (
	"context"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
)

// Model is one entry of GET /api/v1/models.
type Model struct {
	ID             string         `json:"id"` // its name in the configuration; default is inference.model
	File           string         `json:"file"`
	Family         string         `json:"family"`
	State          string         `json:"state"`  // ready, loading, unhealthy or refused
	Reason         string         `json:"reason"` // why not ready, in words
	Provider       string         `json:"provider"`
	Precision      string         `json:"precision"`
	MSPerImage     float64        `json:"ms_per_image"` // measured; 0 before it was
	ScoreThreshold float64        `json:"score_threshold"`
	NMSIoU         float64        `json:"nms_iou"` // 0 where the model suppresses by itself
	Labels         []string       `json:"labels"`
	Cameras        []string       `json:"cameras"`            // ids of those that it analyses
	Rejected       *RejectedModel `json:"rejected,omitempty"` // that was to take its place at the last reload
}

// RejectedModel is a model that was not taken into use.
type RejectedModel struct {
	File   string    `json:"file"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// Preview is a picture with what a model finds in it.
type Preview struct {
	Picture

	Objects int
}

func (m *Model) clean() {
	list(&m.Labels)
	list(&m.Cameras)
	finite(&m.MSPerImage, &m.ScoreThreshold, &m.NMSIoU)
}

func (s *Server) getModels(c echo.Context) error {
	return writeJSON(c, cleaned(s.backend.Models()))
}

// getModel answers what the file was found to be.
func (s *Server) getModel(c echo.Context) error {
	m, err := s.model(c)
	if err != nil {
		return err
	}
	report, ok := s.backend.ModelReport(m.ID)
	if !ok {
		return fail(http.StatusNotFound, "no_report", "nothing is known of the model's file: %s", m.Reason)
	}
	return writeJSON(c, report)
}

// getPreview answers a camera's next picture with what the model finds in it at
// other thresholds. No setting changes by it.
func (s *Server) getPreview(c echo.Context) error {
	m, err := s.model(c)
	if err != nil {
		return err
	}
	cams, err := s.cameras(c)
	if err != nil {
		return err
	}
	if len(cams) != 1 {
		return fail(http.StatusBadRequest, "invalid_parameter", "camera must be given once")
	}
	q, err := query(c)
	if err != nil {
		return err
	}
	threshold, err := fraction(q, "threshold", m.ScoreThreshold)
	if err != nil {
		return err
	}
	iou, err := fraction(q, "iou", m.NMSIoU)
	if err != nil {
		return err
	}
	if iou > m.NMSIoU {
		return fail(http.StatusBadRequest, "invalid_parameter", "iou must be at most the model's own, %v: what it drops cannot be shown", m.NMSIoU)
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), s.timing.snapshot)
	defer cancel()
	p, err := s.backend.Preview(ctx, m.ID, cams[0], float32(threshold), float32(iou))
	if err != nil {
		if ctx.Err() == context.DeadlineExceeded {
			return fail(http.StatusServiceUnavailable, "no_picture", "there was no preview within %v", s.timing.snapshot)
		}
		return err
	}
	c.Response().Header().Set("X-Objects", strconv.Itoa(p.Objects))
	return writePicture(c, p.Picture)
}

// model returns the model that the path names.
func (s *Server) model(c echo.Context) (Model, error) {
	id := c.Param("id")
	for _, m := range s.backend.Models() {
		if m.ID == id {
			return m, nil
		}
	}
	return Model{}, errNoModel()
}

func errNoModel() *apiError {
	return fail(http.StatusNotFound, "model_not_found", "no model has this id")
}

// fraction reads a number of 0 to 1.
func fraction(q url.Values, key string, byDefault float64) (float64, error) {
	v := q[key]
	if len(v) == 0 {
		return byDefault, nil
	}
	n, err := strconv.ParseFloat(v[0], 64)
	if len(v) > 1 || err != nil || math.IsNaN(n) || n < 0 || n > 1 {
		return 0, fail(http.StatusBadRequest, "invalid_parameter", "%s must be one number of 0 to 1", key)
	}
	return n, nil
}
