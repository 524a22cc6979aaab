package config_test

import (
	"reflect"
	"testing"

	"edgecam/internal/config"
)

func TestDiff(t *testing.T) {
	base := func() *config.Config {
		c := config.Default()
		a, b := config.DefaultCamera(), config.DefaultCamera()
		a.URL, b.URL = config.NewSecret("rtsp://192.0.2.1/"), config.NewSecret("rtsp://192.0.2.2/")
		c.Cameras = map[string]config.Camera{"a": a, "b": b}
		c.Server.Auth = &config.Auth{User: "x", PasswordHash: config.NewSecret("h")}
		return c
	}
	camera := func(c *config.Config, id string, change func(*config.Camera)) {
		cam := c.Cameras[id]
		change(&cam)
		c.Cameras[id] = cam
	}
	tests := []struct {
		name   string
		change func(c *config.Config)
		want   config.Changes
	}{
		{"nothing", func(*config.Config) {}, config.Changes{}},
		{"empty objects are none", func(c *config.Config) {
			camera(c, "a", func(cam *config.Camera) { cam.Detect.Objects = map[string]float64{} })
		}, config.Changes{}},
		{"password", func(c *config.Config) {
			camera(c, "b", func(cam *config.Camera) { cam.Password = config.NewSecret("new") })
		}, config.Changes{Changed: []string{"b"}}},
		{"object", func(c *config.Config) {
			camera(c, "a", func(cam *config.Camera) { cam.Detect.Objects = map[string]float64{"car": 1} })
		}, config.Changes{Changed: []string{"a"}}},
		{"cameras come and go", func(c *config.Config) {
			c.Cameras["z"], c.Cameras["c"] = c.Cameras["a"], c.Cameras["a"]
			delete(c.Cameras, "a")
			delete(c.Cameras, "b")
		}, config.Changes{Added: []string{"c", "z"}, Removed: []string{"a", "b"}}},
		{"listener", func(c *config.Config) { c.Server.Listen = ":1" }, config.Changes{Server: true}},
		{"user", func(c *config.Config) { c.Server.Auth = &config.Auth{User: "y", PasswordHash: config.NewSecret("h")} }, config.Changes{Server: true}},
		{"no user", func(c *config.Config) { c.Server.Auth = nil }, config.Changes{Server: true}},
		{"gpu", func(c *config.Config) { c.GPU.Device = "1" }, config.Changes{GPU: true}},
		{"inference", func(c *config.Config) { c.Inference.MaxBatch++ }, config.Changes{Inference: true}},
		{"memory", func(c *config.Config) { c.Memory.Limit++ }, config.Changes{Memory: true}},
		{"log", func(c *config.Config) { c.Log.Level = "debug" }, config.Changes{Log: true}},
		{"state", func(c *config.Config) { c.StateDir = "/x" }, config.Changes{StateDir: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			to := base()
			tt.change(to)
			got := config.Diff(base(), to)
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
			if got.Any() != !reflect.DeepEqual(tt.want, config.Changes{}) {
				t.Errorf("any %v of %+v", got.Any(), got)
			}
		})
	}
}
