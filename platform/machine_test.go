package platform_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"edgecam/platform"
)

// machine reads testdata/NAME.txt: files after lines "-- path --", with \0 for
// the NULs of device trees.
func machine(t *testing.T, name string) fstest.MapFS {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	root := fstest.MapFS{}
	path := ""
	for line := range strings.Lines(string(b)) {
		if p, ok := strings.CutPrefix(line, "-- "); ok {
			path = strings.TrimSuffix(strings.TrimSpace(p), " --")
			root[path] = &fstest.MapFile{Mode: 0o444}
			continue
		}
		if path != "" {
			root[path].Data = append(root[path].Data, strings.ReplaceAll(line, `\0`, "\x00")...)
		}
	}
	return root
}

// fakeDriver answers as a driver would.
type fakeDriver struct {
	err     error // of Init
	listErr error // of Devices
	path    string
	version int
	gpus    []platform.GPU
}

func (d *fakeDriver) Init() error  { return d.err }
func (d *fakeDriver) Path() string { return d.path }

func (d *fakeDriver) Version() (int, error) { return d.version, d.err }

func (d *fakeDriver) Devices() ([]platform.GPU, error) {
	return append([]platform.GPU(nil), d.gpus...), d.listErr
}

// integrated is a Jetson's GPU as the driver tells it.
func integrated(name, cc string, register bool) platform.GPU {
	return platform.GPU{
		UUID: "GPU-0c8b7a1e-0000-1111-2222-333344445555", Name: name, ComputeCapability: cc, MemoryBytes: 32 << 30,
		Integrated: true, CanMapHost: true, UnifiedAddressing: true, HostRegisterSupported: register,
	}
}

// discrete is a card as the driver tells it.
func discrete(index int, uuid, name, cc, address string) platform.GPU {
	return platform.GPU{
		Index: index, UUID: uuid, Name: name, ComputeCapability: cc, MemoryBytes: 12 << 30, PCIAddress: address,
		CanMapHost: true, UnifiedAddressing: true, HostRegisterSupported: true, SameHostPointer: true,
	}
}
