package framepool_test

import (
	"testing"
	"testing/fstest"

	"edgecam/framepool"
)

const (
	mem8G     = "MemTotal:        8388608 kB\nMemFree:  1 kB\n"
	rootCaps  = "Name:\tedgecam\nCapEff:\t000001ffffffffff\n"
	noCaps    = "Name:\tedgecam\nCapEff:\t0000000000000000\n"
	lock8M    = "Limit                     Soft Limit           Hard Limit           Units     \nMax locked memory         8388608              8388608              bytes     \n"
	lockNoEnd = "Max locked memory         unlimited            unlimited            bytes     \n"
)

func TestDetectLimit(t *testing.T) {
	tests := []struct {
		name     string
		files    map[string]string
		share    float64
		explicit int64
		limit    int64
		why      string
	}{
		{
			name:  "ram alone",
			files: map[string]string{"proc/meminfo": mem8G},
			share: 0.5, limit: 4 << 30, why: "4.0 GiB, 50 % of 8.0 GiB (RAM)",
		},
		{
			name:  "share of 0 means the default",
			files: map[string]string{"proc/meminfo": mem8G},
			limit: 6012954214, why: "5.6 GiB, 70 % of 8.0 GiB (RAM)",
		},
		{
			name:  "share that is no number means the default",
			files: map[string]string{"proc/meminfo": mem8G},
			share: nan(), limit: 6012954214, why: "5.6 GiB, 70 % of 8.0 GiB (RAM)",
		},
		{
			name: "cgroup v2 of the unit",
			files: map[string]string{
				"proc/meminfo":     mem8G,
				"proc/self/cgroup": "0::/system.slice/edgecam.service\n",
				"sys/fs/cgroup/system.slice/edgecam.service/memory.max":  "1073741824\n",
				"sys/fs/cgroup/system.slice/edgecam.service/memory.high": "max\n",
			},
			share: 0.5, limit: 512 << 20, why: "512.0 MiB, 50 % of 1.0 GiB (memory.max of cgroup /system.slice/edgecam.service)",
		},
		{
			name: "cgroup v2 of an ancestor is the smaller",
			files: map[string]string{
				"proc/meminfo":                          mem8G,
				"proc/self/cgroup":                      "0::/a/b\n",
				"sys/fs/cgroup/a/b/memory.max":          "max\n",
				"sys/fs/cgroup/a/memory.high":           "2147483648\n",
				"sys/fs/cgroup/a/memory.max":            "4294967296\n",
				"sys/fs/cgroup/unrelated/c/memory.high": "1\n",
			},
			share: 1, limit: 2 << 30, why: "2.0 GiB, 100 % of 2.0 GiB (memory.high of cgroup /a)",
		},
		{
			name: "cgroup v1 beside an empty unified tree",
			files: map[string]string{
				"proc/meminfo":     mem8G,
				"proc/self/cgroup": "5:cpu,memory:/docker/x:y\n1:name=systemd:/\n0::/\n",
				"sys/fs/cgroup/memory/docker/x:y/memory.limit_in_bytes": "268435456\n",
				"sys/fs/cgroup/memory/memory.limit_in_bytes":            "9223372036854771712\n",
			},
			share: 0.5, limit: 128 << 20, why: "128.0 MiB, 50 % of 256.0 MiB (memory.limit_in_bytes of cgroup /docker/x:y)",
		},
		{
			name: "container without a cgroup namespace sees its own group at the mount",
			files: map[string]string{
				"proc/meminfo":     mem8G,
				"proc/self/cgroup": "4:memory:/docker/abc\n",
				"sys/fs/cgroup/memory/memory.limit_in_bytes": "1073741824\n",
			},
			share: 1, limit: 1 << 30, why: "1.0 GiB, 100 % of 1.0 GiB (memory.limit_in_bytes of cgroup /)",
		},
		{
			name: "path that leaves the namespace",
			files: map[string]string{
				"proc/meminfo":             mem8G,
				"proc/self/cgroup":         "0::/../../x\n",
				"sys/fs/cgroup/memory.max": "1073741824\n",
			},
			share: 1, limit: 1 << 30, why: "1.0 GiB, 100 % of 1.0 GiB (memory.max of cgroup /)",
		},
		{
			name: "cgroup v1 without a limit",
			files: map[string]string{
				"proc/meminfo":     mem8G,
				"proc/self/cgroup": "4:memory:/\n",
				"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
			},
			share: 1, limit: 8 << 30, why: "8.0 GiB, 100 % of 8.0 GiB (RAM)",
		},
		{
			name:  "small RLIMIT_MEMLOCK is named and does not lower the limit",
			files: map[string]string{"proc/meminfo": mem8G, "proc/self/status": noCaps, "proc/self/limits": lock8M},
			share: 0.5, limit: 4 << 30,
			why: "4.0 GiB, 50 % of 8.0 GiB (RAM); only 8.0 MiB of it may be locked (RLIMIT_MEMLOCK): set LimitMEMLOCK=infinity in the unit to lock all",
		},
		{
			name:  "CAP_IPC_LOCK lifts RLIMIT_MEMLOCK",
			files: map[string]string{"proc/meminfo": mem8G, "proc/self/status": rootCaps, "proc/self/limits": lock8M},
			share: 0.5, limit: 4 << 30, why: "4.0 GiB, 50 % of 8.0 GiB (RAM)",
		},
		{
			name:  "unlimited RLIMIT_MEMLOCK",
			files: map[string]string{"proc/meminfo": mem8G, "proc/self/status": noCaps, "proc/self/limits": lockNoEnd},
			share: 0.5, limit: 4 << 30, why: "4.0 GiB, 50 % of 8.0 GiB (RAM)",
		},
		{
			name:     "explicit limit takes the place of the share",
			files:    map[string]string{"proc/meminfo": mem8G},
			explicit: 7 << 30, limit: 7 << 30, why: "7.0 GiB as configured",
		},
		{
			name:     "explicit limit above RAM is cut",
			files:    map[string]string{"proc/meminfo": mem8G},
			explicit: 50e9, limit: 8 << 30, why: "8.0 GiB (RAM), less than the 46.6 GiB configured",
		},
		{
			name: "small cgroup leaves less than the share",
			files: map[string]string{
				"proc/meminfo": mem8G, "proc/self/status": "VmRSS:\t  150528 kB\n", "proc/self/cgroup": "0::/small\n", "sys/fs/cgroup/small/memory.max": "419430400\n",
			},
			limit: (221 << 20) * 3 / 4, why: "165.8 MiB, what 400.0 MiB (memory.max of cgroup /small) leaves beside the program's own 147.0 MiB and its decoders",
		},
		{
			name: "explicit limit above what is left is cut",
			files: map[string]string{
				"proc/meminfo": mem8G, "proc/self/status": "VmRSS:\t  150528 kB\n", "proc/self/cgroup": "0::/small\n", "sys/fs/cgroup/small/memory.max": "419430400\n",
			},
			explicit: 300 << 20, limit: (221 << 20) * 3 / 4,
			why: "165.8 MiB, what 400.0 MiB (memory.max of cgroup /small) leaves beside the program's own 147.0 MiB and its decoders",
		},
		{
			name: "nothing is left",
			files: map[string]string{
				"proc/meminfo": mem8G, "proc/self/status": "VmRSS:\t  150528 kB\n", "proc/self/cgroup": "0::/small\n", "sys/fs/cgroup/small/memory.max": "104857600\n",
			},
			limit: 1, why: "1 B, what 100.0 MiB (memory.max of cgroup /small) leaves beside the program's own 147.0 MiB and its decoders",
		},
		{
			name:  "enough for both",
			files: map[string]string{"proc/meminfo": mem8G, "proc/self/status": "VmRSS:\t  150528 kB\n"},
			limit: 6012954214, why: "5.6 GiB, 70 % of 8.0 GiB (RAM)",
		},
		{
			name:  "nothing to read",
			limit: 1 << 30, why: "1.0 GiB, as the system does not tell its memory: set memory.limit",
		},
		{
			name:     "nothing to read but explicit",
			explicit: 1 << 20, limit: 1 << 20, why: "1.0 MiB as configured",
		},
		{
			name:  "garbage",
			files: map[string]string{"proc/meminfo": "MemTotal: -5 kB", "proc/self/cgroup": "::\nx\n0:", "proc/self/limits": "Max locked memory", "proc/self/status": "CapEff:\tzz"},
			limit: 1 << 30, why: "1.0 GiB, as the system does not tell its memory: set memory.limit",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fs := fstest.MapFS{}
			for name, text := range tt.files {
				fs[name] = &fstest.MapFile{Data: []byte(text)}
			}
			limit, why := framepool.DetectLimitFS(fs, tt.share, tt.explicit)
			if limit != tt.limit || why != tt.why {
				t.Errorf("got  %d, %s\nwant %d, %s", limit, why, tt.limit, tt.why)
			}
		})
	}
}

func nan() float64 { z := 0.0; return z / z }

func TestDetectLimitOfThisHost(t *testing.T) {
	limit, why := framepool.DetectLimit(0.7, 0)
	if limit < 1<<20 || why == "" {
		t.Fatalf("limit %d, %q", limit, why)
	}
	t.Log(why)
}
