package breaker_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/release"
)

var update = flag.Bool("update", false, "rewrite the transcripts in testdata with what the breaker does now; read the diff")

// TestTranscripts plays the conversations of testdata/*.txt with a breaker.
// A line is a command; after "----" stands what the breaker answered, to the
// next blank line. Lines with # are comments.
//
//	limits Cooldown=3m ...        the published limits with these over them; they may change under way
//	window t=0..20 total=26 ...   a window a minute, each after its tick; judged and solved are total where absent
//	tick t=28..30                 minutes without a window
//	state                         phase, probes, recoveries and how many windows are kept
//	json                          writes the state and goes on with what was read back
//	clear t=40                    a person clears the lock
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(src))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(src) {
				t.Errorf("%s differs; got\n%s", file, got)
			}
		})
	}
}

// play returns the transcript with the breaker's own answers.
func play(t *testing.T, src string) string {
	t.Helper()
	p := &player{limits: published(), st: new(breaker.State)}
	var out strings.Builder
	lines := strings.Split(strings.TrimRight(src, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		out.WriteString(lines[i] + "\n")
		if lines[i] == "" || strings.HasPrefix(lines[i], "#") {
			continue
		}
		answer, err := p.do(t, lines[i])
		if err != nil {
			t.Fatalf("line %d: %q: %v", i+1, lines[i], err)
		}
		if i+1 < len(lines) && lines[i+1] == "----" {
			for i+1 < len(lines) && lines[i+1] != "" {
				i++
			}
		}
		if answer != "" {
			out.WriteString("----\n" + answer)
		}
	}
	return out.String()
}

type player struct {
	limits breaker.Limits
	st     *breaker.State
}

func (p *player) do(t *testing.T, line string) (string, error) {
	t.Helper()
	words := strings.Fields(line)
	args := map[string]string{}
	for _, word := range words[1:] {
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			return "", fmt.Errorf("%q is no key=value", word)
		}
		args[key] = value
	}
	switch words[0] {
	case "limits":
		return "", p.setLimits(args)
	case "state":
		return p.state(), nil
	case "json":
		p.st = read(t, marshal(t, p.st))
		return "", nil
	}
	from, to, err := span(args["t"])
	if err != nil {
		return "", err
	}
	delete(args, "t")
	switch words[0] {
	case "clear":
		breaker.Clear(p.st, at(from))
		return p.state(), nil
	case "tick", "window":
		return p.minutes(words[0] == "window", args, from, to)
	}
	return "", fmt.Errorf("unknown command")
}

func span(s string) (from, to int, err error) {
	a, b, ranged := strings.Cut(s, "..")
	if from, err = strconv.Atoi(a); err != nil {
		return 0, 0, err
	}
	if !ranged {
		return from, from, nil
	}
	to, err = strconv.Atoi(b)
	return from, to, err
}

func (p *player) state() string {
	var kept struct{ Windows []any }
	b, _ := p.st.MarshalJSON()
	if err := json.Unmarshal(b, &kept); err != nil {
		return err.Error()
	}
	s := p.st.Phase.String()
	if p.st.Locked {
		s += " locked"
	}
	if p.st.Phase == release.HalfOpen {
		s += fmt.Sprintf(", %d of %d probes done, %d good, pool %d requests", p.st.Round.Done, p.limits.Trials, p.st.Round.Good, p.st.Round.Pool.Requests)
	}
	return s + fmt.Sprintf(", %d recoveries, %d windows kept\n", p.st.Recoveries, len(kept.Windows))
}

// minutes plays a command for every minute of its span and prints the
// transitions with what they rest on.
func (p *player) minutes(windows bool, args map[string]string, from, to int) (string, error) {
	var out strings.Builder
	for m := from; m <= to; m++ {
		var w *release.Window
		if windows {
			built, err := windowOf(m, args)
			if err != nil {
				return "", err
			}
			w = &built
		}
		for _, ev := range tick(&p.limits, p.st, at(m), w) {
			fmt.Fprintf(&out, "%s: %s", say(&ev), ev.Finding)
			if !ev.First.IsZero() {
				fmt.Fprintf(&out, " [windows %d to %d]", int(ev.First.Sub(t0)/time.Minute), int(ev.Last.Sub(t0)/time.Minute))
			}
			out.WriteString("\n")
		}
	}
	if out.Len() == 0 {
		return "no transition\n", nil
	}
	return out.String(), nil
}

func windowOf(minute int, args map[string]string) (release.Window, error) {
	w := release.Window{T: at(minute), Span: time.Minute, Arm: release.Canary, Known: release.HasSolved | release.HasViolations | release.HasTransfers}
	more := map[string]release.Figures{"slow": release.HasSlow, "control_judged": release.HasControl, "control_solved": release.HasControl}
	counts := map[string]*int64{"slow": &w.Slow, "control_judged": &w.ControlJudged, "control_solved": &w.ControlSolved, "total": &w.Total, "judged": &w.Judged, "solved": &w.Solved, "violations": &w.Violations, "transfers": &w.Transfers}
	for key, value := range args {
		switch {
		case counts[key] != nil:
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return w, err
			}
			*counts[key] = n
			w.Known |= more[key]
		case key == "cost" || key == "p99":
			f, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return w, err
			}
			if key == "cost" {
				w.Cost, w.Known = f, w.Known|release.HasCost
			} else {
				w.P99MS, w.Known = f, w.Known|release.HasP99
			}
		default:
			return w, fmt.Errorf("unknown figure %q", key)
		}
	}
	if _, ok := args["judged"]; !ok {
		w.Judged = w.Total
	}
	if _, ok := args["solved"]; !ok {
		w.Solved = w.Judged
	}
	return w, nil
}

// setLimits sets the named fields of breaker.Limits over the published ones.
func (p *player) setLimits(args map[string]string) error {
	p.limits = published()
	for name, value := range args {
		field := reflect.ValueOf(&p.limits).Elem()
		for part := range strings.SplitSeq(name, ".") {
			if field = field.FieldByName(part); !field.IsValid() {
				return fmt.Errorf("no limit %q", name)
			}
		}
		switch x := field.Addr().Interface().(type) {
		case *time.Duration:
			d, err := time.ParseDuration(value)
			if err != nil {
				return err
			}
			*x = d
		case *release.Ratio:
			*x = release.MustRatio(value)
		case *int64:
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return err
			}
			*x = n
		case *bool:
			*x = value == "true"
		case *float64:
			f, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return err
			}
			*x = f
		case *breaker.Judge:
			*x = map[string]breaker.Judge{"cusum": breaker.CusumJudge}[value]
		case *breaker.Tail:
			*x = map[string]breaker.Tail{"exact": breaker.ExactTail}[value]
		case *release.Mode:
			*x = map[string]release.Mode{"observe": release.Observe}[value]
		default:
			return fmt.Errorf("limit %q cannot be set", name)
		}
	}
	return nil
}
