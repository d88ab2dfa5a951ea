package cli

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/calibrate"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// namedSpan is a span that remembers how it was written.
type namedSpan struct {
	spanFlag
	text string
}

// Set implements [pflag.Value].
func (s *namedSpan) Set(text string) error {
	s.text = text
	return s.spanFlag.Set(text)
}

func (s *namedSpan) length() time.Duration { return time.Duration(s.spanFlag) }

// pointsFlag is a number of percentage points from 0.01 to 100, exact as written.
type pointsFlag release.Ratio

// String implements [pflag.Value].
func (p *pointsFlag) String() string {
	if release.Ratio(*p).IsZero() {
		return ""
	}
	return release.Ratio(*p).String()
}

// Set implements [pflag.Value].
func (p *pointsFlag) Set(text string) error {
	r, err := release.ParseRatio(strings.TrimSuffix(text, "pp"))
	if err != nil || r.Compare(1, 100) > 0 || r.Compare(100, 1) < 0 {
		return fmt.Errorf("%q is not a number of percentage points from 0.01 to 100, such as 5", text)
	}
	*p = pointsFlag(r)
	return nil
}

// Type implements [pflag.Value].
func (p *pointsFlag) Type() string { return "points" }

// stepsFlag is a ladder of shares in percent, exact as written.
type stepsFlag []release.Ratio

// String implements [pflag.Value].
func (s *stepsFlag) String() string {
	parts := make([]string, len(*s))
	for i, r := range *s {
		parts[i] = r.String()
	}
	return strings.Join(parts, ",")
}

// Set implements [pflag.Value].
func (s *stepsFlag) Set(text string) error {
	var steps []release.Ratio
	for _, part := range strings.Split(text, ",") {
		r, err := release.ParseRatio(strings.TrimSuffix(strings.TrimSpace(part), "%"))
		if err != nil || r.Num == 0 || r.Compare(100, 1) < 0 {
			return fmt.Errorf("%q is not a share in percent above 0 and up to 100", part)
		}
		if n := len(steps); n > 0 && steps[n-1].Rat().Cmp(r.Rat()) >= 0 {
			return fmt.Errorf("the shares must rise: %s after %s", r, steps[n-1])
		}
		steps = append(steps, r)
	}
	*s = steps
	return nil
}

// Type implements [pflag.Value].
func (s *stepsFlag) Type() string { return "percent" }

// plan returns the plan with the steps of the flag in place of its own, if any
// were given. Each takes limits and holds from the plan's step in its place, or
// from the last.
func (s *stepsFlag) plan(base *ladder.Plan) (*ladder.Plan, error) {
	if len(*s) == 0 {
		return base, nil
	}
	const ring = 10_000
	plan := *base
	plan.Steps = nil
	for i, pct := range *s {
		slots := new(big.Rat).Mul(pct.Rat(), big.NewRat(ring, 100))
		if !slots.IsInt() {
			return nil, usage(fmt.Errorf("--steps: %s %% is no whole number of basis points", pct), "give shares in steps of 0.01")
		}
		step := base.Steps[min(i, len(base.Steps)-1)]
		step.Weight = release.Weight{Slots: slots.Num().Int64(), Ring: ring}
		plan.Steps = append(plan.Steps, step)
	}
	return &plan, nil
}

// falseTripsFlag is a budget of false trips, a week or a release.
type falseTripsFlag struct{ perWeek, perRelease float64 }

// String implements [pflag.Value].
func (f *falseTripsFlag) String() string {
	if f.perRelease > 0 {
		return strconv.FormatFloat(100*f.perRelease, 'g', -1, 64) + "%/release"
	}
	return strconv.FormatFloat(f.perWeek, 'g', -1, 64) + "/week"
}

// Set implements [pflag.Value].
func (f *falseTripsFlag) Set(text string) error {
	bad := fmt.Errorf("%q is no budget such as 0.1/week or 1%%/release", text)
	if share, ok := strings.CutSuffix(text, "/release"); ok {
		p, err := shareOf(share)
		if err != nil || !(p > 0 && p < 1) {
			return bad
		}
		*f = falseTripsFlag{perRelease: p}
		return nil
	}
	n, err := strconv.ParseFloat(strings.TrimSuffix(text, "/week"), 64)
	if err != nil || !(n >= 1e-6 && n <= 100) {
		return bad
	}
	*f = falseTripsFlag{perWeek: n}
	return nil
}

