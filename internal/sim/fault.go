package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Faults is how one camera misbehaves. None is a camera in good health.
type Faults []fault

// fault is one word of it with its value and its times.
type fault struct {
	word
	count int           // of frames or packets
	span  time.Duration // of kinds after and period; counts where count is 0
	share float64       // 0..1; drift may be negative
	text  string
	when  window
}

// window is when a fault is at work, from the start of the cameras on. The zero
// value is always.
type window struct{ from, to, every time.Duration } // to 0 = for ever; every 0 = once

// holds says whether t is within the window.
func (w window) holds(t time.Duration) bool {
	if w.every > 0 && t >= w.from {
		t = w.from + (t-w.from)%w.every
	}
	return t >= w.from && (w.to == 0 || t < w.to)
}

// at gives the faults that are at work at t.
func (f Faults) at(t time.Duration) Faults {
	var now Faults
	for _, one := range f {
		if one.when.holds(t) {
			now = append(now, one)
		}
	}
	return now
}

// find gives the fault of a name; nil where there is none.
func (f Faults) find(name string) *fault {
	for i := range f {
		if f[i].name == name {
			return &f[i]
		}
	}
	return nil
}

func (f Faults) has(name string) bool { return f.find(name) != nil }

// standing gives those that a session is begun with.
func (f Faults) standing() string {
	var names []string
	for _, one := range f {
		if one.standing {
			names = append(names, one.name+one.text)
		}
	}
	return strings.Join(names, ",")
}

// reached says whether a session has come as far as an "after" asks.
func (f *fault) reached(frames int, session time.Duration) bool {
	if f == nil {
		return false
	}
	if f.count > 0 {
		return frames >= f.count
	}
	return session >= f.span
}

// Spec is what a text says of some cameras.
type Spec struct {
	cameras string // pattern of paths; "" = all
	faults  Faults
}

// ParseFaults reads
//
//	[CAMERAS:]FAULT[=VALUE][@FROM-TO[/EVERY]],…
//
// such as "stall", "loss=2%,dup", "cam3:half-open@30s-60s" or
// "cam[12]:reset-every=5s@10s-20s/1m". CAMERAS is a path or a pattern of paths,
// FROM, TO and EVERY count from the start of the cameras. A colon may stand for
// the equals sign. An empty text is no fault.
func ParseFaults(spec string) (Spec, error) {
	if strings.TrimSpace(spec) == "" {
		return Spec{}, nil
	}
	s, err := parseSpec(strings.TrimSpace(spec))
	if err != nil {
		return Spec{}, fmt.Errorf("parse fault %q: %w", spec, err)
	}
	return s, nil
}

func parseSpec(spec string) (Spec, error) {
	var s Spec
	if cameras, rest, ok := cutCameras(spec); ok {
		if _, err := path.Match(cameras, ""); err != nil {
			return Spec{}, fmt.Errorf("cameras %q: %w", cameras, err)
		}
		s.cameras, spec = cameras, rest
	}
	for part := range strings.SplitSeq(spec, ",") {
		one, err := parseFault(strings.TrimSpace(part))
		if err != nil {
			return Spec{}, err
		}
		for _, other := range s.faults {
			if other.name == one.name && other.when == one.when {
				return Spec{}, fmt.Errorf("%s is given twice", one.name)
			}
		}
		s.faults = append(s.faults, one)
	}
	return s, s.faults.check()
}

