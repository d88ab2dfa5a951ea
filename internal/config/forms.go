package config

import "regexp"

// textForm is a form that some texts must have. Messages do not show a text
// that has it not: it may be a secret, or harm a terminal.
type textForm struct {
	re         *regexp.Regexp // in the syntax that JavaScript and Go share
	want, hint string
}

// printable is a character of one line that harms no terminal; in it stands
// what else is excluded.
func printable(but string) string {
	return "[^" + but + "\x00-\x1f\x7f-\u009f\u2028-\u202e\u2066-\u2069]"
}

// pathPart is a part of a path other than "..".
var pathPart = "(?:\\.|" + printable("./") + printable("/") + "*|\\." + printable("./") + printable("/") + "*|\\.\\." + printable("/") + "+)"

const labelMatch = `\s*(?:[a-zA-Z_:][a-zA-Z0-9_:]*|"(?:[^"\\]|\\.)+")\s*(?:=~|!~|!=|=)\s*"(?:[^"\\]|\\.)*"\s*`

var (
	envName = &textForm{
		regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`),
		"the name of an environment variable: letters, digits and underscores", "what it holds belongs into the environment, not into the file",
	}
	oneLine = &textForm{
		regexp.MustCompile("^" + printable("") + "*$"),
		"one line without control characters", "remove line breaks, tabs and escape sequences",
	}
	// word is a name that ends up in a command or a header between blanks.
	word = &textForm{
		regexp.MustCompile("^" + printable(" ;") + "+$"),
		"a name without blanks, semicolons and control characters", "",
	}
	httpURL = &textForm{
		regexp.MustCompile("^https?://" + printable(" /?#") + "+(?:[/?#]" + printable(" ") + "*)?$"),
		"an address that begins with http:// or https://", "an address that holds a secret belongs into the environment: url_env",
	}
	// selector names a place of a document; "-" is none.
	selector = &textForm{
		regexp.MustCompile("^(?:" + printable("-") + printable("") + "*|-" + printable("") + "+)$"),
		"where in the document, on one line", "such as versions.canary.weight",
	}
	insidePath = &textForm{
		regexp.MustCompile("^(?:" + pathPart + "/)*" + pathPart + "$"),
		"a path inside the repository", "write it from the top of the repository, with slashes and without ..",
	}
	socket = &textForm{
		regexp.MustCompile("^(?:" + printable("") + "*/" + printable("") + "+|" + printable(" /") + "+:[0-9]{1,5})$"),
		"the path of a socket, with a slash in it, or host:port", "as in HAProxy's line `stats socket`",
	}
	matcher = &textForm{
		regexp.MustCompile("^" + labelMatch + "(?:," + labelMatch + ")*,?$"),
		"label matchers as in PromQL, without braces", `write it as version="canary", several of them with commas`,
	}
	headerName = &textForm{
		regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"),
		"names of headers: letters, digits and hyphens", "",
	}
	headerText = &textForm{
		regexp.MustCompile("^(?:" + printable("$") + `|\$\{[A-Za-z_][A-Za-z0-9_]*\}|\$` + printable("${") + `)*\$?$`),
		"one line, with variables of the environment as ${NAME}", "",
	}
	labelName = &textForm{
		regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`),
		"names of labels: letters, digits and underscores", "",
	}
	gitName = &textForm{
		regexp.MustCompile("^" + printable("<>") + "+$"),
		"one line without < and >", "name and address of the author are two keys",
	}
	bodyText = &textForm{
		regexp.MustCompile(`\{canary\}`),
		"a text with {canary} in it, where the weight is filled in", "",
	}
)
