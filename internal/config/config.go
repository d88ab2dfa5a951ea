package config

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/diag"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// Config is a canary.yaml without errors. Defaults are filled in; what is
// optional and left out is its zero value. Treat it as read-only.
type Config struct {
	Name string // of the file, for findings

	// Scene is the scene that it is about; "": the whole service. Scenes are
	// those of a file that has several; what is above their Configs is then what
	// they have in common, and Steps may be empty.
	Scene  string
	Scenes []Scene

	TargetService    string
	TrafficDimension string
	HashRingSlots    int64
	Steps            []Step
	Exclude          Exclude
	Include          []string      // user ids always on the canary while a release is under way
	RequestsPerMin   release.Ratio // the service's whole traffic; IsZero when left out

	Fast      FastLayer
	Slow      SlowLayer
	Streaming Streaming
	Recovery  Recovery

	Signals         [release.Judged]breaker.Rule
	Freezes         []ladder.Freeze
	ApprovalTimeout time.Duration
	Share           Share
	Adaptive        *Adaptive     // nil when left out
	MaxPct          *MaxPct       // nil: the ladder ends at 1.00
	CostBaselineUSD release.Ratio // IsZero when left out

	Versions   Versions
	Source     *Source // nil when left out
	Target     *Target // nil when left out
	State      StateStore
	Notify     []Channel
	Hooks      []Hook // hooks.on_rollback
	OnComplete OnComplete

	doc *document
}

// Step is a rung of the ladder. Fast, Slow and Streaming are the plan's limits with the
// step's own over them.
type Step struct {
	Pct     release.Ratio
	Weight  release.Weight
	MinHold time.Duration
	MaxWait time.Duration // 0: never
	Gates   ladder.Gates
	Fast    FastLayer
	Slow    SlowLayer

	Streaming Streaming
}

// FastLayer is metrics.fast_layer as written: factors, not products.
type FastLayer struct {
	ViolationLimit           int64
	BaselineViolationRate    release.Ratio
	ViolationRatioMultiplier release.Ratio
	ViolationWindow          time.Duration
	CostRatioLimit           release.Ratio
	CostMinSamples           int64
	P99BaselineMS            release.Ratio
	P99RatioLimit            release.Ratio
	P99MinSamples            int64
	BaselineTransferRate     release.Ratio
	TransferRateRatioLimit   release.Ratio
	MinTransferCount         int64
	P99ByCount               bool // p99_judge: count
	P99SlowRate              release.Ratio
	P99SlowRatioLimit        release.Ratio
	MinSlowCount             int64
}

// SlowLayer is metrics.slow_layer as written.
type SlowLayer struct {
	SolveBaseline   release.Ratio
	SolveRateDropPP release.Ratio // percentage points
	MinSamplesSlow  int64
	SlowWindow      time.Duration
	SlowWindowMax   time.Duration // slow_window_min where it is left out
	LabelLag        time.Duration
	Judge           breaker.Judge
	AgainstStable   bool  // against: stable
	Noise           Noise // the zero value when left out
	Cusum           Cusum // the zero value when left out
}

// Noise is metrics.slow_layer.noise as written, fractions of 1.
type Noise struct {
	Z, Tau, SE, TauControl release.Ratio
	Tail                   breaker.Tail
}

// Cusum is metrics.slow_layer.cusum as written.
type Cusum struct {
	DropPP release.Ratio // percentage points
	Limit  release.Ratio
}

// Recovery is metrics.recovery as written.
type Recovery struct {
	Cooldown            time.Duration
	HalfOpenTrials      int64
	HalfOpenSuccessRate release.Ratio
	LockOnEscalate      bool
	HalfOpenMinRequests int64
	MaxAttempts         int64 // 0: no end
}

// Exclude says who is never on the canary.
type Exclude struct {
	Segments []string
	UserIDs  []string
}

// Share is how the share seen is held against the weight, in a live release.
type Share struct {
	Off          bool
	DesignEffect release.Ratio
	Tolerance    release.Ratio
}

// MaxPct is where a ladder ends that does not reach 1.00, and why.
type MaxPct struct {
	Pct     release.Ratio
	Because string
}

// Versions are the two versions; nil where left out.
type Versions struct {
	Stable, Canary *Version
	// AllowMultipleChanges says why they may differ in more than one thing.
	AllowMultipleChanges string
}

// Version is one of the two versions.
type Version struct {
	BaseURL       string
	ModelID       string
	PromptVersion string
	ToolsVersion  string
	Gateway       string
	Temperature   release.Ratio // IsZero when left out
	Params        map[string]any
	APIKeyEnv     string
	APIKey        Secret
	Weight        release.Ratio // IsZero when left out
}

// Secret is a text that prints as asterisks wherever it is printed or encoded.
type Secret string

// String returns asterisks, or "" for no secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return masked
}

// GoString returns asterisks as well, for %#v.
func (s Secret) GoString() string { return s.String() }

// MarshalText implements [encoding.TextMarshaler] with asterisks.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Reveal returns the secret itself, to be used and not to be shown.
func (s Secret) Reveal() string { return string(s) }

// Number is a number in a free mapping, as written.
type Number string

// MarshalJSON writes the number as written, and as a string where JSON has no
// such form (0x10, 1_000).
func (n Number) MarshalJSON() ([]byte, error) {
	if text := strings.TrimPrefix(string(n), "-"); plainDecimal.MatchString(text) || longDecimal.MatchString(text) {
		return []byte(n), nil
	}
	return json.Marshal(string(n))
}

// Parse reads a canary.yaml. name is how findings call the file. When the list
// has errors the Config is nil; it has no other findings than errors, and is
// sorted. Warnings come from [Config.Lint].
func Parse(name string, src []byte) (*Config, diag.List) {
	d := newDocument(name, src)
	cfg := d.config()
	d.list.Sort()
	return cfg, d.list
}

// Check returns everything there is to say about a canary.yaml: the errors of
// [Parse], and the warnings of [Config.Lint] or, where errors leave nothing to
// lint, at least those about secrets.
func Check(name string, src []byte) diag.List {
	d := newDocument(name, src)
	if cfg := d.config(); cfg != nil {
		return cfg.Lint()
	}
	d.lintSecrets()
	d.list.Sort()
	return d.list
}

// config reads, walks and binds; nil when there were errors.
func (d *document) config() *Config {
	if !d.merged {
		d.read()
	}
	if d.tree == nil {
		return nil
	}
	if scene := d.sceneOf(); scene != "" {
		d.fillScene(scene)
	}
	d.walk(root(), "", nil, d.tree)
	cfg := d.bind()
	if d.sceneEntries() != nil {
		d.bindScenes(cfg)
	} else {
		d.checkPlan(cfg)
	}
	if d.list.HasErrors() {
		return nil
	}
	return cfg
}
