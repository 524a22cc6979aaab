package main

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"edgecam/infer/model"
	"edgecam/internal/backup"
	"edgecam/internal/config"
	"edgecam/internal/state"
	"edgecam/platform/wholefile"
)

// largeFile is the size from which a file goes into a backup only when asked for.
const largeFile = 200e6

type backupFlags struct {
	config, stateDir       string
	secrets, models, force bool
}

func newBackup() *cobra.Command {
	var f backupFlags
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write configuration, the files that it names, and state into one archive",
		Long: "Backup writes FILE (a .tar.gz; - is standard output) with the configuration, the models, labels and\n" +
			"certificates that it names, and the state directory without what is made anew, such as TensorRT's engines,\n" +
			"which are bound to the card and its driver. It prints what is in it and what is not. The service may run.\n\n" +
			"Secrets are left out: passwords, password hashes, the logins in URLs, and files named as {file: …}.\n" +
			"With --with-secrets they are in it: keep such a FILE like a password.",
		Example: "  edgecam backup /media/stick/yard.tar.gz\n  edgecam backup - | ssh nas 'cat > yard.tar.gz'",
		Args:    exactArgs(1, "the file to write, or - for standard output"),
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := collect(cmd.Context(), f)
			if err == nil {
				err = b.write(cmd, args[0], f.force)
			}
			return forRoot(err)
		},
	}
	o := cmd.Flags()
	o.StringVarP(&f.config, "config", "c", packageConfig, "configuration")
	o.StringVar(&f.stateDir, "state-dir", "", "state directory (default: the configuration's, $STATE_DIRECTORY, or "+packageState+")")
	o.BoolVar(&f.secrets, "with-secrets", false, "put secrets into the archive")
	o.BoolVar(&f.models, "models", false, fmt.Sprintf("put files of more than %s into it, too", humanBytes(largeFile)))
	o.BoolVar(&f.force, "force", false, "replace FILE if it exists")
	return cmd
}

// backupJob is what goes into an archive.
type backupJob struct {
	ctx      context.Context //nolint:containedctx // of one command
	f        backupFlags
	manifest backup.Manifest
	sources  []backup.Source
	config   string // absolute
	state    string // absolute, "" = none
	seen     map[string]bool
	withheld []withheld
}

func collect(ctx context.Context, f backupFlags) (*backupJob, error) {
	text, o, err := readOutline(f.config)
	if err != nil {
		return nil, err
	}
	b := &backupJob{ctx: ctx, f: f, seen: map[string]bool{}, manifest: backup.Manifest{Program: version, At: time.Now().UTC().Truncate(time.Second), Secrets: f.secrets}}
	if b.config, err = filepath.Abs(f.config); err != nil {
		return nil, err
	}
	b.state = boxState(f.stateDir, o, b.config)
	if !f.secrets {
		var keys []string
		if text, keys, err = o.WithoutSecrets(); err != nil {
			return nil, fmt.Errorf("back up %s without its secrets: %w, or give --with-secrets", f.config, err)
		}
		for _, k := range keys {
			b.leaveOut(k, "secret")
		}
	}
	b.seen[b.config] = true
	b.withhold(b.config, "the configuration, with its secrets")
	b.withhold(b.config+beforeRestore, "a configuration from before a restore")
	b.add(backup.Source{File: backup.File{Kind: backup.Config, Base: backup.BesideConfig, Path: filepath.Base(b.config)}, Text: text})
	for _, r := range o.Files(b.config, os.Environ()) {
		b.reference(r)
	}
	return b, b.addState()
}

// readOutline reads a configuration that may have mistakes.
func readOutline(file string) ([]byte, *config.Outline, error) {
	text, err := config.ReadFile(file)
	if err != nil {
		return nil, nil, &configError{fmt.Errorf("read config %s: %w", file, err)}
	}
	o, err := config.Examine(text, file)
	if err != nil {
		return nil, nil, &configError{err}
	}
	return text, o, nil
}

func (b *backupJob) leaveOut(what, why string) {
	o := backup.Omission{What: what, Why: why}
	if backup.Storable(what) && !slices.Contains(b.manifest.LeftOut, o) {
		b.manifest.LeftOut = append(b.manifest.LeftOut, o)
	}
}

// withheld is a file that stays out of the archive under any of its names: the state
// directory may hold it, too.
type withheld struct {
	file fs.FileInfo
	why  string
}

