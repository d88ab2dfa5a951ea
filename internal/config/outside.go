package config

import (
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// Source says where live windows come from. Kind is windows, records or
// prometheus; the fields of the other kinds are zero.
type Source struct {
	Kind    string
	Paths   []string       // windows, records: paths, directories, patterns
	Map     map[string]any // windows, records: columns by the names of fields
	Arms    map[string]any // windows, records: values of version or model by arm
	Scene   string         // windows, records: rows of other scenes do not count; "": all do
	Span    time.Duration  // length of a window
	Settle  time.Duration  // windows that ended less than this ago are not read yet
	Stale   time.Duration  // no window with requests for so long: the source is lost; 0: never; default 0, prometheus 10 min or Settle + 3 Span
	MaxBad  release.Ratio  // records, windows: largest share of unreadable lines; default 0.001
	Timeout time.Duration  // of one reading

	URL      string // prometheus
	URLEnv   string
	TokenEnv string
	Headers  map[string]string         // prometheus: sent with each request, such as a tenant's id; ${NAME} is taken from the environment
	Preset   string                    // prometheus: vllm, sglang, litellm ..., or ""
	Matchers map[release.Arm]string    // prometheus: what is put into {} of a preset's queries, by arm
	Queries  map[release.Arm]FieldText // prometheus: PromQL by arm and field; over the preset's
}

// FieldText is a text by the name of a window's field: total, judged, solved,
// violations, transfers, cost_mean, p99_ms, ttft_p99_ms ...
type FieldText map[string]string

// Unit is how a target writes a share: as a multiple of Whole with Places
// decimals at most. A fraction of 1 is {1, 6}, percent {100, 2}, basis points
// {10000, 0}; 256 slots of a balancer {256, 0}.
type Unit struct {
	Whole  int64
	Places int
}

// Target says where weights are written. The pointer that Kind names is set
// and no other.
type Target struct {
	Kind      string
	Line, Col int // of the key that names the kind

	File      *FileTarget
	ConfigAPI *ConfigAPITarget
	Git       *GitTarget
	Etcd      *EtcdTarget
	HAProxy   *HAProxyTarget
	Unleash   *UnleashTarget
	Exec      *ExecTarget
}

// FileTarget is a JSON or YAML document.
type FileTarget struct {
	Path   string
	Canary string // selector of the canary's weight; default versions.canary.weight
	Stable string // selector of stable's; "-": there is none; default versions.stable.weight
	Unit   Unit
}

// ConfigAPITarget is a configuration API over HTTP.
type ConfigAPITarget struct {
	URL, URLEnv string            // of the document
	TokenEnv    string            // variable that holds the token
	TokenScheme string            // what stands before the token in Authorization; default Bearer; "-": the token alone
	Headers     map[string]string // sent with every request; ${NAME} is taken from the environment
	ReadURL     string            // where it is read; "": at the address
	WriteURL    string            // where it is written; "": at the address
	WriteMethod string            // default PUT, PATCH for patches
	Mode        string            // put (whole document), merge_patch, json_patch, template
	Body        string            // template: the body with {canary} {stable} {release} {attempt} {step} {key} in it
	ContentType string            // default by mode
	Canary      string            // as in FileTarget, in the document that is read
	Stable      string
	Unit        Unit
	IfMatch     string        // auto (strong ETags only), weak (weak ones too), off
	StateAt     string        // selector of a text in the document that keeps the release's state; default state
	Timeout     time.Duration // of one request; default 10 s
	ReadBack    time.Duration // how long an answer may be stale after a write; default 10 s
}

// GitTarget is values in files of a git repository.
type GitTarget struct {
	Repo        string // directory of a clone, bare or not; default .
	Remote      string // default origin
	Branch      string // "": the one checked out, or what the CI names
	Files       []GitFile
	Mode        string // push, or branch: a branch of its own for a pull request
	WorkBranch  string // mode branch; "": canaryctl/SERVICE
	OpenCommand []string
	// OpenCommand is run after a push in mode branch, such as a forge's own
	// program that opens a pull request.
	AuthorName  string
	AuthorEmail string
	Sign        bool          // as the user's git configuration says; false leaves that to commit.gpgsign
	StatePath   string        // file in the repository that keeps the release's state; "": .canaryctl/SERVICE.json
	Deadline    time.Duration // for all tries of one write; default 30 s
}

// GitFile is a file with the weights in it.
type GitFile struct {
	Path     string // in the repository
	Document string // which document of several: kind=HTTPRoute,metadata.name=llm; "" where there is one
	Canary   string // selectors
	Stable   string // "-": there is none
	Unit     Unit
}

// EtcdTarget is a key in etcd, over its JSON gateway.
type EtcdTarget struct {
	Endpoints   []string // URLs, tried in order
	Key         string
	Canary      string // selectors in the value; "": the value is the weight itself
	Stable      string
	Unit        Unit
	UserEnv     string
	PasswordEnv string
	Timeout     time.Duration
}

// HAProxyTarget is a backend of HAProxy, by its runtime API.
type HAProxyTarget struct {
	Address string // path of a socket, or host:port
	Backend string
	Stable  string // server names
	Canary  string
	Total   int64 // the two weights add up to it; default 200, at most 256
	Timeout time.Duration
}

// UnleashTarget is a flexibleRollout strategy of a feature flag.
type UnleashTarget struct {
	URL, URLEnv string
	TokenEnv    string
	Project     string // default: default
	Feature     string
	Environment string
	Strategy    string // id; "": the only flexibleRollout of the environment
	Timeout     time.Duration
}

// ExecTarget is two programs of one's own.
type ExecTarget struct {
	Read    []string // prints the weight
	Write   []string // gets it in the environment and on standard input
	Unit    Unit     // of both; default a fraction of 1
	Timeout time.Duration
}

// Channel is one way of telling people.
type Channel struct {
	Kind        string // webhook, slack, feishu, dingtalk, wecom, alertmanager
	Line, Col   int
	URL, URLEnv string
	SecretEnv   string            // webhook, feishu, dingtalk: what messages are signed with
	TokenEnv    string            // webhook, alertmanager: bearer token
	Headers     map[string]string // webhook
	Keyword     string            // dingtalk, feishu: a word that the robot demands in each message
	Labels      map[string]string // alertmanager: more labels
	Events      []string          // which transitions; none: all
	Timeout     time.Duration     // default 10 s
}

// Hook is something done after a rollback, such as purging a semantic cache.
type Hook struct {
	Kind        string // http, exec
	Name        string
	Line, Col   int
	URL, URLEnv string // http
	Method      string // default POST
	Headers     map[string]string
	TokenEnv    string
	Body        string        // default: the rollback record as JSON
	Command     []string      // exec; gets the rollback record on standard input
	Tries       int           // default 5
	Timeout     time.Duration // of one try; default 30 s
}

// StateStore says where a release's state is kept.
type StateStore struct {
	Dir string // journal, locks, and the state itself
	// InTarget keeps the state in the target's document as well, in the write
	// that moves the weight, so that another machine can go on: git and
	// config_api.
	InTarget bool
}

// OnComplete says what happens to the versions document after completion.
type OnComplete string

const (
	// KeepVersions leaves it as it is.
	KeepVersions OnComplete = "keep"
	// SwapVersions makes the canary its stable.
	SwapVersions OnComplete = "swap"
)
