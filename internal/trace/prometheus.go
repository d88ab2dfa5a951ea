package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
)

// maxAnswer bounds a Prometheus answer; the server's own limit of 11,000
// points a series lies far below.
const maxAnswer = 256 << 20

// answerReader reads a Prometheus query_range answer: each point is one figure
// of the window that ends at its time. The value's column is called value, and
// also by the name of the file (total.json holds total); labels are columns by
// their own names.
type answerReader struct {
	r      *bufio.Reader
	stem   string
	bind   func(names []string) (*plan, error)
	note   func(format string, args ...any)
	plan   *plan
	series []series
	n      int64 // points returned
	at     [2]int
	time   [24]byte
	value  [32]byte
}

// series is one series of the answer: its points, and the labels that say
// which arm it is.
type series struct {
	labels model.Metric
	points []model.SamplePair
}

func (a *answerReader) next(r *row) error {
	r.reset()
	if a.plan == nil {
		if err := a.load(); err != nil {
			return err
		}
	}
	for a.at[0] < len(a.series) && a.at[1] == len(a.series[a.at[0]].points) {
		a.at = [2]int{a.at[0] + 1, 0}
	}
	if a.at[0] == len(a.series) {
		return io.EOF
	}
	s := a.series[a.at[0]]
	p := s.points[a.at[1]]
	a.at[1]++
	a.n++
	r.line, r.point = a.n, true
	for _, c := range a.plan.columns {
		switch name := c.path.String(); {
		case c.field == a.plan.time:
			r.cells[c.field] = cell{kind: scalar, text: strconv.AppendInt(a.time[:0], int64(p.Timestamp), 10)}
		case a.isValue(name):
			r.cells[c.field] = cell{kind: scalar, text: strconv.AppendFloat(a.value[:0], float64(p.Value), 'g', -1, 64)}
		default:
			r.cells[c.field] = scalarCell([]byte(s.labels[model.LabelName(name)]))
		}
	}
	return nil
}

func (a *answerReader) isValue(name string) bool { return name == "value" || name == a.stem }

// load reads the whole answer, checks it and settles which field the values
// are.
func (a *answerReader) load() error {
	body, err := io.ReadAll(io.LimitReader(a.r, maxAnswer+1))
	if err != nil {
		return err
	}
	if len(body) > maxAnswer {
		return fmt.Errorf("a Prometheus answer of more than %d MiB", maxAnswer>>20)
	}
	ans, err := ParseAnswer(body)
	if err != nil {
		return err
	}
	for _, w := range ans.Said {
		a.note("Prometheus says: %s", w)
	}
	if ans.Partial {
		a.note("the answer says that it is partial: some of the data is missing")
	}
	names := []string{"t", "value"}
	if a.stem != "" && a.stem != "value" {
		names = append(names, a.stem)
	}
	for _, s := range ans.Series {
		if s.Metric == nil {
			return errors.New("the Prometheus answer has a series without its labels (metric)")
		}
		a.series = append(a.series, series{s.Metric, s.Values})
		for name := range s.Metric {
			if !slices.Contains(names, string(name)) {
				names = append(names, string(name))
			}
		}
	}
	slices.Sort(names[2:])
	return a.settle(names)
}

// settle makes the plan: the time, the figure that the values are, and the
// labels that say which arm a series is.
func (a *answerReader) settle(names []string) error {
	p, err := a.bind(names)
	if err != nil {
		return err
	}
	values := 0
	p.columns = slices.DeleteFunc(p.columns, func(c column) bool {
		switch c.field {
		case FieldT:
			return false
		case FieldArm, FieldVersion, FieldModel:
			return a.isValue(c.path.String())
		}
		if !a.isValue(c.path.String()) {
			return true
		}
		values++
		return false
	})
	if values == 0 && len(a.series) > 0 {
		return &InputError{Msg: "nothing says which figure the values of this Prometheus answer are", Advice: "say it with --map total=value, or name the file after it: total.json"}
	}
	a.plan = p
	return a.checkSeries()
}

// checkSeries refuses two series that would be the same arm.
func (a *answerReader) checkSeries() error {
	seen := map[string]bool{}
	for _, s := range a.series {
		var arm strings.Builder
		for _, c := range a.plan.columns {
			if !a.isValue(c.path.String()) && c.field != FieldT {
				arm.WriteString(string(s.labels[model.LabelName(c.path.String())]) + "\x00")
			}
		}
		if seen[arm.String()] {
			return a.severalSeries()
		}
		seen[arm.String()] = true
	}
	return nil
}

func (a *answerReader) severalSeries() error {
	const most = 10
	var labels []string
	for _, s := range a.series[:min(len(a.series), most)] {
		labels = append(labels, s.labels.String())
	}
	slices.Sort(labels)
	if more := len(a.series) - most; more > 0 {
		labels = append(labels, fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("%d series where one is expected (one an arm, by the labels arm and version): %s; aggregate them in the query, as in sum by (version) (...)",
		len(a.series), strings.Join(labels, ", "))
}

// pointCount turns a value that rate arithmetic has made fractional into a
// count, half to even (DESIGN section 9). far says that it was further than
// 0.05 from an integer.
func pointCount(v float64) (n int64, far, ok bool) {
	r := math.RoundToEven(v)
	if !(v > -0.5 && r <= maxCount) {
		return 0, false, false
	}
	return int64(r), math.Abs(v-r) > 0.05, true
}

// looksLikeAnswer reports whether head, the start of a JSON object, is an
// answer of the Prometheus API: its keys and no others, up to the data.
func looksLikeAnswer(head []byte) bool {
	dec := json.NewDecoder(bytes.NewReader(head))
	dec.Token() //nolint:errcheck // the brace, seen by the caller
	status, failed := "", false
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return false
		}
		switch key {
		case "status":
			v, _ := dec.Token()
			if status, _ = v.(string); status != "success" && status != "error" {
				return false
			}
			continue
		case "data":
			brace, _ := dec.Token()
			first, _ := dec.Token()
			return brace == json.Delim('{') && (first == "resultType" || first == "result")
		case "errorType", "error":
			failed = true
		case "warnings", "infos", "isPartial":
		default:
			return false
		}
		var skip json.RawMessage
		if dec.Decode(&skip) != nil {
			return false
		}
	}
	return failed && status == "error"
}