func (b *backupJob) withhold(path, why string) {
	if info, err := os.Stat(path); err == nil {
		b.withheld = append(b.withheld, withheld{info, why})
	}
}

// whyNot says why a file of the state directory stays out, "" = it does not.
func (b *backupJob) whyNot(path string) string {
	if info, err := os.Stat(path); err == nil {
		for _, w := range b.withheld {
			if os.SameFile(w.file, info) {
				return w.why
			}
		}
	}
	if backup.Is(path) {
		return "is a backup itself"
	}
	return ""
}

// keepOut leaves out a file that the configuration names.
func (b *backupJob) keepOut(path, why string) {
	b.leaveOut(path, why)
	b.withhold(path, why)
}

// reference adds a file that the configuration names.
func (b *backupJob) reference(r config.FileRef) {
	switch {
	case r.Err != nil:
		b.leaveOut(r.Key, r.Err.Error())
	case r.Key == "inference.library":
		b.keepOut(r.Path, "a library of this machine")
	case r.Secret && !b.f.secrets:
		b.keepOut(r.Path, "holds the secret of "+r.Key)
	case r.Secret:
		b.file(r.Path, backup.Secret)
	case !b.f.secrets && strings.HasSuffix(r.Key, ".tls.ca") && holdsKey(r.Path):
		b.keepOut(r.Path, "holds a private key")
	default:
		b.file(r.Path, backup.Named)
		for _, more := range weightsOf(r) {
			b.file(more, backup.Named)
		}
	}
}

// weightsOf are the files beside a model that hold its weights.
func weightsOf(r config.FileRef) (files []string) {
	if !strings.EqualFold(filepath.Ext(r.Path), ".onnx") {
		return nil
	}
	report, err := inspectModel(r.Path, model.Overrides{})
	if report == nil || err != nil && len(report.External) == 0 {
		return nil // a file that is no model is kept as it is
	}
	for _, name := range report.External {
		files = append(files, filepath.Join(filepath.Dir(r.Path), name))
	}
	return files
}

func holdsKey(path string) bool {
	text, err := os.ReadFile(path)
	if err != nil {
		return false // nor can it be added
	}
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			return bytes.Contains(text, []byte("PRIVATE KEY"))
		}
		if strings.Contains(block.Type, "PRIVATE KEY") {
			return true
		}
		text = rest
	}
}

// file adds a file by its absolute path, once.
func (b *backupJob) file(path string, kind backup.Kind) {
	path = filepath.Clean(path)
	if b.seen[path] {
		return
	}
	b.seen[path] = true
	f := backup.File{Kind: kind, Base: backup.Elsewhere, Path: path}
	if rel, ok := below(b.state, path); ok {
		f.Base, f.Path = backup.InState, rel
	} else if rel, ok := below(filepath.Dir(b.config), path); ok {
		f.Base, f.Path = backup.BesideConfig, rel
	}
	b.add(backup.Source{File: f, From: path})
}

// below gives a path's part below a directory.
func below(dir, path string) (string, bool) {
	if dir == "" {
		return "", false
	}
	rel, err := filepath.Rel(dir, path)
	return rel, err == nil && rel != "." && filepath.IsLocal(rel)
}

// add measures a file and takes it, or says why not.
func (b *backupJob) add(s backup.Source) {
	name := s.From
	switch info, err := os.Stat(s.From); {
	case s.Text != nil:
	case err != nil:
		b.leaveOut(name, reason(err))
		return
	case !backup.Storable(name) || !backup.Storable(s.Path):
		b.leaveOut(s.Path, "its name cannot be stored")
		return
	case info.Size() > largeFile && !b.f.models:
		b.leaveOut(name, fmt.Sprintf("%s: more than %s go in with --models", humanBytes(info.Size()), humanBytes(largeFile)))
		return
	}
	if err := s.Measure(); err != nil {
		b.leaveOut(name, reason(err))
		return
	}
	b.sources = append(b.sources, s)
}

func reason(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return err.Error()
}

