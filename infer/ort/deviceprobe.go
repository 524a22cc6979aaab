package ort

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"edgecam/infer"
	"edgecam/platform/cuda"
	"edgecam/platform/onnxruntime"
)

// halfGain is how much of fp32's time fp16 may take to be chosen.
const halfGain = 0.97

// attempt is a bucket of a lane over memory of its own choice, to be tried with
// the test picture before anything is served.
type attempt struct {
	l      *lane
	b      *deviceBound
	d      *deviceIO
	k      int
	replay bool
}

// try binds bucket k of l to d for as long as f takes.
func (e *DeviceEngine) try(ctx context.Context, l *lane, d *deviceIO, k int, limit time.Duration, f func(attempt) error) error {
	a := attempt{l: l, d: d, k: k}
	err := e.dev.DoWithin(ctx, "bind tensors", limit, func(*cuda.Context) (err error) {
		a.b, err = l.bind(e.library, e.dev.GPU().Index, d, e.buckets[k], k, noGraph)
		return err
	})
	if err != nil {
		return err
	}
	err = f(a)
	// On a lost device this is not reached: a run that hangs may use the binding.
	return errors.Join(err, e.dev.DoWithin(context.WithoutCancel(ctx), "unbind tensors", limit, func(*cuda.Context) error {
		a.b.close()
		return nil
	}))
}

// chooseLane loads the precisions on CUDA, tries each with the test picture and
// keeps the faster one of those that agree with the CPU. The lane has sessions
// for the smallest and the largest bucket, at which precisions are compared.
func (e *DeviceEngine) chooseLane(ctx context.Context, precisions []string, graphs bool) (best *lane, err error) {
	k := len(e.buckets) - 1
	for i, p := range precisions {
		l, err := e.tryCUDA(ctx, p, graphs)
		if err != nil {
			if i == 0 || e.dev.Err() != nil {
				if best != nil {
					best.leave(ctx, e.dev)
				}
				return nil, e.refusal(err)
			}
			e.noteQuietly("%s not used: %v", p, words(err))
			continue
		}
		if best == nil {
			best = l
			continue
		}
		winner, loser := best, l
		if float64(l.times[k]) <= halfGain*float64(best.times[k]) {
			winner, loser = l, best
		}
		e.noteQuietly("%s %.2f ms, %s %.2f ms for %d images: %s", best.model.precision, ms(best.times[k]),
			l.model.precision, ms(l.times[k]), e.buckets[k], winner.model.precision)
		loser.leave(ctx, e.dev)
		best = winner
	}
	return best, nil
}

func (e *DeviceEngine) noteQuietly(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.info.ProbeNotes = append(e.info.ProbeNotes, fmt.Sprintf(format, args...))
}

// tryCUDA loads one version of the model and proves it: the profile says where
// its nodes ran, the picture that they gave the CPU's answer. The smallest and
// the largest bucket are timed, each in the session that will serve it.
func (e *DeviceEngine) tryCUDA(ctx context.Context, precision string, graphs bool) (*lane, error) {
	options := map[string]string{}
	if graphs {
		options["enable_cuda_graph"] = "1"
	}
	providers := []onnxruntime.Provider{{Name: onnxruntime.CUDAProvider, Device: e.dev.GPU().Index, Stream: uintptr(e.stream), Options: options}}
	l := newLane(providerCUDA, len(e.buckets))
	l.graphs = graphs
	l.more = func() (*onnxruntime.Session, error) {
		m, err := loadModelFor(e.library, e.opts.source, precision, onnxruntime.SessionOptions{Providers: providers})
		if err != nil {
			return nil, err
		}
		return m.session, nil
	}
	d := &e.io[0]
	err := e.profiled(ctx, l, func(opts onnxruntime.SessionOptions) (err error) {
		opts.Providers = providers
		if l.model, err = loadModelFor(e.library, e.opts.source, precision, opts); err == nil {
			l.session = l.model.session
		}
		return err
	}, d, onnxruntime.CUDAProvider, stepLimit)
	if err != nil {
		return nil, err
	}
	for _, k := range e.firstBuckets() {
		if err = e.load(ctx, l, k); err == nil {
			err = e.try(ctx, l, d, k, stepLimit, func(a attempt) error { return e.time(ctx, a, stepLimit) })
		}
		if err != nil {
			l.leave(ctx, e.dev)
			return nil, err
		}
	}
	return l, nil
}

