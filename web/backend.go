package web

import (
	"context"
	"errors"
	"time"

	"edgecam/internal/event"
)

// Errors that a Backend answers with; wrap them to add words for the user.
var (
	// ErrUnknownCamera says that no camera has the id. It becomes 404.
	ErrUnknownCamera = errors.New("no such camera")
	// ErrUnknownModel says that no model has the id. It becomes 404.
	ErrUnknownModel = errors.New("no such model")
	// ErrNoPicture says that the camera has no picture to show now. It becomes 503.
	ErrNoPicture = errors.New("no picture")
	// ErrBusy says that no more viewers can be served now. It becomes 503.
	ErrBusy = errors.New("too many viewers")
)

// Backend is what the server shows. Every method is safe for concurrent use
// and, but for Snapshot and Preview, answers at once from memory. Texts in what it returns
// may reach anyone who is logged in, so they must hold no secret.
type Backend interface {
	System() System
	// Cameras returns all cameras in the order in which they are shown.
	Cameras() []Camera
	Camera(id string) (Camera, bool)
	// Ready says whether detections are being made, and if not, why not.
	Ready() (bool, string)
	// Detections subscribes to the cameras named; none named means all,
	// including those that come later.
	Detections(cameras []string) Subscription
	// Pictures starts a view of the cameras named; none named means all.
	Pictures(cameras []string, annotated bool) (PictureStream, error)
	// Snapshot returns the newest picture of a camera, waiting for the first
	// one at most until ctx ends.
	Snapshot(ctx context.Context, camera string, annotated bool) (Picture, error)
	// Models returns all models, that of inference.model first.
	Models() []Model
	// ModelReport returns what a model's file was found to be, to be written as
	// JSON; false where nothing is known.
	ModelReport(id string) (any, bool)
	// Preview draws what a model finds in a camera's next picture at a score, after
	// boxes that overlap by more than iou were dropped; 0 drops none.
	Preview(ctx context.Context, model, camera string, score, iou float32) (Preview, error)
}

// Subscription is one reader of detections, used by one goroutine.
type Subscription interface {
	// Next waits until there is something new and returns the newest
	// detection of every camera that has one, in the order of publication.
	// The detections are shared, read-only; the slice is valid until the next
	// call. It returns ctx's error when ctx ends, and loses nothing by that.
	Next(ctx context.Context) ([]*event.Detection, error)
	// Close ends the subscription; it may be called twice.
	Close()
}

// PictureStream is one viewer of pictures, used by one goroutine.
type PictureStream interface {
	// Next waits for a picture that this viewer has not seen and returns the
	// newest of its camera. With several cameras it is fair between them.
	Next(ctx context.Context) (Picture, error)
	// Close ends the view; it may be called twice.
	Close()
}

// Picture is one JPEG.
type Picture struct {
	Camera        string
	Seq           uint64 // as in event.Detection
	CapturedAt    time.Time
	Width, Height int
	JPEG          []byte // shared between viewers: read-only
}
