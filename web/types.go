package web

import "time"

// System answers GET /api/v1/system.
type System struct {
	Version   string    `json:"version"`
	StartedAt time.Time `json:"started_at"`
	Ready     bool      `json:"ready"`
	Reason    string    `json:"reason"` // why not ready, in words; "" when ready
	Login     bool      `json:"login"`  // requests need a login (POST /logout ends it); filled by the server
	Platform  Platform  `json:"platform"`
	Memory    Memory    `json:"memory"`
	Inference Inference `json:"inference"`
	Governor  Governor  `json:"governor"`
	Capacity  Capacity  `json:"capacity"`
}

// Capacity is what the box uses and how many more cameras it takes, measured
// while it runs.
type Capacity struct {
	CamerasMore *int        `json:"cameras_more"` // of the kind below; null while no camera is live
	LimitedBy   string      `json:"limited_by"`   // the share that is used up first; "" while not known
	Kind        *CameraKind `json:"kind"`         // the mean of the live cameras; null without one
	Shares      Shares      `json:"shares"`
	Short       []string    `json:"short"` // shares that have been over 85 % for a minute
}

// CameraKind is a kind of camera.
type CameraKind struct {
	Width     int     `json:"width"`
	Height    int     `json:"height"`
	FPS       float64 `json:"fps"`
	DetectFPS float64 `json:"detect_fps"` // that are analysed
	Codec     string  `json:"codec"`
}

// Shares are the parts of the box's resources that are in use, 0 to 1; null
// where it has none or does not tell.
type Shares struct {
	NVDEC  *float64 `json:"nvdec"`  // the cards' decoders
	GPU    *float64 `json:"gpu"`    // the cards' engines
	CPU    *float64 `json:"cpu"`    // by everything on the machine
	Memory *float64 `json:"memory"` // for frames, of the machine or of the cards
	Link   *float64 `json:"link"`   // to the cards
}

// Governor is what keeps frames young when more is asked than can be done: it
// lowers the rates at which cameras are analysed, and raises them again.
type Governor struct {
	Reducing   bool       `json:"reducing"`
	Reason     string     `json:"reason"`          // why, in words; "" when it is not
	Since      *time.Time `json:"since,omitempty"` // when it began to reduce
	AskedFPS   float64    `json:"asked_fps"`       // pictures a second that all cameras ask for
	AllowedFPS float64    `json:"allowed_fps"`     // that they may have
	Cameras    int        `json:"cameras"`         // that get less than they ask for
}

// GPU is one card.
type GPU struct {
	Index       int     `json:"index"`
	UUID        string  `json:"uuid"`
	Name        string  `json:"name"`
	Cameras     int     `json:"cameras"`
	Utilisation float64 `json:"utilisation"` // part of the last second that its engine was at work, 0 to 1
	State       string  `json:"state"`       // ok, lost, or unused: it could not be taken into use
	Reason      string  `json:"reason"`      // why not ok, in words
}

// Platform is the machine.
type Platform struct {
	Kind   string   `json:"kind"`   // jetson, discrete or cpu
	Why    string   `json:"why"`    // what the kind was concluded from, in words
	GPU    string   `json:"gpu"`    // name of the GPU in use; "" without one
	Driver string   `json:"driver"` // version of the GPU's driver; "" without one
	CUDA   string   `json:"cuda"`   // version that the driver speaks; "" without one
	CPU    string   `json:"cpu"`    // model name
	Cores  int      `json:"cores"`  // that this process may run on
	OS     string   `json:"os"`
	Arch   string   `json:"arch"`
	GPUs   []GPU    `json:"gpus,omitempty"` // all that serve or were meant to
	Jetson *Jetson  `json:"jetson,omitempty"`
	Notes  []string `json:"notes"` // findings that an operator should read
}

// Jetson is the board, where the machine is one. What is unknown is empty.
type Jetson struct {
	Model     string `json:"model"`
	SoC       string `json:"soc"`        // for example tegra234
	L4T       string `json:"l4t"`        // release of Jetson Linux
	JetPack   string `json:"jetpack"`    // that the release belongs to
	PowerMode string `json:"power_mode"` // of nvpmodel, now
}

// Memory is the frame memory of all cameras together.
type Memory struct {
	Strategy    string   `json:"strategy"`     // shared, mapped, staged, device or heap
	PinnedBytes int64    `json:"pinned_bytes"` // locked in RAM
	PoolBytes   int64    `json:"pool_bytes"`   // reserved by all pools, locked or not
	LimitBytes  int64    `json:"limit_bytes"`  // the most that all pools may reserve; 0 = no limit
	LimitWhy    string   `json:"limit_why"`    // what sets the limit, in words
	Slots       int      `json:"slots"`
	InUse       int      `json:"in_use"`
	HighWater   int      `json:"high_water"` // most slots that were in use at once
	HugePages   bool     `json:"huge_pages"`
	Notes       []string `json:"notes"` // for example that locking was refused, and what to do
}

