package target

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/envsecret"
	"github.com/canaryctl/canaryctl/internal/release"
)

const (
	unleashTimeout  = 10 * time.Second
	unleashReadBack = 10 * time.Second
)

// unleashPercent is whole percents. The API takes "0.5", but Unleash's clients
// put a user into one of 100 slots and compare its number, from 1 on, with the
// rollout: 0.5 is nobody and 7.5 is 7 (normalizedStrategyValue in the clients
// and in the client specification).
var unleashPercent = scale{whole: 100}

// unleash is a flexibleRollout strategy of a feature flag, by the admin API.
type unleash struct {
	web         *web
	environment *url.URL // the flag's, of the admin API
	feature     string
	name        string // of the environment
	strategy    string // id; "": the only one
	ring        int64
}

// newUnleash returns the target of a strategy. It does not connect.
func newUnleash(cfg *config.UnleashTarget, o Options) (Target, error) {
	const key = "target.unleash"
	if cfg.Feature == "" || cfg.Environment == "" || cfg.TokenEnv == "" {
		return nil, errors.New(key + ": feature, environment and token_env are wanted")
	}
	project := cfg.Project
	if project == "" {
		project = "default"
	}
	timeout := cfg.Timeout
	if timeout <= 0 {
		timeout = unleashTimeout
	}
	env := envsecret.New(o.Getenv)
	base, err := env.Address(key+".url", cfg.URL, cfg.URLEnv)
	if err != nil {
		return nil, err
	}
	t := &unleash{feature: cfg.Feature, name: cfg.Environment, strategy: cfg.Strategy, ring: o.Ring}
	t.environment = base.JoinPath("api/admin/projects", url.PathEscape(project),
		"features", url.PathEscape(cfg.Feature), "environments", url.PathEscape(cfg.Environment))
	t.web = newWeb(t.String(), o.Client, timeout)
	t.web.header.Set("Content-Type", "application/json")
	token, err := env.Authorization(key+".token_env", cfg.TokenEnv, "-") // Unleash documents tokens without Bearer
	if err != nil {
		return nil, err
	}
	t.web.header.Set("Authorization", token)
	t.web.keyHint = "target.unleash.token_env names a variable with an admin, service account or personal token that may update strategies " +
		"of the environment; a client token may not, nor anybody where the environment takes change requests only"
	t.web.secrets = env.Secrets()
	return t, nil
}

// String implements [Target].
func (t *unleash) String() string { return "unleash " + oneLine(t.feature+" in "+t.name, 100) }

// KeepsState implements [Target].
func (t *unleash) KeepsState() bool { return false }

// ReadBack implements [Target]: several instances share a database, and may
// keep answers for a while.
func (t *unleash) ReadBack() time.Duration { return unleashReadBack }

// Check implements [Target].
func (t *unleash) Check(w release.Weight) error { return unleashPercent.check(t.String(), w) }

// Read implements [Target]: the strategy's rollout, or 0 where the environment
// or the strategy is disabled, because nobody is on the canary then.
func (t *unleash) Read(ctx context.Context) (Reading, error) {
	held, err := t.look(ctx)
	return Reading{Weight: held.weight}, err
}

// Write implements [Target]. Unleash has no compare-and-swap: it takes no
// If-Match, and of JSON Patch all operations but test. The rollout is read just
// before it is written.
func (t *unleash) Write(ctx context.Context, was Reading, c Change) error {
	percent, _, err := unleashPercent.render(c.To)
	if err != nil {
		return nameFine(t.String(), err)
	}
	held, err := t.look(ctx)
	_, broken := errors.AsType[*ShapeError](err)
	switch {
	case broken && held.id == "" && c.Overwrite:
		return &RefusedError{Target: t.String(), Err: err, Hint: "switch the flag off in Unleash if users must be taken off the canary now"}
	case broken && c.Overwrite:
		// A rollout that is no number, or other strategies, are no reason to
		// leave users on the canary.
	case broken:
		return &ConflictError{Target: t.String(), Err: err}
	case err != nil:
		return err
	case !c.Overwrite && !held.weight.Same(was.Weight):
		return &ConflictError{Target: t.String(), Held: &held.weight}
	}
	if held.off != "" && !c.To.IsZero() {
		return &RefusedError{
			Target: t.String(), Err: fmt.Errorf("%s is disabled: nobody would be on the canary", held.off),
			Hint: "enable it in Unleash; at rollout 0 that changes nothing for anybody",
		}
	}
	return t.patch(ctx, held.id, percent)
}

// patch sets the rollout, as a text: Unleash refuses a number with 400.
func (t *unleash) patch(ctx context.Context, id, percent string) error {
	body, err := json.Marshal([]map[string]string{{"op": "replace", "path": "/parameters/rollout", "value": percent}})
	if err != nil {
		return err
	}
	where := t.environment.JoinPath("strategies", url.PathEscape(id)).String()
	a, err := t.web.do(ctx, http.MethodPatch, where, nil, body)
	if err != nil {
		return err
	}
	return t.web.verdict(a)
}

