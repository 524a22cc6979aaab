package config

import (
	_ "embed"
	"time"
)

//go:embed edgecam.yaml
var reference []byte

// Reference is the commented file that names every key with its unit and
// default. Parsed, it equals Default.
func Reference() []byte { return append([]byte(nil), reference...) }

// Default is the configuration of an empty file: no cameras, loopback.
func Default() *Config {
	return &Config{
		Version: 1,
		Server:  Server{Listen: "127.0.0.1:8080"},
		GPU:     GPU{Mode: "auto", Device: "auto", Memory: "auto"},
		Inference: Inference{
			Model:          Model{File: "builtin:nanodet-g"},
			Provider:       "auto",
			Precision:      "auto",
			ScoreThreshold: 0.45,
			NMSIoU:         0.6,
			MaxBatch:       16,
			LatencyBudget:  80 * time.Millisecond,
		},
		Memory: Memory{Lock: true, HugePages: true, Share: 0.7},
		Log:    Log{Level: "info", Format: "text"},
	}
}

// DefaultCamera is a camera of which the file gives nothing but the id.
func DefaultCamera() Camera {
	return Camera{
		Enabled:    true,
		TLS:        TLS{Verify: true},
		Transport:  "auto",
		VideoTrack: "auto",
		Decoder:    "auto",
		Detect:     Detect{Enabled: true, FPS: 10, Priority: 1},
		// Cameras that have just booted answer after 10 to 15 s and send their
		// first picture 20 s later still.
		ConnectTimeout:    15 * time.Second,
		FirstFrameTimeout: 30 * time.Second,
	}
}
