package target

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/canaryctl/canaryctl/internal/splice"
)

// errAnchor says that a value may be another's as well.
var errAnchor = errors.New("an anchor or an alias stands there")

// leaf is a value of a version: keys below the version's mapping, and the node.
type leaf struct {
	keys []string
	node *yaml.Node
}

// versionAt returns the mapping at a path of keys in a file with one document.
func versionAt(src []byte, path []string) (n *yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil { // the YAML package panics on some broken inputs
			n, err = nil, fmt.Errorf("yaml: %v", r)
		}
	}()
	var doc yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(src)).Decode(&doc); err != nil {
		return nil, err
	}
	if len(doc.Content) == 0 {
		return nil, errors.New("an empty document")
	}
	n = doc.Content[0]
	for i, key := range path {
		if n = entryOf(n, key); n == nil {
			return nil, fmt.Errorf("%s is not there", strings.Join(path[:i+1], "."))
		}
	}
	if n.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s: no mapping stands there", strings.Join(path, "."))
	}
	return n, nil
}

func entryOf(n *yaml.Node, key string) *yaml.Node {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// leaves lists the values of a version but its weight, sorted by their keys.
// Mappings inside are gone through; a list is one value.
func leaves(version *yaml.Node, weight string) (out []leaf, err error) {
	var walk func(n *yaml.Node, keys []string) error
	walk = func(n *yaml.Node, keys []string) error {
		if n.Anchor != "" || n.Kind == yaml.AliasNode {
			return fmt.Errorf("line %d: %w", n.Line, errAnchor)
		}
		if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
			out = append(out, leaf{keys, n})
			return nil
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if key.Kind != yaml.ScalarNode || key.Tag == "!!merge" {
				return fmt.Errorf("line %d: %w", key.Line, errAnchor)
			}
			if len(keys) == 0 && key.Value == weight {
				continue
			}
			if err := walk(n.Content[i+1], append(slices.Clone(keys), key.Value)); err != nil {
				return err
			}
		}
		return nil
	}
	if err := walk(version, nil); err != nil {
		return nil, err
	}
	slices.SortFunc(out, func(a, b leaf) int { return slices.Compare(a.keys, b.keys) })
	return slices.DeleteFunc(out, func(l leaf) bool { return len(l.keys) == 0 }), nil // a version with nothing in it
}

func (k versionKeys) leavesYAML(src []byte) (stable, canary []leaf, err error) {
	for _, v := range []struct {
		path   []string
		weight string
		out    *[]leaf
	}{{k.stable, k.stableWeight, &stable}, {k.canary, k.canaryWeight, &canary}} {
		n, err := versionAt(src, v.path)
		if err == nil {
			*v.out, err = leaves(n, v.weight)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", strings.Join(v.path, "."), err)
		}
	}
	return stable, canary, nil
}

// digestsYAML names the two versions.
func (k versionKeys) digestsYAML(src []byte) (stable, canary string, err error) {
	s, c, err := k.leavesYAML(src)
	if err != nil {
		return "", "", err
	}
	stable, err = digestYAML(s)
	if err == nil {
		canary, err = digestYAML(c)
	}
	return stable, canary, err
}

func digestYAML(version []leaf) (string, error) {
	var b bytes.Buffer
	for _, l := range version {
		text, err := valueText(l.node)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%q %s\n", l.keys, text)
	}
	return digestOf(b.Bytes()), nil
}

// valueText is a value with its kind, however it is written.
func valueText(n *yaml.Node) (string, error) {
	if n.Anchor != "" || n.Kind == yaml.AliasNode {
		return "", fmt.Errorf("line %d: %w", n.Line, errAnchor)
	}
	text := fmt.Sprintf("%d %s %q", n.Kind, n.ShortTag(), n.Value)
	for _, c := range n.Content {
		inner, err := valueText(c)
		if err != nil {
			return "", err
		}
		text += "(" + inner + ")"
	}
	return text, nil
}

// exchangeYAML exchanges the values of two versions with the same keys, in the
// quotes and the layout that stand there. What cannot be written so is an
// error: a text over several lines, a list that differs, a number where the
// other has a text.
func (k versionKeys) exchangeYAML(src []byte) ([]byte, error) {
	stable, canary, err := k.leavesYAML(src)
	if err != nil {
		return nil, err
	}
	names := func(version []leaf) (out []string) {
		for _, l := range version {
			out = append(out, strings.Join(l.keys, "."))
		}
		return out
	}
	if a, b := names(stable), names(canary); !slices.Equal(a, b) {
		return nil, fmt.Errorf("%s and %s do not have the same keys (%s), so that a file with comments and layout of its own cannot be exchanged byte for byte",
			strings.Join(k.stable, "."), strings.Join(k.canary, "."), strings.Join(onlyOne(a, b), ", "))
	}
	var edits []splice.Edit
	for i := range stable {
		e, err := k.editsOf(stable[i], canary[i])
		if err != nil {
			return nil, err
		}
		edits = append(edits, e...)
	}
	return splice.SetAll(src, splice.Document{}, edits)
}

// onlyOne lists what is in one of two sorted lists alone.
func onlyOne(a, b []string) (out []string) {
	for _, x := range slices.Concat(a, b) {
		if !slices.Contains(a, x) || !slices.Contains(b, x) {
			out = append(out, x)
		}
	}
	return out
}

// editsOf are the edits that exchange one value; none where it is the same.
func (k versionKeys) editsOf(a, b leaf) ([]splice.Edit, error) {
	x, err := valueText(a.node)
	if err != nil {
		return nil, err
	}
	y, err := valueText(b.node)
	if err != nil || x == y {
		return nil, err
	}
	if a.node.Kind != yaml.ScalarNode || b.node.Kind != yaml.ScalarNode {
		return nil, fmt.Errorf("%s (line %d) is a list in one version that the other does not have", strings.Join(a.keys, "."), a.node.Line)
	}
	to, err := selectorOf(slices.Concat(k.stable, a.keys))
	if err != nil {
		return nil, err
	}
	from, err := selectorOf(slices.Concat(k.canary, b.keys))
	return []splice.Edit{{At: to, Value: b.node.Value}, {At: from, Value: a.node.Value}}, err
}
