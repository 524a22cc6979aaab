package metrics

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// maxReasons bounds the reasons of one camera, so that text that found its way
// into a reason cannot grow the number of series for ever.
const maxReasons = 32

// maxGPUs bounds the series of cards; machines have up to 16.
const maxGPUs = 64

// collector makes metrics of snapshots. It keeps nothing between scrapes.
type collector struct {
	snapshot func() Snapshot

	frames, inferred, sessions, dropped, state *prometheus.Desc
	slots, highWater, exhausted                *prometheus.Desc
	age, run, batch                            *prometheus.Desc
	viewers, poolBytes, pinned, limit          *prometheus.Desc
	gpuInfo, gpuUp, gpuCameras, gpuUse         *prometheus.Desc
	asked, allowed                             *prometheus.Desc
	modelOK, modelState, modelProblem          *prometheus.Desc
	modelCameras, runs, pictures, bad          *prometheus.Desc
}

func newCollector(snapshot func() Snapshot) *collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("edgecam_"+name, help, labels, nil)
	}
	return &collector{
		snapshot:   snapshot,
		frames:     desc("frames_total", "Pictures decoded.", "camera"),
		inferred:   desc("frames_inferred_total", "Pictures inferred.", "camera"),
		sessions:   desc("sessions_total", "Sessions with the camera that were tried.", "camera"),
		dropped:    desc("frames_dropped_total", "Pictures that were not inferred, by reason.", "camera", "reason"),
		state:      desc("camera_state", "1 for the state that the camera is in, 0 for all others.", "camera", "state"),
		slots:      desc("pool_slots", "Slots of the camera's frame pool, by what they are doing.", "camera", "state"),
		highWater:  desc("pool_slots_high_water", "Most slots of the camera's frame pool that were in use at once.", "camera"),
		exhausted:  desc("pool_exhausted_total", "Times that the camera's frame pool had no free slot.", "camera"),
		age:        desc("frame_age_seconds", "Age of frames as they leave a stage, from the arrival of their last packet.", "camera", "stage"),
		run:        desc("inference_seconds", "Time of one inference run."),
		batch:      desc("batch_size", "Pictures in one inference run."),
		viewers:    desc("viewers", "Open streams, by kind.", "kind"),
		poolBytes:  desc("pool_bytes", "Memory reserved by all frame pools."),
		pinned:     desc("pinned_bytes", "Memory of the frame pools that is locked in RAM."),
		gpuInfo:    desc("gpu_info", "1 for each card, with what tells it apart.", "gpu", "uuid", "name"),
		gpuUp:      desc("gpu_up", "1 for a card that serves, 0 for one that is lost.", "gpu"),
		gpuCameras: desc("gpu_cameras", "Cameras on the card.", "gpu"),
		gpuUse:     desc("gpu_engine_utilisation", "Part of the last second that the card's engine was at work.", "gpu"),
		asked:      desc("analysed_fps_asked", "Pictures a second that all cameras ask to be analysed."),
		allowed:    desc("analysed_fps_allowed", "Pictures a second that may be analysed; less than asked under overload."),

		modelOK:      desc("model_healthy", "1 for a model whose answers can be used, 0 for one that is unhealthy or refused.", "model"),
		modelState:   desc("model_state", "1 for the state that the model is in, 0 for all others.", "model", "state"),
		modelProblem: desc("model_problem", "1 with the kind of what is wrong with the model; nothing for one that is well.", "model", "reason"),
		modelCameras: desc("model_cameras", "Cameras that the model analyses.", "model"),
		runs:         desc("model_runs_total", "Inference runs of the model that gave answers.", "model"),
		pictures:     desc("model_pictures_total", "Pictures in these runs.", "model"),
		bad:          desc("model_bad_runs_total", "Inference runs of the model whose answers could not be used.", "model"),

		limit: desc("pool_limit_bytes", "The most memory that frame pools may reserve, 0 for no limit."),
	}
}

