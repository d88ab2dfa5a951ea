package report

import (
	"strconv"
	"strings"
	"sync"

	"github.com/canaryctl/canaryctl/internal/calibrate"
)

// markup is HTML that is complete: what users wrote is escaped in it.
type markup string

// page is a page of HTML under construction. It is put together here, not by
// html/template: with that in a program the linker keeps every method of every type
// that it can reach, and each start of canaryctl pays for a binary a quarter larger.
type page struct{ strings.Builder }

// add writes markup and texts in turn: the first, third ... argument is markup of
// this file, those between are texts, which are escaped.
func (p *page) add(parts ...string) {
	for i, part := range parts {
		if i%2 == 1 {
			part = escapeHTML(part)
		}
		p.WriteString(part)
	}
}

// escapeHTML makes a text one of an element or of a quoted attribute.
func escapeHTML(text string) string { return entities().Replace(text) }

var entities = sync.OnceValue(func() *strings.Replacer {
	return strings.NewReplacer("\x00", "\uFFFD", `"`, "&#34;", "&", "&amp;", "'", "&#39;", "+", "&#43;", "<", "&lt;", ">", "&gt;")
})

// class is an attribute, or nothing.
func class(name string) string {
	if name == "" {
		return ""
	}
	return ` class="` + escapeHTML(name) + `"`
}

func (c *calibrationPage) html() string {
	var p page
	p.add(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '`, c.StyleDigest, `'; base-uri 'none'; form-action 'none'"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<meta name="color-scheme" content="light dark"/>
<meta name="referrer" content="no-referrer"/>
<title>`, c.Title, `, `, c.Period, `</title>
<style>`+c.Style+`</style>
</head>
<body>
<header>
<p class="eyebrow">canaryctl calibrate</p>
<h1>`, c.Title, `</h1>
<p class="period">`, c.Period, `</p>
</header>
<main>`)
	p.verdict(&c.Verdict)
	p.add("\n<dl class=\"key\">")
	for _, f := range c.Key {
		p.add("\n<div><dt>", f.Name, "</dt><dd>", tied(f.Value), "<small>", tied(f.Note), "</small></dd></div>")
	}
	p.add("\n</dl>")
	if len(c.Verdict.Remarks) > 0 {
		p.add("\n<section aria-labelledby=\"remarks\">\n<h2 id=\"remarks\">Remarks</h2>")
		p.warnings(c.Verdict.Remarks)
		p.add("\n</section>")
	}
	p.measured(c.Measured)
	p.sections(c.Sections)
	p.add("\n</main>\n</body>\n</html>\n")
	return p.String()
}

func (p *page) verdict(v *verdict) {
	name, sign := "bad", "✗"
	if v.OK {
		name, sign = "good", "✓"
	}
	p.add("\n<section class=\"verdict "+name+"\" aria-labelledby=\"verdict\">\n<h2 id=\"verdict\"><span class=\"sign\" aria-hidden=\"true\">"+sign+"</span> ", v.Words,
		"</h2>\n<p>", tied(v.What), "</p>")
	if len(v.Blocks) > 0 {
		p.warnings(v.Blocks)
	}
	p.add("\n</section>")
}

func (p *page) warnings(list []calibrate.Warning) {
	p.add("\n<ul class=\"warnings\">")
	for _, w := range list {
		p.add("\n<li><p>", tied(w.Text), " <code>", w.Code, "</code></p>")
		if w.Hint != "" {
			p.add("<p class=\"hint\">What to do: ", tied(w.Hint), "</p>")
		}
		p.add("</li>")
	}
	p.add("\n</ul>")
}

func (p *page) measured(facts []fact) {
	p.add("\n<section aria-labelledby=\"measured\">\n<h2 id=\"measured\">What was measured</h2>\n<dl class=\"facts\">")
	for _, f := range facts {
		p.add("\n<div><dt>", f.Name, "</dt><dd>", tied(f.Value))
		if f.Note != "" {
			p.add("<small>", tied(f.Note), "</small>")
		}
		p.add("</dd></div>")
	}
	p.add("\n</dl>\n</section>")
}

func (p *page) sections(list []section) {
	p.add("\n<nav aria-label=\"Sections\"><ul>")
	for _, s := range list {
		p.add(`<li><a href="#`, s.ID, `">`, s.Title, `</a></li>`)
	}
	p.add("</ul></nav>")
	for _, s := range list {
		p.add("\n<section aria-labelledby=\"", s.ID, "\">\n<h2 id=\"", s.ID, "\">", s.Title, "</h2>")
		for _, words := range s.Words {
			p.add("\n<p>", tied(words), "</p>")
		}
		if s.Drawing != nil {
			p.drawing(s.Drawing)
		} else if s.Absent != "" {
			p.add("\n<p class=\"absent\">", s.Absent, "</p>")
		}
		for _, t := range s.Tables {
			p.table(t)
		}
		p.add("\n</section>")
	}
}

func (p *page) drawing(d *drawing) {
	p.add("\n<figure>\n<div class=\"wide scroll\" tabindex=\"0\" role=\"group\" aria-label=\"chart\">" + string(d.Wide) +
		"</div>\n<div class=\"narrow\">" + string(d.Narrow) + "</div>\n<figcaption><ul class=\"legend\">")
	for _, s := range d.Legend {
		p.add(`<li><svg viewBox="0 0 26 12" aria-hidden="true">`)
		switch {
		case s.Area:
			p.add(`<rect class="`, s.Class, `" x="1" y="1" width="24" height="10"/>`)
		case s.Mark != "":
			p.add(`<path class="`, s.Class, `" d="`, s.Mark, `"/>`)
		default:
			p.add(`<line class="`, s.Class, `" x1="1" y1="6" x2="25" y2="6"/>`)
		}
		p.add(`</svg>`, tied(s.Text), `</li>`)
	}
	p.add("\n</ul></figcaption>\n</figure>")
}

func (p *page) table(t *table) {
	if t.Folded != "" {
		p.add("\n<details><summary>", t.Folded, "</summary>")
	}
	p.add("\n<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"", t.Caption, "\">\n<table>\n<caption><span>", t.Caption, "</span></caption>\n<thead><tr>")
	for _, h := range t.Head {
		p.add(`<th scope="col"`+class(h.Class)+`>`, tied(h.Text), `</th>`)
	}
	p.add("</tr></thead>\n<tbody>")
	for _, r := range t.Rows {
		p.add("\n<tr>")
		switch {
		case r.Span > 1:
			p.add(`<th scope="rowgroup" rowspan="`+strconv.Itoa(r.Span)+`">`, r.Name, `</th>`)
		case r.Span == 1:
			p.add(`<th scope="row">`, r.Name, `</th>`)
		}
		for _, c := range r.Cells {
			p.add(`<td`+class(c.Class)+`>`, tied(c.Text), `</td>`)
		}
		p.add("</tr>")
	}
	p.add("\n</tbody>\n</table>\n</div>")
	if t.Note != "" {
		p.add("\n<p class=\"note\">", tied(t.Note), "</p>")
	}
	if t.Folded != "" {
		p.add("\n</details>")
	}
}
