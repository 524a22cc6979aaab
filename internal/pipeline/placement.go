package pipeline

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"edgecam/internal/config"
	"edgecam/internal/pipeline/schedule"
	"edgecam/platform"
	"edgecam/platform/cuda"
	"edgecam/web"
)

const (
	// usualLoad is what a camera is taken for before its first picture: 25 pictures
	// of 1080p a second.
	usualLoad = 25 * 1920 * 1080
	// leaveWait is how long a camera that leaves a lost card may take to end before
	// the one in its place starts without waiting for it.
	leaveWait = 2 * time.Second
	// reopenFirst is how long a lost card is left alone before it is opened again; each
	// failure doubles the wait up to reopenLongest.
	reopenFirst, reopenLongest = 5 * time.Second, 10 * time.Minute
)

// The states of a card; their words are part of the HTTP contract.
const (
	gpuOK     = "ok"
	gpuLost   = "lost"
	gpuUnused = "unused"
)

// UnusedGPU is a card that was meant to serve and cannot.
type UnusedGPU struct {
	Card   platform.GPU
	Reason string
}

// bay is the place of one device: its station, or the last one while the card is
// lost.
type bay struct {
	// guarded by Pipeline.mu
	st       *station            // of inference.model
	stations map[string]*station // all of them, by modelKey
	lost     bool
	note     string // what is known beside the loss, e.g. when it is tried again
	opened   bool   // st's card was opened by the pipeline, which closes it
	empty    bool   // its stations have ended
}

// makeBays makes a station for each device.
func (p *Pipeline) makeBays(o Options) {
	key := p.models[config.DefaultModel].key
	for _, gpu := range o.GPUs {
		p.bays = append(p.bays, newBay(p.newStation(key, Loaded{GPU: gpu}, false)))
	}
	if len(o.GPUs) == 0 && o.Engine != nil {
		p.bays = append(p.bays, newBay(p.newStation(key, Loaded{Engine: o.Engine, ZeroStreak: o.ZeroStreak}, false)))
	}
}

func newBay(main *station) *bay {
	return &bay{st: main, stations: map[string]*station{main.key.model: main}}
}

// stations gives those that work; all of them where none does.
func (p *Pipeline) stations() []*station {
	p.mu.Lock()
	defer p.mu.Unlock()
	var up, all []*station
	for _, b := range p.bays {
		all = append(all, b.all()...)
		if b.usableLocked() {
			up = append(up, b.all()...)
		}
	}
	if len(up) == 0 {
		return all
	}
	return up
}

// usableLocked says whether cameras may be placed here.
func (b *bay) usableLocked() bool { return !b.lost && b.st.lost() == nil }

func (p *Pipeline) usableLocked() []bool {
	usable := make([]bool, len(p.bays))
	for i, b := range p.bays {
		usable[i] = b.usableLocked()
	}
	return usable
}

// place picks the station of a camera: the one that it is on, else the one with
// the least load. The station is that of a model there, of inference.model for "".
func (p *Pipeline) place(id, model string) *station {
	p.mu.Lock()
	defer p.mu.Unlock()
	usable := p.usableLocked()
	at, ok := p.homes[id]
	if !ok || !usable[at] {
		_, cameras := p.placedLocked(id)
		if to := schedule.Place(schedule.Loads(cameras, len(p.bays)), usable); to >= 0 {
			at = to
		}
	}
	p.homes[id] = at
	return p.bays[at].on(model)
}

// placedLocked gives all cameras with a place but one.
func (p *Pipeline) placedLocked(but string) (ids []string, cameras []schedule.Placed) {
	for _, id := range slices.Sorted(maps.Keys(p.homes)) {
		if id == but {
			continue
		}
		load := p.loads[id]
		if r, ok := p.cameras[id]; ok {
			if known := r.cam.load(); known > 0 {
				load, p.loads[id] = known, known
			}
		}
		if load == 0 {
			load = usualLoad
		}
		ids = append(ids, id)
		cameras = append(cameras, schedule.Placed{Load: load, Device: p.homes[id]})
	}
	return ids, cameras
}

// forget takes cameras that are gone out of the sums.
func (p *Pipeline) forget(ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		delete(p.homes, id)
		delete(p.loads, id)
	}
}

// load is what the camera brings, 0 while that is not known.
func (c *camera) load() float64 {
	if c.supervisor == nil {
		return 0
	}
	s := c.supervisor.Status()
	return c.streamFPS(&s) * float64(s.Width) * float64(s.Height)
}

