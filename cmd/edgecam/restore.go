package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"edgecam/internal/backup"
	"edgecam/internal/config"
	"edgecam/internal/state"
	"edgecam/platform/wholefile"
)

// beforeRestore ends the name under which the previous configuration is kept.
const beforeRestore = ".before-restore"

// stagedPrefix begins the names of files that are complete before they are put in
// place.
const stagedPrefix = ".edgecam-restore-"

type restoreFlags struct {
	config, stateDir string
	dryRun, outside  bool
}

func newRestore() *cobra.Command {
	var f restoreFlags
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Put back what a backup holds",
		Long: "Restore reads FILE (- is standard input) to its end before it changes anything, and says what it does;\n" +
			"--dry-run only says it. The service must be stopped. The present configuration is kept beside the restored\n" +
			"one, as …" + beforeRestore + ".\n\n" +
			"Secrets that the backup left out are taken from the present configuration where the same key has one;\n" +
			"all others are listed, and `edgecam check` finds them, too. Files are put into the configuration's directory\n" +
			"and the state directory; those that were elsewhere only with --outside.",
		Example: "  systemctl stop edgecam\n  edgecam restore --dry-run yard.tar.gz\n  edgecam restore yard.tar.gz\n  systemctl start edgecam",
		Args:    exactArgs(1, "the file to read, or - for standard input"),
		RunE: func(cmd *cobra.Command, args []string) error {
			in, err := openBackup(untilDone{ctx: cmd.Context(), r: cmd.InOrStdin()}, args[0])
			if err != nil {
				return err
			}
			defer in.Close()
			return forRoot(restore(cmd.Context(), f, in, cmd.OutOrStdout()))
		},
	}
	o := cmd.Flags()
	o.StringVarP(&f.config, "config", "c", packageConfig, "where the configuration goes")
	o.StringVar(&f.stateDir, "state-dir", "", "where state goes (default: the configuration's, $STATE_DIRECTORY, or "+packageState+")")
	o.BoolVar(&f.dryRun, "dry-run", false, "say what would be done, and do nothing")
	o.BoolVar(&f.outside, "outside", false, "write files outside of the two directories as well: only for a backup that you trust")
	return cmd
}

// openBackup gives an archive that can be read twice: what comes from a pipe is
// kept in an unnamed file meanwhile.
func openBackup(stdin io.Reader, name string) (*os.File, error) {
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("read %s: %s", name, reason(err))
		}
		if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
			f.Close()
			return nil, fmt.Errorf("read %s: is not a regular file", name)
		}
		return f, nil
	}
	f, err := os.CreateTemp("", "edgecam-restore-")
	if err != nil {
		return nil, fmt.Errorf("read standard input: %w", err)
	}
	err = os.Remove(f.Name())
	if err == nil {
		_, err = io.Copy(f, stdin)
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("read standard input: %w", err)
	}
	return f, nil
}

// target is where a file of an archive goes.
type target struct {
	file backup.File
	path string
	skip string // why it is not written
	like string // file whose owner and mode it gets; "" = that at path

	root   *os.Root // what is written through: no link leads out of the state directory
	name   string   // of path in root
	staged string   // of the content in root, beside name
}

// restoration is one restore.
type restoration struct {
	f        restoreFlags
	out      io.Writer
	manifest *backup.Manifest
	config   string // absolute
	place    string // where the configuration is written: config may be a link
	previous string // where the one before is kept, "" = there was none
	state    string // absolute, "" = none
	text     []byte // of the configuration, secrets filled in
	outline  *config.Outline
	present  *config.Outline // of the configuration that is there, nil = none
	kept     []string        // keys whose secrets are the present ones
	missing  []string
	targets  []target
}

