package shadow

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/canaryctl/canaryctl/internal/release"
)

// Version is what makes answers comparable: two of them with one fingerprint
// come from the same configuration. Unknown parts are empty.
type Version struct {
	Model         string
	PromptVersion string
	ToolsVersion  string
	Temperature   string // as written; 0.7 and 0.70 are the same
}

// Fingerprint returns the first 16 hexadecimal digits of the SHA-256 of the
// four parts in the order of the fields, each as a netstring: its length in
// bytes in decimal, a colon, its bytes, a comma. Lengths make it unambiguous:
// no two different versions give the same bytes. A temperature that is a number
// is taken as the shortest decimal that reads back as the same float64.
//
// The netstring of "gpt" is 3:gpt, and that of an empty part is 0:,.
func (v Version) Fingerprint() string {
	h := sha256.New()
	for _, part := range [...]string{v.Model, v.PromptVersion, v.ToolsVersion, shortest(v.Temperature)} {
		h.Write([]byte(strconv.Itoa(len(part)) + ":" + part + ","))
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// IsZero reports whether no part of the version is known.
func (v Version) IsZero() bool { return v == Version{} }

// shortest writes a decimal number in one way and leaves other text alone.
func shortest(number string) string {
	r, err := release.ParseRatio(number)
	if err != nil {
		return number
	}
	return r.String()
}

// Part is one part of a [Version], or several.
type Part uint8

// The parts of a version.
const (
	Model Part = 1 << iota
	PromptVersion
	ToolsVersion
	Temperature
)

// Differs returns the parts in which two versions differ.
func (v Version) Differs(o Version) (parts Part) {
	for _, p := range [...]struct {
		part Part
		same bool
	}{
		{Model, v.Model == o.Model},
		{PromptVersion, v.PromptVersion == o.PromptVersion},
		{ToolsVersion, v.ToolsVersion == o.ToolsVersion},
		{Temperature, shortest(v.Temperature) == shortest(o.Temperature)},
	} {
		if !p.same {
			parts |= p.part
		}
	}
	return parts
}

// Names lists the parts that a set holds, as they are called in files.
func (p Part) Names() (names []string) {
	for i, name := range [...]string{"model", "prompt_version", "tools_version", "temperature"} {
		if p&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}