// camerasOn gives the cameras of a station that are analysed.
func (p *Pipeline) camerasOn(s *station) []*camera {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []*camera
	for _, r := range p.cameras {
		if a := r.cam.at.Load(); a != nil && a.st == s && a.lane != nil {
			out = append(out, r.cam)
		}
	}
	return out
}

func (p *Pipeline) startStationLocked(s *station) {
	ctx := context.WithoutCancel(p.ctx)
	p.running.Go(func() error { return s.run(ctx, func() []*camera { return p.camerasOn(s) }) })
}

// watch looks after one card: when it is lost its cameras move to the others. Where
// there is no other they stay: pictures that the processor can decode go on, without
// analysis, and whoever runs the process may end it. A card whose context answers after
// all is opened again behind the scenes, and has its cameras again.
func (p *Pipeline) watch(ctx context.Context, b *bay) {
	for gpu := p.cardOf(b); gpu != nil; gpu = p.cardOf(b) {
		select {
		case <-ctx.Done():
			return
		case <-gpu.Lost():
		}
		p.lose(b)
		if !p.reopen(ctx, b) {
			return
		}
	}
}

// cardOf is the bay's card, nil on the processor.
func (p *Pipeline) cardOf(b *bay) *GPU {
	p.mu.Lock()
	defer p.mu.Unlock()
	return b.st.gpu.host()
}

// lose moves the cameras of a card that has just been lost.
func (p *Pipeline) lose(b *bay) {
	p.reload.Lock()
	defer p.reload.Unlock()
	p.mu.Lock()
	b.lost = true
	if !anyOf(p.usableLocked()) && !isClosed(p.outage) {
		close(p.outage)
	}
	p.mu.Unlock()
	err := b.st.lost()
	p.logger.Error("gpu lost", "gpu", b.st.gpu.card.Index, "err", err)
	if cuda.Faulted(err) {
		p.lookAtOthers()
	}
	p.rebalance()
}

// lookAtOthers finds out which cards this process can still use after a fault that may
// have taken all of them: cameras must not move to one that only fails later.
func (p *Pipeline) lookAtOthers() {
	p.mu.Lock()
	var others []*GPU
	for _, b := range p.bays {
		if b.usableLocked() {
			others = append(others, b.st.gpu.host())
		}
	}
	p.mu.Unlock()
	var looking sync.WaitGroup
	for _, gpu := range others {
		looking.Go(func() { gpu.look(context.WithoutCancel(p.ctx)) })
	}
	looking.Wait()
}

// rebalance moves cameras off lost cards, back to one that was opened again, and so
// that no card has much more than its share. p.reload is held.
func (p *Pipeline) rebalance() {
	p.mu.Lock()
	usable := p.usableLocked()
	if p.closed || !anyOf(usable) {
		closed := p.closed
		p.mu.Unlock()
		if !closed {
			p.closeEmpty()
		}
		return
	}
	ids, cameras := p.placedLocked("")
	moved := schedule.Balance(cameras, usable)
	to := map[string]int{}
	for _, i := range moved {
		to[ids[i]] = cameras[i].Device
		p.homes[ids[i]] = cameras[i].Device
	}
	for i, id := range ids { // that stayed with their card although it was lost
		if at := cameras[i].Device; usable[at] && p.strandedLocked(id, p.bays[at]) {
			to[id] = at
		}
	}
	current := p.current
	p.mu.Unlock()
	if len(to) > 0 {
		p.logger.Warn("cameras move", "cameras", slices.Sorted(maps.Keys(to)))
		p.remake(slices.Sorted(maps.Keys(to)), current.Cameras)
	}
	p.closeEmpty()
}

