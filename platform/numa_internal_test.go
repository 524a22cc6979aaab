package platform

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestNodeCPUs(t *testing.T) {
	dir := t.TempDir()
	for node, list := range map[string]string{"node0": "0-3,8\n", "node1": "4-7,9-10\n", "node2": "none\n", "node3": "3-1\n", "node4": "0-99999999\n"} {
		if err := os.Mkdir(filepath.Join(dir, node), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, node, "cpulist"), []byte(list), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for node, want := range map[int]string{-1: "[]", 0: "[0 1 2 3 8]", 1: "[4 5 6 7 9 10]", 2: "[]", 3: "[]", 4: "[]", 9: "[]"} {
		if got := fmt.Sprint(nodeCPUs(dir, node)); got != want {
			t.Errorf("node %d: %s, want %s", node, got, want)
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, "node1")); err != nil {
		t.Fatal(err)
	}
	if got := nodeCPUs(dir, 0); got != nil {
		t.Errorf("a machine with one node: %v", got)
	}
}
