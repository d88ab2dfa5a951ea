package config

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/canaryctl/canaryctl/internal/diag"
)

// Scene is one of several scenes of a service.
type Scene struct {
	Name string
	// Config is what the scene goes by: a whole configuration, canary's keys with
	// the scene's over them, {scene} filled in, and no Scenes.
	Config *Config
}

// ServiceName is what a release is called: its service, or SERVICE/SCENE.
func (c *Config) ServiceName() string {
	if c.Scene == "" {
		return c.TargetService
	}
	return c.TargetService + "/" + c.Scene
}

// OfScene returns the configuration of a scene, nil when there is none of that
// name. A configuration of one scene is that scene's.
func (c *Config) OfScene(name string) *Config {
	if c.Scene != "" && c.Scene == name {
		return c
	}
	for _, s := range c.Scenes {
		if s.Name == name {
			return s.Config
		}
	}
	return nil
}

// SceneNames returns the names of the scenes, in the order of the file.
func (c *Config) SceneNames() []string {
	names := make([]string, len(c.Scenes))
	for i, s := range c.Scenes {
		names[i] = s.Name
	}
	return names
}

// placeholder of a scene's name, below the keys of filledKeys.
const scenePlaceholder = "{scene}"

// filledKeys are the mappings in whose texts {scene} stands for the scene's
// name.
var filledKeys = []string{"source", "target", "notify", "hooks"}

// takesScene reports whether {scene} is filled in at a path.
func takesScene(path string) bool {
	top, _, _ := strings.Cut(path, ".")
	top, _, _ = strings.Cut(top, "[")
	return slices.Contains(filledKeys, top)
}

// fillScene puts a scene's name in the place of {scene}. The file's own nodes
// stay as they are.
func (d *document) fillScene(name string) {
	d.before = d.tree
	tree := *d.tree
	tree.Content = slices.Clone(tree.Content)
	for i := 0; i+1 < len(tree.Content); i += 2 {
		if slices.Contains(filledKeys, tree.Content[i].Value) {
			tree.Content[i+1] = filled(tree.Content[i+1], name)
		}
	}
	d.tree = &tree
}

// filled copies a node with a scene's name filled in.
func filled(n *yaml.Node, name string) *yaml.Node {
	c := *n
	if n.Kind == yaml.ScalarNode {
		c.Value = strings.ReplaceAll(n.Value, scenePlaceholder, name)
	}
	c.Content = nil
	for i, item := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			c.Content = append(c.Content, item)
			continue
		}
		c.Content = append(c.Content, filled(item, name))
	}
	return &c
}

// inScenes reports whether a key that is required in canary may be left to the
// scenes.
func (d *document) inScenes(s *spec) bool {
	return s.path == "canary.steps" && len(d.sceneEntries()) > 0
}

// sceneOf is the scene that fills in {scene}: the file's, or of several the
// first, for the checks that all have in common.
func (d *document) sceneOf() string {
	if n := mappingValue(mappingValue(d.tree, "canary"), "scene"); n != nil && sceneName.re.MatchString(n.Value) {
		return n.Value
	}
	if entries := d.sceneEntries(); len(entries) > 0 && sceneName.re.MatchString(entries[0].key.Value) {
		return entries[0].key.Value
	}
	return ""
}

// bindScenes forms each scene's configuration and says what is wrong with it.
func (d *document) bindScenes(c *Config) {
	entries := d.sceneEntries()
	if n := mappingValue(mappingValue(d.tree, "canary"), "scene"); n != nil && len(entries) > 0 {
		d.errorAt(n, ruleOneOf, "keep one of them", "scene says that the file is about one scene, and scenes has several")
		return
	}
	var lists []sceneFindings
	for _, e := range entries {
		if !sceneName.re.MatchString(e.key.Value) || e.value.Kind != yaml.MappingNode {
			continue // refused already
		}
		if !d.hasSteps(e) {
			d.errorAt(e.key, ruleMissingKey, "the ladder, from the smallest share to the largest", "scene %s needs the key %q: canary has none", e.key.Value, "steps")
			continue
		}
		sub := d.ofScene(e)
		lists = append(lists, sceneFindings{e.key.Value, nil})
		cfg := sub.config()
		lists[len(lists)-1].list = sub.list
		c.Scenes = append(c.Scenes, Scene{e.key.Value, cfg})
	}
	d.addOfScenes(lists)
	if !d.list.HasErrors() {
		d.checkScenes(c)
	}
}

