package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"edgecam/infer"
	"edgecam/infer/builtin"
	"edgecam/infer/model"
	"edgecam/infer/ort"
	"edgecam/platform/cuda"
	"edgecam/platform/onnxruntime"
)

func newModel() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "model",
		Short: "Look into model files",
		Args:  exactArgs(0, "a sub-command"),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newModelInspect())
	return cmd
}

// inspectOptions are the flags of `model inspect`.
type inspectOptions struct {
	json            bool
	image, out      string
	camera, config  string
	threshold       float32
	library         string
	labels          string
	family          string
	color, layout   string
	letterbox, size string
	iou             float32
}

func newModelInspect() *cobra.Command {
	var o inspectOptions
	cmd := &cobra.Command{
		Use:   "inspect FILE",
		Short: "Say what an ONNX file is, with the evidence, and whether it runs here",
		Long: "Inspect reads an ONNX file (or " + builtin.NanoDetG + "): family, input, how the outputs are read, labels, cost, each with its\n" +
			"evidence. What the file does not tell is asked for by the key of the configuration. With ONNX Runtime the model is\n" +
			"run and timed; with --image, or with --camera and --config, what it finds in that picture is listed and drawn into a PNG.\n" +
			"Exit code 0: edgecam can use the file; 1: it cannot, or is missing something.",
		Args: exactArgs(1, "the path of an ONNX file"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0], cmd.OutOrStdout()) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.json, "json", false, "print JSON")
	f.StringVar(&o.image, "image", "", "a JPEG or PNG to find objects in")
	f.StringVar(&o.camera, "camera", "", "id of a camera in --config, whose next picture is taken")
	f.StringVarP(&o.config, "config", "c", "", "configuration file that has the camera")
	f.StringVar(&o.out, "out", "detections.png", "where to draw what was found")
	f.Float32Var(&o.threshold, "threshold", 0.45, "least score of what is shown")
	f.StringVar(&o.library, "library", "", "path of libonnxruntime.so (default: it is searched for)")
	f.StringVar(&o.labels, "labels", "", "file of labels, as inference.model.labels")
	f.StringVar(&o.family, "family", "", "as inference.model.family: "+strings.Join(model.Families(), ", "))
	f.StringVar(&o.size, "size", "", "WIDTHxHEIGHT, as inference.model.input.size")
	f.StringVar(&o.layout, "layout", "", "NCHW or NHWC, as inference.model.input.layout")
	f.StringVar(&o.color, "color", "", "RGB or BGR, as inference.model.input.color")
	f.StringVar(&o.letterbox, "letterbox", "", "center or top_left, as inference.model.input.letterbox")
	f.Float32Var(&o.iou, "iou", 0, "overlap above which boxes are dropped, as inference.model.nms.iou")
	return cmd
}

func (o *inspectOptions) overrides() (model.Overrides, error) {
	v := model.Overrides{LabelsFile: o.labels, Family: model.Canonical(o.family), Layout: o.layout, Color: o.color, Letterbox: o.letterbox, IoU: o.iou}
	if o.size != "" {
		var rest string
		if n, _ := fmt.Sscanf(o.size+" .", "%dx%d %s", &v.Width, &v.Height, &rest); n != 3 || rest != "." || v.Width < 1 || v.Height < 1 {
			return v, &usageError{fmt.Errorf("--size is %q, wanted like 640x640", o.size)}
		}
	}
	switch {
	case o.camera != "" && o.config == "":
		return v, &usageError{errors.New("--camera needs --config FILE, which says where the camera is")}
	case o.camera == "" && o.config != "":
		return v, &usageError{errors.New("--config needs --camera ID, the camera that gives the picture")}
	case o.camera != "" && o.image != "":
		return v, &usageError{errors.New("--camera and --image: one picture at a time")}
	}
	if err := v.Check(); err != nil {
		return v, &usageError{err}
	}
	if !(o.threshold >= 0 && o.threshold <= 1) {
		return v, &usageError{fmt.Errorf("--threshold is %v, wanted 0 to 1", o.threshold)}
	}
	return v, nil
}

