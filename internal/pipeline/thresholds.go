package pipeline

import (
	"fmt"
	"sort"

	"edgecam/internal/config"
)

// never is a threshold that no score reaches: the class is not looked for.
const never = 2

// thresholds gives the score that each class of the model needs on one camera:
// the listed objects with their own, or all with the default when none is listed.
func thresholds(labels []string, detect config.Detect, byDefault float64) ([]float32, error) {
	out := make([]float32, len(labels))
	for i := range out {
		out[i] = float32(byDefault)
		if len(detect.Objects) > 0 {
			out[i] = never
		}
	}
	names := make([]string, 0, len(detect.Objects))
	for name := range detect.Objects {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		i := indexOf(labels, name)
		if i < 0 {
			return nil, fmt.Errorf("detect.objects: %w", config.UnknownLabel(name, labels))
		}
		out[i] = float32(detect.Objects[name])
		if out[i] == 0 {
			out[i] = float32(byDefault)
		}
	}
	return out, nil
}

func indexOf(labels []string, name string) int {
	for i, l := range labels {
		if l == name {
			return i
		}
	}
	return -1
}