// Describe sends nothing: the collector is unchecked because what it sends
// depends on the cameras of the moment.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the metrics of a new snapshot.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	// The registry calls this on a goroutine of its own, where a panic would
	// end the process: a broken scrape must not stop the cameras.
	defer func() {
		if p := recover(); p != nil {
			out <- prometheus.NewInvalidMetric(c.frames, fmt.Errorf("collect metrics: %v", p))
		}
	}()
	s := c.snapshot()
	seen := make(map[string]bool, len(s.Cameras))
	for i := range s.Cameras {
		if cam := &s.Cameras[i]; !seen[cam.ID] {
			seen[cam.ID] = true
			c.camera(out, cam)
		}
	}
	histogram(out, c.run, s.Inference)
	histogram(out, c.batch, s.Batch)
	for _, kind := range slices.Sorted(maps.Keys(s.Viewers)) {
		gauge(out, c.viewers, float64(s.Viewers[kind]), kind)
	}
	for i := range s.GPUs[:min(len(s.GPUs), maxGPUs)] {
		c.gpu(out, &s.GPUs[i])
	}
	for i := range s.Models {
		c.model(out, &s.Models[i])
	}
	gauge(out, c.asked, s.AskedFPS)
	gauge(out, c.allowed, s.AllowedFPS)
	gauge(out, c.poolBytes, float64(s.PoolBytes))
	gauge(out, c.pinned, float64(s.PinnedBytes))
	gauge(out, c.limit, float64(s.LimitBytes))
}

func (c *collector) model(out chan<- prometheus.Metric, m *Model) {
	for _, state := range ModelStates() {
		gauge(out, c.modelState, flag(state == m.State), m.Name, state)
	}
	gauge(out, c.modelOK, flag(m.State != "unhealthy" && m.State != "refused" && m.Reason == ""), m.Name)
	if m.Reason != "" {
		gauge(out, c.modelProblem, 1, m.Name, m.Reason)
	}
	gauge(out, c.modelCameras, float64(m.Cameras), m.Name)
	counter(out, c.runs, m.Runs, m.Name)
	counter(out, c.pictures, m.Pictures, m.Name)
	counter(out, c.bad, m.Bad, m.Name)
}

func (c *collector) gpu(out chan<- prometheus.Metric, g *GPU) {
	index := strconv.Itoa(g.Index)
	gauge(out, c.gpuInfo, 1, index, g.UUID, g.Name)
	gauge(out, c.gpuUp, flag(g.Up), index)
	gauge(out, c.gpuCameras, float64(g.Cameras), index)
	gauge(out, c.gpuUse, g.Utilisation, index)
}

func (c *collector) camera(out chan<- prometheus.Metric, cam *Camera) {
	counter(out, c.frames, cam.Frames, cam.ID)
	counter(out, c.inferred, cam.Inferred, cam.ID)
	counter(out, c.sessions, cam.Sessions, cam.ID)
	reasons := boundReasons(cam.Dropped)
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		counter(out, c.dropped, reasons[reason], cam.ID, reason)
	}
	for _, state := range States() {
		gauge(out, c.state, flag(state == cam.State), cam.ID, state)
	}
	for _, stage := range slices.Sorted(maps.Keys(cam.Ages)) {
		histogram(out, c.age, cam.Ages[stage], cam.ID, stage)
	}
	if p := cam.Pool; p != nil {
		gauge(out, c.slots, float64(p.InUse), cam.ID, "in_use")
		gauge(out, c.slots, float64(p.Slots-p.InUse), cam.ID, "free")
		gauge(out, c.highWater, float64(p.HighWater), cam.ID)
		counter(out, c.exhausted, p.Exhausted, cam.ID)
	}
}

// boundReasons folds all but the first maxReasons reasons (by name, so that
// the choice is the same at every scrape) into "other".
func boundReasons(dropped map[string]uint64) map[string]uint64 {
	out := make(map[string]uint64, min(len(dropped), maxReasons+1))
	for i, reason := range slices.Sorted(maps.Keys(dropped)) {
		label := strings.ToValidUTF8(reason, "?")
		if i >= maxReasons {
			label = "other"
		}
		out[label] += dropped[reason]
	}
	return out
}

func counter(out chan<- prometheus.Metric, d *prometheus.Desc, v uint64, labels ...string) {
	send(out, d, func() (prometheus.Metric, error) {
		return prometheus.NewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	})
}

// flag is how a gauge says yes.
func flag(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func gauge(out chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	send(out, d, func() (prometheus.Metric, error) {
		return prometheus.NewConstMetric(d, prometheus.GaugeValue, v, labels...)
	})
}

func histogram(out chan<- prometheus.Metric, d *prometheus.Desc, c Counts, labels ...string) {
	buckets := make(map[float64]uint64, len(c.Bounds))
	for i, b := range c.Bounds {
		buckets[b] = c.Cumulative[i]
	}
	send(out, d, func() (prometheus.Metric, error) {
		return prometheus.NewConstHistogram(d, c.Count, c.Sum, buckets, labels...)
	})
}

func send(out chan<- prometheus.Metric, d *prometheus.Desc, make func() (prometheus.Metric, error)) {
	m, err := make()
	if err != nil {
		m = prometheus.NewInvalidMetric(d, err)
	}
	out <- m
}