// strandedLocked says whether a camera is on a station of the bay's that has ended.
func (p *Pipeline) strandedLocked(id string, b *bay) bool {
	r, ok := p.cameras[id]
	if !ok {
		return false
	}
	st := r.cam.station()
	return st != nil && !slices.Contains(b.all(), st)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func anyOf(all []bool) bool { return slices.Contains(all, true) }

// closeEmpty ends the stations of lost cards that no camera is on any more, or that no
// camera can leave as there is no other card: nothing is analysed there either way.
func (p *Pipeline) closeEmpty() {
	p.mu.Lock()
	alone := !anyOf(p.usableLocked())
	used := make([]bool, len(p.bays))
	for _, at := range p.homes {
		used[at] = true
	}
	var ending []*bay
	for i, b := range p.bays {
		if b.lost && (alone || !used[i]) && !b.empty && len(p.left) == 0 {
			ending = append(ending, b)
		}
	}
	p.mu.Unlock()
	for _, b := range ending {
		for _, s := range b.all() {
			s.stop()
			<-s.done
		}
		p.mu.Lock()
		b.empty = true
		p.mu.Unlock()
	}
}

// remake stops cameras and builds them anew where they now belong, with their
// viewers and their count of pictures. p.reload is held.
func (p *Pipeline) remake(ids []string, from map[string]config.Camera) {
	fresh := map[string]*camera{}
	for _, id := range ids {
		cam, err := p.newCamera(id, from[id])
		if err != nil {
			p.logger.Error("camera stays where it is", "err", err) // it was built of the same before
			p.stay(id)
			continue
		}
		fresh[id] = cam
	}
	p.hand(fresh)
	leaving := awaitAll(p.replace(fresh), leaveWait)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = append(p.left, leaving...)
}

// stay takes a camera's move back.
func (p *Pipeline) stay(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, b := range p.bays {
		if slices.Contains(b.all(), p.cameras[id].cam.station()) {
			p.homes[id] = i
		}
	}
}

// replace ends cameras and starts others in their places, each once its predecessor
// has ended, or has had the time for it: a decoder may hang in a card that is lost.
// Nothing of those that end is shown or published any more.
func (p *Pipeline) replace(fresh map[string]*camera) (ending []*running) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, cam := range fresh {
		old := p.cameras[id]
		old.cam.retire()
		old.cancel()
		ending = append(ending, old)
		p.cameras[id] = &running{cam: cam}
		p.startAfterLocked(p.cameras[id], old.done)
	}
	return ending
}

// awaitAll waits for cameras to end, no longer than limit for all of them, and
// gives those that have not.
func awaitAll(ending []*running, limit time.Duration) (left []*running) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	over := false
	for _, r := range ending {
		if !over {
			select {
			case <-r.done:
			case <-timer.C:
				over = true
			}
		}
		if !isClosed(r.done) {
			left = append(left, r)
		}
	}
	return left
}

// awaitStopped waits for cameras to end, for those whose card is lost no longer than
// leaveWait: what is still in their decoders is of no interest.
func (p *Pipeline) awaitStopped(ending []*running) {
	var slow []*running
	for _, r := range ending {
		select {
		case <-r.done:
		case <-r.cam.gpu().lostOrNever():
			slow = append(slow, r)
		}
	}
	left := awaitAll(slow, leaveWait)
	for _, r := range left {
		r.cam.retire()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = append(p.left, left...)
}

// awaitLeft gives cameras that hang in a lost card a last chance to end.
func (p *Pipeline) awaitLeft() {
	if left := awaitAll(p.left, leaveWait); len(left) > 0 {
		p.logger.Warn("cameras of a lost gpu have not ended", "cameras", len(left))
	}
}

// closeReopened closes the cards that the pipeline opened itself, once nothing
// runs any more.
func (p *Pipeline) closeReopened() {
	for _, b := range p.bays {
		if b.opened {
			b.st.gpu.host().Close()
		}
	}
}

// Lost is closed while no card is left that works. It never is without cards.
func (p *Pipeline) Lost() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.outage
}

// LostErr is why no card works any more, nil while one does.
func (p *Pipeline) LostErr() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var first error
	for _, b := range p.bays {
		err := b.st.lost()
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// gpus is what the API says of the cards, with those that do not serve.
func (p *Pipeline) gpus() []web.GPU {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := []web.GPU{}
	cameras := make([]int, len(p.bays))
	for _, at := range p.homes {
		cameras[at]++
	}
	for i, b := range p.bays {
		if b.st.gpu == nil {
			continue
		}
		card := &b.st.gpu.card
		use := b.utilisation()
		g := web.GPU{Index: card.Index, UUID: card.UUID, Name: card.Name, Cameras: cameras[i], Utilisation: use, State: gpuOK}
		if err := b.st.lost(); err != nil {
			g.State, g.Reason, g.Utilisation = gpuLost, err.Error(), 0
			if b.note != "" {
				g.Reason += "; " + b.note
			}
		}
		out = append(out, g)
	}
	for _, u := range p.unused {
		out = append(out, web.GPU{Index: u.Card.Index, UUID: u.Card.UUID, Name: u.Card.Name, State: gpuUnused, Reason: u.Reason})
	}
	return out
}
