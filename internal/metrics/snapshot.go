package metrics

// Snapshot is everything that a scrape shows, as plain values.
type Snapshot struct {
	Cameras   []Camera
	Inference Counts         // seconds of each run
	Batch     Counts         // pictures in each run
	Viewers   map[string]int // open streams by kind, e.g. "pictures", "detections"
	GPUs      []GPU
	Models    []Model

	AskedFPS, AllowedFPS float64 // pictures a second that cameras ask to be analysed, and may have

	PoolBytes   int64 // reserved by all pools
	PinnedBytes int64 // of these locked in RAM
	LimitBytes  int64 // the most that pools may reserve; 0 = no limit
}

// GPU is one card that serves, or did.
type GPU struct {
	Index       int
	UUID, Name  string
	Up          bool // it is not lost
	Cameras     int
	Utilisation float64 // part of the last second that its engine was at work
}

// Model is one model of the configuration. Counters count since it was loaded.
type Model struct {
	Name     string
	State    string // one of ModelStates
	Reason   string // what is wrong, one of a few kinds; "" = nothing
	Cameras  int
	Runs     uint64 // that gave answers
	Pictures uint64 // in these runs
	Bad      uint64 // runs whose answers could not be used
}

// ModelStates are the states of a model, in the words of the HTTP contract.
func ModelStates() []string { return []string{"ready", "loading", "unhealthy", "refused"} }

// Camera is one camera's part. Counters count since start and never go back
// while the camera exists.
type Camera struct {
	ID       string
	State    string // one of States
	Frames   uint64 // decoded
	Inferred uint64
	Sessions uint64            // tried
	Dropped  map[string]uint64 // by reason
	Ages     map[string]Counts // by stage: decoded, batched, inferred, published; seconds
	Pool     *Pool             // nil before the geometry is known
}

// Pool is one camera's frame slots.
type Pool struct {
	Slots, InUse, HighWater int
	Exhausted               uint64 // times that no slot was free
}

// States are the states of a camera, in the words of the HTTP contract.
func States() []string {
	return []string{"connecting", "live", "stalled", "backoff", "auth_failed", "unsupported", "disabled"}
}
