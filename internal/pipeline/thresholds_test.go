package pipeline

import (
	"testing"

	"edgecam/internal/config"
)

func TestThresholds(t *testing.T) {
	labels := []string{"person", "bicycle", "car"}
	cases := []struct {
		name    string
		objects map[string]float64
		want    []float32
		err     string
	}{
		{"none listed", nil, []float32{0.45, 0.45, 0.45}, ""},
		{"one listed", map[string]float64{"person": 0.6}, []float32{0.6, never, never}, ""},
		{"0 is the default", map[string]float64{"car": 0}, []float32{never, never, 0.45}, ""},
		{"misspelt", map[string]float64{"persn": 0.5}, nil, `detect.objects: the model has no label "persn": did you mean "person"?`},
		{"unknown", map[string]float64{"zebra": 0.5}, nil, `detect.objects: the model has no label "zebra"; it has person, bicycle, car`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := thresholds(labels, config.Detect{Objects: c.objects}, 0.45)
			if text := errText(err); text != c.err {
				t.Fatalf("error %q, want %q", text, c.err)
			}
			for i := range c.want {
				if got[i] != c.want[i] {
					t.Errorf("%s: %v, want %v", labels[i], got[i], c.want[i])
				}
			}
		})
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
