package report

import (
	"html/template"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestHTMLIsEscapedAsTheTemplatesOfGoDoIt: the page is put together without them.
func TestHTMLIsEscapedAsTheTemplatesOfGoDoIt(t *testing.T) {
	text := template.Must(template.New("text").Parse(`{{.}}`))
	attr := template.Must(template.New("attr").Parse(`<p class="{{.}}">`))
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.StringN(1, 20, -1), rapid.StringMatching(`[<>&"'+=/a\x00`+"`"+`]{1,9}`)).Draw(t, "text")
		var p page
		p.add("", s)
		var want strings.Builder
		if err := text.Execute(&want, s); err != nil || p.String() != want.String() {
			t.Fatalf("%q: %q, want %q, %v", s, p.String(), want.String(), err)
		}
		want.Reset()
		if err := attr.Execute(&want, s); err != nil || `<p`+class(s)+`>` != want.String() {
			t.Fatalf("%q: %q, want %q, %v", s, `<p`+class(s)+`>`, want.String(), err)
		}
	})
}