// firstBuckets are the places of the buckets that serve first.
func (e *DeviceEngine) firstBuckets() []int {
	if last := len(e.buckets) - 1; last > 0 {
		return []int{0, last}
	}
	return []int{0}
}

// profiled makes l's session with a profile, runs the picture alone through it
// over d and wants the profile to name the provider. Without a directory for
// the profile only the answer is proof.
func (e *DeviceEngine) profiled(ctx context.Context, l *lane, load func(onnxruntime.SessionOptions) error, d *deviceIO, provider string, limit time.Duration) error {
	var opts onnxruntime.SessionOptions
	dir, err := os.MkdirTemp("", "edgecam-profile-")
	if err == nil {
		defer os.RemoveAll(dir) //nolint:errcheck // what is left is small and in the temporary directory
		opts.Profile = filepath.Join(dir, "nodes")
	} else {
		e.noteQuietly("nodes not listed: %v", err)
	}
	// Whoever ends ctx waits for this: the session uses the stream, which Close
	// frees.
	if err := e.await(context.WithoutCancel(ctx), func() error { return load(opts) }); err != nil {
		return err
	}
	err = e.try(ctx, l, d, 0, limit, func(a attempt) error { return e.verify(ctx, a, limit) })
	if err == nil && opts.Profile != "" {
		err = e.proveNodes(l, provider)
	}
	if err != nil {
		l.leave(ctx, e.dev)
	}
	return err
}

// await runs f, which no context reaches, on a goroutine of its own, and leaves
// it behind when ctx ends or the device is lost. It holds the device until f is over.
func (e *DeviceEngine) await(ctx context.Context, f func() error) error {
	end, err := e.dev.Hold()
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() {
		defer end()
		done <- f()
	}()
	select {
	case err := <-done:
		return err
	case <-e.dev.Lost():
		return e.dev.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *DeviceEngine) proveNodes(l *lane, provider string) error {
	runs, err := l.session.EndProfile()
	if err != nil {
		return err
	}
	text, err := proveProvider(runs, provider)
	if err == nil {
		e.noteQuietly("%s: %s", l.provider, text)
	}
	return err
}

// proveProvider wants the nodes that multiply to have run on the provider, and
// most of the others: a few that compute shapes belong on the CPU.
func proveProvider(runs []onnxruntime.NodeRuns, provider string) (string, error) {
	all, mine := 0, 0
	var slow []onnxruntime.NodeRuns
	for _, r := range runs {
		all += r.Count
		if r.Provider == onnxruntime.CPUProvider {
			slow = append(slow, r)
		}
		if r.Provider == provider {
			mine += r.Count
			continue
		}
		for _, heavy := range []string{"Conv", "MatMul", "Gemm"} {
			if strings.Contains(r.Op, heavy) {
				return "", fmt.Errorf("%d nodes %s run on %s instead of %s", r.Count, r.Op, r.Provider, provider)
			}
		}
	}
	if mine == 0 || 2*mine < all {
		return "", fmt.Errorf("%s runs only %d of %d nodes", provider, mine, all)
	}
	return fmt.Sprintf("runs %d of %d nodes", mine, all) + onCPU(slow), nil
}

// onCPU names the most frequent kinds of nodes that run on the CPU: each makes the
// card wait, of which a model may be slow.
func onCPU(runs []onnxruntime.NodeRuns) string {
	if len(runs) == 0 {
		return ""
	}
	slices.SortFunc(runs, func(a, b onnxruntime.NodeRuns) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Op, b.Op))
	})
	var kinds []string
	for _, r := range runs[:min(3, len(runs))] {
		kinds = append(kinds, fmt.Sprintf("%d %s", r.Count, r.Op))
	}
	if len(runs) > len(kinds) {
		kinds = append(kinds, "…")
	}
	return ", on the CPU: " + strings.Join(kinds, ", ")
}

// verify runs an attempt with the picture as its last image and compares that
// image's outputs with the CPU's.
func (e *DeviceEngine) verify(ctx context.Context, a attempt, limit time.Duration) error {
	var raw [][]byte
	err := e.dev.DoWithin(ctx, "try the test picture", limit, func(c *cuda.Context) (err error) {
		raw, err = e.exercise(c, a)
		return err
	})
	if err != nil {
		return err
	}
	got, err := a.l.model.answer(raw)
	if err == nil {
		err = agree(e.want, got)
	}
	if err != nil {
		return fmt.Errorf("%s, batch of %d: %w", a.l.provider, e.buckets[a.k], err)
	}
	return nil
}

