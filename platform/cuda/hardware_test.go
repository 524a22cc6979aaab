//go:build hw

package cuda_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"edgecam/platform"
	"edgecam/platform/cuda"
)

// detectEnv makes this test binary print what Detect finds and end.
const detectEnv = "EDGECAM_TEST_DETECT"

// detected runs Detect in a process of its own: a driver is initialised once in
// a process, with the environment that it finds.
func detected(t *testing.T, env ...string) platform.Platform {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestDetectChild$", "-test.v")
	cmd.Env = append(os.Environ(), append(env, detectEnv+"=1")...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, text, _ := strings.Cut(string(out), "BEGIN")
	text, _, _ = strings.Cut(text, "END")
	var p platform.Platform
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return p
}

func TestDetectChild(t *testing.T) {
	if os.Getenv(detectEnv) == "" {
		t.Skip("only as the child of TestHardware")
	}
	p := platform.Detect(platform.Options{Driver: cuda.New(cuda.Options{})})
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout.WriteString("BEGIN" + string(b) + "END\n")
}

func TestHardware(t *testing.T) {
	p := detected(t)
	b, _ := json.MarshalIndent(p, "", "  ")
	t.Logf("%s", b)
	if p.Kind == platform.KindCPU || len(p.GPUs) == 0 {
		t.Fatalf("no GPU: %s %q", p.Why, p.Problems)
	}
	g := p.GPUs[0]
	if !regexp.MustCompile(`^(GPU|MIG)-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(g.UUID) {
		t.Errorf("UUID %q", g.UUID)
	}
	if g.MemoryBytes < 1<<30 || g.Multiprocessors == 0 || !g.CanMapHost || !g.UnifiedAddressing || p.CUDA == "" {
		t.Errorf("GPU %+v, CUDA %q", g, p.CUDA)
	}

	t.Run("one GPU by its UUID", func(t *testing.T) {
		one := detected(t, "CUDA_VISIBLE_DEVICES="+g.UUID)
		if len(one.GPUs) != 1 || one.GPUs[0].UUID != g.UUID {
			t.Errorf("GPUs %+v", one.GPUs)
		}
	})
	t.Run("none", func(t *testing.T) {
		none := detected(t, "CUDA_VISIBLE_DEVICES=")
		if none.Kind != platform.KindCPU || len(none.Problems) != 1 || !strings.Contains(none.Problems[0].Hint, "CUDA_VISIBLE_DEVICES") {
			t.Errorf("kind %s, problems %q", none.Kind, none.Problems)
		}
	})
	t.Run("nvidia-smi agrees", func(t *testing.T) {
		out, err := exec.Command("nvidia-smi", "--query-gpu=uuid,name,driver_version,compute_cap,pcie.link.gen.max,pcie.link.width.current", "--format=csv,noheader").Output()
		if err != nil {
			t.Skipf("nvidia-smi: %v", err)
		}
		t.Logf("%s", out)
		for line := range strings.Lines(string(out)) { // it shows cards that CUDA_VISIBLE_DEVICES hides
			if f := strings.Split(line, ", "); f[0] == g.UUID {
				if f[1] != g.Name || f[2] != p.Driver || f[3] != g.ComputeCapability {
					t.Errorf("nvidia-smi says %q", f)
				}
				return
			}
		}
		t.Errorf("nvidia-smi does not show %s", g.UUID)
	})
}
