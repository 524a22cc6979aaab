// Package config reads the configuration file. It is pure data: it imports no
// stage and opens nothing but the file and the secrets that the file names.
//
// A file is decoded over the defaults, then the environment over the file, and
// all problems of all three come back at once as Errors, each with its place.
// Secrets are never part of an error, and Secret never prints.
package config

import (
	"strconv"
	"time"
)

// Config is one configuration file, fully defaulted.
type Config struct {
	Version   int               `yaml:"version"`
	Server    Server            `yaml:"server"`
	GPU       GPU               `yaml:"gpu"`
	Inference Inference         `yaml:"inference"`
	Memory    Memory            `yaml:"memory"`
	Log       Log               `yaml:"log"`
	StateDir  string            `yaml:"state_dir"` // "" = $STATE_DIRECTORY, else none
	Cameras   map[string]Camera `yaml:"cameras"`
}

// Server is the HTTP listener.
type Server struct {
	Listen string `yaml:"listen"` // host:port; loopback needs no auth
	Auth   *Auth  `yaml:"auth"`   // required for any listener that is not loopback
}

// Auth is the one user of the dashboard and API.
type Auth struct {
	User         string `yaml:"user"`
	PasswordHash Secret `yaml:"password_hash"` // argon2id in PHC form, from `edgecam hash-password`
}

// GPU says whether and how a GPU is used.
type GPU struct {
	Mode   string `yaml:"mode"`   // auto|require|off
	Device string `yaml:"device"` // auto or all (every one), ordinal from 0, or UUID (GPU-…, MIG-…)
	Memory string `yaml:"memory"` // auto|mapped|staged|device|heap
}

// Inference says what runs on the frames.
type Inference struct {
	Model          Model            `yaml:"model"`     // of cameras that name none; a single value is its file
	Models         map[string]Model `yaml:"models"`    // others, by the name that cameras use
	Provider       string           `yaml:"provider"`  // auto|cpu|cuda|tensorrt
	Precision      string           `yaml:"precision"` // auto|fp32|fp16|int8
	Library        string           `yaml:"library"`   // path of libonnxruntime.so or of a directory with it; "" = search
	ScoreThreshold float64          `yaml:"score_threshold"`
	NMSIoU         float64          `yaml:"nms_iou"`
	MaxBatch       int              `yaml:"max_batch"`
	LatencyBudget  time.Duration    `yaml:"latency_budget"`
}

// Memory bounds what is pinned.
type Memory struct {
	Lock      bool    `yaml:"lock"`       // mlock the pools
	HugePages bool    `yaml:"huge_pages"` // ask for 2 MiB pages
	Limit     Size    `yaml:"limit"`      // 0 = 70 % of RAM, cgroup and RLIMIT_MEMLOCK
	Share     float64 `yaml:"share"`      // of the smallest of those, 0..1
}

// Log says how the log looks.
type Log struct {
	Level  string `yaml:"level"`  // debug|info|warn|error
	Format string `yaml:"format"` // text|json
}

// Camera is one RTSP source.
type Camera struct {
	Name              string        `yaml:"name"` // "" = the id
	Enabled           bool          `yaml:"enabled"`
	URL               Secret        `yaml:"url"` // may hold credentials: never printed whole
	Username          string        `yaml:"username"`
	Password          Secret        `yaml:"password"`
	TLS               TLS           `yaml:"tls"`         // with rtsps:// alone
	Transport         string        `yaml:"transport"`   // auto|tcp|udp
	VideoTrack        string        `yaml:"video_track"` // auto|1..16; see Track
	Decoder           string        `yaml:"decoder"`     // auto|software|nvdec|<an FFmpeg decoder's name>
	Model             string        `yaml:"model"`       // name under inference.models; "" or default = inference.model
	Detect            Detect        `yaml:"detect"`
	ConnectTimeout    time.Duration `yaml:"connect_timeout"`
	FirstFrameTimeout time.Duration `yaml:"first_frame_timeout"`
	StallTimeout      time.Duration `yaml:"stall_timeout"` // 0 = derived from frame rate and GOP
}

// TLS says by what a camera behind rtsps:// is known.
type TLS struct {
	CA          string `yaml:"ca"`          // file of PEM certificates; "" = those of the system
	Fingerprint string `yaml:"fingerprint"` // sha256:HEX of the one certificate that is taken; "" = any valid one
	Verify      bool   `yaml:"verify"`      // false = any certificate is taken
}

// MaxVideoTrack is the largest number of a video track.
const MaxVideoTrack = 16

// Track is the number of the video track that is asked for; 0 leaves the choice
// to the program.
func (c *Camera) Track() int {
	n, err := strconv.ParseUint(c.VideoTrack, 10, 8)
	if err != nil { // auto
		return 0
	}
	return int(n)
}

// Detect says what is looked for in a camera's pictures.
type Detect struct {
	Enabled  bool               `yaml:"enabled"`
	FPS      float64            `yaml:"fps"`      // 0 = every frame
	Priority int                `yaml:"priority"` // weight under overload, 1 to 10
	Objects  map[string]float64 `yaml:"objects"`  // label → score threshold; empty = every label at score_threshold
}
