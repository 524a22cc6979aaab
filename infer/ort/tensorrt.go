package ort

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"edgecam/infer"
	"edgecam/infer/builtin"
	spec "edgecam/infer/model"
	"edgecam/platform/cuda"
	"edgecam/platform/onnxruntime"
)

// builderLevel is TensorRT's effort. On an H200 level 1 builds in 52 s and
// reaches 30,700 images/s in batches of 64; level 0 takes 26 s for 16,600, and
// level 3, the provider's default, was still building after 150 s.
const builderLevel = 1

// prepareTensorRT takes an engine from the cache or builds one, tries it beside
// the serving one and swaps. Whatever fails, CUDA serves on, and Info says why.
func (e *DeviceEngine) prepareTensorRT() {
	err := e.tryTensorRT()
	if err == nil || e.ctx.Err() != nil || e.dev.Err() != nil {
		return
	}
	e.note(nil, "TensorRT: %s; CUDA serves", words(err))
	e.opts.Logger.Warn("tensorrt is not used, cuda serves", "reason", words(err))
}

func (e *DeviceEngine) tryTensorRT() error {
	e.library.Preload(onnxruntime.TensorRTProvider)
	version, err := e.library.TensorRTVersion()
	if err != nil {
		return err
	}
	for i, precision := range e.tensorRTPrecisions() {
		err = e.upgrade(version, precision)
		var differ *DisagreeError
		var unhealthy *infer.UnhealthyError
		if !errors.As(err, &differ) && !errors.As(err, &unhealthy) {
			return err
		}
		if i+1 < len(e.tensorRTPrecisions()) {
			e.note(nil, "TensorRT %s not used: %v", precision, err)
		}
	}
	return err
}

// tensorRTPrecisions lists the precisions to try; the later one is for a model
// that the first one changes too much.
func (e *DeviceEngine) tensorRTPrecisions() []string {
	switch e.opts.Precision {
	case precisionFP32:
		return []string{precisionFP32}
	case precisionFP16:
		return []string{precisionFP16}
	}
	return []string{precisionFP16, precisionFP32}
}

// upgrade gets an engine of a precision and puts it into service.
func (e *DeviceEngine) upgrade(version, precision string) error {
	sum, err := e.opts.source.digest()
	if err != nil {
		return err
	}
	gpu := e.dev.GPU()
	key := engineKey{
		Format: cacheFormat, Model: sum,
		GPU: fmt.Sprintf("%s with %d multiprocessors", gpu.Name, gpu.Multiprocessors), Name: gpu.Name, ComputeCapability: gpu.ComputeCapability, Driver: e.opts.Driver,
		TensorRT: version, ONNXRuntime: e.library.Version(),
		Shapes: e.profile(1) + " " + e.profile(e.largest()), Precision: precision, Level: builderLevel,
	}
	var cache engineCache
	if e.opts.StateDir != "" {
		cache.dir = filepath.Join(e.opts.StateDir, "tensorrt")
	}
	b := theBuilds.join(key)
	defer theBuilds.leave(key, b)
	content, made, err := e.obtain(b, cache, key, nil)
	if err != nil {
		return err
	}
	start := time.Now()
	err = e.adopt(content, precision)
	switch {
	case err == nil && !made:
		e.opts.Logger.Info("tensorrt engine taken from the cache", "ms", ms(time.Since(start)))
		return nil
	case err != nil && (made || e.stopped() != nil):
		return err
	case err != nil:
		// It is what was stored, and still does not serve: build it again.
		e.opts.Logger.Warn("stored tensorrt engine does not serve, building anew", "reason", words(err))
		if content, _, err = e.obtain(b, cache, key, content); err != nil {
			return err
		}
		if err := e.adopt(content, precision); err != nil {
			return err
		}
	}
	if err := cache.store(key, content); err != nil {
		e.note(nil, "TensorRT: its engine could not be kept, the next start builds it again: %v", err)
	}
	return nil
}