// inspection is what the command prints.
type inspection struct {
	*model.Report
	Runtime    string  `json:"runtime,omitempty"`   // version of ONNX Runtime
	Detections []found `json:"detections,omitzero"` // nil: no picture was given
	Image      string  `json:"image,omitempty"`     // the PNG
}

// found is a detection in fractions of the picture.
type found struct {
	Label string     `json:"label"`
	Score float32    `json:"score"`
	Box   [4]float32 `json:"box"`
}

func (o *inspectOptions) run(ctx context.Context, file string, w io.Writer) error {
	v, err := o.overrides()
	if err != nil {
		return err
	}
	report, err := inspectModel(file, v)
	if report == nil {
		if o.json { // whoever reads JSON reads the reason there too
			report = &model.Report{File: file, Findings: []model.Finding{}, Refusal: cause(err)}
			if wrong := (&inspection{Report: report}).writeJSON(w); wrong != nil {
				return wrong
			}
		}
		return err
	}
	result := &inspection{Report: report}
	if err == nil {
		err = o.try(ctx, file, result)
	}
	write := result.writeText
	if o.json {
		write = result.writeJSON
	}
	if wrong := write(w); wrong != nil {
		return wrong
	}
	return err
}

// cause is why a model cannot be used, without its name.
func cause(err error) string {
	var refused *infer.ModelError
	if errors.As(err, &refused) {
		return refused.Err.Error()
	}
	return err.Error()
}

// inspectModel looks into a file or a built-in model.
func inspectModel(file string, v model.Overrides) (*model.Report, error) {
	if !strings.HasPrefix(file, builtin.Prefix) {
		return model.Inspect(file, v)
	}
	content, err := builtin.Model(file, "fp32")
	if err != nil {
		return nil, err
	}
	return model.InspectBytes(file, content, v)
}

// try runs the model where there is an ONNX Runtime.
func (o *inspectOptions) try(ctx context.Context, file string, r *inspection) error {
	if r.OnlyTensorRT() {
		r.Providers = []string{"tensorrt"}
		r.Notes = append(r.Notes, "not run here: its NMS is TensorRT's plugin")
		return nil
	}
	opts := ort.Options{Library: o.library, Model: file, Concurrency: 1, NMSIoU: o.iou}
	if !strings.HasPrefix(file, builtin.Prefix) {
		opts.Spec = &r.Spec
	}
	engine, err := ort.New(opts)
	var missing *onnxruntime.UnavailableError
	if errors.As(err, &missing) && o.library == "" && o.image == "" && o.camera == "" {
		r.Notes = append(r.Notes, fmt.Sprintf("not run: %v", err))
		return nil
	}
	if err != nil {
		var refused *infer.ModelError
		if errors.As(err, &refused) {
			r.Refusal = cause(err)
		}
		return err
	}
	defer engine.Close() //nolint:errcheck // nothing is left to save
	info := engine.Info()
	r.Providers, r.MSPerImage, r.Runtime = []string{info.Provider}, info.ProbeMS, info.Version
	if cards := detect(cuda.New(cuda.Options{})).GPUs; len(cards) > 0 {
		o.offer(r)
	}
	if o.image == "" && o.camera == "" {
		return nil
	}
	return o.show(ctx, engine, r)
}

// offer names what a card and its ONNX Runtime could run the model with. Only `run` and `doctor` take a card into use.
func (o *inspectOptions) offer(r *inspection) {
	library, _, err := onnxruntime.FindGPU(o.library)
	if err != nil {
		r.Notes = append(r.Notes, fmt.Sprintf("there is a GPU, but: %v", err))
		return
	}
	defer library.Close()
	names, err := library.Providers()
	offered := []string{"cuda"}
	if err == nil && slices.Contains(names, "TensorrtExecutionProvider") {
		offered = append(offered, "tensorrt")
	}
	r.Providers = append(r.Providers, offered...)
	r.Notes = append(r.Notes, strings.Join(offered, " and ")+": offered by the GPU's ONNX Runtime, not tried here")
}

func (r *inspection) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
