package state

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

var errPower = errors.New("the power went")

// A table of two steps, the second of which is cut short at first.
func TestMigrationsResume(t *testing.T) {
	dir := t.TempDir()
	d, err := open(dir, "1.0", nil, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	var ran []string
	cut := true
	steps := []step{
		func(dir string) error {
			ran = append(ran, "to 2")
			return os.WriteFile(filepath.Join(dir, "two"), []byte("2"), 0o600)
		},
		func(dir string) error {
			ran = append(ran, "to 3")
			if err := os.WriteFile(filepath.Join(dir, "half"), nil, 0o600); err != nil || cut {
				return errors.Join(err, errPower)
			}
			return os.Rename(filepath.Join(dir, "half"), filepath.Join(dir, "three"))
		},
	}
	d, err = open(dir, "3.0", steps, time.Now)
	var u *UnusableError
	if d != nil || !errors.Is(err, errPower) || !errors.As(err, &u) {
		t.Fatalf("%v, %v", d, err)
	}
	// What is there now has the form that the first step made, and says so.
	if i, err := Read(dir); err != nil || i.Schema != 2 || i.WrittenBy != "3.0" {
		t.Fatalf("%+v, %v", i, err)
	}
	var newer *NewerError
	if _, err = open(dir, "1.0", nil, time.Now); !errors.As(err, &newer) || newer.By != "3.0" {
		t.Fatalf("the old program takes it: %v", err)
	}
	cut = false
	d, err = open(dir, "3.1", steps, time.Now)
	if err != nil || d.Info().Schema != 3 {
		t.Fatalf("%v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(ran, []string{"to 2", "to 3", "to 3"}) {
		t.Errorf("%q", ran)
	}
	if _, err := os.Stat(filepath.Join(dir, "three")); err != nil {
		t.Error(err)
	}
	d, err = open(dir, "3.2", steps, time.Now)
	if err != nil || len(ran) != 3 {
		t.Errorf("once more: %v, %q", err, ran)
	}
	_ = d.Close()
}

// A directory that is new, or from before there were schemas, takes every step.
func TestNewDirectoryTakesEveryStep(t *testing.T) {
	ran := 0
	d, err := open(t.TempDir(), "3", []step{func(string) error { ran++; return nil }}, time.Now)
	if err != nil || d.Info().Schema != 2 || ran != 1 {
		t.Fatalf("%v, %d steps", err, ran)
	}
	_ = d.Close()
}
