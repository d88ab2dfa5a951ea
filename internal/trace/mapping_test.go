package trace

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/canaryctl/canaryctl/internal/release"
)

func TestMappingsAreRead(t *testing.T) {
	for text, want := range map[string]string{
		"t=unix_ts:s,total=requests":         "t=unix_ts:s total=requests",
		"version=metadata.version":           "version=metadata.version",
		`version=a\.b.c`:                     "version=a.b.c",
		`latency_ms=took\:ms:s`:              "latency_ms=took:ms:s",
		`user_id=a\,b`:                       "user_id=a,b",
		"cost_usd=price:uusd":                "cost_usd=price:uusd",
		" ts=TIMESTAMP":                      "ts=TIMESTAMP",
		"p99_ms=lat_p99_s:s,cost_mean=c:usd": "p99_ms=lat_p99_s:s cost_mean=c:usd",
	} {
		got, err := ParseMapping(text)
		var words []string
		for _, m := range got {
			words = append(words, m.String())
		}
		if err != nil || strings.Join(words, " ") != want {
			t.Errorf("%s: %q, %v", text, words, err)
		}
	}
	m, err := ParseMapping(`version=a\.b.c`)
	if err != nil || !slices.Equal(m[0].Path, Path{"a.b", "c"}) {
		t.Errorf("%v, %v", m, err)
	}
}

func TestMappingsThatCannotBeAreRefused(t *testing.T) {
	for text, want := range map[string][2]string{
		"totl=x":               {`there is no field "totl"`, "did you mean total?"},
		"sovled=x":             {`there is no field "sovled"`, "did you mean solved?"},
		"t=timestamp,value=x":  {`there is no field "value"`, "a window has t, the count total"},
		"t":                    {"want FIELD=COLUMN", ""},
		"t=":                   {"want FIELD=COLUMN", ""},
		"=x":                   {"want FIELD=COLUMN", ""},
		"total=requests:s":     {`total has no unit, "s" is none`, "colon"},
		"ts=x:usd":             {`"usd" is not a unit of ts`, "colon"},
		"cost_usd=x:ms":        {`"ms" is not a unit of cost_usd`, "colon"},
		"latency_ms=x:seconds": {`"seconds" is not a unit of latency_ms`, "colon"},
		"t=a,t=b":              {"t is mapped twice", ""},
	} {
		_, err := ParseMapping(text)
		e, ok := errors.AsType[*MappingError](err)
		if !ok || !strings.Contains(e.Error(), want[0]) || !strings.Contains(e.Hint(), want[1]) {
			t.Errorf("%s: %v (%v)", text, err, want)
		}
	}
}

func TestArmFlagsAreRead(t *testing.T) {
	var o Options
	for _, s := range []string{"stable=v1", "canary=v2", "stable=v0"} {
		if err := o.ParseArm(s); err != nil {
			t.Error(err)
		}
	}
	if o.Arms["v0"] != release.Stable || o.Arms["v1"] != release.Stable || o.Arms["v2"] != release.Canary || o.MergeArms {
		t.Errorf("%v", o)
	}
	for _, s := range []string{"", "stable", "stable=", "blue=v1", "canary=v1", "=v"} {
		if err := o.ParseArm(s); err == nil {
			t.Errorf("%q was accepted", s)
		}
	}
	if err := o.ParseArm("all"); err != nil || !o.MergeArms {
		t.Errorf("%v %v", err, o)
	}
}
