package config

import (
	"fmt"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/canaryctl/canaryctl/internal/release"
)

// bindOutside fills in what stands below source, target, state, notify and
// hooks.
func (d *document) bindOutside(c *Config) {
	c.Source = d.source()
	c.Target = d.target()
	d.ownScene(c)
	c.State = StateStore{Dir: d.get("state.dir").text, InTarget: d.get("state.in_target").flag}
	c.OnComplete = OnComplete(d.get("on_complete").text)
	for i := range d.items("notify") {
		c.Notify = append(c.Notify, d.channel(fmt.Sprintf("notify[%d]", i)))
	}
	for i := range d.items("hooks.on_rollback") {
		path := fmt.Sprintf("hooks.on_rollback[%d]", i)
		if kind := d.onlyKey(path); kind != "" && !d.values[path+"."+kind].blank {
			c.Hooks = append(c.Hooks, d.hook(path+"."+kind, kind))
		}
	}
}

// strings returns a mapping of strings, nil when it is not there.
func (d *document) strings(path string) map[string]string { return d.get(path).pairs }

// place returns where the key of a value stands.
func (d *document) place(path string) (line, col int) {
	n := d.values[path].key
	return n.Line, n.Column
}

func (d *document) source() *Source {
	kind := d.onlyKey("source")
	if kind == "" {
		return nil
	}
	path := "source." + kind
	s := &Source{
		Kind: kind, Span: d.get(path + ".span_min").span, Settle: d.get(path + ".settle_min").span,
		Stale: d.get(path + ".stale_min").span, Timeout: d.get(path + ".timeout_s").span,
	}
	if kind == "prometheus" {
		d.prometheus(s)
		return s
	}
	if !d.has(path + ".settle_min") {
		s.Settle = settleOf(kind, s.Span)
	}
	s.MaxBad = d.get(path + ".max_bad").number
	s.Map, s.Arms = d.mapping(path+".map"), d.mapping(path+".arms")
	if s.Paths = d.texts(path + ".path"); len(s.Paths) == 0 {
		s.Paths = []string{d.get(path + ".path").text}
	}
	return s
}

// settleOf is how old a window of files must be to be read, where nothing is
// said: an exporter writes it a moment after its end, and a record is written
// when its request ends while it carries the time of its start.
func settleOf(kind string, span time.Duration) time.Duration {
	if kind == "records" {
		return min(span, time.Minute)
	}
	return min(span/4, 15*time.Second)
}

// leastStale is how long no window makes a Prometheus server count as lost, at
// least, where nothing is said.
const leastStale = 10 * time.Minute

func (d *document) prometheus(s *Source) {
	s.URL, s.URLEnv, s.TokenEnv = d.get(promPath+".url").text, d.get(promPath+".url_env").text, d.get(promPath+".token_env").text
	s.Headers = d.strings(promPath + ".headers")
	s.Preset = d.get(promPath + ".preset").text
	if !d.has(promPath + ".stale_min") {
		s.Stale = max(leastStale, s.Settle+3*s.Span)
	}
	s.Matchers, s.Queries = map[release.Arm]string{}, map[release.Arm]FieldText{}
	for _, arm := range []release.Arm{release.Canary, release.Stable} {
		if text := d.get(promPath + ".matchers." + string(arm)).text; text != "" {
			s.Matchers[arm] = text
		}
		at := promPath + ".queries." + string(arm)
		for _, figure := range specOf(promPath + ".queries.*").order {
			if text := d.get(at + "." + figure).text; text != "" {
				if s.Queries[arm] == nil {
					s.Queries[arm] = FieldText{}
				}
				s.Queries[arm][figure] = text
			}
		}
	}
}

var units = map[string]Unit{"fraction": {1, 6}, "percent": {100, 2}, "permille": {1000, 1}, "basis_points": {10000, 0}}

// unit returns a unit, the zero value where it was refused.
func (d *document) unit(path string) Unit {
	if d.broken[path] || d.broken[path+".whole"] || d.broken[path+".places"] {
		return Unit{}
	}
	if v := d.values[path]; v != nil && v.node.Kind == yaml.MappingNode {
		return Unit{Whole: d.get(path + ".whole").count, Places: int(d.get(path + ".places").count)}
	}
	return units[d.get(path).text]
}

