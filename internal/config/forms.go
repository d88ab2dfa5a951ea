package config

import "github.com/canaryctl/canaryctl/internal/pattern"

// textForm is a form that some texts must have. Messages do not show a text
// that has it not: it may be a secret, or harm a terminal.
type textForm struct {
	re         *pattern.Pattern // in the syntax that JavaScript and Go share
	want, hint string
}

// unprintable are the characters that break a line or harm a terminal, as they
// stand in a class.
const unprintable = "\x00-\x1f\x7f-\u009f\u2028-\u202e\u2066-\u2069"

// pathPart is a part of a path other than "..".
const pathPart = "(?:\\.|[^./" + unprintable + "][^/" + unprintable + "]*|\\.[^./" + unprintable + "][^/" + unprintable + "]*|\\.\\.[^/" + unprintable + "]+)"

const labelMatch = `\s*(?:[a-zA-Z_:][a-zA-Z0-9_:]*|"(?:[^"\\]|\\.)+")\s*(?:=~|!~|!=|=)\s*"(?:[^"\\]|\\.)*"\s*`

var (
	envName = &textForm{
		pattern.New(`^[A-Za-z_][A-Za-z0-9_]*$`),
		"the name of an environment variable: letters, digits and underscores", "what it holds belongs into the environment, not into the file",
	}
	oneLine = &textForm{
		pattern.New("^[^" + unprintable + "]*$"),
		"one line without control characters", "remove line breaks, tabs and escape sequences",
	}
	// word is a name that ends up in a command or a header between blanks.
	word = &textForm{
		pattern.New("^[^ ;" + unprintable + "]+$"),
		"a name without blanks, semicolons and control characters", "",
	}
	httpURL = &textForm{
		pattern.New("^https?://[^ /?#" + unprintable + "]+(?:[/?#][^ " + unprintable + "]*)?$"),
		"an address that begins with http:// or https://", "an address that holds a secret belongs into the environment: url_env",
	}
	// selector names a place of a document; "-" is none.
	selector = &textForm{
		pattern.New("^(?:[^-" + unprintable + "][^" + unprintable + "]*|-[^" + unprintable + "]+)$"),
		"where in the document, on one line", "such as versions.canary.weight",
	}
	insidePath = &textForm{
		pattern.New("^(?:" + pathPart + "/)*" + pathPart + "$"),
		"a path inside the repository", "write it from the top of the repository, with slashes and without ..",
	}
	socket = &textForm{
		pattern.New("^(?:[^" + unprintable + "]*/[^" + unprintable + "]+|[^ /" + unprintable + "]+:[0-9]{1,5})$"),
		"the path of a socket, with a slash in it, or host:port", "as in HAProxy's line `stats socket`",
	}
	matcher = &textForm{
		pattern.New("^" + labelMatch + "(?:," + labelMatch + ")*,?$"),
		"label matchers as in PromQL, without braces", `write it as version="canary", several of them with commas`,
	}
	headerName = &textForm{
		pattern.New("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"),
		"names of headers: letters, digits and hyphens", "",
	}
	headerText = &textForm{
		pattern.New("^(?:[^$" + unprintable + "]" + `|\$\{[A-Za-z_][A-Za-z0-9_]*\}|\$` + "[^${" + unprintable + "]" + `)*\$?$`),
		"one line, with variables of the environment as ${NAME}", "",
	}
	labelName = &textForm{
		pattern.New(`^[a-zA-Z_][a-zA-Z0-9_]*$`),
		"names of labels: letters, digits and underscores", "",
	}
	gitName = &textForm{
		pattern.New("^[^<>" + unprintable + "]+$"),
		"one line without < and >", "name and address of the author are two keys",
	}
	bodyText = &textForm{
		pattern.New(`\{canary\}`),
		"a text with {canary} in it, where the weight is filled in", "",
	}
)
