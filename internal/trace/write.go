package trace

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/diag"
	"github.com/canaryctl/canaryctl/internal/release"
)

// Column is a column of window output.
type Column struct {
	field Field
}

// String returns the column's name.
func (c Column) String() string { return c.field.String() }

// allColumns are the columns that make a window whole: written with all of
// them, windows read back as they were.
var allColumns = []Column{
	{FieldT}, {FieldSpan}, {FieldArm}, {FieldTotal}, {FieldJudged}, {FieldSolved}, {FieldViolations}, {FieldTransfers},
	{FieldCost}, {FieldCostMean}, {FieldP99},
	{FieldSlow},
}

// Columns are the columns that make windows whole which carry these figures,
// such as [Data].Supplied: all, but slow only where there is one, since it can
// be counted only against a baseline.
func Columns(carried release.Figures) []Column {
	if carried&release.HasSlow != 0 {
		return slices.Clone(allColumns)
	}
	return slices.DeleteFunc(slices.Clone(allColumns), func(c Column) bool { return c.field == FieldSlow })
}

// ParseColumns reads names separated by commas. The error is a
// [*MappingError].
func ParseColumns(s string) ([]Column, error) {
	var names []string
	for _, c := range allColumns {
		names = append(names, c.String())
	}
	var out []Column
	for name := range strings.SplitSeq(s, ",") {
		name = strings.TrimSpace(name)
		i := slices.Index(names, name)
		if i < 0 {
			e := &MappingError{Text: s, Msg: fmt.Sprintf("windows have no column %q", name), Advice: "the columns are " + strings.Join(names, ",")}
			if near := diag.Nearest(name, names); near != "" {
				e.Advice = fmt.Sprintf("did you mean %s?", near)
			}
			return nil, e
		}
		if slices.Contains(out, allColumns[i]) {
			return nil, &MappingError{Text: s, Msg: fmt.Sprintf("column %s is named twice", name)}
		}
		out = append(out, allColumns[i])
	}
	return out, nil
}

// WriteCSV writes windows with a header. Missing figures are empty cells,
// times RFC 3339 in UTC.
func WriteCSV(w io.Writer, windows []release.Window, columns []Column) error {
	out := csv.NewWriter(w)
	cells := make([]string, len(columns))
	for i, c := range columns {
		cells[i] = c.String()
	}
	if err := out.Write(cells); err != nil {
		return err
	}
	for i := range windows {
		for j, c := range columns {
			cells[j] = c.text(&windows[i])
		}
		if err := out.Write(cells); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// WriteJSONL writes windows as one JSON object a line. Missing figures have no
// key.
func WriteJSONL(w io.Writer, windows []release.Window, columns []Column) error {
	out := bufio.NewWriter(w)
	var line []byte
	for i := range windows {
		line = append(AppendJSON(line[:0], &windows[i], columns), '\n')
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	return out.Flush()
}

// AppendJSON appends a window as a JSON object with the columns as keys, those
// of missing figures left out.
func AppendJSON(b []byte, w *release.Window, columns []Column) []byte {
	b = append(b, '{')
	for _, c := range columns {
		text := c.text(w)
		if text == "" {
			continue
		}
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = append(append(b, c.String()...), `":`...)
		switch c.field {
		case FieldT, FieldSpan, FieldArm:
			quoted, _ := json.Marshal(text) // a string always marshals
			b = append(b, quoted...)
		default:
			b = append(b, text...)
		}
	}
	return append(b, '}')
}

// text is the column of a window as text, "" where it is missing.
func (c Column) text(w *release.Window) string {
	switch c.field {
	case FieldT:
		return w.T.UTC().Format(time.RFC3339Nano)
	case FieldSpan:
		return FormatSpan(w.Span)
	case FieldArm:
		return string(w.Arm)
	case FieldTotal:
		return strconv.FormatInt(w.Total, 10)
	case FieldJudged:
		return count(w.Judged, w.Has(release.HasSolved))
	case FieldSolved:
		return count(w.Solved, w.Has(release.HasSolved))
	case FieldViolations:
		return count(w.Violations, w.Has(release.HasViolations))
	case FieldTransfers:
		return count(w.Transfers, w.Has(release.HasTransfers))
	case FieldCost:
		return measure(w.Cost, w.Has(release.HasCost))
	case FieldSlow:
		return count(w.Slow, w.Has(release.HasSlow))
	case FieldCostMean:
		return measure(w.CostMean, w.Has(release.HasCostMean))
	}
	return measure(w.P99MS, w.Has(release.HasP99))
}

func count(n int64, known bool) string {
	if !known {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// measure prints the shortest decimal that reads back as f, without exponent
// where that is not absurdly long.
func measure(f float64, known bool) string {
	if !known {
		return ""
	}
	format := byte('f')
	if a := math.Abs(f); a != 0 && (a < 1e-9 || a >= 1e21) {
		format = 'g'
	}
	return strconv.FormatFloat(f, format, -1, 64)
}
