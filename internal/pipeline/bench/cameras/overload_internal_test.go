package cameras

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"edgecam/internal/config"
	"edgecam/internal/pipeline"
	"edgecam/internal/pipeline/schedule"
	"edgecam/web"
)

func about(a, b float64) bool { return math.Abs(a-b) <= 0.01*math.Abs(b)+1e-6 }

func claims(wish float64, weights ...float64) map[string]schedule.Claim {
	all := map[string]schedule.Claim{}
	for i, w := range weights {
		all[fmt.Sprintf("cam%d", i+1)] = schedule.Claim{Wish: wish, Weight: w}
	}
	return all
}

// idle gives the claims where some of the cameras have nothing to see.
func idle(all map[string]schedule.Claim, ids ...string) map[string]schedule.Claim {
	all = maps.Clone(all)
	for _, id := range ids {
		c := all[id]
		c.Idle = true
		all[id] = c
	}
	return all
}

func TestExpectedShares(t *testing.T) {
	for _, c := range []struct {
		name     string
		moments  []moment
		analysed map[string]float64
		want     map[string]float64
	}{
		{
			"by weight, of what was analysed in all",
			[]moment{{claims: claims(5, 1, 2, 4)}},
			map[string]float64{"cam1": 3, "cam2": 2, "cam3": 2},
			map[string]float64{"cam1": 1, "cam2": 2, "cam3": 4},
		},
		{
			"none more than it asks for",
			[]moment{{claims: claims(5, 1, 2, 10)}},
			map[string]float64{"cam1": 2, "cam2": 4, "cam3": 5},
			map[string]float64{"cam1": 2, "cam2": 4, "cam3": 5},
		},
		{
			"enough for all",
			[]moment{{claims: claims(5, 1, 2)}},
			map[string]float64{"cam1": 5.05, "cam2": 5.05},
			map[string]float64{"cam1": 5, "cam2": 5},
		},
		{
			"each card shares out what it did itself",
			[]moment{{claims: claims(5, 1, 1, 3), cards: map[string]string{"cam1": "a", "cam2": "b", "cam3": "b"}}},
			map[string]float64{"cam1": 4, "cam2": 2, "cam3": 2},
			map[string]float64{"cam1": 4, "cam2": 1, "cam3": 3},
		},
		{
			"a card that did nothing has nothing to share out",
			[]moment{{claims: claims(5, 1, 1), cards: map[string]string{"cam1": "a", "cam2": "b"}}},
			map[string]float64{"cam1": 4},
			map[string]float64{"cam1": 4, "cam2": 0},
		},
		{
			"idle for a third of the time",
			[]moment{
				{claims: claims(9, 1, 1)}, {claims: claims(9, 1, 1)}, {claims: idle(claims(9, 1, 1), "cam2")},
			},
			map[string]float64{"cam1": 5, "cam2": 5},
			map[string]float64{"cam1": (5 + 5 + 8) / 3., "cam2": (5 + 5 + 2) / 3.},
		},
	} {
		got := expected(c.moments, c.analysed)
		if !maps.EqualFunc(got, c.want, about) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestFurthest(t *testing.T) {
	should := map[string]float64{"cam1": 1, "cam2": 2, "cam3": 4, "cam4": 0}
	for _, c := range []struct {
		name    string
		had     map[string]float64
		seconds float64
		want    string
		percent float64
	}{
		{"as it should be", map[string]float64{"cam1": 1, "cam2": 2, "cam3": 4}, 100, "", 0},
		{"less and more", map[string]float64{"cam1": 0.9, "cam2": 2.4, "cam3": 4}, 100, "cam2", 20},
		{"nothing", map[string]float64{"cam1": 1, "cam2": 2, "cam3": 0}, 100, "cam3", -100},
		// One picture of ten is the edge of the trial, two are not.
		{"one picture less", map[string]float64{"cam1": 0.9, "cam2": 2, "cam3": 4}, 10, "", 0},
		{"two pictures less", map[string]float64{"cam1": 0.8, "cam2": 2, "cam3": 4}, 10, "cam1", -20},
	} {
		if f := furthest(c.had, should, c.seconds); f.Camera != c.want || !about(f.Percent, c.percent) {
			t.Errorf("%s: %+v, want %s %.0f %%", c.name, f, c.want, c.percent)
		}
	}
}

// kept is an overload that keeps the promise.
func kept() *Overload {
	stages := func(p95 float64) []Stage { return []Stage{{}, {}, {}, {Percentiles: Percentiles{P95: p95}}} }
	return &Overload{
		Times: 2, Can: 12, P95: 1.1, ResidentStart: 100 << 20, ResidentEnd: 120 << 20, ResidentMost: 130 << 20,
		Ease:   &Trial{Cameras: 6, Stages: stages(50)},
		Loaded: &Trial{Cameras: 24, Stages: stages(55), AnalysedShare: 0.6, Governor: &Governor{Reason: "busy"}},
	}
}

func TestOverloadInWords(t *testing.T) {
	for want, change := range map[string]func(*Overload){
		"": func(*Overload) {},
		"p95 1.31 times that at ease, at most 1.2 is promised": func(o *Overload) { o.P95 = 1.31 },
		"resident memory rose by 22 %":                         func(o *Overload) { o.ResidentEnd = 122 << 20 },
		"camera cam017 had 0.84 of its share":                  func(o *Overload) { o.Furthest = Furthest{Camera: "cam017", Percent: -16} },
		"camera cam017 had 1.16 of its share":                  func(o *Overload) { o.Furthest = Furthest{Camera: "cam017", Percent: 16} },
		"2 cameras stalled or had to be called again; p95 1.21 times that at ease, at most 1.2 is promised": func(o *Overload) {
			o.P95, o.Loaded.Stalls = 1.21, 2
		},
		"24 cameras were no overload: every one was analysed as asked for": func(o *Overload) {
			o.Loaded.Governor, o.Loaded.AnalysedShare = nil, 1
		},
		"6 cameras are no ease: rates were lowered, pictures got old": func(o *Overload) {
			o.Ease.Governor = &Governor{Reason: "pictures got old"}
		},
		"nothing was analysed, so that no age is known": func(o *Overload) { o.P95 = 0 },
	} {
		o := kept()
		change(o)
		if got := o.judge(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	// The age and the memory at the bound, and a camera just within it.
	o := kept()
	o.P95, o.ResidentEnd, o.Furthest = 1.2, 121<<20, Furthest{Camera: "cam1", Percent: -10}
	if got := o.judge(); got != "" {
		t.Errorf("at the bounds: %q", got)
	}
}

// crowd is a box that analyses so many pictures a second, with a governor that takes
// a while to find that out. Each camera asks for 5.
type crowd struct {
	box

	can    float64
	steps  time.Duration // that the governor takes to be settled
	unfair string        // a camera that gets less than its share
	old    bool          // frames get old under overload
	grows  bool          // so does the memory
	idle   string        // a camera with nothing to see
	down   bool          // a camera is not live once there are many

	priorities map[int][]int // of the cameras, by their number
	measured   time.Duration // from the reload to the first look at the memory
}

const wishOfCrowd = 5

func (x *crowd) Reload(cfg *config.Config) (config.Changes, error) {
	var all []int
	for _, id := range slices.Sorted(maps.Keys(cfg.Cameras)) {
		all = append(all, cfg.Cameras[id].Detect.Priority)
	}
	x.priorities[len(all)] = all
	x.measured = 0
	return x.box.Reload(cfg)
}

func (x *crowd) Claims() map[string]schedule.Claim {
	all := map[string]schedule.Claim{}
	for i, p := range x.priorities[x.n] {
		id := fmt.Sprintf("cam%03d", i+1)
		all[id] = schedule.Claim{Wish: wishOfCrowd, Weight: float64(p), Idle: id == x.idle}
	}
	return all
}

func (x *crowd) overloaded() bool { return float64(x.n*wishOfCrowd) > x.can }

func (x *crowd) System() web.System {
	g := web.Governor{AskedFPS: float64(x.n * wishOfCrowd), AllowedFPS: float64(x.n * wishOfCrowd)}
	if since := time.Since(x.began); x.overloaded() && since > x.steps/4 {
		g.Reducing, g.Reason, g.Cameras = true, "the engine cannot keep up", x.n
		// It goes down step by step, and then up and down a little for ever.
		g.AllowedFPS = x.can * (1 + 3*max(0, 1-since.Seconds()/x.steps.Seconds()) + 0.03*math.Sin(since.Seconds()))
	}
	return web.System{Governor: g}
}

func (x *crowd) Cameras() []web.Camera {
	all := x.Claims()
	level := schedule.Level(slices.Collect(maps.Values(all)), x.can)
	age := 40 * time.Millisecond
	if x.old && x.overloaded() {
		age *= 2
	}
	var out []web.Camera
	for _, id := range slices.Sorted(maps.Keys(all)) {
		c := all[id]
		fps := c.Share(level)
		if id == x.unfair {
			fps *= 0.7
		}
		seconds := time.Since(x.began).Seconds()
		cam := web.Camera{ID: id, State: "live", Frames: uint64(10 * seconds), Inferred: uint64(fps * seconds)}
		if x.down && x.overloaded() && seconds > 20 {
			cam.State = "stalled"
		}
		if id == x.broken {
			cam.State = "backoff"
		}
		cam.Dropped = map[string]uint64{"rate": cam.Frames - cam.Inferred}
		out = append(out, cam)
		x.b.Observe(pipeline.Result{Camera: id, Published: age})
	}
	return out
}

func (x *crowd) resident() int64 {
	if x.measured == 0 {
		x.measured = time.Since(x.began)
	}
	if x.grows {
		return 100<<20 + int64(time.Since(x.began)/time.Second)<<20
	}
	return 100 << 20
}

// rehearse runs a rehearsal on a box that can do 12 cameras of 5 pictures a second.
func rehearse(t *testing.T, x *crowd, o Options) *Report {
	t.Helper()
	x.b, x.can, x.priorities = New(), 60, map[int][]int{}
	if x.steps == 0 {
		x.steps = 12 * time.Second
	}
	o.Pipeline, o.Config, o.SourceFPS, o.DetectFPS, o.resident = x, configOf, 10, wishOfCrowd, x.resident
	o.P95, o.Duration = 80*time.Millisecond, 30*time.Second
	if o.Overload == 0 {
		o.Overload = 2
	}
	if o.Cameras == 0 {
		o.Cameras = 12
	}
	r, err := x.b.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &crowd{}
		r := rehearse(t, x, Options{})
		o := r.Overload
		if o == nil || o.Fails != "" || o.Ease.Cameras != 6 || o.Loaded.Cameras != 24 || !about(o.P95, 1) || !o.Settled {
			t.Fatalf("overload %+v", o)
		}
		if got := fmt.Sprint(x.reloads); got != "[6 24]" {
			t.Errorf("trials of %s cameras", got)
		}
		if got := fmt.Sprint(x.priorities[6], x.priorities[24][:7]); got != "[1 1 1 1 1 1] [1 2 4 1 2 4 1]" {
			t.Errorf("priorities %s", got)
		}
		// 12 s until what is allowed stays, and then long enough to see that it does.
		if x.measured < 16*time.Second || x.measured > 25*time.Second {
			t.Errorf("it was measured after %v", x.measured)
		}
		level := 60. / 56
		for i, want := range []Share{{1, 8, 0, level, level}, {2, 8, 0, 2 * level, 2 * level}, {4, 8, 0, 4 * level, 4 * level}} {
			if s := o.Shares[i]; s.Weight != want.Weight || s.Cameras != 8 || math.Abs(s.FPS-want.FPS) > 0.05 || math.Abs(s.ExpectedFPS-want.ExpectedFPS) > 0.05 {
				t.Errorf("share %+v, want %+v", s, want)
			}
		}
		if o.Loaded.Governor == nil || o.Loaded.Dropped["rate"] == 0 || o.ResidentStart != 100<<20 {
			t.Errorf("overload %+v, trial %+v", o, o.Loaded)
		}
		var text strings.Builder
		if err := r.Table(&text); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"overload, 2 times the 12 cameras that the box can do", "with 6 cameras, at ease;", "with 24, 1.00 times that",
			"120.0 asked for, 60.0 analysed", "resident memory: 100 MiB at the start, 100 at the end, 100 at most",
			"no camera is further from its share than the edge of the trial; idle at the end: 0, changed: 0",
			"for 24 cameras: the engine cannot keep up", "not analysed: rate ", "the promise is kept: ",
		} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("no %q in\n%s", want, text.String())
			}
		}
	})
}