// hasSteps reports whether a scene has a ladder, its own or canary's.
func (d *document) hasSteps(e entry) bool {
	return mappingValue(e.value, "steps") != nil || mappingValue(mappingValue(d.tree, "canary"), "steps") != nil
}

// ofScene is the document with a scene's keys over canary's.
func (d *document) ofScene(e entry) *document {
	sub := &document{
		name: d.name, src: d.src, lines: d.lines, secret: d.secret,
		values: map[string]*value{}, broken: map[string]bool{}, merged: true,
	}
	canary := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	root := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: d.tree.Line, Column: d.tree.Column}
	tree := d.tree
	if d.before != nil {
		tree = d.before
	}
	for i := 0; i+1 < len(tree.Content); i += 2 {
		k, v := tree.Content[i], tree.Content[i+1]
		s := rootKey(k.Value)
		switch {
		case k.Value == "canary" && v.Kind == yaml.MappingNode:
			canary.Line, canary.Column = v.Line, v.Column
			canary.Content = slices.Concat(v.Content, canary.Content)
			root.Content = append(root.Content, k, canary)
		case s != nil && s.anywhere:
			canary.Content = append(canary.Content, k, v)
		default:
			root.Content = append(root.Content, k, v)
		}
	}
	own := mappingValue(e.value, "steps") != nil
	canary.Content = without(canary.Content, func(name string) bool {
		// A service's traffic is no scene's, and a ladder of its own has its own end.
		return name == "scenes" || name == "requests_per_min" || own && name == "max_pct"
	})
	merged := overlay(canary, e.value, "canary")
	name := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: e.key.Value, Line: e.key.Line, Column: e.key.Column}
	key := *name
	key.Value = "scene"
	merged.Content = append(merged.Content, &key, name)
	for i, v := range root.Content {
		if v == canary {
			root.Content[i] = merged
		}
	}
	sub.tree = root
	return sub
}

// rootKey is the row of a key at the top level, nil when there is none.
func rootKey(name string) *spec { return root().children[name] }

// without leaves entries out of a mapping's content.
func without(content []*yaml.Node, drop func(name string) bool) []*yaml.Node {
	var out []*yaml.Node
	for i := 0; i+1 < len(content); i += 2 {
		if !drop(content[i].Value) {
			out = append(out, content[i], content[i+1])
		}
	}
	return out
}

// overlay puts a mapping's entries over another's: mappings key by key, all
// else, and what is one thing, whole. Every node keeps its place in the file.
func overlay(under, over *yaml.Node, path string) *yaml.Node {
	out := *under
	out.Content = slices.Clone(under.Content)
	for i := 0; i+1 < len(over.Content); i += 2 {
		k, v := over.Content[i], over.Content[i+1]
		at := -1
		for j := 0; j+1 < len(out.Content); j += 2 {
			if out.Content[j].Value == k.Value {
				at = j
			}
		}
		below := path + "." + k.Value
		switch {
		case at < 0:
			out.Content = append(out.Content, k, v)
		case v.Kind == yaml.MappingNode && out.Content[at+1].Kind == yaml.MappingNode && !slices.Contains(lists, below):
			out.Content[at+1] = overlay(out.Content[at+1], v, below)
		default:
			out.Content[at], out.Content[at+1] = k, v
		}
	}
	return &out
}

// sceneFindings is what there is to say about a scene.
type sceneFindings struct {
	scene string
	list  diag.List
}

// addOfScenes takes the findings of scenes over: what has been said is not said
// again, and what does not hold for all says for which.
func (d *document) addOfScenes(lists []sceneFindings) {
	type place struct {
		line, col     int
		rule, message string
	}
	of := func(f diag.Finding) place { return place{f.Line, f.Col, f.Rule, f.Message} }
	said := map[place]bool{}
	for _, f := range d.list {
		said[place{f.Line, f.Col, f.Rule, ""}] = true // of the file itself; a scene may word it otherwise
	}
	count := map[place]int{}
	for _, l := range lists {
		seen := map[place]bool{}
		for _, f := range l.list {
			if !seen[of(f)] {
				seen[of(f)] = true
				count[of(f)]++
			}
		}
	}
	for _, l := range lists {
		for _, f := range l.list {
			p := of(f)
			if said[p] || said[place{f.Line, f.Col, f.Rule, ""}] {
				continue
			}
			if count[p] < len(lists) || len(lists) == 1 {
				f.Message = "scene " + l.scene + ": " + f.Message
			}
			said[p], said[of(f)] = count[p] == len(lists), true
			d.list.Add(f)
		}
	}
}