// Inference is the engine that really runs.
type Inference struct {
	Model          string       `json:"model"`
	Provider       string       `json:"provider"` // cpu, cuda or tensorrt
	Precision      string       `json:"precision"`
	Library        string       `json:"library"` // path of the runtime library
	LibraryVersion string       `json:"library_version"`
	Batch          int          `json:"batch"`   // most pictures that one run takes
	Threads        int          `json:"threads"` // runs at once
	InputWidth     int          `json:"input_width"`
	InputHeight    int          `json:"input_height"`
	ScoreThreshold float64      `json:"score_threshold"`
	ProbeMS        float64      `json:"probe_ms"` // measured time of one picture at start
	FPS            float64      `json:"fps"`      // pictures inferred a second, all cameras
	RunMS          *Percentiles `json:"run_ms"`   // time of one run; null before the first
	BatchMean      float64      `json:"batch_mean"`
	CUDAGraphs     string       `json:"cuda_graphs,omitempty"` // on a GPU: the batch sizes that are replayed as CUDA graphs, or why none are
	Notes          []string     `json:"notes"`                 // what the probe found
}

// Camera answers GET /api/v1/cameras/{id}.
type Camera struct {
	ID     string    `json:"id"` // [a-z0-9_-]{1,64}
	Name   string    `json:"name"`
	State  string    `json:"state"`  // connecting, live, stalled, backoff, auth_failed, unsupported or disabled
	Reason string    `json:"reason"` // in words; "" when there is nothing to say
	Since  time.Time `json:"since"`  // when the state began

	Codec       string  `json:"codec"` // h264, h265, mjpeg; "" before it is known
	Width       int     `json:"width"` // visible samples; 0 before the first picture
	Height      int     `json:"height"`
	FPS         float64 `json:"fps"` // pictures a second over the last seconds: decoded, or left out as nobody wants them
	Decoder     string  `json:"decoder"`
	DecoderNote string  `json:"decoder_note"` // why it is not the one wished for first, e.g. software in place of the GPU
	PixelFormat string  `json:"pixel_format"`
	Memory      string  `json:"memory"`          // pinned, heap or device
	GPU         string  `json:"gpu,omitempty"`   // UUID of the card that it is on, as in the system's list; left out without one
	Transport   string  `json:"transport"`       // tcp or udp; "" before it is known
	TLS         string  `json:"tls,omitempty"`   // verified, fingerprint or not verified; left out where the way is not encrypted
	Track       *Track  `json:"track,omitempty"` // which of the camera's videos; left out before it is known

	Attempts      uint64     `json:"attempts"`                  // sessions tried since start
	NextAttemptAt *time.Time `json:"next_attempt_at,omitempty"` // left out while one runs
	LastError     *LastError `json:"last_error,omitempty"`      // the last failure, also when it is over
	Damaged       uint64     `json:"damaged,omitempty"`         // pictures since start that came damaged and were not shown

	Detecting   bool              `json:"detecting"` // false where the configuration turns detection off
	InferredFPS float64           `json:"inferred_fps"`
	Analysed    *Analysed         `json:"analysed,omitempty"`
	Frames      uint64            `json:"frames"`   // pictures decoded since start
	Inferred    uint64            `json:"inferred"` // pictures inferred since start
	Dropped     map[string]uint64 `json:"dropped"`  // pictures not inferred, by reason
	AgeMS       *Percentiles      `json:"age_ms"`   // age at publication; null while nothing was published for seconds
	StagesMS    Stages            `json:"stages_ms"`
	Pool        *Pool             `json:"pool"` // null before the geometry is known
}

// Track is one video of those that a camera offers.
type Track struct {
	Index   int    `json:"index"`             // from 1, in the order of the description
	Of      int    `json:"of"`                // how many videos there are
	Codec   string `json:"codec"`             // h264, h265 or mjpeg
	Control string `json:"control,omitempty"` // the camera's own name for it
}

// LastError is what went wrong with a camera last.
type LastError struct {
	At     time.Time `json:"at"`
	Reason string    `json:"reason"` // in words
}

// Analysed is at which rate a camera is analysed, and why not at the one that it
// is set to.
type Analysed struct {
	FPS            float64 `json:"fps"`       // pictures a second over the last seconds
	AskedFPS       float64 `json:"asked_fps"` // detect.fps, or the stream's rate where that is 0
	Weight         int     `json:"weight"`    // detect.priority
	ReducedBecause string  `json:"reduced_because,omitempty"`
}

// Percentiles of a time over the last seconds, in milliseconds.
type Percentiles struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
}

// Stages is the age of a frame, counted from the arrival of its last packet,
// as it leaves each stage; null where nothing passed for seconds.
type Stages struct {
	Decoded   *Percentiles `json:"decoded"`
	Batched   *Percentiles `json:"batched"`
	Inferred  *Percentiles `json:"inferred"`
	Published *Percentiles `json:"published"`
}

// Pool is one camera's frame memory.
type Pool struct {
	Slots     int    `json:"slots"`
	InUse     int    `json:"in_use"`
	HighWater int    `json:"high_water"`
	Exhausted uint64 `json:"exhausted"` // times that no slot was free
	Bytes     int64  `json:"bytes"`
	Pinned    bool   `json:"pinned"`
	HugePages bool   `json:"huge_pages"`
}