// cutCameras takes the cameras off the front: what stands before the first
// colon, where that is no fault with its value.
func cutCameras(spec string) (cameras, rest string, ok bool) {
	cameras, rest, ok = strings.Cut(spec, ":")
	if !ok || strings.ContainsAny(cameras, "=,@ ") {
		return "", "", false
	}
	if _, known := findWord(cameras); known {
		return "", "", false
	}
	next := rest[:len(rest)-len(strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyz0123456789+-"))]
	if _, known := findWord(next); !known && closest(cameras) != "" {
		return "", "", false // a fault with a slip, and its value
	}
	return cameras, rest, true
}

func parseFault(part string) (fault, error) {
	body, when, err := cutWindow(part)
	if err != nil {
		return fault{}, err
	}
	name, value := body, ""
	hasValue := false
	if i := strings.IndexAny(body, "=:"); i >= 0 {
		name, value, hasValue = body[:i], body[i+1:], true
	}
	w, ok := findWord(name)
	if !ok {
		return fault{}, unknownFault(name)
	}
	f := fault{word: w, when: when}
	if w.kind == noValue {
		if hasValue {
			return fault{}, fmt.Errorf("%s takes no value", name)
		}
		return f, nil
	}
	if !hasValue || value == "" {
		value = w.standard
	}
	return f, f.set(value)
}

// cutWindow takes the times off the end. A URL may hold an @ of its own.
func cutWindow(part string) (body string, w window, err error) {
	i := strings.LastIndex(part, "@")
	if i < 0 {
		return part, w, nil
	}
	if w, err = parseWindow(part[i+1:]); err == nil {
		return part[:i], w, nil
	}
	if strings.Contains(part[:i], "//") {
		return part, window{}, nil
	}
	return "", w, err
}

func parseWindow(text string) (window, error) {
	bad := fmt.Errorf("times %q: use @FROM-TO or @FROM-TO/EVERY, such as @30s-60s or @5s-10s/30s", text)
	span, every, repeats := strings.Cut(text, "/")
	from, to, ends := strings.Cut(span, "-")
	var w window
	var errs [3]error
	w.from, errs[0] = duration(from)
	if ends {
		w.to, errs[1] = duration(to)
	}
	if repeats {
		w.every, errs[2] = duration(every)
	}
	switch {
	case errors.Join(errs[:]...) != nil,
		ends && w.to <= w.from,
		repeats && (!ends || w.every < w.to-w.from):
		return window{}, bad
	}
	return w, nil
}

// duration reads a time that is not negative; a bare number is seconds.
func duration(text string) (time.Duration, error) {
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(n) * time.Second, nil
	}
	d, err := time.ParseDuration(text)
	if err == nil && d < 0 {
		return 0, errors.New("negative time")
	}
	return d, err
}

func (f *fault) set(value string) error {
	var err error
	switch f.kind {
	case frames, packets:
		if f.count, err = strconv.Atoi(value); err != nil || f.count < 1 || f.count > 1e9 {
			return fmt.Errorf("%s needs a number of %s from 1 on, such as %s=25", f.name, map[kind]string{frames: "frames", packets: "packets"}[f.kind], f.name)
		}
	case after:
		if n, err := strconv.Atoi(value); err == nil && n > 0 {
			f.count = n
		} else if f.span, err = duration(value); err != nil {
			return fmt.Errorf("%s needs a number of frames or a time, such as %s=25 or %s=5s", f.name, f.name, f.name)
		}
	case period:
		if f.span, err = duration(value); err != nil || f.span == 0 && f.name != faultNonce || f.span > maxFlap {
			return fmt.Errorf("%s needs a time up to an hour, such as %s=5s", f.name, f.name)
		}
	case percent:
		p, err := strconv.ParseFloat(strings.TrimSuffix(value, "%"), 64)
		lowest := 0.0
		if f.name == faultDrift {
			lowest = -50
		}
		if err != nil || !(p >= lowest && p <= 100) { // NaN compares false
			return fmt.Errorf("%s needs a percentage from %v to 100, such as %s=2.5%%", f.name, lowest, f.name)
		}
		f.share = p / 100
	case text, maybeText:
		if f.text = strings.TrimSpace(value); f.text == "" && f.kind == text {
			return fmt.Errorf("%s needs a URL, such as %s=rtsp://127.0.0.1:8554/cam2", f.name, f.name)
		}
	case noValue:
	}
	return nil
}

// check finds faults that leave nothing to do for each other.
func (f Faults) check() error {
	for _, pair := range [][2]string{
		{faultUDPOnly, faultTCPOnly},
		{faultNoVideo, faultCodec},
		{faultH265, faultMJPEG},
		{faultNoMarker, faultMarkers},
	} {
		a, b := f.find(pair[0]), f.find(pair[1])
		if a != nil && b != nil && a.when == (window{}) && b.when == (window{}) {
			return fmt.Errorf("%s and %s contradict each other", pair[0], pair[1])
		}
	}
	return nil
}

func unknownFault(name string) error {
	if best := closest(name); best != "" {
		return fmt.Errorf("unknown fault %q: did you mean %s?", name, best)
	}
	return fmt.Errorf("unknown fault %q: use one of %s", name, strings.Join(FaultNames(), ", "))
}

// closest is the fault that a misspelt one most likely means, or "".
func closest(name string) string {
	best, least := "", max(1, len(name)/3)+1
	for _, w := range words {
		for _, spelling := range append([]string{w.name}, w.other...) {
			if d := distance(name, spelling); d < least {
				best, least = spelling, d
			}
			if len(name) > 2 && strings.HasPrefix(spelling, name) && least > 1 {
				best, least = spelling, 1
			}
		}
	}
	return best
}

// distance is the number of letters to insert, delete or replace to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0]++
		for j := range len(b) {
			cost := corner
			if a[i] != b[j] {
				cost++
			}
			corner = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// faultsOf gives what the specs say of the camera at a path. flap becomes what
// it stands for, in an order of random.
func faultsOf(specs []Spec, camera Camera, random *rand.Rand) (Faults, error) {
	var all Faults
	for _, s := range specs {
		if s.cameras != "" {
			if hit, err := path.Match(s.cameras, camera.Path); err != nil || !hit {
				continue
			}
		}
		for _, f := range s.faults {
			if f.login && camera.User == "" {
				return nil, fmt.Errorf("fault %s asks for a login: give camera %s a user and a password", f.name, camera.Path)
			}
			if f.name == faultFlap {
				all = append(all, f.flap(camera.User != "", random)...)
				continue
			}
			all = append(all, f)
		}
	}
	return all, all.check()
}

// flap is every fault in turn, with a rest after each.
func (f fault) flap(login bool, random *rand.Rand) Faults {
	var all Faults
	for _, w := range words {
		if w.kind == text || w.name == faultFlap || w.login && !login {
			continue
		}
		one, err := parseFault(w.name)
		if w.name == faultClose {
			one, err = parseFault("close=25")
		}
		if err != nil {
			panic("sim: a fault's own value is wrong: " + err.Error())
		}
		all = append(all, one)
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	round := time.Duration(len(all)) * f.span
	for i := range all {
		from := time.Duration(i) * f.span
		all[i].when = window{from: from, to: from + f.span*2/3, every: round}
	}
	return all
}

// unmatched gives the first pattern that fits none of the cameras.
func unmatched(specs []Spec, cameras []Camera) (pattern string, found bool) {
	for _, s := range specs {
		fits := func(c Camera) bool {
			hit, err := path.Match(s.cameras, c.Path)
			return err == nil && hit
		}
		if s.cameras != "" && !slices.ContainsFunc(cameras, fits) {
			return s.cameras, true
		}
	}
	return "", false
}
