package main

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"edgecam/internal/config"
	"edgecam/internal/state"
	"edgecam/platform/doctor"
)

const (
	// packageConfig and packageState are where the package puts them.
	packageConfig = "/etc/edgecam/edgecam.yaml"
	packageState  = "/var/lib/edgecam"
	// serviceName is its user and group.
	serviceName = "edgecam"
)

// stateDir is where files go that outlive a restart, "" = nowhere.
func stateDir(cfg *config.Config) string {
	if cfg.StateDir != "" {
		return cfg.StateDir
	}
	return os.Getenv("STATE_DIRECTORY")
}

// openState takes the state directory into use for this process. Without one that
// can be used the service works, only slower: then there is one warning. A newer
// program's directory, or one in use, ends the start.
func openState(cfg *config.Config, logger *slog.Logger) (*state.Dir, error) {
	path := stateDir(cfg)
	if path == "" {
		return nil, nil //nolint:nilnil // no directory is asked for
	}
	dir, err := state.Open(path, version)
	var newer *state.NewerError
	var limited *state.UnusableError
	switch {
	case errors.As(err, &newer):
		return nil, &configError{err}
	case errors.As(err, &limited):
		does := "nothing outlives a restart"
		if dir != nil {
			does = "what is there is used, and nothing added"
		}
		logger.Warn("state directory", "err", err, "so", does, "try", limited.Hint())
		return dir, nil
	}
	return dir, err
}

// keepInside has libraries put their files into the state directory, too: the
// GPU's driver what it compiles, everybody what is in work. What the user has set
// stays.
func keepInside(dir *state.Dir) error {
	for name, path := range map[string]string{"CUDA_CACHE_PATH": dir.GPUCache(), "TMPDIR": dir.Temp()} {
		if _, err := os.Stat(path); err != nil && name == "TMPDIR" || os.Getenv(name) != "" {
			continue // the directory can only be read, or the user knows better
		}
		if err := os.Setenv(name, path); err != nil {
			return err
		}
	}
	return nil
}

// boxState is the state directory that backup, restore and doctor mean: the one
// that is asked for, that of the configuration, or that of the package's service,
// which gets it from systemd.
func boxState(asked string, o *config.Outline, file string) string {
	if asked != "" {
		if abs, err := filepath.Abs(asked); err == nil {
			return abs
		}
		return asked
	}
	if o != nil {
		if dir := o.StateDir(file, os.Environ()); dir != "" {
			return dir
		}
	}
	if dir := os.Getenv("STATE_DIRECTORY"); dir != "" {
		return dir
	}
	if info, err := os.Stat(packageState); err == nil && info.IsDir() || file == packageConfig {
		return packageState
	}
	return ""
}

// serviceUser is whom the service runs as: the package's user where there is one,
// else whoever asks.
func serviceUser() (*user.User, error) {
	if u, err := user.Lookup(serviceName); err == nil && os.Geteuid() == 0 {
		return u, nil
	}
	return user.Current()
}

// probeState looks at a state directory for doctor.
func probeState(dir string) doctor.State {
	s := doctor.State{Dir: dir}
	if dir == "" {
		return s
	}
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		s.Missing = true
		return s
	}
	u, err := serviceUser()
	if err != nil {
		s.Err = err
		return s
	}
	uid, _ := strconv.Atoi(u.Uid) // numbers, on Linux
	var gids []int
	groups, _ := u.GroupIds() //nolint:errcheck // without them the owner counts
	for _, g := range groups {
		if n, err := strconv.Atoi(g); err == nil {
			gids = append(gids, n)
		}
	}
	s.User, s.Bytes, s.InUse = u.Username, state.Size(dir), state.Locked(dir)
	if s.Err = state.Examine(dir, uid, gids); s.Err != nil {
		var newer *state.NewerError
		s.Newer, s.Hint = errors.As(s.Err, &newer), hintOf(s.Err)
		return s
	}
	if info, err := state.Read(dir); err == nil {
		s.Schema, s.By = info.Schema, info.WrittenBy
	}
	return s
}