// Type implements [pflag.Value].
func (f *falseTripsFlag) Type() string { return "budget" }

// shareOf reads 5% or 0.05.
func shareOf(text string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	f, err := strconv.ParseFloat(number, 64)
	if percent {
		f /= 100
	}
	return f, err
}

// sharesFlag is how the signals part the budget.
type sharesFlag struct {
	shares [release.Judged]float64
	text   string
}

// String implements [pflag.Value].
func (s *sharesFlag) String() string { return s.text }

// Set implements [pflag.Value]. Signals that are not named get nothing.
func (s *sharesFlag) Set(text string) error {
	var shares [release.Judged]float64
	sum := 0.0
	for _, part := range strings.Split(text, ",") {
		name, value, ok := strings.Cut(part, "=")
		share, err := shareOf(value)
		if !ok || err != nil || !(share > 0 && share <= 1) {
			return fmt.Errorf("%q is no share such as solve_rate=50%%", part)
		}
		var signal release.Signal
		if err := signal.UnmarshalText([]byte(strings.TrimSpace(name))); err != nil || int(signal) >= release.Judged || signal.Streaming() {
			return fmt.Errorf("%q is none of violations, cost, p99, transfers and solve_rate", name)
		}
		if shares[signal] > 0 {
			return fmt.Errorf("%s stands twice", signal)
		}
		shares[signal] = share
		sum += share
	}
	if shares[release.SolveRate] == 0 {
		return errors.New("solve_rate has no share: nothing would say when it trips")
	}
	if sum > 1+1e-9 {
		return errors.New("the shares add up to more than 100 %")
	}
	s.shares, s.text = shares, text
	return nil
}

// Type implements [pflag.Value].
func (s *sharesFlag) Type() string { return "shares" }

// judgeFlag is a judge of the solve rate.
type judgeFlag calibrate.Judge

// String implements [pflag.Value].
func (j *judgeFlag) String() string { return string(*j) }

// Set implements [pflag.Value].
func (j *judgeFlag) Set(text string) error {
	for _, known := range calibrate.Judges {
		if text == string(known) {
			*j = judgeFlag(known)
			return nil
		}
	}
	return fmt.Errorf("%q is none of window, exact, count and cusum", text)
}

// Type implements [pflag.Value].
func (j *judgeFlag) Type() string { return "judge" }

// spansFlag is spans of time, FROM/TO each.
type spansFlag struct{ spans []calibrate.Gap }

// String implements [pflag.Value].
func (s *spansFlag) String() string {
	parts := make([]string, len(s.spans))
	for i, g := range s.spans {
		parts[i] = g.From.Format(time.RFC3339) + "/" + g.To.Format(time.RFC3339)
	}
	return strings.Join(parts, ",")
}

// Set implements [pflag.Value]. A time without a zone is UTC, an end without a
// date is on the day of the beginning.
func (s *spansFlag) Set(text string) error {
	first, second, ok := strings.Cut(text, "/")
	from, err := parseMoment(first)
	if !ok || err != nil {
		return fmt.Errorf("%q is no span of time such as 2026-01-03T10:00Z/2026-01-03T11:30Z", text)
	}
	if _, err := parseMoment(second); err != nil {
		second = from.Format(time.DateOnly) + "T" + second
	}
	to, err := parseMoment(second)
	if err != nil || !to.After(from) {
		return fmt.Errorf("%q does not end after it begins, such as 2026-01-03T10:00Z/11:30Z", text)
	}
	s.spans = append(s.spans, calibrate.Gap{From: from, To: to, Minutes: to.Sub(from).Minutes()})
	return nil
}

// Type implements [pflag.Value].
func (s *spansFlag) Type() string { return "span" }

func parseMoment(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no time", text)
}

// zoneFlag is a time zone.
type zoneFlag struct{ zone *time.Location }

// String implements [pflag.Value].
func (z *zoneFlag) String() string { return z.location().String() }

// Set implements [pflag.Value].
func (z *zoneFlag) Set(text string) error {
	zone, err := time.LoadLocation(text)
	if err != nil || text == "" || text == "Local" {
		return fmt.Errorf("%q is no time zone such as Europe/Berlin", text)
	}
	z.zone = zone
	return nil
}

// Type implements [pflag.Value].
func (z *zoneFlag) Type() string { return "zone" }

func (z *zoneFlag) location() *time.Location {
	if z.zone == nil {
		return time.UTC
	}
	return z.zone
}