// exercise gives the outputs of the last image of an attempt. What its memory
// held before cannot pass for them: it is overwritten with NaN.
func (e *DeviceEngine) exercise(c *cuda.Context, a attempt) ([][]byte, error) {
	m, d, n := a.l.model, a.d, e.buckets[a.k]
	in := m.encode(e.picture)
	if err := c.Fill(d.input.at, 0, d.input.size, e.stream); err != nil {
		return nil, err
	}
	for _, o := range d.outputs {
		if err := c.Fill(o.at, 0xff, o.size, e.stream); err != nil {
			return nil, err
		}
	}
	steps := []func() error{
		func() error { return c.Wait(e.stream) },
		func() error { return c.CopyInNow(d.input.at+cuda.DevicePtr((n-1)*len(in)), in) },
		func() error { return a.b.run(a.replay) },
		func() error { return c.Wait(e.stream) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	raw := make([][]byte, len(m.outputs))
	for i := range m.outputs {
		p := &m.outputs[i]
		raw[i] = make([]byte, p.values*p.element.Size())
		if err := c.CopyOutNow(raw[i], d.outputs[i].at+cuda.DevicePtr((n-1)*len(raw[i]))); err != nil {
			return nil, err
		}
	}
	return raw, nil
}

// time verifies an attempt, which warms it up, and measures it.
func (e *DeviceEngine) time(ctx context.Context, a attempt, limit time.Duration) error {
	if err := e.verify(ctx, a, limit); err != nil {
		return err
	}
	took, err := e.clock(ctx, a, limit)
	if err == nil {
		a.l.times[a.k] = took
	}
	return err
}

// clock gives the median time of a run, waited for.
func (e *DeviceEngine) clock(ctx context.Context, a attempt, limit time.Duration) (time.Duration, error) {
	times := make([]time.Duration, 0, probeRuns)
	err := e.dev.DoWithin(ctx, "time the engine", limit, func(c *cuda.Context) error {
		for range probeRuns {
			start := time.Now()
			if err := a.b.run(a.replay); err != nil {
				return err
			}
			if err := c.Wait(e.stream); err != nil {
				return err
			}
			times = append(times, time.Since(start))
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return middle(times), nil
}

// loadModelAny loads a model for the CPU whose ports may be float16.
func loadModelAny(library *onnxruntime.Library, src source, precision string) (*model, error) {
	return loadModelWith(library, src, precision, onnxruntime.SessionOptions{}, true)
}

// runOnCPU runs one image, given as the input tensor takes it, as the last of
// those that a run takes at least.
func runOnCPU(library *onnxruntime.Library, m *model, input []byte) (answer, error) {
	n := max(m.batch, 1)
	binding, err := m.session.NewBinding()
	if err != nil {
		return answer{}, err
	}
	defer binding.Close()
	in, err := library.NewTensorOf(m.input.element, m.input.shape(n)...)
	if err != nil {
		return answer{}, err
	}
	defer in.Close()
	copy(in.Bytes()[len(in.Bytes())-len(input):], input)
	if err := binding.Input(m.input.name, in); err != nil {
		return answer{}, err
	}
	sizes, err := m.newSizes(library, n)
	if err != nil {
		return answer{}, err
	}
	if sizes != nil {
		defer sizes.Close()
		if err := binding.Input(m.sizes.Name, sizes); err != nil {
			return answer{}, err
		}
	}
	raw := make([][]byte, len(m.outputs))
	for i := range m.outputs {
		p := &m.outputs[i]
		t, err := library.NewTensorOf(p.element, p.shape(n)...)
		if err != nil {
			return answer{}, err
		}
		defer t.Close()
		if err := binding.Output(p.name, t); err != nil {
			return answer{}, err
		}
		raw[i] = t.Bytes()[len(t.Bytes())-p.values*p.element.Size():]
	}
	if err := binding.Run(); err != nil {
		return answer{}, err
	}
	return m.answer(raw)
}

// refusal makes an error of the GPU's side a *ProviderError; those of the
// device itself and of a cancelled context stay as they are.
func (e *DeviceEngine) refusal(err error) error {
	var lost *cuda.LostError
	if errors.As(err, &lost) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, cuda.ErrDeviceClosed) {
		return err
	}
	var refused *ProviderError
	if errors.As(err, &refused) {
		return err
	}
	var m *infer.ModelError
	if errors.As(err, &m) { // the CPU took the model, so the provider is what refuses
		err = m.Err
	}
	return &ProviderError{Provider: "CUDA", Err: err, Hint: "run edgecam doctor, which lists the libraries that are found and missing"}
}