func (b *backupJob) addState() error {
	b.manifest.Schema = state.Schema()
	if b.state == "" {
		return nil
	}
	info, err := state.Read(b.state)
	if err != nil {
		return err
	}
	if info.Schema > state.Schema() {
		return &configError{&state.NewerError{Dir: b.state, Have: info.Schema, Know: state.Schema(), By: info.WrittenBy}}
	}
	if info.Schema > 0 {
		b.manifest.Schema = info.Schema
	}
	names, err := state.Kept(b.state)
	if err != nil {
		return fmt.Errorf("back up state: %w", err)
	}
	for _, name := range names {
		path := filepath.Join(b.state, name)
		why := b.whyNot(path)
		switch {
		case b.ctx.Err() != nil:
			return errInterrupted
		case b.seen[path]:
		case why != "":
			b.leaveOut(path, why)
		default:
			b.seen[path] = true
			b.add(backup.Source{File: backup.File{Kind: backup.State, Base: backup.InState, Path: name}, From: path})
		}
	}
	return nil
}

// write puts the archive into its place as a whole.
func (b *backupJob) write(cmd *cobra.Command, to string, force bool) error {
	if to == "-" {
		out := cmd.OutOrStdout()
		if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			return &usageError{errors.New("standard output is a terminal: name a file, or lead it to one")}
		}
		b.summary(cmd.ErrOrStderr(), "standard output")
		return backup.Write(untilDone{ctx: b.ctx, w: out}, b.manifest, b.sources)
	}
	if err := free(to, force); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(to), "."+filepath.Base(to)+"-*") // nobody else may read it
	if err != nil {
		return fmt.Errorf("write %s: %w", to, err)
	}
	defer os.Remove(f.Name()) //nolint:errcheck // gone once it is renamed
	err = backup.Write(untilDone{ctx: b.ctx, w: f}, b.manifest, b.sources)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = place(f.Name(), to, force)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", to, err)
	}
	if err := wholefile.SyncDir(filepath.Dir(to)); err != nil {
		return fmt.Errorf("write %s: %w", to, err)
	}
	b.summary(cmd.OutOrStdout(), to)
	return nil
}

// free wants nothing at a path, or with force a file that may be replaced.
func free(path string, force bool) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("write %s: %s", path, reason(err))
	case info.IsDir():
		return fmt.Errorf("write %s: is a directory: name a file in it", path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("write %s: is not a regular file", path)
	case !force:
		return fmt.Errorf("write %s: exists already; --force replaces it", path)
	}
	return nil
}

// place renames a file that is complete.
func place(from, to string, force bool) error {
	if force {
		return os.Rename(from, to)
	}
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // as on a stick with FAT
		if err := free(to, false); err != nil {
			return err
		}
		return os.Rename(from, to)
	}
	return err
}

func (b *backupJob) summary(w io.Writer, to string) {
	fmt.Fprintf(w, "edgecam %s, backup to %s:\n", version, to)
	for i := range b.sources {
		s := &b.sources[i]
		path := s.From
		if s.Kind == backup.Config {
			path = b.config
		}
		fmt.Fprintf(w, "  %-7s %s, %s\n", s.Kind, path, humanBytes(s.Size))
	}
	if _, err := os.Stat(b.state); err == nil && !slices.ContainsFunc(b.sources, func(s backup.Source) bool { return s.Kind == backup.State }) {
		fmt.Fprintf(w, "  state   %s holds only what is made anew\n", b.state)
	}
	if len(b.manifest.LeftOut) > 0 {
		fmt.Fprintln(w, "left out:")
		for _, l := range b.manifest.LeftOut {
			fmt.Fprintf(w, "  %s: %s\n", l.What, l.Why)
		}
	}
	if b.f.secrets {
		fmt.Fprintln(w, "It holds secrets: keep it like a password.")
	}
}

// errInterrupted ends what the user has stopped: it has done nothing, which is a
// failure.
var errInterrupted = errors.New("interrupted: nothing was written")

// untilDone reads or writes until a command is told to stop, as archives may be
// large.
type untilDone struct {
	ctx context.Context //nolint:containedctx // of one command
	r   io.Reader
	w   io.Writer
}

func (u untilDone) Read(b []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, errInterrupted
	}
	return u.r.Read(b)
}

func (u untilDone) Write(b []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, errInterrupted
	}
	return u.w.Write(b)
}

// rootError is what another user than root may not do.
type rootError struct{ err error }

func (e *rootError) Error() string { return e.err.Error() }
func (e *rootError) Unwrap() error { return e.err }

// Hint is what to do. To give the files to whoever asks would take them from the
// service.
func (e *rootError) Hint() string {
	return "run it as root, with sudo: the files are root's and the service's"
}

func forRoot(err error) error {
	if errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0 {
		return &rootError{err}
	}
	return err
}

// humanBytes is a size as people read it.
func humanBytes(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d bytes", n)
	case n < 1e6:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 1e9:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}