func (d *document) target() *Target {
	kind := d.onlyKey("target")
	if kind == "" {
		return nil
	}
	path := "target." + kind
	t := &Target{Kind: kind}
	t.Line, t.Col = d.place(path)
	at := func(name string) typed { return d.get(path + "." + name) }
	switch kind {
	case "file":
		t.File = &FileTarget{Path: at("path").text, Canary: at("canary").text, Stable: at("stable").text, Unit: d.unit(path + ".unit")}
	case "config_api":
		t.ConfigAPI = d.configAPI(path)
	case "git":
		t.Git = d.gitTarget(path)
	case "etcd":
		t.Etcd = &EtcdTarget{
			Endpoints: d.texts(path + ".endpoints"), Key: at("key").text, Canary: at("canary").text, Stable: at("stable").text,
			Unit: d.unit(path + ".unit"), UserEnv: at("user_env").text, PasswordEnv: at("password_env").text, Timeout: at("timeout_s").span,
		}
		if t.Etcd.Canary != "" && t.Etcd.Stable == "" {
			t.Etcd.Stable = nowhere
		}
	case "haproxy":
		t.HAProxy = &HAProxyTarget{
			Address: at("address").text, Backend: at("backend").text, Stable: at("stable").text, Canary: at("canary").text,
			Total: at("total").count, Timeout: at("timeout_s").span,
		}
	case "unleash":
		t.Unleash = &UnleashTarget{
			URL: at("url").text, URLEnv: at("url_env").text, TokenEnv: at("token_env").text, Project: at("project").text,
			Feature: at("feature").text, Environment: at("environment").text, Strategy: at("strategy").text, Timeout: at("timeout_s").span,
		}
	case "exec":
		t.Exec = &ExecTarget{Read: d.texts(path + ".read"), Write: d.texts(path + ".write"), Unit: d.unit(path + ".unit"), Timeout: at("timeout_s").span}
	}
	return t
}

// nowhere is the selector of a weight that a document does not hold.
const nowhere = "-"

var contentTypes = map[string]string{
	"put": "application/json", "template": "application/json",
	"merge_patch": "application/merge-patch+json", "json_patch": "application/json-patch+json",
}

func (d *document) configAPI(path string) *ConfigAPITarget {
	at := func(name string) typed { return d.get(path + "." + name) }
	t := &ConfigAPITarget{
		URL: at("url").text, URLEnv: at("url_env").text, TokenEnv: at("token_env").text, TokenScheme: at("token_scheme").text,
		Headers: d.strings(path + ".headers"), ReadURL: at("read_url").text, WriteURL: at("write_url").text,
		WriteMethod: at("write_method").text, Mode: at("mode").text, Body: at("body").text, ContentType: at("content_type").text,
		Canary: at("canary").text, Stable: at("stable").text, Unit: d.unit(path + ".unit"),
		IfMatch: at("if_match").text, StateAt: at("state_at").text, Timeout: at("timeout_s").span, ReadBack: at("read_back_s").span,
	}
	if t.WriteMethod == "" {
		t.WriteMethod = "PUT"
		if strings.HasSuffix(t.Mode, "_patch") {
			t.WriteMethod = "PATCH"
		}
	}
	if t.ContentType == "" {
		t.ContentType = contentTypes[t.Mode]
	}
	return t
}

func (d *document) gitTarget(path string) *GitTarget {
	at := func(name string) typed { return d.get(path + "." + name) }
	t := &GitTarget{
		Repo: at("repo").text, Remote: at("remote").text, Branch: at("branch").text, Mode: at("mode").text,
		WorkBranch: at("work_branch").text, OpenCommand: d.texts(path + ".open_command"),
		AuthorName: at("author_name").text, AuthorEmail: at("author_email").text, Sign: at("sign").flag,
		StatePath: at("state_path").text, Deadline: at("deadline_s").span,
	}
	for i := range d.items(path + ".files") {
		file := fmt.Sprintf("%s.files[%d]", path, i)
		t.Files = append(t.Files, GitFile{
			Path: d.get(file + ".path").text, Document: d.get(file + ".document").text,
			Canary: d.get(file + ".canary").text, Stable: d.get(file + ".stable").text, Unit: d.unit(file + ".unit"),
		})
	}
	return t
}

func (d *document) channel(path string) Channel {
	kind := d.onlyKey(path)
	if kind == "" {
		return Channel{} // refused
	}
	path += "." + kind
	c := Channel{Kind: kind}
	c.Line, c.Col = d.place(path)
	at := func(name string) typed { return d.own(path, name) }
	c.URL, c.URLEnv, c.SecretEnv, c.TokenEnv = at("url").text, at("url_env").text, at("secret_env").text, at("token_env").text
	c.Headers, c.Keyword, c.Labels = at("headers").pairs, at("keyword").text, at("labels").pairs
	if d.has(path + ".events") {
		c.Events = d.texts(path + ".events")
	}
	c.Timeout = at("timeout_s").span
	return c
}

// own returns a scalar of a mapping that may have no such key.
func (d *document) own(path, name string) typed {
	if rowOf(path+"."+name) == nil {
		return typed{}
	}
	return d.get(path + "." + name)
}

func (d *document) hook(path, kind string) Hook {
	h := Hook{Kind: kind}
	h.Line, h.Col = d.place(path)
	at := func(name string) typed { return d.own(path, name) }
	h.Name, h.URL, h.URLEnv, h.Method = at("name").text, at("url").text, at("url_env").text, at("method").text
	h.Headers, h.TokenEnv, h.Body = at("headers").pairs, at("token_env").text, at("body").text
	if kind == "exec" {
		h.Command = d.texts(path + ".command")
	}
	h.Tries, h.Timeout = int(at("tries").count), at("timeout_s").span
	return h
}
