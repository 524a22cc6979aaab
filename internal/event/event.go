// Package event holds what the rest of the product tells the world about:
// detections now, rules and their store later, and the broker that hands them
// to any number of readers without ever waiting for one.
package event

import "time"

// Object is one tracked thing in a picture. Box is x1, y1, x2, y2 in fractions
// (0..1) of the picture.
type Object struct {
	Track uint64     `json:"track"`
	Label string     `json:"label"`
	Score float32    `json:"score"`
	Box   [4]float32 `json:"box"`
}

// Detection is the result of one inferred picture; it is published for every
// one, also when Objects is empty (never nil: it is [] in JSON).
type Detection struct {
	Camera     string    `json:"camera"`
	Seq        uint64    `json:"seq"`
	CapturedAt time.Time `json:"captured_at"`
	AgeMS      float64   `json:"age_ms"` // from the arrival of the last packet to publication
	RTPTime    uint32    `json:"rtp_time"`
	Width      int       `json:"width"`
	Height     int       `json:"height"`
	Objects    []Object  `json:"objects"`
}
