package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"edgecam/framepool"
	"edgecam/infer/model"
)

// writeText prints the report for people: conclusions with their evidence, then what there is to say besides.
func (r *inspection) writeText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, value string) { fmt.Fprintf(t, "%s\t%s\n", name, model.Printable(value)) }
	line("file", fmt.Sprintf("%s, %s", r.File, framepool.FormatBytes(r.Bytes)))
	if len(r.External) > 0 {
		line("external data", strings.Join(r.External, ", "))
	}
	producer := r.Producer
	if producer == "" {
		producer = "not stated"
	}
	line("producer", fmt.Sprintf("%s; ONNX IR %d, opset %d", producer, r.IR, r.Opset))
	line("cost", r.cost())
	if in := &r.Spec.Input; in.Name != "" {
		line("input", fmt.Sprintf("%s %s %v %s", in.Name, in.Type, in.Shape, in.Layout))
	}
	for _, o := range r.Spec.Outputs {
		line("output", fmt.Sprintf("%s %s %v: %s", o.Name, o.Type, o.Shape, o.Role))
	}
	line("providers", r.runs())
	if err := t.Flush(); err != nil {
		return err
	}
	for _, f := range r.Findings {
		if _, err := fmt.Fprintf(w, "\n%s: %s (%s)\n    %s\n", f.About, f.Value, restsOn(f.Certainty), f.Evidence); err != nil {
			return err
		}
	}
	return r.writeRest(w)
}

// restsOn puts a certainty in words.
func restsOn(c model.Certainty) string {
	switch c {
	case model.FromConfig:
		return "you say so"
	case model.Stated:
		return "the file says so"
	case model.FromShape:
		return "the graph shows it"
	case model.Convention:
		return "by convention"
	}
	return string(c)
}

func (r *inspection) cost() string {
	parts := []string{fmt.Sprintf("%.2f M parameters", float64(r.Params)/1e6)}
	if r.GFLOPs > 0 {
		parts = append(parts, fmt.Sprintf("%.2f GFLOPs an image", r.GFLOPs))
	}
	return strings.Join(parts, ", ")
}

func (r *inspection) runs() string {
	if len(r.Providers) == 0 {
		return "not tried"
	}
	text := strings.Join(r.Providers, ", ")
	if r.MSPerImage > 0 {
		text += fmt.Sprintf(": %.1f ms an image on one core (ONNX Runtime %s)", r.MSPerImage, r.Runtime)
	}
	return text
}

// writeRest prints notes, questions, the refusal, and what was found.
func (r *inspection) writeRest(w io.Writer) error {
	var b strings.Builder
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	for _, q := range r.Ask {
		fmt.Fprintf(&b, "set %s: %s", q.Key, q.Why)
		if len(q.Alternatives) > 0 {
			fmt.Fprintf(&b, " (%s)", strings.Join(q.Alternatives, ", "))
		}
		b.WriteString("\n")
	}
	if r.Refusal != "" {
		fmt.Fprintf(&b, "refused: %s\n", r.Refusal)
	}
	for _, d := range r.Detections {
		fmt.Fprintf(&b, "found %s %.2f at %.3f %.3f %.3f %.3f\n", d.Label, d.Score, d.Box[0], d.Box[1], d.Box[2], d.Box[3])
	}
	if r.Image != "" {
		fmt.Fprintf(&b, "%d detections, drawn into %s\n", len(r.Detections), r.Image)
	}
	if b.Len() == 0 {
		return nil
	}
	_, err := io.WriteString(w, "\n"+b.String())
	return err
}
