package trace

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/canaryctl/canaryctl/internal/release"
)

// snapshots gathers snapshots of /metrics, of which the differences are
// windows: a counter says what happened since a process started, and not when.
type snapshots struct {
	figures []presetFigure // that --map names
	wanted  map[string]bool
	targets map[string]*target
	strange []string // files without a metric that is known
	file    string   // the first file
	zone    string   // a file whose time names no zone
	held    int      // values held, at most most
	most    int
}

// maxHeld bounds the values of snapshots held at once: 512 MiB. Until the last
// is read nobody knows which preset they are of, how long windows are, and what
// comes between them.
const maxHeld = 64 << 20

// target is what shows its metrics: one process, or one that gathers them.
type target struct {
	key, name string
	series    []metricSeries
	index     map[string]int32
	groups    map[string]int
	shots     []snapshot
}

// metricSeries is a metric with its labels.
type metricSeries struct {
	name   string
	labels map[string]string
	le     float64
	group  int // of what one process counts, which starts anew as a whole
	// By the preset, once it is known:
	counter bool
	arm     int
	feeds   []leaf
}

// snapshot is what a target showed at one time.
type snapshot struct {
	at      int64 // nanoseconds since the epoch
	file    string
	started float64 // when the process started, seconds since the epoch; NaN: not known
	series  []int32 // which it shows; the same list as of the one before where they are the same
	values  []float64
}

// readings are the series of a snapshot with their values.
func (s *snapshot) readings() iter.Seq2[int, float64] {
	return func(yield func(int, float64) bool) {
		for i, series := range s.series {
			if !yield(int(series), s.values[i]) {
				return
			}
		}
	}
}

// same reports whether two snapshots show the same.
func (s *snapshot) same(o *snapshot) bool {
	return slices.Equal(s.series, o.series) && slices.Equal(s.values, o.values)
}

const startTime = "process_start_time_seconds"

// newSnapshots prepares for the metrics of all presets: which one it is shows
// once they have been read.
func newSnapshots(opt *Options) (*snapshots, error) {
	s := &snapshots{wanted: map[string]bool{startTime: true}, targets: make(map[string]*target), most: maxHeld}
	if opt.whole {
		return nil, &InputError{Msg: "is a snapshot of /metrics; only records are judged whole", Advice: "name a file with one request a line"}
	}
	want := func(f presetFigure) {
		f.from.leaves(func(l leaf) { s.wanted[l.metric()] = true })
	}
	for _, m := range opt.Map {
		switch {
		case m.Field == FieldArm, m.Field == FieldVersion, m.Field == FieldModel, m.Field == FieldScene:
		case m.Field.value() == countValue && fieldTable[m.Field].of == Windows, m.Field == FieldSolved:
			f := presetFigure{m.Field, increase{name: m.Path.String()}}
			s.figures = append(s.figures, f)
			want(f)
		default:
			return nil, &MappingError{Text: m.String(), Msg: fmt.Sprintf("%s is not taken from a snapshot of /metrics", m.Field),
				Advice: "arm, version, model and scene name a label there, total and other counts of windows a counter"}
		}
	}
	for _, p := range presets {
		for _, f := range p.figures {
			want(f)
		}
	}
	return s, nil
}

// takeSnapshot reads a file as a snapshot of /metrics.
func (f *feed) takeSnapshot(src *source, path string) error {
	if f.snapshots == nil {
		s, err := newSnapshots(&f.opt)
		if err != nil {
			return fatal(src, 0, err)
		}
		s.file, f.snapshots = path, s
	}
	lines, at, err := readExposition(src.text, func(name string) bool { return f.snapshots.wanted[name] })
	f.data.Rows++
	if bad, ok := errors.AsType[*badRow](err); ok {
		f.data.Bad++
		if len(f.data.BadLines) < keptBadLines {
			f.data.BadLines = append(f.data.BadLines, BadLine{File: path, Line: max(at, 1), Message: bad.reason})
		}
		return nil
	}
	if err != nil {
		return src.fail(err)
	}
	f.data.Good++
	return f.snapshots.add(path, lines, f.data)
}

