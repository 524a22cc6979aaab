package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"

	"github.com/spf13/cobra"

	"edgecam/infer/ort"
	"edgecam/internal/config"
	"edgecam/internal/state"
	"edgecam/platform"
	"edgecam/platform/avcodec"
	"edgecam/platform/cuda"
	"edgecam/platform/doctor"
	"edgecam/platform/onnxruntime"
	"edgecam/platform/sysav"
)

// errUnfit ends doctor with exit code 1 after the report has said why.
var errUnfit = errors.New("something does not work: see the lines marked fail")

func newDoctor() *cobra.Command {
	var asJSON bool
	var file string
	var more capacityFlags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what this machine has, what is missing and what to do about it",
		Long: "Doctor looks at the machine, opens the libraries, loads the model and times it. It changes nothing.\n" +
			"Exit code 0: everything that is needed works; 1: something does not.\n" +
			"With --capacity it runs the cameras of the configuration for some seconds, or simulated ones where there is\n" +
			"none, and says how many more the machine takes. An edgecam that runs already says it at /api/v1/system.",
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg := config.Default()
			if file != "" {
				var err error
				if cfg, err = loadConfig(file); err != nil {
					return err
				}
			}
			if more.on {
				kind, err := more.kind()
				if err != nil {
					return &usageError{err}
				}
				r, err := examineCapacity(cmd.Context(), cfg, kind, cmd.ErrOrStderr())
				if err != nil {
					return err
				}
				return r.write(cmd.OutOrStdout(), asJSON)
			}
			report := examine(cmd.Context(), cfg)
			write := report.WriteText
			if asJSON {
				write = report.WriteJSON
			}
			if err := write(cmd.OutOrStdout()); err != nil {
				return err
			}
			if report.Status == doctor.Fail {
				return errUnfit
			}
			return nil
		},
	}
	more.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().StringVarP(&file, "config", "c", "", "configuration whose model, library and address are tried (default: the defaults)")
	return cmd
}

// detect looks at the machine, with its GPU driver where it has one.
func detect(driver *cuda.Driver) platform.Platform {
	return platform.Detect(platform.Options{Driver: driver})
}

func examine(ctx context.Context, cfg *config.Config) doctor.Report {
	p := doctor.Probes{Version: version}
	p.BudgetBytes, p.BudgetWhy = memoryLimit(cfg)
	p.FFmpeg = probeFFmpeg()
	p.Runtime, p.Model = probeModel(cfg.Inference)
	p.State = probeState(boxState(cfg.StateDir, nil, ""))
	p.Listen = probeListen(cfg.Server.Listen)
	driver := cuda.New(cuda.Options{})
	box := detect(driver)
	p.GPU = probeGPU(ctx, cfg, box, driver)
	if box.Jetson != nil {
		probeSystemFFmpeg(&p.FFmpeg)
	}
	return doctor.Examine(box, p)
}

// probeGPU takes the cards into use as the appliance would, and lets go of them.
func probeGPU(ctx context.Context, cfg *config.Config, box platform.Platform, driver *cuda.Driver) doctor.GPU {
	if len(box.GPUs) == 0 || cfg.GPU.Mode == "off" || cfg.Inference.Provider == "cpu" {
		return doctor.GPU{}
	}
	g := doctor.GPU{
		Tried: true, Demanded: demandsGPU(cfg),
		Libraries: onnxruntime.LookAround(onnxruntime.SurveyOptions{Library: cfg.Inference.Library}),
	}
	codecs, err := avcodec.Open()
	if err != nil {
		g.Err = err
		return g
	}
	in := &inference{state: stateDir(cfg)}
	defer state.Inherit(in.state) //nolint:errcheck // what root leaves there must not be in the way of the service
	if g.Err = in.openGPUs(ctx, cfg, box, driver, codecs, slog.New(slog.DiscardHandler)); g.Err != nil {
		g.Hint = hintOf(g.Err)
		return g
	}
	defer in.closeGPUs()
	for _, gpu := range in.gpus {
		info := gpu.Info()
		c := doctor.Card{
			Index: gpu.Card().Index, Provider: info.Provider, Precision: info.Precision, ProbeMS: info.ProbeMS, Notes: info.ProbeNotes,
			NoDecoder: gpu.NoDecoder(), DecoderEngines: gpu.DecoderEngines(),
		}
		c.Strategy, c.StrategyWhy = gpu.Strategy()
		g.Cards = append(g.Cards, c)
	}
	for _, u := range in.unused {
		g.Cards = append(g.Cards, doctor.Card{Index: u.Card.Index, Err: errors.New(u.Reason)})
	}
	slices.SortFunc(g.Cards, func(a, b doctor.Card) int { return a.Index - b.Index })
	return g
}

func probeFFmpeg() doctor.FFmpeg {
	f := doctor.FFmpeg{Asked: []string{"h264", "hevc", "mjpeg"}}
	lib, err := avcodec.Open()
	if err != nil {
		return f
	}
	f.Version = lib.Versions().Codec
	for _, d := range lib.Decoders() {
		f.Decoders = append(f.Decoders, d.Name)
	}
	return f
}

// probeSystemFFmpeg looks for the decoders of boards in the machine's own FFmpeg, in
// the order in which cameras try them.
func probeSystemFFmpeg(f *doctor.FFmpeg) {
	system := sysav.New()
	for _, hardware := range []string{"nvv4l2dec", "v4l2m2m"} {
		for _, codec := range []string{"h264", "hevc"} {
			name := codec + "_" + hardware
			if l, err := system.Find(name); err == nil {
				f.System = append(f.System, name)
				if f.SystemPath == "" {
					f.SystemPath = l.Path()
				}
			}
		}
	}
}

func probeModel(c config.Inference) (doctor.Runtime, doctor.Model) {
	m := doctor.Model{Name: c.Model.File}
	l := modelLoader{modelFiles: newModelFiles(), cfg: c}
	of, err := l.Inspect(c.Model)
	if err != nil {
		m.Err = err
		return doctor.Runtime{}, m
	}
	o := l.options(c.Model, of)
	o.Concurrency = 1
	e, err := ort.New(o)
	var missing *onnxruntime.UnavailableError
	if errors.As(err, &missing) {
		return doctor.Runtime{Path: missing.Path, Err: err, Hint: missing.Hint}, doctor.Model{}
	}
	if err != nil {
		m.Err = err
		return doctor.Runtime{}, m
	}
	defer e.Close() //nolint:errcheck // nothing is left to save
	info := e.Info()
	m.Precision, m.Provider, m.Labels, m.ProbeMS = info.Precision, info.Provider, len(info.Labels), info.ProbeMS
	return doctor.Runtime{Path: info.Library, Version: info.Version}, m
}

func probeListen(address string) doctor.Listen {
	l, err := net.Listen("tcp", address)
	if err == nil {
		err = l.Close()
	}
	return doctor.Listen{Address: address, Err: err}
}
