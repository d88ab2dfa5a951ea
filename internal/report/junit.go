package report

import (
	"encoding/xml"
	"fmt"
	"io"
)

// junit mirrors the schema that CI systems read.
type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	Failure *junitFailure `xml:"failure"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// Suite is a named list of expectations: one simulation's, or a batch's.
type Suite struct {
	Name         string
	Expectations []Expectation
}

// JUnit writes one suite a simulation and one case an expectation. A
// simulation without expectations has one case, which says that it ran.
func JUnit(w io.Writer, suites []Suite) error {
	var doc junitSuites
	for _, s := range suites {
		suite := junitSuite{Name: s.Name}
		for _, e := range s.Expectations {
			c := junitCase{Name: e.Want, Class: s.Name}
			if !e.OK {
				c.Failure = &junitFailure{Message: "expectation not met", Text: fmt.Sprintf("want %s\ngot  %s", e.Want, e.Got)}
			}
			suite.Cases = append(suite.Cases, c)
		}
		if len(suite.Cases) == 0 {
			suite.Cases = []junitCase{{Name: "replays", Class: s.Name}}
		}
		suite.Tests, suite.Failures = len(suite.Cases), failed(s.Expectations)
		doc.Tests += suite.Tests
		doc.Failures += suite.Failures
		doc.Suites = append(doc.Suites, suite)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(doc); err != nil {
		return fmt.Errorf("write junit: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}
