package metrics

import (
	"io"
	"math"
	"runtime"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// ContentType is that of what [Families.Write] writes.
const ContentType = string(expfmt.FmtText)

// Families gathers metrics and writes them in the order in which their names
// were first added. The zero value is empty. Labels are given as name, value,
// name, value.
type Families struct {
	list []*dto.MetricFamily
}

// Gauge adds a value that may go up and down. NaN means that it is not known:
// the series is left out, never 0.
func (f *Families) Gauge(name, help string, value float64, labels ...string) {
	if !math.IsNaN(value) {
		f.add(name, help, dto.MetricType_GAUGE, &dto.Metric{Gauge: &dto.Gauge{Value: &value}}, labels)
	}
}

// Counter adds a number of events since they have been counted.
func (f *Families) Counter(name, help string, count int64, labels ...string) {
	f.add(name, help, dto.MetricType_COUNTER, &dto.Metric{Counter: &dto.Counter{Value: new(float64(count))}}, labels)
}

// Time adds a moment in seconds since 1970; a zero time is not known and left
// out.
func (f *Families) Time(name, help string, t time.Time, labels ...string) {
	if !t.IsZero() {
		f.Gauge(name, help, float64(t.UnixNano())/1e9, labels...)
	}
}

// Flag adds 1 for true and 0 for false.
func (f *Families) Flag(name, help string, on bool, labels ...string) {
	value := 0.0
	if on {
		value = 1
	}
	f.Gauge(name, help, value, labels...)
}

// states adds one series for each state that there is: 1 for the present one
// and 0 for the others.
func (f *Families) states(name, help, label string, all []string, now string, labels ...string) {
	for _, state := range all {
		f.Flag(name, help, state == now, append(labels[:len(labels):len(labels)], label, state)...)
	}
}

// histogram adds how durations are spread, in seconds.
func (f *Families) histogram(name, help string, d *Durations, labels ...string) {
	h := &dto.Histogram{SampleCount: new(uint64(d.count)), SampleSum: new(d.sum.Seconds())}
	below := uint64(0)
	for i, bound := range bounds {
		below += uint64(d.within[i])
		h.Bucket = append(h.Bucket, &dto.Bucket{UpperBound: new(bound.Seconds()), CumulativeCount: new(below)})
	}
	f.add(name, help, dto.MetricType_HISTOGRAM, &dto.Metric{Histogram: h}, labels)
}

// Build adds the info series of the program.
func (f *Families) Build(version string) {
	f.Gauge("canaryctl_build_info", "The canaryctl that runs; always 1.", 1, "version", version, "go", runtime.Version())
}

func (f *Families) add(name, help string, kind dto.MetricType, m *dto.Metric, labels []string) {
	for i := 0; i+1 < len(labels); i += 2 {
		m.Label = append(m.Label, &dto.LabelPair{Name: &labels[i], Value: new(strings.ToValidUTF8(labels[i+1], "\uFFFD"))})
	}
	for _, family := range f.list {
		if family.GetName() == name {
			family.Metric = append(family.Metric, m)
			return
		}
	}
	f.list = append(f.list, &dto.MetricFamily{Name: &name, Help: &help, Type: &kind, Metric: []*dto.Metric{m}})
}

// Write writes all of them in the text format of Prometheus, version 0.0.4.
func (f *Families) Write(w io.Writer) error {
	for _, family := range f.list {
		if _, err := expfmt.MetricFamilyToText(w, family); err != nil {
			return err
		}
	}
	return nil
}

// bounds are the upper bounds of the buckets of [Durations]. A tick of run is
// meant to stay under 50 ms without the network.
var bounds = [...]time.Duration{
	5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
	250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second,
	10 * time.Second, 30 * time.Second, time.Minute,
}

// Durations counts durations by size. The zero value has seen none; a copy is
// a snapshot.
type Durations struct {
	within [len(bounds)]int64 // not cumulative; those above the last bound are only in count
	count  int64
	sum    time.Duration
}

// Observe counts one duration.
func (d *Durations) Observe(took time.Duration) {
	d.count++
	d.sum += took
	for i, bound := range bounds {
		if took <= bound {
			d.within[i]++
			return
		}
	}
}
