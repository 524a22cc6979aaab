package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"edgecam/internal/config"
)

// FuzzParse feeds any text: the answer is a usable configuration, or problems
// that each say where and what in one line.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add(config.Reference())
	id := regexp.MustCompile(`^[a-z0-9_-]{1,64}$`)
	f.Fuzz(func(t *testing.T, data []byte) {
		if strings.Contains(string(data), "file") {
			return // reads what it names: not for a fuzzer
		}
		cfg, err := config.Parse(data, "edgecam.yaml", config.Options{Env: []string{"PW=hunter2"}})
		var list config.Errors
		if err != nil && (!errors.As(err, &list) || len(list) == 0) {
			t.Fatalf("error of type %T: %v", err, err)
		}
		for _, e := range list {
			if e.Err == nil || e.Source != "edgecam.yaml" || e.Line < 0 || strings.ContainsAny(e.Error(), "\n\r") {
				t.Errorf("problem %+v: %q", e, e.Error())
			}
			if strings.Contains(e.Error(), "hunter2") && !strings.Contains(string(data), "hunter2") {
				t.Errorf("value of a variable in %q", e.Error())
			}
		}
		if cfg == nil {
			if err == nil {
				t.Fatal("neither configuration nor problems")
			}
			return
		}
		for name, c := range cfg.Cameras {
			if !id.MatchString(name) || !strings.Contains(c.URL.Reveal(), "://") {
				t.Errorf("camera %q, %v", name, c)
			}
		}
		if config.Diff(cfg, cfg).Any() {
			t.Error("configuration differs from itself")
		}
	})
}
