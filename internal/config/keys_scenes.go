package config

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/canaryctl/canaryctl/internal/pattern"
)

const (
	scenesPath = "canary.scenes"
	scenePath  = "canary.scene"
)

// sceneName is what a scene may be called: it becomes part of paths, of places
// in documents and of labels.
var sceneName = &textForm{
	pattern.New(`^[a-z0-9][a-z0-9_-]{0,62}$`),
	"a name of at most 63 small letters, digits, _ and -, beginning with a letter or digit", "it is the value of a record's `scene`",
}

// notOfScenes are the keys of canary that all scenes of a service share.
var notOfScenes = []string{"target_service", "traffic_dimension", "hash_ring_slots", "scene", "scenes"}

// lists are the keys of canary that a scene replaces whole: what their items
// need, a scene's own need as well.
var lists = []string{"canary.steps", "canary.freeze", "canary.max_pct"}

// sceneKeys are the rows below scenes, made from those of canary: what a scene
// leaves out is canary's, so nothing is required and nothing has a default.
func sceneKeys(all []key) []key {
	out := []key{
		{path: scenePath, kind: kindText, form: sceneName, doc: "The scene that this file is about, where every scene has a file of its own: only its records count."},
		{path: scenesPath, kind: kindNames, names: sceneName, anywhere: true, doc: "Several scenes of one service, each with a ladder, limits and traffic of its own, decided by themselves under one release. See scenes.md."},
		{path: scenesPath + ".*", kind: kindMap, doc: "A scene, by the value of a record's `scene`. It has the keys of canary, over canary's."},
	}
	for _, k := range all {
		rest, ok := strings.CutPrefix(k.path, "canary.")
		if !ok || slices.ContainsFunc(notOfScenes, func(name string) bool { return rest == name }) {
			continue
		}
		whole := slices.ContainsFunc(lists, func(list string) bool { return strings.HasPrefix(k.path, list) && k.path != list })
		if !whole {
			k.def, k.required = "", false
		}
		k.path, k.anywhere, k.doc = scenesPath+".*."+rest, false, "This scene's `"+rest+"`."
		out = append(out, k)
	}
	return out
}

// ofScenes reports whether a path of the table stands below a scene.
func ofScenes(path string) bool { return strings.HasPrefix(path, scenesPath+".*.") }

// stepsSchema says that a ladder stands in canary, or in every scene.
func stepsSchema() object {
	each := object{{"additionalProperties", requires("steps")}, {"minProperties", 1}}
	within := func(path string, what object) object {
		for _, name := range slices.Backward(strings.Split(path, ".")) {
			what = object{{"required", []string{name}}, {"properties", object{{name, what}}}}
		}
		return what
	}
	return object{{"anyOf", []any{within("canary.steps", object{}), within("scenes", each), within("canary.scenes", each)}}}
}

// sceneEntries returns the scenes of the file in their order, written inside
// canary or beside it; nil when there are none.
func (d *document) sceneEntries() []entry {
	canary := mappingValue(d.tree, "canary")
	n := mappingValue(d.tree, "scenes")
	if n == nil {
		n = mappingValue(canary, "scenes")
	}
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	var out []entry
	for i := 0; i+1 < len(n.Content); i += 2 {
		out = append(out, entry{n.Content[i], n.Content[i+1]})
	}
	return out
}

// mappingValue returns the value of a key, the last where it stands twice, or
// nil.
func mappingValue(n *yaml.Node, name string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := len(n.Content) - 2; i >= 0; i -= 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}