// obtain gives an engine of the key other than one that does not serve: that which
// another card of this kind has just got, the stored one, or a new one, which made
// says.
func (e *DeviceEngine) obtain(b *building, cache engineCache, key engineKey, useless []byte) (content []byte, made bool, err error) {
	if err := b.enter(e.ctx, e.dev.Lost()); err != nil {
		return nil, false, err
	}
	defer b.exit()
	if b.content != nil && !bytes.Equal(b.content, useless) {
		return b.content, false, nil
	}
	if useless != nil {
		cache.remove(key)
	}
	content, err = cache.load(key)
	if err == nil {
		b.content = content
		return content, false, nil
	}
	if !errors.Is(err, errNoEngine) {
		e.opts.Logger.Warn("stored tensorrt engine is not trusted, building anew", "reason", err)
	}
	e.grow() // a build takes a minute, in which CUDA serves
	start := time.Now()
	err = e.await(e.ctx, func() (err error) {
		content, err = e.build(key.Precision, cache.dir)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	e.opts.Logger.Info("tensorrt engine built", "seconds", time.Since(start).Seconds(), "bytes", len(content))
	b.content = content
	return content, true, nil
}

// stopped says that nobody wants the engine any more.
func (e *DeviceEngine) stopped() error {
	if err := e.dev.Err(); err != nil {
		return err
	}
	return e.ctx.Err()
}

// digest is that of all that TensorRT builds from, a file's weights in files beside
// it among them. TensorRT rounds a float32 network to float16 itself, where that
// gains.
func (s source) digest() (string, error) {
	sum := sha256.New()
	if s.builtin() {
		content, err := builtin.Model(s.name, precisionFP32)
		if err != nil {
			return "", err
		}
		sum.Write(content)
		return hex.EncodeToString(sum.Sum(nil)), nil
	}
	files := []string{s.name}
	if report, _ := spec.Inspect(s.name, spec.Overrides{}); report != nil {
		for _, name := range report.External {
			files = append(files, filepath.Join(filepath.Dir(s.name), name))
		}
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return "", err
		}
		_, err = io.Copy(sum, f)
		f.Close() //nolint:errcheck // it was only read
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// profile names the input shape of n images the way TensorRT's options do.
func (e *DeviceEngine) profile(n int) string {
	in := &e.model.input
	dims := make([]string, 0, 4)
	for _, d := range in.shape(n) {
		dims = append(dims, fmt.Sprint(d))
	}
	return in.name + ":" + strings.Join(dims, "x")
}

// tensorRTOptions are those that decide what is built. The provider wants all
// in one call.
func (e *DeviceEngine) tensorRTOptions(precision string) map[string]string {
	options := map[string]string{
		"trt_fp16_enable":                "0",
		"trt_builder_optimization_level": fmt.Sprint(builderLevel),
	}
	if precision == precisionFP16 {
		options["trt_fp16_enable"] = "1"
	}
	if e.model.batch == 0 {
		options["trt_profile_min_shapes"] = e.profile(1)
		options["trt_profile_opt_shapes"] = e.profile(e.largest())
		options["trt_profile_max_shapes"] = e.profile(e.largest())
	}
	return options
}

// build makes an engine in a session and on a stream of its own, which takes a
// minute, and gives it as a context model. dir is a place for it, or empty.
func (e *DeviceEngine) build(precision, dir string) ([]byte, error) {
	work, err := workDir(dir)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work) //nolint:errcheck // what is left is thrown away with the directory
	path := filepath.Join(work, "context.onnx")
	options := e.tensorRTOptions(precision)
	options["trt_engine_cache_enable"] = "1" // lies beside the context model, in a directory that is removed
	options["trt_dump_ep_context_model"] = "1"
	options["trt_ep_context_file_path"] = path
	options["trt_ep_context_embed_mode"] = "1"
	opts := onnxruntime.SessionOptions{Providers: e.tensorRTProviders(options, 0)}
	name := precisionFP32
	if !strings.HasPrefix(e.opts.Model, builtin.Prefix) {
		name = precisionFile
	}
	m, err := loadModelFor(e.library, e.opts.source, name, opts)
	if err != nil {
		var refused *infer.ModelError
		if errors.As(err, &refused) {
			err = refused.Err
		}
		return nil, err
	}
	if e.dev.Err() == nil { // what was made on a lost device is left alone
		m.session.Close()
	}
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, errors.New("it cannot take the whole model")
	}
	return content, err
}

// workDir makes a directory for a build, in dir if that can be written to.
func workDir(dir string) (string, error) {
	if dir != "" && os.MkdirAll(dir, 0o700) == nil {
		if work, err := os.MkdirTemp(dir, ".build-"); err == nil {
			return work, nil
		}
	}
	return os.MkdirTemp("", "edgecam-build-")
}

// tensorRTProviders are TensorRT and, for nodes that it leaves, CUDA.
func (e *DeviceEngine) tensorRTProviders(options map[string]string, stream cuda.Stream) []onnxruntime.Provider {
	device := e.dev.GPU().Index
	return []onnxruntime.Provider{
		{Name: onnxruntime.TensorRTProvider, Device: device, Stream: uintptr(stream), Options: options},
		{Name: onnxruntime.CUDAProvider, Device: device, Stream: uintptr(stream)},
	}
}

// adopt opens a context model, tries it over memory of its own between the
// batches that are served, and swaps when it agrees with what serves and, if
// the choice is free, is not slower.
func (e *DeviceEngine) adopt(content []byte, precision string) error {
	scratch := &deviceIO{}
	if err := e.ctx.Err(); err != nil {
		return err
	}
	err := e.dev.DoWithin(e.ctx, "allocate tensors", servingLimit, func(c *cuda.Context) error {
		return scratch.alloc(c, e.model, e.largest())
	})
	if err != nil {
		return err
	}
	defer func() {
		_ = e.dev.DoWithin(context.Background(), "free tensors", servingLimit, func(c *cuda.Context) error { return scratch.free(c) })
	}()
	l := newLane(providerTensorRT, len(e.buckets))
	l.model = e.model
	err = e.profiled(e.ctx, l, func(opts onnxruntime.SessionOptions) (err error) {
		opts.Providers = e.tensorRTProviders(nil, e.stream) // the engine holds what was built
		l.session, err = e.library.NewSession(content, opts)
		return err
	}, scratch, onnxruntime.TensorRTProvider, servingLimit)
	if err != nil {
		return err
	}
	if err := e.compare(l, scratch); err != nil {
		l.leave(e.ctx, e.dev)
		return err
	}
	return e.swap(l, precision)
}

// compare verifies every bucket of l and times the smallest and the largest.
func (e *DeviceEngine) compare(l *lane, scratch *deviceIO) error {
	last := len(e.buckets) - 1
	// The largest first: the memory that it takes serves the smaller ones.
	for k := last; k >= 0; k-- {
		err := e.try(e.ctx, l, scratch, k, servingLimit, func(a attempt) error {
			if k == 0 || k == last {
				return e.time(e.ctx, a, servingLimit)
			}
			return e.verify(e.ctx, a, servingLimit)
		})
		if err != nil {
			return err
		}
	}
	ours, theirs := l.times[last], e.cudaTime
	e.note(nil, "TensorRT %.2f ms, CUDA %.2f ms for %d images", ms(ours), ms(theirs), e.buckets[last])
	if e.opts.Provider == providerAuto && ours > theirs {
		return fmt.Errorf("it is slower here: %.2f ms against %.2f ms for %d images", ms(ours), ms(theirs), e.buckets[last])
	}
	return nil
}

// swap puts l into service between two batches and unloads what served.
func (e *DeviceEngine) swap(l *lane, precision string) error {
	var old *lane
	err := e.dev.DoWithin(e.ctx, "swap engine", servingLimit, func(c *cuda.Context) error {
		// What served may still be running, and its outputs still be read.
		if err := c.Synchronize(); err != nil {
			return err
		}
		for k, n := range e.buckets {
			if err := l.open(e.library, e.dev.GPU().Index, &e.io, n, k); err != nil {
				return err
			}
		}
		// Here, as the next run on the stream is of another session. What fails is
		// left behind, and the new engine serves all the same.
		if err := e.active.settleAll(); err != nil {
			e.opts.Logger.Warn("sessions of cuda stay loaded", "reason", words(err))
		}
		old, e.active = e.active, l
		return nil
	})
	if err != nil {
		if old == nil {
			l.leave(e.ctx, e.dev)
		}
		return err
	}
	// Not on the device's goroutine: serving goes on meanwhile.
	if err := e.await(context.Background(), func() error { old.free(); return nil }); err != nil {
		return err
	}
	e.note(func(i *infer.Info) {
		i.Provider, i.Precision, i.ProbeMS = providerTensorRT, precision, ms(l.times[0])
		clearGraphs(i)
	}, "TensorRT %s serves", precision)
	e.opts.Logger.Info("tensorrt serves", "precision", precision, "images", e.largest(), "ms", ms(l.times[len(l.times)-1]))
	return nil
}
