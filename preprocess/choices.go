package preprocess

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"edgecam/platform/wholefile"
)

const (
	choicesVersion = 1
	// maxChoices bounds the file; real sites have a handful of geometries.
	maxChoices = 256
	// maxChoicesBytes is more than that many entries take.
	maxChoicesBytes = 1 << 20
)

// choiceKey is what a choice depends on.
type choiceKey struct {
	GPU    string `json:"gpu"` // UUID
	Driver string `json:"driver"`
	Format string `json:"format"`
	Width  int    `json:"width"`
	Height int    `json:"height"`
	Input  string `json:"input"` // of the model, as 640x640
	Half   bool   `json:"half"`
}

// storedChoice is one entry of the file.
type storedChoice struct {
	choiceKey
	Strategy Strategy           `json:"strategy"`
	Micros   map[string]float64 `json:"us"` // by strategy
}

// choicesFile is the file.
type choicesFile struct {
	Version int            `json:"version"`
	Choices []storedChoice `json:"choices"` // the newest last
}

// choiceStore keeps choices in a file. The file is replaced as a whole, so that a
// power cut leaves the old one or the new one.
type choiceStore struct {
	path string
	file choicesFile
}

// openChoices reads the file. It always gives a store; the error says why it is
// empty although there is a file.
func openChoices(path string) (*choiceStore, error) {
	s := &choiceStore{path: path, file: choicesFile{Version: choicesVersion}}
	if path == "" {
		return s, nil
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	if info.Size() > maxChoicesBytes {
		return s, fmt.Errorf("%d bytes are more than such a file has", info.Size())
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	var f choicesFile
	if err := json.Unmarshal(b, &f); err != nil {
		return s, err
	}
	if f.Version != choicesVersion {
		return s, fmt.Errorf("version %d, want %d", f.Version, choicesVersion)
	}
	s.file = f
	return s, nil
}

// find gives a choice that was made among the same candidates.
func (s *choiceStore) find(key choiceKey, candidates []Strategy) (Choice, bool) {
	for _, e := range slices.Backward(s.file.Choices) {
		if e.choiceKey != key {
			continue
		}
		c := Choice{Strategy: e.Strategy, Remembered: true}
		for _, strategy := range candidates {
			us, ok := e.Micros[string(strategy)]
			if !ok || !(us >= 0) {
				return Choice{}, false
			}
			c.Measured = append(c.Measured, Measured{Strategy: strategy, Took: time.Duration(us * 1000)})
		}
		slices.SortStableFunc(c.Measured, func(a, b Measured) int { return int(a.Took - b.Took) })
		return c, slices.Contains(candidates, e.Strategy)
	}
	return Choice{}, false
}

// add keeps a choice and writes the file.
func (s *choiceStore) add(key choiceKey, c Choice) error {
	s.file.Choices = slices.DeleteFunc(s.file.Choices, func(e storedChoice) bool { return e.choiceKey == key })
	if n := len(s.file.Choices); n >= maxChoices {
		s.file.Choices = slices.Delete(s.file.Choices, 0, n-maxChoices+1)
	}
	s.file.Choices = append(s.file.Choices, storedChoice{choiceKey: key, Strategy: c.Strategy, Micros: micros(c.Measured)})
	if s.path == "" {
		return nil
	}
	b, err := json.MarshalIndent(s.file, "", "  ")
	if err != nil {
		return err
	}
	return wholefile.Write(s.path, append(b, '\n'), 0o600)
}
