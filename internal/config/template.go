package config

import (
	_ "embed" // the template

	"github.com/canaryctl/canaryctl/internal/splice"
)

//go:embed template.yaml
var template []byte

// Template returns a commented canary.yaml for a service, with the shipped
// defaults written out. An error is a [splice.Error]: a name that YAML cannot
// hold.
func Template(service string) ([]byte, error) {
	return splice.Set(template, []string{"canary", "target_service"}, service)
}