func restore(ctx context.Context, f restoreFlags, in io.ReadSeeker, out io.Writer) error {
	r := &restoration{f: f, out: out}
	var err error
	if r.config, err = filepath.Abs(f.config); err != nil {
		return err
	}
	r.place = r.config
	if to, err := filepath.EvalSymlinks(r.config); err == nil {
		r.place = to
	}
	var text []byte
	r.manifest, err = backup.Read(untilDone{ctx: ctx, r: in}, func(_ *backup.Manifest, file backup.File, content io.Reader) (err error) {
		if file.Kind == backup.Config {
			text, err = io.ReadAll(content)
		}
		return err
	})
	if errors.Is(err, errInterrupted) {
		err = errInterrupted // and not a word on the archive
	}
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if m := r.manifest; m.Schema > state.Schema() {
		return fmt.Errorf("restore: %w", &backup.NewerError{What: "state schema", Have: m.Schema, Know: state.Schema(), By: m.Program})
	}
	if err := r.fillIn(text); err != nil {
		return fmt.Errorf("restore: its configuration: %w", err)
	}
	if err := r.plan(); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if f.dryRun {
		if err := r.usable(); err != nil {
			return fmt.Errorf("restore: %w", err)
		}
		if r.runs() != "" || state.Locked(r.state) {
			fmt.Fprintln(out, "The service runs: stop it first (systemctl stop edgecam).")
		}
		r.say("would be written")
		r.saySecrets()
		return nil
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	err = r.run(untilDone{ctx: ctx, r: in})
	if errors.Is(err, errInterrupted) {
		err = errInterrupted
	}
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	r.say("written")
	r.saySecrets()
	r.sayNext()
	return nil
}

// fillIn takes secrets from the present configuration.
func (r *restoration) fillIn(text []byte) error {
	o, err := config.Examine(text, filepath.Base(r.config))
	if err != nil {
		return err
	}
	if now, err := config.ReadFile(r.config); err == nil {
		// One that is no YAML has no secrets that could be found.
		r.present, _ = config.Examine(now, r.config) //nolint:errcheck // see above
	}
	if r.text, r.kept, r.missing, err = o.FillIn(r.present); err != nil {
		return err
	}
	r.outline, err = config.Examine(r.text, filepath.Base(r.config))
	return err
}

// plan says where everything goes.
func (r *restoration) plan() error {
	r.state = boxState(r.f.stateDir, r.outline, r.config)
	if !r.trusted() {
		if r.holdsState() {
			return fmt.Errorf("its configuration names the state directory %s, which is not edgecam's by now: if it is the right one, give it as --state-dir", r.state)
		}
		r.state = ""
	}
	for _, f := range r.manifest.Files {
		t := target{file: f}
		switch f.Base {
		case backup.BesideConfig:
			t.path = filepath.Join(filepath.Dir(r.config), filepath.FromSlash(f.Path))
		case backup.InState:
			t.path = filepath.Join(r.state, filepath.FromSlash(f.Path))
			if r.state == "" {
				t.path, t.skip = f.Path, "there is no state directory: name one with --state-dir"
			} else if state.Remade(f.Path) {
				t.skip = "is made anew"
			}
		case backup.Elsewhere:
			t.path = f.Path
			if !r.f.outside {
				t.skip = "lies outside of the two directories; --outside writes it"
			}
		}
		switch {
		case f.Kind == backup.Config:
			t.path = r.place
		case t.path == r.config, t.path == r.place, t.path == r.place+beforeRestore:
			return fmt.Errorf("a file of the backup would take the place of %s", t.path)
		case t.skip == "" && same(t.path, f):
			t.skip = "is there already"
		}
		r.targets = append(r.targets, t)
	}
	return nil
}

// trusted says whether the state directory is one that was not chosen by the
// backup alone, whose configuration may name any directory of root's.
func (r *restoration) trusted() bool {
	if r.f.stateDir != "" || r.state == packageState || r.state == os.Getenv("STATE_DIRECTORY") {
		return true
	}
	if _, beside := below(filepath.Dir(r.config), r.state); beside {
		return true
	}
	info, err := os.Lstat(filepath.Join(r.state, "state.json"))
	return err == nil && info.Mode().IsRegular()
}

func same(path string, f backup.File) bool {
	s := backup.Source{From: path}
	return s.Measure() == nil && s.Size == f.Size && s.SHA256 == f.SHA256
}

// run stages everything and then puts it in place, the configuration last.
func (r *restoration) run(in io.Reader) error {
	dir, err := r.lock()
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // only the lock is left
	defer r.cleanUp()
	i := 0
	_, err = backup.Read(in, func(_ *backup.Manifest, f backup.File, content io.Reader) error {
		t := &r.targets[i]
		i++
		if t.skip != "" {
			return nil
		}
		if f.Kind == backup.Config {
			content = bytes.NewReader(r.text)
		}
		return t.stage(content, r.state)
	})
	if err != nil {
		return err
	}
	if err := r.keepPrevious(); err != nil {
		return err
	}
	// Before the files: those of an older form are brought to this program's then,
	// should the power go in between.
	if dir != nil && r.holdsState() {
		if err := dir.Stamp(max(r.manifest.Schema, 1), r.manifest.Program); err != nil {
			return err
		}
	}
	var last *target
	for i := range r.targets {
		t := &r.targets[i]
		if t.file.Kind == backup.Config {
			last = t
			continue
		}
		if err := t.commit(); err != nil {
			return err
		}
	}
	return last.commit()
}

func (r *restoration) holdsState() bool {
	for _, f := range r.manifest.Files {
		if f.Base == backup.InState {
			return true
		}
	}
	return false
}

// runs is the state directory of a service that runs by the present configuration,
// "" = none does. The backup's may name another directory, or none.
func (r *restoration) runs() string {
	if r.present == nil {
		return ""
	}
	dir := r.present.StateDir(r.config, os.Environ())
	if dir == "" && r.config == packageConfig {
		dir = packageState
	}
	if dir == "" || !state.Locked(dir) {
		return ""
	}
	return dir
}

// usable says why the state directory cannot be used, and touches nothing.
func (r *restoration) usable() error {
	if _, err := os.Stat(r.state); r.state == "" || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	groups, err := os.Getgroups()
	if err != nil {
		return err
	}
	return state.Examine(r.state, os.Geteuid(), append(groups, os.Getegid()))
}

// lock keeps the service from starting meanwhile. Without a state directory there
// is nothing to lock.
func (r *restoration) lock() (*state.Dir, error) {
	if dir := r.runs(); dir != "" {
		return nil, &state.LockedError{Dir: dir}
	}
	if r.state == "" {
		return nil, nil //nolint:nilnil // see above
	}
	if _, err := os.Stat(r.state); errors.Is(err, fs.ErrNotExist) {
		if !r.holdsState() {
			return nil, nil //nolint:nilnil // nothing to put there
		}
		if err := makeStateDir(r.state); err != nil {
			return nil, err
		}
	}
	dir, err := state.Open(r.state, version)
	if err != nil {
		_ = dir.Close()
		return nil, err
	}
	return dir, nil
}

// stage writes a file's content beside its place.
func (t *target) stage(content io.Reader, stateDir string) error {
	if err := t.open(stateDir); err != nil {
		return err
	}
	name := filepath.Join(filepath.Dir(t.name), fmt.Sprintf("%s%d-%s", stagedPrefix, os.Getpid(), filepath.Base(t.name)))
	_ = t.root.Remove(name) // of one that was cut short
	f, err := t.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	t.staged = name
	_, err = io.Copy(f, content)
	if err == nil {
		err = t.own(f)
	}
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// open makes the directory that the file goes into.
func (t *target) open(stateDir string) (err error) {
	if t.file.Base == backup.InState {
		if t.root, err = os.OpenRoot(stateDir); err != nil {
			return err
		}
		t.name = filepath.FromSlash(t.file.Path)
		return t.root.MkdirAll(filepath.Dir(t.name), 0o750)
	}
	t.name = filepath.Base(t.path)
	if err := makeDirs(filepath.Dir(t.path)); err != nil {
		return err
	}
	t.root, err = os.OpenRoot(filepath.Dir(t.path))
	return err
}

// commit puts a staged file in its place.
func (t *target) commit() error {
	if t.staged == "" {
		return nil
	}
	if err := t.root.Rename(t.staged, t.name); err != nil {
		return err
	}
	t.staged = ""
	return wholefile.SyncDir(filepath.Dir(t.path))
}

// close removes what was staged and not put in place.
func (t *target) close() {
	if t.staged != "" {
		_ = t.root.Remove(t.staged)
	}
	if t.root != nil {
		t.root.Close()
	}
}

// cleanUp removes what this restore, or one that was killed, has staged and not put
// in place.
func (r *restoration) cleanUp() {
	swept := map[string]bool{}
	for i := range r.targets {
		t := &r.targets[i]
		if dir := filepath.Dir(t.path); t.root != nil && !swept[dir] {
			swept[dir] = true
			t.sweep()
		}
		t.close()
	}
}

// sweep removes all staged files beside its own.
func (t *target) sweep() {
	dir := filepath.Dir(t.name)
	entries, _ := fs.ReadDir(t.root.FS(), filepath.ToSlash(dir)) // what cannot be seen takes room, no more
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), stagedPrefix) && e.Type().IsRegular() {
			_ = t.root.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// keepPrevious keeps the present configuration, with its owner and mode.
func (r *restoration) keepPrevious() error {
	text, err := config.ReadFile(r.place)
	if errors.Is(err, fs.ErrNotExist) || err == nil && bytes.Equal(text, r.text) {
		return nil // a second restore must not lose what was there before the first
	}
	t := target{file: backup.File{Kind: backup.Config}, path: r.place + beforeRestore, like: r.place}
	defer t.close()
	if err == nil {
		err = t.stage(bytes.NewReader(text), "")
	}
	if err == nil {
		err = t.commit()
	}
	if err != nil {
		return fmt.Errorf("keep %s: %w", r.place, err)
	}
	r.previous = t.path
	return nil
}

func (r *restoration) say(done string) {
	m := r.manifest
	fmt.Fprintf(r.out, "Backup of edgecam %s, %s\n%s:\n", m.Program, m.At.Format("2006-01-02 15:04 MST"), done)
	for _, t := range r.targets {
		if t.skip == "" {
			fmt.Fprintf(r.out, "  %-7s %s, %s\n", t.file.Kind, t.path, humanBytes(t.file.Size))
		}
	}
	head := "not written:\n"
	for _, t := range r.targets {
		if t.skip != "" {
			fmt.Fprintf(r.out, "%s  %-7s %s: %s\n", head, t.file.Kind, t.path, t.skip)
			head = ""
		}
	}
	if r.previous != "" {
		fmt.Fprintf(r.out, "previous configuration: %s\n", r.previous)
	}
}

func (r *restoration) saySecrets() {
	if len(r.kept) > 0 {
		fmt.Fprintf(r.out, "secrets taken from the present configuration: %s\n", strings.Join(r.kept, ", "))
	}
	for _, k := range r.missing {
		fmt.Fprintf(r.out, "secret left out of the backup: fill in %s\n", k)
	}
	for _, ref := range r.outline.Files(r.config, os.Environ()) {
		if ref.Err == nil && !r.there(ref.Path) {
			what := "file missing"
			if ref.Secret {
				what = "secret left out of the backup"
			}
			fmt.Fprintf(r.out, "%s: put %s there for %s\n", what, ref.Path, ref.Key)
		}
	}
}

// there says whether a file exists, or will.
func (r *restoration) there(path string) bool {
	for _, t := range r.targets {
		if t.path == path && t.skip == "" {
			return true
		}
	}
	_, err := os.Stat(path)
	return err == nil
}

func (r *restoration) sayNext() {
	fmt.Fprintf(r.out, "next: edgecam check %s && systemctl start edgecam\n", r.config)
}
