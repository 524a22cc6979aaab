package sim

import (
	"fmt"
	"io"
)

// WriteFaultTable explains all faults in rows of a Markdown table.
func WriteFaultTable(out io.Writer) error {
	for _, w := range words {
		if _, err := fmt.Fprintf(out, "| `%s` | %s |\n", w.usage(), w.help); err != nil {
			return err
		}
	}
	return nil
}
