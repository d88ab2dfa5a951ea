package trace

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// course goes through the snapshots of all targets and gathers what happened
// between them.
type course struct {
	f       *feed
	figures []presetFigure
	leaves  map[string][]leaf // by metric
	labels  map[Field]string  // where a series says its arm
	span    int64
	drafts  map[tallyKey]*draft

	lonely, holes, falls, pairs, capped int
	left                                int64
	idle                                []string // arms with metrics and without requests
	beyond                              map[string]int64
}

// draft is a window in the making.
type draft struct {
	differences differences
	covered     map[*target]int64 // how much of it the snapshots cover
}

func newCourse(f *feed, p Preset, figures []presetFigure) *course {
	c := &course{f: f, figures: figures, leaves: make(map[string][]leaf), drafts: make(map[tallyKey]*draft), beyond: make(map[string]int64)}
	c.labels = map[Field]string{FieldArm: "arm", FieldVersion: "version", FieldModel: cmp.Or(p.model, "model"), FieldScene: "scene"}
	for _, m := range f.opt.Map {
		if _, ok := c.labels[m.Field]; ok {
			c.labels[m.Field] = m.Path.String()
		}
	}
	for _, fig := range figures {
		fig.from.leaves(func(l leaf) {
			if !slices.Contains(c.leaves[l.metric()], l) {
				c.leaves[l.metric()] = append(c.leaves[l.metric()], l)
			}
		})
	}
	return c
}

// run makes the windows of the feed.
func (c *course) run(targets []*target) error {
	if err := c.settleSpan(targets); err != nil {
		return err
	}
	for _, t := range targets {
		if len(t.shots) < 2 {
			c.lonely++
			continue
		}
		if err := c.assign(t); err != nil {
			return err
		}
	}
	for _, t := range targets {
		c.follow(t)
	}
	for _, t := range targets {
		c.dropHoles(t)
	}
	c.windows()
	c.notes()
	return nil
}

// assign finds the arm of each series, and the figures that rest on it.
func (c *course) assign(t *target) error {
	for i := range t.series {
		s := &t.series[i]
		s.counter = c.counts(s.name)
		arm, err := c.armOf(t, s.labels)
		if err != nil {
			return fatal(&source{name: t.shots[0].file}, 0, err)
		}
		if s.arm = arm; arm == leftOut {
			c.left++
			continue
		}
		for _, l := range c.leaves[s.name] {
			if l.takes(s.labels) {
				s.feeds = append(s.feeds, l)
			}
		}
	}
	return nil
}

// settleSpan finds how long the windows are: as asked for, else a minute, or
// the whole number of minutes that the snapshots are usually apart.
func (c *course) settleSpan(targets []*target) error {
	var steps []int64
	for _, t := range targets {
		for i := 1; i < len(t.shots); i++ {
			steps = append(steps, t.shots[i].at-t.shots[i-1].at)
		}
	}
	if len(steps) == 0 {
		return &InputError{File: c.f.snapshots.file,
			Msg:    "one snapshot of /metrics, which is no window: it says what happened since the process started, and not when",
			Advice: "take one a minute and name them all: curl -s http://HOST/metrics > metrics-$(date -u +%FT%TZ).prom"}
	}
	slices.Sort(steps)
	usual := steps[len(steps)/2]
	opt := &c.f.opt
	switch {
	case opt.Span > 0:
		c.span = int64(opt.Span)
	case opt.InputSpan > 0:
		c.span = int64(opt.InputSpan)
	default:
		minutes := max((usual+int64(defaultSpan)/2)/int64(defaultSpan), 1)
		c.span = minutes * int64(defaultSpan)
		if off := usual - c.span; minutes > 1 && max(off, -off) > c.span/10 {
			return &InputError{File: c.f.snapshots.file, Msg: fmt.Sprintf("the snapshots are %s apart, which is no whole number of minutes", time.Duration(usual).Round(time.Second)),
				Advice: "say how long windows shall be with --input-span, at least as long as the snapshots are apart"}
		}
	}
	if usual > c.span+c.span/2 {
		return &InputError{File: c.f.snapshots.file, Msg: fmt.Sprintf("the snapshots are %s apart: windows of %s cannot be told from them", time.Duration(usual).Round(time.Second), FormatSpan(time.Duration(c.span))),
			Advice: "ask for windows at least as long"}
	}
	return nil
}

