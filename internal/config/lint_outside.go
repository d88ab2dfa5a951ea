package config

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// lintOutside warns of tokens that anybody on the way can read, of hooks that do
// nothing yet, and of a scene's name that nobody fills in.
func (d *document) lintOutside() {
	for _, path := range d.paths() {
		v := d.values[path]
		if v.blank {
			d.warnAt(anchor(v.key, v.node), rulePlaceholder, "write what must be undone after a rollback, or remove the hook",
				"%s is a placeholder: after a rollback nothing is done here", strings.TrimPrefix(path, "hooks."))
		}
		if d.sceneOf() == "" && v.node.Kind == yaml.ScalarNode && strings.Contains(v.node.Value, scenePlaceholder) && takesScene(path) {
			d.warnAt(v.node, ruleSceneUnset, "add scenes, or write the name itself", "%s is taken as it stands: the file has no scenes", scenePlaceholder)
		}
		if v.spec.form != httpURL {
			continue
		}
		at, _ := splitPath(path)
		if what := d.carries(at); what != "" && plainHTTP(v.text) {
			d.warnAt(v.node, rulePlainHTTP, "use https", "%s is sent over plain HTTP: whoever sees the traffic can use it", what)
		}
	}
}

// carries names the secret that is sent to the address of a mapping, or "".
func (d *document) carries(path string) string {
	if env := d.own(path, "token_env").text; env != "" {
		return "the token in " + env
	}
	if env := d.own(path, "password_env").text; env != "" {
		return "the password in " + env
	}
	headers := d.own(path, "headers").pairs
	names := make([]string, 0, len(headers))
	for name := range headers {
		if secretName.MatchString(name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "the header " + slices.Min(names)
}

// plainHTTP reports whether an address is without encryption and leaves the
// machine.
func plainHTTP(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" {
		return false
	}
	host := u.Hostname()
	if ip, err := netip.ParseAddr(host); err == nil {
		return !ip.IsLoopback()
	}
	return host != "localhost" && !strings.HasSuffix(host, ".localhost")
}