func TestOverloadMisses(t *testing.T) {
	for _, c := range []struct {
		name    string
		box     crowd
		o       Options
		want    string
		settled bool
	}{
		{"old frames", crowd{old: true}, Options{}, "p95 2.0", true},
		{"memory", crowd{grows: true}, Options{}, "resident memory rose by ", true},
		{"an unfair share", crowd{unfair: "cam003"}, Options{}, "camera cam003 had 0.7", true},
		{"a camera down", crowd{down: true}, Options{}, "24 cameras stalled or had to be called again", true},
		{"one does not come up", crowd{box: box{broken: "cam020"}}, Options{}, "only 23 of 24 cameras came up; cam020 is backoff: ", false},
		{"a governor that finds no end", crowd{steps: time.Hour}, Options{}, "", false},
		{"no overload", crowd{}, Options{Cameras: 4}, "8 cameras were no overload: every one was analysed as asked for", false},
		{"no ease", crowd{}, Options{Cameras: 40}, "20 cameras are no ease: rates were lowered, the engine cannot keep up", true},
		{"a single camera", crowd{}, Options{Cameras: 1}, "2 cameras were no overload: every one was analysed as asked for", false},
		{"an idle scene has a quarter", crowd{idle: "cam003"}, Options{}, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := rehearse(t, &c.box, c.o).Overload
				if c.want == "" && o.Fails != "" || !strings.HasPrefix(o.Fails, c.want) || o.Settled != c.settled {
					t.Errorf("got %q, want %q, settled %v after %v s", o.Fails, c.want, o.Settled, o.SettledSeconds)
				}
				if o.Loaded.Fails != o.Fails || o.SettledSeconds > 50 {
					t.Errorf("the trial says %q, settled after %v s", o.Loaded.Fails, o.SettledSeconds)
				}
				var text strings.Builder
				if err := (&Report{Overload: o}).Table(&text); err != nil || o.Fails != "" && !strings.Contains(text.String(), o.Fails) {
					t.Errorf("%v\n%s", err, text.String())
				}
				if c.box.idle != "" && (o.Idle != 1 || o.Shares[2].Idle != 1) {
					t.Errorf("%d idle, %+v", o.Idle, o.Shares)
				}
			})
		})
	}
}

// After a search, its number is what is exceeded, and its trials keep their priority.
func TestOverloadOfSearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &crowd{}
		r := rehearse(t, x, Options{FindMax: true, Cameras: 3, Most: 40, Overload: 1.5})
		if r.Max != 12 || r.Best == nil || r.Overload == nil || r.Overload.Fails != "" || r.Overload.Ease.Cameras != 6 || r.Overload.Loaded.Cameras != 18 {
			t.Errorf("max %d, %+v", r.Max, r.Overload)
		}
		for n, p := range x.priorities {
			if n != 18 && slices.Max(p) != 1 {
				t.Errorf("the trial of %d had the priorities %v", n, p)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := rehearse(t, &crowd{old: true, steps: time.Nanosecond}, Options{FindMax: true, Cameras: 13, Most: 13})
		if r.Overload == nil {
			t.Fatal("no rehearsal")
		}
		var text strings.Builder
		if err := r.Table(&text); err != nil {
			t.Error(err)
		}
	})
}