// hole reports whether two snapshots are too far apart to say when, to a
// window, something happened between them.
func (c *course) hole(a, b *snapshot) bool { return b.at-a.at > c.span+c.span/2 }

// place is the start of the window that a difference counts for: the one in
// which its middle lies. Where there is about one snapshot a window they are
// counted from the first one, so that a second more or less moves none of them.
func (c *course) place(t *target, a, b *snapshot) int64 {
	middle := a.at + (b.at-a.at)/2
	first := &t.shots[1]
	start := t.shots[0].at + (first.at-t.shots[0].at)/2
	if 2*(b.at-a.at) <= c.span {
		return floorTo(middle, c.span)
	}
	return floorTo(start, c.span) + floorTo(middle-start+c.span/2, c.span)
}

// follow goes through the snapshots of a target.
func (c *course) follow(t *target) {
	last := make([]float64, len(t.series))
	for i := range last {
		last[i] = math.NaN()
	}
	fallen := make([]int, len(t.groups)) // the last pair in which a group started anew
	for i := range t.shots {
		b := &t.shots[i]
		if i > 0 {
			a := &t.shots[i-1]
			c.pairs++
			if c.restarted(t, a, b, last, fallen, i) {
				c.falls++
			}
			if c.hole(a, b) {
				c.holes++
			} else {
				c.count(t, a, b, last, fallen, i)
			}
		}
		for series, value := range b.readings() {
			last[series] = value
		}
	}
}

// restarted finds what started anew before a snapshot: everything, if the
// target says that it did, else all that a process counts of which one counter
// fell. The others of its counters may have passed their old values already.
func (c *course) restarted(t *target, a, b *snapshot, last []float64, fallen []int, pair int) (any bool) {
	if b.started*1e9 > float64(a.at) {
		for g := range fallen {
			fallen[g] = pair
		}
		return true
	}
	for series, value := range b.readings() {
		if s := &t.series[series]; value < last[series] && s.counter {
			fallen[s.group] = pair
			any = true
		}
	}
	return any
}

// counts reports whether a metric is a counter that some figure rests on.
func (c *course) counts(metric string) bool {
	return slices.ContainsFunc(c.leaves[metric], func(l leaf) bool {
		_, falls := l.(gauge)
		return !falls
	})
}

// count adds what happened between two snapshots to its window. A counter that
// is new since the last one started at 0, and one that started anew as well.
func (c *course) count(t *target, a, b *snapshot, last []float64, fallen []int, pair int) {
	start, span := c.place(t, a, b), b.at-a.at
	counted := map[int]bool{} // arms
	for series, value := range b.readings() {
		s := &t.series[series]
		if s.arm == leftOut || len(s.feeds) == 0 {
			continue
		}
		grown := value
		if before := last[series]; fallen[s.group] != pair && !math.IsNaN(before) {
			grown -= before
		}
		w := c.drafts[tallyKey{start, s.arm}]
		if w == nil {
			w = &draft{make(differences), make(map[*target]int64)}
			c.drafts[tallyKey{start, s.arm}] = w
		}
		if !counted[s.arm] {
			counted[s.arm] = true
			w.covered[t] += span
		}
		for _, l := range s.feeds {
			w.differences.add(l, s.le, grown, value)
		}
	}
}

// add counts what a series did.
func (d differences) add(l leaf, le, grown, value float64) {
	got := d[l]
	if got == nil {
		got = &difference{most: math.Inf(-1), within: make(map[float64]float64)}
		d[l] = got
	}
	got.sum += grown
	got.most = max(got.most, value)
	if !math.IsNaN(le) {
		got.within[le] += grown
	}
}

// dropHoles leaves out the windows of which a target's snapshots say nothing
// while others' do: a part of the traffic would stand for all of it.
func (c *course) dropHoles(t *target) {
	arms := map[int]bool{}
	for i := range t.series {
		arms[t.series[i].arm] = true
	}
	for i := 1; i < len(t.shots); i++ {
		a, b := &t.shots[i-1], &t.shots[i]
		if !c.hole(a, b) {
			continue
		}
		for key := range c.drafts {
			if middle := key.t + c.span/2; arms[key.arm] && middle >= a.at && middle < b.at && c.drafts[key].covered[t] == 0 {
				delete(c.drafts, key)
			}
		}
	}
}

