package platform

import (
	"os"
	"strconv"
	"strings"
)

// NodeCPUs gives the processors of a memory node, nil where it is not known or the
// machine has one node only.
func NodeCPUs(node int) []int { return nodeCPUs("/sys/devices/system/node", node) }

func nodeCPUs(dir string, node int) []int {
	if node < 0 {
		return nil
	}
	if _, err := os.Stat(dir + "/node1"); err != nil {
		return nil
	}
	b, err := os.ReadFile(dir + "/node" + strconv.Itoa(node) + "/cpulist")
	if err != nil {
		return nil
	}
	return parseCPUList(strings.TrimSpace(string(b)))
}

// parseCPUList reads the kernel's form, "0-3,8,10-11"; nil if it is another.
func parseCPUList(text string) (cpus []int) {
	const most = 1 << 16
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		from, err := strconv.Atoi(first)
		to := from
		if err == nil && isRange {
			to, err = strconv.Atoi(last)
		}
		if err != nil || from < 0 || to < from || to >= most {
			return nil
		}
		for cpu := from; cpu <= to; cpu++ {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}
