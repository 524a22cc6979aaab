package bench

import (
	"bytes"
	"fmt"
	"io"
)

// Table prints the report for people.
func (r *MemoryReport) Table(w io.Writer) error {
	var t bytes.Buffer
	fmt.Fprintf(&t, "%s, driver %s", r.GPU, r.Driver)
	if r.PCIe != "" {
		fmt.Fprintf(&t, ", %s: %.1f GB/s at most", r.PCIe, r.LinkGBs)
	}
	fmt.Fprintf(&t, "\n%s\n", r.Why)
	fmt.Fprintf(&t, "the copy engine brings 16 MiB in %.1f us: %.1f GB/s\n", r.LinkP50, float64(linkBytes)/1000/max(r.LinkP50, 0.001))
	for _, row := range r.Works {
		fmt.Fprintf(&t, "\n%s (%.1f MB)\n  %-10s %10s %10s %10s %10s\n", row.Work, float64(row.Bytes)/1e6, "strategy", "p50 us", "p99 us", "GB/s", "cpu us")
		for _, s := range row.Strategies {
			mark := ""
			if s.Strategy == row.Winner {
				mark = "  <- auto"
			}
			fmt.Fprintf(&t, "  %-10s %10.1f %10.1f %10.1f %10.1f%s\n", s.Strategy, s.P50, s.P99, s.GBs, s.CPU, mark)
		}
	}
	_, err := w.Write(t.Bytes())
	return err
}