// checkScenes finds scenes that would get in each other's way: a weight that
// two would write, and traffic that would be judged for two.
func (d *document) checkScenes(c *Config) {
	seen := map[string]string{}
	for _, s := range c.Scenes {
		if s.Config.Target == nil {
			continue
		}
		for _, at := range s.Config.Target.sharedPlaces() {
			if other := seen[at.place]; other != "" && other != s.Name {
				d.errorAt(d.node("target."+s.Config.Target.Kind), ruleSceneTarget, at.hint,
					"scenes %s and %s would be written to the same place: each must have a weight of its own", other, s.Name)
				return
			}
			seen[at.place] = s.Name
		}
	}
	if c.Source == nil {
		return
	}
	if c.Source.Kind != "prometheus" {
		d.checkScenePaths(c)
	} else if len(c.Scenes) > 1 {
		d.checkSceneQueries(c)
	}
}

// checkScenePaths finds files that would be read for two scenes, where a scene
// takes every row of its files: log/{scene}-*.jsonl of a takes in those of a-b.
func (d *document) checkScenePaths(c *Config) {
	at := "source." + c.Source.Kind + ".path"
	if !d.namesScene(at) {
		return // rows count by their scene
	}
	for _, s := range c.Scenes {
		for _, other := range c.Scenes {
			if other.Name == s.Name {
				continue
			}
			for _, pattern := range s.Config.Source.Paths {
				if slices.ContainsFunc(other.Config.Source.Paths, func(p string) bool { return takesIn(pattern, p) }) {
					d.errorAt(d.node(at), ruleSceneSource, "write {scene} into every path, with something behind it that no scene's name has: log/{scene}.jsonl, log/{scene}/*.jsonl",
						"%s, where the rows of scene %s are, takes in files of %s", pattern, s.Name, other.Name)
					return
				}
			}
		}
	}
}

// takesIn reports whether files of one pattern match another as well, by the
// shortest and by a usual name.
func takesIn(pattern, other string) bool {
	for _, some := range []string{"", "1"} {
		if ok, err := path.Match(pattern, strings.NewReplacer("*", some, "?", "1").Replace(other)); ok && err == nil {
			return true
		}
	}
	return false
}

// sharedPlace is what no two scenes may have in common.
type sharedPlace struct{ place, hint string }

// sharedPlaces lists what a target writes and only one release may write. Where
// a document as a whole is compared and swapped, two releases in it would be
// conflicts for each other, and so the document counts and not the place in it.
func (t *Target) sharedPlaces() []sharedPlace {
	key := func(hint string, parts ...string) sharedPlace {
		return sharedPlace{fmt.Sprintf("%s %q", t.Kind, parts), hint}
	}
	// Of two weights in one document neither may be another scene's.
	both := func(hint, canary, stable string, parts ...string) []sharedPlace {
		out := []sharedPlace{key(hint, append(slices.Clone(parts), canary)...)}
		if stable != "" && stable != nowhere {
			out = append(out, key(hint, append(slices.Clone(parts), stable)...))
		}
		return out
	}
	switch t.Kind {
	case "file":
		return both(`write {scene} into path, or into canary and stable: scenes.{scene}.versions.canary.weight`, t.File.Canary, t.File.Stable, path.Clean(t.File.Path))
	case "config_api":
		a := t.ConfigAPI
		return []sharedPlace{key("write {scene} into the address: a document of its own for each scene", a.URL, a.URLEnv, a.WriteURL)}
	case "etcd":
		return []sharedPlace{key("write {scene} into key", t.Etcd.Key)}
	case "haproxy":
		return []sharedPlace{key("write {scene} into backend", t.HAProxy.Address, t.HAProxy.Backend)}
	case "unleash":
		u := t.Unleash
		return []sharedPlace{key("write {scene} into feature, or give each scene a strategy", u.URL, u.URLEnv, u.Project, u.Feature, u.Environment, u.Strategy)}
	case "exec":
		return []sharedPlace{key("give {scene} to read and write as an argument", t.Exec.Write...), key("give {scene} to read and write as an argument", append([]string{"<"}, t.Exec.Read...)...)}
	}
	var out []sharedPlace
	if t.Git.WorkBranch != "" {
		out = append(out, key("write {scene} into work_branch", "branch", t.Git.WorkBranch))
	}
	if t.Git.StatePath != "" {
		out = append(out, key("write {scene} into state_path", "state", t.Git.StatePath))
	}
	for _, f := range t.Git.Files {
		out = append(out, both("write {scene} into the path of the file, or into canary and stable", f.Canary, f.Stable, t.Git.Repo, path.Clean(f.Path), f.Document)...)
	}
	return out
}