// add keeps what a snapshot says of metrics that are known.
func (s *snapshots) add(path string, lines []metricLine, data *Data) error {
	if !slices.ContainsFunc(lines, func(l metricLine) bool { return l.name != startTime }) {
		s.strange = append(s.strange, path)
		return nil
	}
	name := nameOf(path)
	shot := snapshot{at: timeOfLines(lines), file: path, started: math.NaN()}
	if shot.at == noTime {
		shot.at = name.at
		if !name.zone && s.zone == "" {
			s.zone = path
		}
	}
	if shot.at == noTime {
		return &InputError{File: path, Msg: "a snapshot of /metrics without a time: neither its samples nor its name hold one",
			Advice: "name it after the time it was taken: curl -s http://HOST/metrics > metrics-$(date -u +%FT%TZ).prom; when the file was written is not believed"}
	}
	if s.held += len(lines); s.held > s.most {
		return &InputError{File: path, Msg: fmt.Sprintf("the snapshots up to this one hold more than %d values, which is all that is held at once", s.most),
			Advice: "give fewer days at once, or every other file: windows are then twice as long"}
	}
	t := s.target(path, name)
	shot.series, shot.values = make([]int32, 0, len(lines)), make([]float64, 0, len(lines))
	starts := 0
	for _, l := range lines {
		switch {
		case l.name == startTime:
			shot.started = l.value
			starts++
		case math.IsNaN(l.value) || math.IsInf(l.value, 0):
			data.NonFinite++
		default:
			shot.series = append(shot.series, t.seriesOf(l))
			shot.values = append(shot.values, l.value)
		}
	}
	if starts != 1 {
		shot.started = math.NaN()
	}
	if n := len(t.shots); n > 0 && slices.Equal(t.shots[n-1].series, shot.series) {
		shot.series = t.shots[n-1].series
	}
	t.shots = append(t.shots, shot)
	return nil
}

// timeOfLines is the newest time that the lines carry, if all carry one.
func timeOfLines(lines []metricLine) int64 {
	newest := int64(0)
	for _, l := range lines {
		if l.at == 0 {
			return noTime
		}
		newest = max(newest, l.at)
	}
	if newest >= maxTime/1e6 {
		return noTime
	}
	return newest * 1e6
}

// target finds whose snapshot it is: files in one folder, with names that are
// the same but for the time, show one target.
func (s *snapshots) target(path string, name snapshotName) *target {
	key := filepath.Dir(path) + "\x00" + name.target
	t := s.targets[key]
	if t == nil {
		t = &target{key: key, name: name.target, index: make(map[string]int32), groups: make(map[string]int)}
		s.targets[key] = t
	}
	return t
}

// processLabels tell the processes apart whose counters one target shows.
var processLabels = []string{"instance", "pod", "node", "host", "engine", "rank", "dp_rank", "tp_rank", "pp_rank", "pid"}

func (t *target) seriesOf(l metricLine) int32 {
	names := make([]string, 0, len(l.labels))
	for k, v := range l.labels {
		names = append(names, k+"\x01"+v)
	}
	slices.Sort(names)
	labels := strings.Join(names, "\x02")
	key := fmt.Sprintf("%s\x00%s\x00%v", l.name, labels, l.le)
	if i, ok := t.index[key]; ok {
		return i
	}
	process := ""
	for _, label := range processLabels {
		process += l.labels[label] + "\x00"
	}
	group, ok := t.groups[process]
	if !ok {
		group = len(t.groups)
		t.groups[process] = group
	}
	i := int32(len(t.series))
	t.index[key] = i
	t.series = append(t.series, metricSeries{name: l.name, labels: l.labels, le: l.le, group: group})
	return i
}

// preset finds the preset whose requests the snapshots count, and others that
// would do as well.
func (s *snapshots) preset() (p Preset, others []string) {
	there := make(map[string]bool)
	for _, t := range s.targets {
		for i := range t.series {
			there[t.series[i].name] = true
		}
	}
	for _, candidate := range presets {
		counts := false
		for _, f := range candidate.figures {
			if f.field == FieldTotal {
				f.from.leaves(func(l leaf) { counts = counts || there[l.metric()] })
			}
		}
		switch {
		case !counts || candidate.part:
		case p.Name == "":
			p = candidate
		default:
			others = append(others, candidate.Name)
		}
	}
	return p, others
}

// over puts the figures that the user named over those of a preset.
func (s *snapshots) over(p Preset) []presetFigure {
	out := slices.DeleteFunc(slices.Clone(p.figures), func(f presetFigure) bool {
		return slices.ContainsFunc(s.figures, func(own presetFigure) bool { return own.field == f.field })
	})
	return append(out, s.figures...)
}

