package splice

import (
	"errors"
	"strings"
	"testing"
)

func TestLocateResolvesNamesToPositions(t *testing.T) {
	const src = `{"a/b":[{"name":"stable","weight":"95"},{"name":"canary","weight": 5.0}],"none":null}`
	for selector, want := range map[string]struct{ path, raw string }{
		`"a/b"[name=canary].weight`: {"a/b 1 weight", "5.0"},
		`"a/b"[0].weight`:           {"a/b 0 weight", `"95"`},
		`none`:                      {"none", "null"},
	} {
		at, err := ParseSelector(selector)
		if err != nil {
			t.Fatal(err)
		}
		path, raw, err := Locate([]byte(src), Document{}, at)
		if err != nil || strings.Join(path, " ") != want.path || raw != want.raw {
			t.Errorf("%s: %q, %s, %v; want %s, %s", selector, path, raw, err, want.path, want.raw)
		}
	}
	at, _ := ParseSelector("gone.weight")
	if _, _, err := Locate([]byte(src), Document{}, at); !errors.Is(err, ErrNotFound) {
		t.Errorf("what is not there: %v", err)
	}
	if _, _, err := Locate([]byte("{"), Document{}, at); !errors.Is(err, ErrSyntax) {
		t.Errorf("no document: %v", err)
	}
}

func TestKeysAreThoseOfASelectorWithNothingElse(t *testing.T) {
	for selector, want := range map[string]bool{`meta."a.b".state`: true, "a[0].b": false, "a[name=x].b": false} {
		at, err := ParseSelector(selector)
		if err != nil {
			t.Fatal(err)
		}
		keys, ok := at.Keys()
		if ok != want || ok && strings.Join(keys, " ") != "meta a.b state" {
			t.Errorf("%s: %q, %v", selector, keys, ok)
		}
	}
}