// unleashHeld is the strategy at one moment.
type unleashHeld struct {
	id     string // "": there is no such strategy
	weight release.Weight
	off    string // what is disabled; "": nothing
}

// unleashStrategy is a strategy of an environment as the admin API has it.
type unleashStrategy struct {
	ID          string            `json:"id"`
	Name        string            `json:"name"`
	Parameters  map[string]string `json:"parameters"`
	Constraints []json.RawMessage `json:"constraints"`
	Segments    []json.RawMessage `json:"segments"`
	Disabled    bool              `json:"disabled"`
}

// look reads the environment and its strategies: the environment's own answer
// has them as well, but without their segments.
func (t *unleash) look(ctx context.Context) (unleashHeld, error) {
	var env struct {
		Enabled *bool `json:"enabled"`
	}
	if err := t.get(ctx, t.environment, &env); err != nil {
		return unleashHeld{}, err
	}
	if env.Enabled == nil {
		return unleashHeld{}, t.shape(errors.New("the answer does not say whether the environment is enabled: is it Unleash's?"), "")
	}
	var all []unleashStrategy
	if err := t.get(ctx, t.environment.JoinPath("strategies"), &all); err != nil {
		return unleashHeld{}, err
	}
	s, err := t.pick(all)
	if err != nil {
		return unleashHeld{}, err
	}
	held := unleashHeld{id: s.ID}
	switch {
	case !*env.Enabled:
		held.off = "environment " + t.name
	case s.Disabled:
		held.off = "strategy " + s.ID
	}
	if held.weight, err = unleashPercent.parse(s.Parameters["rollout"], "", t.ring); err != nil {
		return held, t.shape(fmt.Errorf("parameters.rollout: %w", err), "set the rollout to a whole number of percents")
	}
	if t.Check(held.weight) != nil {
		return held, t.shape(fmt.Errorf("rollout %s: Unleash's clients count whole percents only and leave off the rest", s.Parameters["rollout"]), "set the rollout to a whole number of percents")
	}
	if held.off != "" {
		held.weight.Slots = 0
		return held, nil
	}
	return held, t.alone(s, all)
}

func (t *unleash) get(ctx context.Context, where *url.URL, into any) error {
	a, err := t.web.do(ctx, http.MethodGet, where.String(), nil, nil)
	if err != nil {
		return err
	}
	if a.status == http.StatusNotFound {
		return t.shape(errors.New(t.web.said(a)), "is the flag in this project, and the environment enabled for the project?")
	}
	if err := t.web.verdict(a); err != nil {
		return err
	}
	if err = checkJSON(a.body); err == nil {
		err = json.Unmarshal(a.body, into)
	}
	if err != nil {
		return t.shape(fmt.Errorf("not an answer of Unleash's admin API: %w", err), "target.unleash.url is Unleash's own address, without /api")
	}
	return nil
}

const flexibleRollout = "flexibleRollout"

// pick returns the strategy that is meant.
func (t *unleash) pick(all []unleashStrategy) (unleashStrategy, error) {
	var found []unleashStrategy
	var ids []string
	for _, s := range all {
		if s.Name == flexibleRollout && (t.strategy == "" || s.ID == t.strategy) {
			found, ids = append(found, s), append(ids, s.ID)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return unleashStrategy{}, t.shape(fmt.Errorf("there are %d strategies of type %s: %s", len(found), flexibleRollout, strings.Join(ids, ", ")), "say which with target.unleash.strategy")
	case t.strategy != "":
		return unleashStrategy{}, t.shape(fmt.Errorf("there is no strategy %s of type %s", oneLine(t.strategy, 40), flexibleRollout), "see the flag's strategies in Unleash")
	}
	return unleashStrategy{}, t.shape(fmt.Errorf("there is no strategy of type %s", flexibleRollout), "add one in Unleash with rollout 0, and check target.unleash.project: Unleash shows no strategies under a wrong one")
}

// alone returns why a strategy does not decide the share: strategies add up,
// so that another one for everybody puts more users on the canary. Those with
// constraints or segments are for some, like an include list, and may be there.
func (t *unleash) alone(chosen unleashStrategy, all []unleashStrategy) error {
	for _, s := range all {
		wide := s.Name == "default" || s.Name == flexibleRollout && s.Parameters["rollout"] != "0" || strings.HasPrefix(s.Name, "gradualRollout")
		if s.ID == chosen.ID || s.Disabled || !wide || len(s.Constraints)+len(s.Segments) > 0 {
			continue
		}
		return t.shape(fmt.Errorf("strategy %s of type %s is for everybody too, and adds users to the canary", s.ID, s.Name), "remove or disable it, or constrain it")
	}
	return nil
}

func (t *unleash) shape(err error, hint string) error {
	return &ShapeError{Target: t.String(), Err: err, Hint: hint}
}