// checkSceneQueries finds queries that ask for the same traffic whatever the
// scene.
func (d *document) checkSceneQueries(c *Config) {
	a, b := c.Scenes[0].Config.Source, c.Scenes[1].Config.Source
	if a.URL != b.URL || fmt.Sprint(a.Headers) != fmt.Sprint(b.Headers) {
		return // another server, or another tenant
	}
	said := func(path string) {
		d.errorAt(d.node(path), ruleSceneSource, `a label must tell the scenes apart: scene="{scene}"`,
			"every scene would be judged by the same traffic: the query does not name the scene")
	}
	for _, path := range d.paths() {
		rest, ok := strings.CutPrefix(path, promPath+".")
		asks := ok && (strings.HasPrefix(rest, "matchers.") || strings.HasPrefix(rest, "queries."))
		// "-" takes a query of the preset away
		if n := d.values[path].node; asks && n.Kind == yaml.ScalarNode && n.Value != nowhere && !d.namesScene(path) {
			said(path)
		}
	}
}

// namesScene reports whether {scene} is written in a value, or in one below it.
func (d *document) namesScene(path string) bool {
	n := d.before
	for part := range strings.SplitSeq(path, ".") {
		n = mappingValue(n, part)
	}
	return holdsText(n, scenePlaceholder)
}

func holdsText(n *yaml.Node, text string) bool {
	if n == nil {
		return false
	}
	return n.Kind == yaml.ScalarNode && strings.Contains(n.Value, text) ||
		slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return holdsText(c, text) })
}

// ownScene says what a source or target takes from the scene that the file is
// about where {scene} does not say it: the scene's records, and in a document
// of weights a place of its own.
func (d *document) ownScene(c *Config) {
	if c.Scene == "" {
		return
	}
	if s := c.Source; s != nil && s.Kind != "prometheus" && !d.namesScene("source."+s.Kind+".path") {
		s.Scene = c.Scene
	}
	const file = "target.file"
	if t := c.Target; t != nil && t.Kind == "file" && !d.has(file+".canary") && !d.has(file+".stable") && !d.namesScene(file+".path") {
		t.File.Canary, t.File.Stable = "scenes."+c.Scene+"."+canaryAt, "scenes."+c.Scene+"."+stableAt
	}
}

// lintScenes is [Config.Lint] of every scene.
func (c *Config) lintScenes() diag.List {
	d := *c.doc
	d.list = nil
	var lists []sceneFindings
	for _, s := range c.Scenes {
		lists = append(lists, sceneFindings{s.Name, s.Config.Lint()})
	}
	d.addOfScenes(lists)
	d.list.Sort()
	return d.list
}

// alone writes the configuration of a scene as a file of its own.
func (d *document) alone() []byte {
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	if err := enc.Encode(bare(d.before)); err != nil {
		panic("config: scene of a Config that Parse did not make: " + err.Error())
	}
	return out.Bytes()
}

// OwnSteps reports whether a scene of a configuration file has a ladder of its
// own, and not canary's.
func OwnSteps(src []byte, scene string) bool {
	d := newDocument("", src)
	if len(d.docs) == 0 || empty(d.docs[0]) {
		return false
	}
	d.tree = d.docs[0].Content[0]
	for _, e := range d.sceneEntries() {
		if e.key.Value == scene {
			return mappingValue(e.value, "steps") != nil
		}
	}
	return false
}
