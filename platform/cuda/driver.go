package cuda

import (
	"io/fs"
	"os"
	"sync"
	"sync/atomic"

	"edgecam/platform"
)

// Options for New.
type Options struct {
	// Library is the file or name to open. It defaults to the names and places
	// where drivers put libcuda.
	Library string
}

// Driver is NVIDIA's driver library. Open it with Init.
type Driver struct {
	candidates []string
	users      map[int]int64 // guarded by mu; by device
	stuck      atomic.Int64

	mu     sync.Mutex
	tried  bool
	err    error   // of the first Init, for good
	api    *api    // nil until Init succeeded
	handle uintptr // of the opened library
	path   string
}

var _ platform.Driver = (*Driver)(nil)

// New makes a Driver; it opens nothing.
func New(o Options) *Driver {
	if o.Library != "" {
		return &Driver{candidates: []string{o.Library}}
	}
	return &Driver{candidates: candidates(os.DirFS("/"), os.Getenv("LD_LIBRARY_PATH"))}
}

// candidates are the names and places to open libcuda by. The loader knows best,
// but for a Jetson on which a driver for PCs was installed as well: its libcuda
// lies where the loader looks first, and finds no GPU. Which of the two comes
// first must be settled before one is loaded, as whatever asks for libcuda
// later is given the one that is there.
func candidates(root fs.FS, searched string) []string {
	places := []string{"libcuda.so.1"}
	board := platform.JetsonLibcuda(root)
	if platform.DesktopLibcuda(root) != "" && searched == "" {
		places = append(board, places...)
	} else {
		places = append(places, board...)
	}
	return append(places, "/usr/lib/wsl/lib/libcuda.so.1") // Windows Subsystem for Linux
}

// Init opens the library and calls cuInit. Its first answer is kept: the driver
// cannot be initialised again in a process.
func (d *Driver) Init() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.tried {
		d.tried = true
		d.err = d.initLocked()
	}
	return d.err
}

// Path is the file that was opened, with the version in its name where the
// system keeps it so; "" = none.
func (d *Driver) Path() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.path
}

// Stuck counts the device threads that hang in the driver now. They are left
// behind and cost a thread each; only the end of the process is sure to end them.
func (d *Driver) Stuck() int { return int(d.stuck.Load()) }

// Users counts what uses the context of a device: its goroutines that have not ended,
// one that hangs among them, and what Device.Hold counts.
func (d *Driver) Users(index int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return int(d.users[index])
}

func (d *Driver) use(index int, n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.users == nil {
		d.users = map[int]int64{}
	}
	d.users[index] += n
}

// opened gives the functions, or the reason why there are none.
func (d *Driver) opened() (*api, error) {
	if err := d.Init(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.api, nil
}
