package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/canaryctl/canaryctl/internal/pattern"
)

// maxSnapshot bounds a snapshot of /metrics; large servers show a few MiB.
const maxSnapshot = 64 << 20

// metricLine is one line of an exposition: name{labels} value time.
type metricLine struct {
	name   string            // as it stands in the text: with _bucket, _sum, _count
	labels map[string]string // without le
	le     float64           // upper bound of a bucket, NaN where there is none
	value  float64
	at     int64 // milliseconds since the epoch, 0 where the line has no time
}

// readExposition reads a text of the Prometheus exposition format, or of
// OpenMetrics as far as it is the same. keep, if not nil, says which metrics are
// wanted; lines of others are passed over unread. The error is a [*badRow] with
// the line in line.
func readExposition(r io.Reader, keep func(name string) bool) (samples []metricLine, line int64, err error) {
	text, err := io.ReadAll(io.LimitReader(r, maxSnapshot+1))
	if err != nil {
		return nil, 0, err
	}
	if len(text) > maxSnapshot {
		return nil, 0, &badRow{fmt.Sprintf("a snapshot of more than %d MiB", maxSnapshot>>20)}
	}
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(bytes.NewReader(plainExposition(text, keep)))
	if err != nil {
		if e, ok := errors.AsType[expfmt.ParseError](err); ok {
			return nil, int64(e.Line), &badRow{"not as the exposition format has it: " + e.Msg}
		}
		return nil, 0, &badRow{"not as the exposition format has it: " + err.Error()}
	}
	names := make([]string, 0, len(families))
	for name := range families {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, m := range families[name].Metric {
			samples = appendMetric(samples, families[name].GetName(), m)
		}
	}
	return samples, 0, nil
}

// plainExposition makes of a text what the parser takes: line ends of one byte, a
// newline at the end, no exemplars, times in milliseconds and the types that the
// text format knows. What is left out leaves its line empty, so that the lines
// keep their numbers.
func plainExposition(text []byte, keep func(name string) bool) []byte {
	out := make([]byte, 0, len(text)+1)
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, "\r\n")
		switch {
		case bytes.HasPrefix(line, []byte("# TYPE ")):
			if f := bytes.Fields(line); keep == nil && len(f) == 4 {
				out = append(append(append(out, "# TYPE "...), f[2]...), ' ')
				out = append(out, textType(string(f[3]))...)
			}
		case bytes.HasPrefix(line, []byte("#")):
			if keep == nil {
				out = append(out, line...)
			}
		case keep == nil || keep(sampleName(line)):
			out = append(out, plainSample(line)...)
		}
		out = append(out, '\n')
	}
	return out
}

// textType is a type of OpenMetrics in the words of the text format.
func textType(s string) string {
	switch s {
	case "counter", "gauge", "histogram", "summary", "untyped":
		return s
	case "unknown", "info", "stateset", "gaugehistogram":
		return "untyped"
	}
	return s // for the parser to refuse
}

func sampleName(line []byte) string {
	if i := bytes.IndexAny(line, "{ \t"); i >= 0 {
		line = line[:i]
	}
	return string(line)
}

// plainSample takes the exemplar from a line, and turns a time in seconds, as
// OpenMetrics writes it, into one in milliseconds: at present the two differ
// by three digits.
func plainSample(line []byte) []byte {
	end := labelsEnd(line)
	if i := bytes.Index(line[end:], []byte("#")); i >= 0 {
		line = bytes.TrimRight(line[:end+i], " \t")
	}
	rest := bytes.Fields(line[end:])
	if end == 0 && len(rest) > 0 { // the name is the first of them
		rest = rest[1:]
	}
	if len(rest) != 2 {
		return line
	}
	at, fig := parseNumber(rest[1])
	if unit, ok := guessEpoch(at); fig != finite || !ok || unit != Seconds {
		return line
	}
	ms, _ := at.floor(3)
	cut := bytes.LastIndex(line, rest[1])
	return strconv.AppendInt(slices.Clone(line[:cut]), ms, 10)
}

// labelsEnd is where the labels of a line end, 0 where it has none.
func labelsEnd(line []byte) int {
	quoted := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == '}' && !quoted:
			return i + 1
		case c == '#' && !quoted:
			return 0
		}
	}
	return 0
}

// appendMetric turns what the parser made of some lines back into the lines.
func appendMetric(to []metricLine, name string, m *dto.Metric) []metricLine {
	labels := make(map[string]string, len(m.Label))
	le := math.NaN()
	for _, l := range m.Label {
		if l.GetName() == model.BucketLabel && strings.HasSuffix(name, "_bucket") { // of a family without its TYPE
			if v, err := strconv.ParseFloat(l.GetValue(), 64); err == nil {
				le = v
				continue
			}
		}
		labels[l.GetName()] = l.GetValue()
	}
	add := func(suffix string, le, v float64) {
		to = append(to, metricLine{name + suffix, labels, le, v, m.GetTimestampMs()})
	}
	none := math.NaN()
	switch {
	case m.Histogram != nil:
		for _, b := range m.Histogram.Bucket {
			add("_bucket", b.GetUpperBound(), float64(b.GetCumulativeCount()))
		}
		add("_sum", none, m.Histogram.GetSampleSum())
		add("_count", none, float64(m.Histogram.GetSampleCount()))
	case m.Summary != nil:
		for _, q := range m.Summary.Quantile {
			of := make(map[string]string, len(labels)+1)
			for k, v := range labels {
				of[k] = v
			}
			of[model.QuantileLabel] = strconv.FormatFloat(q.GetQuantile(), 'g', -1, 64)
			to = append(to, metricLine{name, of, none, q.GetValue(), m.GetTimestampMs()})
		}
		add("_sum", none, m.Summary.GetSampleSum())
		add("_count", none, float64(m.Summary.GetSampleCount()))
	case m.Counter != nil:
		add("", le, m.Counter.GetValue())
	case m.Gauge != nil:
		add("", le, m.Gauge.GetValue())
	case m.Untyped != nil:
		add("", le, m.Untyped.GetValue())
	}
	return to
}

var sampleLine = pattern.New(`^[a-zA-Z_:][a-zA-Z0-9_:]*(\{([^"}]*"([^"\\]|\\.)*")*,?\s*\})?[ \t]+([-+]?[0-9.][0-9.eE+-]*|NaN|[-+]?Inf)([ \t]+[0-9.]+)?([ \t]+#.*)?\r?$`)

// looksLikeExposition reports whether head, the start of a file, is a snapshot
// of /metrics: a line that says what a metric is, or one sample.
func looksLikeExposition(head []byte) bool {
	for line := range bytes.Lines(head) {
		line = bytes.TrimRight(line, "\r\n")
		switch {
		case len(line) == 0:
		case bytes.HasPrefix(line, []byte("# HELP ")), bytes.HasPrefix(line, []byte("# TYPE ")), bytes.HasPrefix(line, []byte("# UNIT ")), string(line) == "# EOF":
			return true
		case line[0] != '#':
			return sampleLine.Regexp().Match(line)
		}
	}
	return false
}
