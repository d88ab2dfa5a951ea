package scenario

import (
	"fmt"
	"slices"

	"gopkg.in/yaml.v3"
)

// hasScenes reports whether a scenario is about several scenes: its plan has
// them, or its feed.
func hasScenes(sc *Scenario, top *section) bool {
	if sc.Config != nil && len(sc.Config.Scenes) > 0 {
		return true
	}
	feed := top.vals["feed"]
	for i := 0; feed != nil && feed.Kind == yaml.MappingNode && i < len(feed.Content); i += 2 {
		if feed.Content[i].Value == "scenes" {
			return true
		}
	}
	return false
}

// sceneSection is one scene of a scenario, being read.
type sceneSection struct {
	sc     *Scenario
	top    *section // as if the scene had a file of its own
	faults []*yaml.Node
}

// scenes reads a scenario whose feed and expectations are those of several
// scenes.
func (r *reader) scenes(sc *Scenario, top *section) {
	if top.has("fault_from") {
		top.refuse("fault_from", "one-of", "each scene's faults say it", "fault_from: the scenes of a service turn bad each by themselves")
	}
	if !top.need("feed", "what each scene does, minute by minute") || !top.need("expect", "a list of what must come of it; without expectations nothing is tested") {
		return
	}
	all := r.sceneFeeds(sc, top)
	r.sceneExpectations(top, all)
	for i := range all {
		x := &all[i]
		if !r.list.HasErrors() && x.sc.Files == nil {
			r.tryFeed(x.sc, x.top, x.faults)
		}
		sc.Scenes = append(sc.Scenes, x.sc)
		sc.Drawn = sc.Drawn || x.sc.Drawn
	}
	r.list.Sort()
	r.list = slices.Compact(r.list) // what all scenes share is read for each
}

// sceneFeeds reads a feed for each scene: one of its own, or of recorded files
// the rows that name it.
func (r *reader) sceneFeeds(sc *Scenario, top *section) []sceneSection {
	s := r.section(top.vals["feed"], top.keys["feed"], "feed", "scenes", "files")
	var all []sceneSection
	switch s.one("scenes has a feed for each scene; files are recorded ones whose rows name their scene", "scenes", "files") {
	case "files":
		if sc.Config == nil {
			break
		}
		for _, name := range sc.Config.SceneNames() {
			x := r.newScene(sc, name, top.keys["feed"], top.vals["feed"])
			r.feed(x.sc, x.top)
			all = append(all, x)
		}
	case "scenes":
		feeds := s.vals["scenes"]
		if feeds.Kind != yaml.MappingNode || len(feeds.Content) == 0 {
			s.refuse("scenes", "wrong-type", "a feed for each scene, by its name", "scenes: want a mapping, not %s", said(feeds))
			break
		}
		for i := 0; i+1 < len(feeds.Content); i += 2 {
			k, v := feeds.Content[i], feeds.Content[i+1]
			if sc.Config != nil && sc.Config.OfScene(k.Value) == nil {
				r.at(k, "unknown-key", "it has "+listing(sc.Config.SceneNames()), "the plan has no scene %q", k.Value)
				continue
			}
			x := r.newScene(sc, k.Value, k, v)
			x.faults = r.feed(x.sc, x.top)
			all = append(all, x)
		}
		r.everyFeed(sc, s, all)
	}
	return all
}

// everyFeed finds scenes of the plan of which nobody says what they do.
func (r *reader) everyFeed(sc *Scenario, feeds *section, all []sceneSection) {
	if sc.Config == nil {
		return
	}
	for _, name := range sc.Config.SceneNames() {
		if !slices.ContainsFunc(all, func(x sceneSection) bool { return x.sc.Scene == name }) && !r.list.HasErrors() {
			r.at(feeds.keys["scenes"], "missing-key", "what it does, minute by minute", "scenes needs a feed for the plan's scene %q", name)
		}
	}
}

// newScene is a scene's scenario with the common parts.
func (r *reader) newScene(sc *Scenario, name string, key, feed *yaml.Node) sceneSection {
	own := &Scenario{File: sc.File, Name: sc.Name, About: sc.About, Start: sc.Start, Approve: sc.Approve, Scene: name}
	if sc.Config != nil {
		own.Config = sc.Config.OfScene(name)
	}
	return sceneSection{sc: own, top: &section{
		r: r, label: fmt.Sprintf("the scene %s", name), node: key,
		vals: map[string]*yaml.Node{"feed": feed}, keys: map[string]*yaml.Node{"feed": key},
	}}
}

// sceneExpectations gives each expectation to the scene that it names.
func (r *reader) sceneExpectations(top *section, all []sceneSection) {
	items := top.items("expect")
	if len(items) == 0 && !top.bad {
		top.refuse("expect", "out-of-range", "a scenario that expects nothing tests nothing", "expect is empty")
	}
	var names []string
	for _, x := range all {
		names = append(names, x.sc.Scene)
	}
	of := map[string][]*yaml.Node{}
	for _, n := range items {
		name, rest := sceneOf(n)
		switch {
		case n.Kind != yaml.MappingNode:
			r.at(n, "wrong-type", "such as - { scene: NAME, never: OPEN }", "expect: want a mapping, not %s", said(n))
		case name == nil:
			r.at(n, "missing-key", "scene: "+listing(names), "the expectation needs the key %q: each scene is decided by itself", "scene")
		case !slices.Contains(names, name.Value):
			r.at(name, "unknown-word", "there are "+listing(names), "scene: %s is not known", said(name))
		default:
			of[name.Value] = append(of[name.Value], rest)
		}
	}
	for _, x := range all {
		list := of[x.sc.Scene]
		if len(list) == 0 {
			continue
		}
		x.top.vals["expect"] = &yaml.Node{Kind: yaml.SequenceNode, Content: list, Line: top.vals["expect"].Line, Column: top.vals["expect"].Column}
		x.top.keys["expect"] = top.keys["expect"]
		r.expectations(x.sc, x.top)
	}
}

// sceneOf parts an expectation into the scene that it is about and the rest.
func sceneOf(n *yaml.Node) (name, rest *yaml.Node) {
	out := *n
	out.Content = nil
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "scene" {
			name = n.Content[i+1]
			continue
		}
		out.Content = append(out.Content, n.Content[i], n.Content[i+1])
	}
	return name, &out
}
