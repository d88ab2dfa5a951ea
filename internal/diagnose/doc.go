// Package diagnose reads what a client logged of its calls to a throttled
// upstream, one line per attempt, and says which knob to turn.
//
//	names, err := diagnose.ParseNames([]string{"status=http.code"})
//	tally := diagnose.NewTally()
//	a, err := names.Attempt(line)          // one JSON object
//	tally.Add(&a)
//	d := tally.Diagnosis()
//	for _, r := range d.Table { ... }      // every row of the table, with its evidence
//
// The figures are counted exactly and compared as integers. What the log does
// not say stays unknown: a rule whose fields are missing says no_data, and a
// figure that no row of the table covers is said to be uncovered. Memory does
// not grow with the length of the log.
//
// The table and where its limits come from stand in docs/reference/diagnose.md.
package diagnose
