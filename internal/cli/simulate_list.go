package cli

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/canaryctl/canaryctl/internal/scenario"
)

// scenarioList is the JSON form of simulate --list.
type scenarioList struct {
	Schema    int             `json:"schema"`
	Scenarios []scenarioEntry `json:"scenarios"`
}

type scenarioEntry struct {
	Name  string `json:"name"`
	About string `json:"about"`
}

// list prints the built-in scenarios.
func (o *simulateOptions) list() error {
	names, err := fs.Glob(o.app.Scenarios, "*.yaml")
	if err != nil {
		return err
	}
	entries := []scenarioEntry{}
	for _, file := range names {
		src, err := fs.ReadFile(o.app.Scenarios, file)
		if err != nil {
			return err
		}
		sc, findings := scenario.Parse(file, src)
		if sc == nil {
			return o.app.findings(findings, src)
		}
		entries = append(entries, scenarioEntry{Name: strings.TrimSuffix(file, ".yaml"), About: strings.Join(strings.Fields(sc.About), " ")})
	}
	if o.format == "json" {
		return encodeLine(o.app.Stdout, scenarioList{Schema: 1, Scenarios: entries})
	}
	for _, e := range entries {
		line := e.Name
		if o.format == "text" {
			line = fmt.Sprintf("%-20s %s", e.Name, firstSentence(e.About))
		}
		if _, err := fmt.Fprintln(o.app.Stdout, line); err != nil {
			return err
		}
	}
	return nil
}
