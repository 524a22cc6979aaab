package preprocess

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edgecam/framepool"
)

func chooser(t *testing.T, s *standIn, path string, rules Rules) (*Chooser, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	ch, err := NewChooser(s.dev, ChooserOptions{
		Rules: rules, Spec: kernelSpec(), Driver: "550.54.14", Path: path, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return ch, &log
}

func choose(t *testing.T, ch *Chooser, w, h int) Choice {
	t.Helper()
	c, err := ch.Choose(t.Context(), framepool.NV12, w, h)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestChooserMeasuresAndRemembers(t *testing.T) {
	s := openStandIn(t)
	path := filepath.Join(t.TempDir(), "strategies.json")
	two := Rules{Candidates: []Strategy{Mapped, Staged}}
	ch, _ := chooser(t, s, path, two)
	live, launches := s.live(), s.calls("cuLaunchKernel")
	first := choose(t, ch, 64, 48)
	if first.Remembered || len(first.Measured) != 2 || first.Strategy != first.Measured[0].Strategy {
		t.Errorf("first choice %+v", first)
	}
	if got := s.calls("cuLaunchKernel") - launches; got != 2*(warmUpRounds+choiceRounds) {
		t.Errorf("%d launches", got)
	}
	if got := s.live(); got != live {
		t.Errorf("%d objects of the driver are left", got-live)
	}
	launches = s.calls("cuLaunchKernel")
	if again := choose(t, ch, 64, 48); again.Remembered || again.Strategy != first.Strategy {
		t.Errorf("second choice of the same run %+v", again)
	}
	next, _ := chooser(t, s, path, two)
	if later := choose(t, next, 64, 48); !later.Remembered || later.Strategy != first.Strategy || later.Measured[0] != first.Measured[0] {
		t.Errorf("choice of the next run %+v, want %+v", later, first)
	}
	if s.calls("cuLaunchKernel") != launches {
		t.Error("what is known was measured again")
	}
	// Another geometry, driver or set of candidates is another question.
	if c := choose(t, next, 66, 48); c.Remembered {
		t.Error("another geometry was remembered")
	}
	other, _ := chooser(t, s, path, Rules{Candidates: []Strategy{Mapped, Staged, Heap}})
	if c := choose(t, other, 64, 48); c.Remembered || len(c.Measured) != 3 {
		t.Errorf("with another candidate %+v", c)
	}
	other, _ = chooser(t, s, path, two)
	other.o.Driver = "560"
	if c := choose(t, other, 64, 48); c.Remembered {
		t.Error("another driver's choice was remembered")
	}
}

func TestChooserWithOneCandidateMeasuresNothing(t *testing.T) {
	s := openStandIn(t)
	ch, _ := chooser(t, s, filepath.Join(t.TempDir(), "none", "x.json"), Rules{Candidates: []Strategy{Shared}})
	if c := choose(t, ch, 640, 480); c.Strategy != Shared || c.Measured != nil || s.calls("cuLaunchKernel") != 0 {
		t.Errorf("choice %+v", c)
	}
	if _, err := NewChooser(s.dev, ChooserOptions{}); err == nil {
		t.Error("nothing to choose from: no error")
	}
}

func TestChooserSurvivesABadFile(t *testing.T) {
	s := openStandIn(t)
	two := Rules{Candidates: []Strategy{Mapped, Staged}}
	for name, text := range map[string]string{
		"cut off":         `{"version":1,"choices":[{"gpu":"GP`,
		"not ours":        "\x00\x01\x02",
		"another version": `{"version":2,"choices":[]}`,
		"huge":            strings.Repeat(" ", maxChoicesBytes+1),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "strategies.json")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			ch, log := chooser(t, s, path, two)
			if !strings.Contains(log.String(), "memory strategies of earlier runs cannot be read") {
				t.Errorf("log %q", log)
			}
			if c := choose(t, ch, 64, 48); c.Remembered {
				t.Error("remembered from a bad file")
			}
			next, log := chooser(t, s, path, two)
			if c := choose(t, next, 64, 48); !c.Remembered || log.Len() != 0 {
				t.Errorf("after it was written anew: %+v, log %q", c, log)
			}
			if names, _ := filepath.Glob(path + "*"); len(names) != 1 {
				t.Errorf("files left: %q", names)
			}
		})
	}
}

// Entries that were made by hand or by another version must not be believed.
func TestStoredChoicesAreChecked(t *testing.T) {
	key := choiceKey{GPU: "GPU-1", Format: "nv12", Width: 2, Height: 2}
	both := []Strategy{Mapped, Staged}
	for name, e := range map[string]storedChoice{
		"strategy that is no candidate": {choiceKey: key, Strategy: "warp", Micros: map[string]float64{"mapped": 1, "staged": 2}},
		"not measured":                  {choiceKey: key, Strategy: Mapped, Micros: map[string]float64{"mapped": 1}},
		"negative":                      {choiceKey: key, Strategy: Mapped, Micros: map[string]float64{"mapped": -1, "staged": 2}},
	} {
		s := &choiceStore{file: choicesFile{Choices: []storedChoice{e}}}
		if c, ok := s.find(key, both); ok {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

func TestStoredChoicesAreBounded(t *testing.T) {
	s, err := openChoices(filepath.Join(t.TempDir(), "strategies.json"))
	if err != nil {
		t.Fatal(err)
	}
	c := Choice{Strategy: Mapped, Measured: []Measured{{Mapped, 1000}, {Staged, 2000}}}
	for i := range maxChoices + 3 {
		if err := s.add(choiceKey{Width: i}, c); err != nil {
			t.Fatal(err)
		}
	}
	again, err := openChoices(s.path)
	if err != nil || len(again.file.Choices) != maxChoices {
		t.Fatalf("%d choices, %v", len(again.file.Choices), err)
	}
	if _, ok := again.find(choiceKey{Width: 2}, c.names()); ok {
		t.Error("the oldest was kept")
	}
	if _, ok := again.find(choiceKey{Width: maxChoices + 2}, c.names()); !ok {
		t.Error("the newest was not kept")
	}
}

func (c Choice) names() (s []Strategy) {
	for _, m := range c.Measured {
		s = append(s, m.Strategy)
	}
	return s
}
