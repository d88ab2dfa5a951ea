package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptLoad is what a service serves, a second.
type scriptLoad struct {
	from, to           time.Duration // around now
	canary, stable     int           // requests
	violations, solved int           // of the canary's
	scene              string        // "": the records name none
}

// usualLoad is a healthy service, a tenth of it on the canary.
func usualLoad() scriptLoad {
	return scriptLoad{from: -20 * time.Second, to: 2 * time.Minute, canary: 4, stable: 36, solved: 4}
}

// text is the load as records, one a line, in order of time. Those of the
// future are there already: a source leaves them out until their time has come.
func (l scriptLoad) text(now time.Time) string {
	var b strings.Builder
	scene := ""
	if l.scene != "" {
		scene = fmt.Sprintf(`,"scene":%q`, l.scene)
	}
	for at := now.Add(l.from).Truncate(time.Second); at.Before(now.Add(l.to)); at = at.Add(time.Second) {
		for i := range l.canary {
			fmt.Fprintf(&b, `{"ts":%q,"arm":"canary","solved":%t,"violation":%t,"transfer":false%s}`+"\n", at.UTC().Format(time.RFC3339), i < l.solved, i < l.violations, scene)
		}
		for i := range l.stable {
			fmt.Fprintf(&b, `{"ts":%q,"arm":"stable","solved":%t,"violation":false,"transfer":false%s}`+"\n", at.UTC().Format(time.RFC3339), i%10 > 0, scene)
		}
	}
	return b.String()
}

// scriptTraffic is the command of scripts that writes records of the present:
//
//	traffic FILE [from=-20s] [to=2m] [canary=4] [stable=36] [violations=0] [solved=4] [scene=NAME]
func scriptTraffic(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: traffic FILE [KEY=VALUE...]")
	}
	l := usualLoad()
	counts := map[string]*int{"canary": &l.canary, "stable": &l.stable, "violations": &l.violations, "solved": &l.solved}
	times := map[string]*time.Duration{"from": &l.from, "to": &l.to}
	for _, arg := range args[1:] {
		key, value, _ := strings.Cut(arg, "=")
		var err error
		switch {
		case counts[key] != nil:
			*counts[key], err = strconv.Atoi(value)
		case key == "scene":
			l.scene = value
		case times[key] != nil:
			*times[key], err = time.ParseDuration(value)
		default:
			ts.Fatalf("traffic: unknown key %q", key)
		}
		ts.Check(err)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(l.text(time.Now())), 0o600))
}

// changing is what differs from run to run in what canaryctl prints.
var changing = []struct {
	what *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`"(age_s|held_s)": \d+`), `"$1": N`},
	{regexp.MustCompile(`(by )?[\w.-]+@[\w.-]+`), "${1}SOMEBODY"},
}

// scriptMasked is the command of scripts that writes the last output to a file
// without what differs from run to run: masked stdout FILE.
func scriptMasked(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: masked stdout|stderr FILE")
	}
	text := ts.ReadFile(args[0])
	for _, c := range changing {
		text = c.what.ReplaceAllString(text, c.as)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o600))
}

// scriptExits is the command of scripts that runs canaryctl and demands an exit code:
// exits CODE ARGUMENTS...
func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE ARGUMENTS...")
	}
	err := ts.Exec("canaryctl", args[1:]...)
	got := 0
	if err != nil {
		text, ok := strings.CutPrefix(err.Error(), "exit status ")
		code, parseErr := strconv.Atoi(text)
		if !ok || parseErr != nil {
			ts.Fatalf("canaryctl: %v", err)
		}
		got = code
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}
