package target

import (
	"fmt"

	"github.com/canaryctl/canaryctl/internal/config"
)

// New returns the target of a configuration. It asks nobody; an error is the
// configuration's or names an environment variable that is not set.
func New(c *config.Target, o Options) (Target, error) {
	switch c.Kind {
	case "file":
		return newFile(c.File, o)
	case "config_api":
		return newConfigAPI(c.ConfigAPI, o)
	case "git":
		return newGit(c.Git, o)
	case "etcd":
		return newEtcd(c.Etcd, o)
	case "haproxy":
		return newHAProxy(c.HAProxy, o)
	case "unleash":
		return newUnleash(c.Unleash, o)
	case "exec":
		return newExec(c.Exec, o)
	}
	return nil, fmt.Errorf("target: %q is no kind of target", c.Kind)
}