// windows makes windows of the drafts. A window of an arm that has requests
// elsewhere and none counted here is no data; one of an arm whose requests nobody
// counts, such as that of a gauge without the label, is none at all.
func (c *course) windows() {
	d := c.f.data
	limit := c.f.opt.TTFTLimitMS / 1000
	serves, without := make(map[int]bool), make(map[int]int64)
	for key, draft := range c.drafts {
		for _, got := range draft.differences {
			got.limit, got.capped = limit, &c.capped
		}
		w, ok := c.window(draft.differences)
		if !ok {
			without[key.arm]++
			continue
		}
		serves[key.arm] = true
		w.T, w.Span, w.Arm = instantOf(key.t), time.Duration(c.span), c.f.windows.arms.arms[key.arm]
		d.Windows = append(d.Windows, w)
		most := int64(0)
		for _, covered := range draft.covered {
			most = max(most, covered)
		}
		if most < c.span/4*3 {
			d.Partial = append(d.Partial, Partial{T: w.T, Arm: w.Arm, Covered: time.Duration(most).Round(time.Second)})
		}
	}
	for arm, n := range without {
		if serves[arm] {
			d.NoData += n
		} else {
			c.idle = append(c.idle, string(c.f.windows.arms.arms[arm]))
		}
	}
	sortWindows(d.Windows)
	slices.SortFunc(d.Partial, func(a, b Partial) int { return cmp.Or(a.T.Compare(b.T), cmp.Compare(a.Arm, b.Arm)) })
	relateMeans(d.Windows)
	if n := len(d.Windows); n > 0 {
		d.First, d.Last = d.Windows[0].T, d.Windows[n-1].End()
	}
}

// window reckons the figures. Without a total there is none.
func (c *course) window(d differences) (w release.Window, ok bool) {
	counts := Counts{}
	looked := make(map[string]bool)
	for _, f := range c.figures {
		name := f.field.String()
		looked[name] = true
		v, there := f.from.value(d)
		switch {
		case !there || math.IsNaN(v) || math.IsInf(v, 0):
		case f.field.value() == countValue || f.field == FieldSolved:
			if n, _, fits := pointCount(v); fits {
				counts[name] = n
			}
		case !SetMeasure(&w, name, tidy(v)):
			c.beyond[name]++
		}
	}
	if _, ok = counts[FieldTotal.String()]; !ok {
		return w, false
	}
	for _, field := range counts.Fill(&w, func(field string) bool { return looked[field] }) {
		c.beyond[field]++
	}
	return w, true
}

// tidy takes the noise from a figure that is reckoned from differences of
// floating point numbers: the buckets are far coarser than twelve digits.
func tidy(v float64) float64 {
	out, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 12, 64), 64)
	if err != nil {
		return v // out of range, as v was
	}
	return out
}

// notes says what the user should know about the windows.
func (c *course) notes() {
	f := c.f
	f.noteCount(int64(c.lonely), "1 target has one snapshot only, which makes no window", "%d targets have one snapshot only, which makes no window")
	f.noteCount(int64(c.holes), "2 snapshots are further apart than a window and a half: no data between them, not 0",
		"%d times snapshots are further apart than a window and a half: no data between them, not 0")
	f.noteCount(int64(c.falls), "counters started anew once, and count from 0 there", "counters started anew %d times, and count from 0 there")
	if c.pairs > 4 && 4*c.falls > c.pairs {
		f.note("counters fell in more than a quarter of the snapshots: are they all of the same process?")
	}
	f.noteCount(c.left, "1 series of another version or scene than those asked for was left out", "%d series of other versions or scenes than those asked for were left out")
	slices.Sort(c.idle)
	for _, arm := range c.idle {
		f.note("series of the arm %s count no requests, and make no window", printable(arm))
	}
	f.windows.arms.nameless = 0 // it counts series, not rows
	f.noteCount(int64(c.capped), "1 percentile lies above the last bound of its histogram: that bound stands for it, which is too low",
		"%d percentiles lie above the last bounds of their histograms: those bounds stand for them, which is too low")
	for _, field := range slices.Sorted(maps.Keys(c.beyond)) {
		f.note("%s: %d values cannot be, such as a part larger than the whole: no data there", field, c.beyond[field])
	}
	if slices.ContainsFunc(f.data.Windows, func(w release.Window) bool { return w.Known&(release.HasP99|release.HasTTFT) != 0 }) {
		f.note("percentiles are read off histograms, as exact as their buckets")
	}
}