// sorted lists the targets, each with its snapshots by time and none of them
// twice.
func (s *snapshots) sorted(data *Data) ([]*target, error) {
	var out []*target
	for _, t := range s.targets {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b *target) int { return cmp.Compare(a.key, b.key) })
	for _, t := range out {
		slices.SortStableFunc(t.shots, func(a, b snapshot) int { return cmp.Compare(a.at, b.at) })
		kept := t.shots[:0]
		for _, shot := range t.shots {
			if n := len(kept); n > 0 && kept[n-1].at == shot.at {
				if !kept[n-1].same(&shot) {
					return nil, &InputError{File: shot.file, Msg: "is of the same time as " + kept[n-1].file + ", with other values",
						Advice: "are they of two processes? Put the snapshots of each into a folder of its own, or name them after it"}
				}
				data.Duplicates++
				continue
			}
			kept = append(kept, shot)
		}
		t.shots = kept
	}
	return out, nil
}

// finishSnapshots turns the snapshots into windows.
func (f *feed) finishSnapshots(paths []string) error {
	s, d := f.snapshots, f.data
	if len(f.windows.rows) > 0 || len(f.records.tallies) > 0 || d.Kind != Unknown {
		return &InputError{File: s.file, Msg: "a snapshot of /metrics, among files of other kinds: one feed is one or the other"}
	}
	if f.opt.MaxBad.Compare(d.Bad, d.Rows) > 0 {
		return &BadLinesError{Bad: d.Bad, Rows: d.Rows, Limit: percent(f.opt.MaxBad), Lines: d.BadLines}
	}
	p, others := s.preset()
	named := slices.ContainsFunc(s.figures, func(own presetFigure) bool { return own.field == FieldTotal })
	switch {
	case p.Name == "" && !named:
		return &InputError{File: s.file, Msg: "a snapshot of /metrics without a metric that counts requests of a known server (" + presetNames() + ")",
			Advice: "say which counter it is: --map total=NAME, with \\: for a colon in it; or let a Prometheus server scrape it and write queries of your own"}
	case len(others) > 0:
		f.note("%s: the metrics are those of %s and of %s; read as %s", s.file, p.Name, strings.Join(others, " and "), p.Name)
	}
	targets, err := s.sorted(d)
	if err != nil {
		return err
	}
	d.Kind, d.Snapshots = Windows, true
	c := newCourse(f, p, s.over(p))
	if err := c.run(targets); err != nil {
		return err
	}
	if p.Name != "" {
		f.note("read as snapshots of %s; a window is the difference of two, and counts where its middle lies", p.Name)
	}
	if s.zone != "" {
		f.note("%s: times in names without a zone are read as UTC", s.zone)
	}
	f.noteCount(int64(len(s.strange)), s.first()+": none of its metrics is known", s.first()+" and others, %d in all: none of their metrics is known")
	f.summarise()
	if len(d.Windows) == 0 {
		return &NoRowsError{Files: paths, Why: fmt.Sprintf("none of its %d snapshots makes a window", d.Rows)}
	}
	return nil
}

func (s *snapshots) first() string {
	if len(s.strange) == 0 {
		return ""
	}
	return strings.ReplaceAll(s.strange[0], "%", "%%")
}

func presetNames() string {
	names := make([]string, len(presets))
	for i, p := range presets {
		names[i] = p.Name
	}
	return strings.Join(names, ", ")
}

// armOf finds the arm of a series by its labels, and where they say nothing by
// the name of the target.
func (c *course) armOf(t *target, labels map[string]string) (int, error) {
	var r row
	for f, label := range c.labels {
		r.cells[f] = scalarCell([]byte(labels[label]))
	}
	if scene := labels[c.labels[FieldScene]]; c.f.opt.Scene != "" && scene != c.f.opt.Scene {
		return leftOut, nil
	}
	_, model := c.f.opt.Arms[labels[c.labels[FieldModel]]]
	_, meant := c.f.opt.Arms[t.name]
	if !model && !r.cells[FieldArm].present() && !r.cells[FieldVersion].present() && (meant || isArm([]byte(t.name))) {
		r.cells[FieldArm] = scalarCell([]byte(t.name))
	}
	i, err := c.f.windows.arms.of(&r)
	if err != nil || i == leftOut {
		return i, err
	}
	if c.f.opt.MergeArms {
		return c.f.windows.arms.intern(string(release.All))
	}
	return i, nil
}
