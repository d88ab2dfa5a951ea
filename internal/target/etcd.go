package target

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/envsecret"
	"github.com/canaryctl/canaryctl/internal/release"
)

const (
	etcdTimeout = 10 * time.Second
	// etcdTries bounds the transactions of one write: each that is lost was
	// won by somebody else, so waiting between them gains nothing.
	etcdTries = 32
)

// etcd is a key in etcd. Its writes are transactions that put the value only
// if the key still has the revision that was read.
type etcd struct {
	gateway *etcdGateway
	key     string
	value   etcdValue
	ring    int64
}

// newEtcd returns the target of a key. It does not connect.
func newEtcd(cfg *config.EtcdTarget, o Options) (Target, error) {
	const key = "target.etcd"
	if cfg.Key == "" || len(cfg.Endpoints) == 0 {
		return nil, errors.New(key + ": a key and at least one of endpoints are wanted")
	}
	t := &etcd{key: cfg.Key, ring: o.Ring}
	var err error
	if t.value, err = newEtcdValue(key, cfg); err != nil {
		return nil, err
	}
	timeout := cfg.Timeout
	if timeout <= 0 {
		timeout = etcdTimeout
	}
	w := newWeb(t.String(), o.Client, timeout)
	w.header.Set("Content-Type", "application/json")
	w.keyHint = "target.etcd.user_env and password_env name variables with a user who may read and write the key"
	t.gateway = &etcdGateway{web: w}
	env := envsecret.New(o.Getenv)
	for i, endpoint := range cfg.Endpoints {
		u, err := env.Address(fmt.Sprintf("%s.endpoints[%d]", key, i), endpoint, "")
		if err != nil {
			return nil, err
		}
		t.gateway.endpoints = append(t.gateway.endpoints, u)
	}
	if cfg.UserEnv != "" || cfg.PasswordEnv != "" {
		if t.gateway.user, err = env.Value(key+".user_env", cfg.UserEnv); err != nil {
			return nil, err
		}
		if t.gateway.password, err = env.Value(key+".password_env", cfg.PasswordEnv); err != nil {
			return nil, err
		}
	}
	w.secrets = env.Secrets()
	return t, nil
}

// String implements [Target].
func (t *etcd) String() string { return "etcd " + oneLine(t.key, 100) }

// KeepsState implements [Target].
func (t *etcd) KeepsState() bool { return false }

// ReadBack implements [Target]: etcd reads what a majority has agreed on.
func (t *etcd) ReadBack() time.Duration { return 0 }

// Check implements [Target].
func (t *etcd) Check(w release.Weight) error { return t.value.check(t.String(), w) }

// Read implements [Target]. The revision is the key's mod_revision.
func (t *etcd) Read(ctx context.Context) (Reading, error) {
	held, err := t.gateway.get(ctx, t.key)
	if err != nil {
		return Reading{}, err
	}
	w, err := t.weight(held)
	if err != nil {
		return Reading{}, err
	}
	return Reading{Weight: w, Revision: held.revision}, nil
}

// weight returns the canary's share of what the key holds, or a [*ShapeError].
func (t *etcd) weight(held etcdHeld) (release.Weight, error) {
	if held.revision == "" {
		return release.Weight{}, &ShapeError{
			Target: t.String(), Err: errors.New("there is no such key"),
			Hint: "etcdctl put " + shellQuote(t.key) + " " + shellQuote(t.value.start()),
		}
	}
	w, err := t.value.read(held.value, t.ring)
	if err != nil {
		return release.Weight{}, &ShapeError{Target: t.String(), Err: err}
	}
	return w, nil
}

// Write implements [Target]. A transaction that is lost although the weight is
// still the one that was read has met a change of something else in the value:
// it is tried again on top of that.
func (t *etcd) Write(ctx context.Context, was Reading, c Change) error {
	if err := t.Check(c.To); err != nil {
		return err
	}
	held, err := t.gateway.get(ctx, t.key)
	if err != nil {
		return err
	}
	for range etcdTries {
		next, err := t.next(held, was, c)
		if err != nil {
			return err
		}
		now, done, err := t.gateway.swap(ctx, t.key, held, next)
		if done || err != nil {
			return err
		}
		held = now
	}
	return &UnreachableError{Target: t.String(), Err: fmt.Errorf("the key changed under each of %d tries to write it", etcdTries)}
}

// next returns the value to write over what is held, or why it must not be.
func (t *etcd) next(held etcdHeld, was Reading, c Change) ([]byte, error) {
	w, err := t.weight(held)
	switch {
	case c.Overwrite:
		// Whatever it is, it is written over, if it can be.
	case err != nil:
		return nil, &ConflictError{Target: t.String(), Err: err}
	case !w.Same(was.Weight):
		return nil, &ConflictError{Target: t.String(), Held: &w}
	}
	next, failed := t.value.write(held.value, c.To)
	if failed != nil {
		hint := "write a value that holds the weights: etcdctl put " + shellQuote(t.key) + " " + shellQuote(t.value.start())
		return nil, &RefusedError{Target: t.String(), Err: failed, Hint: hint}
	}
	return next, nil
}

// etcdValue is the weight alone, or a document that holds it.
type etcdValue struct {
	document
	plain bool
}

func newEtcdValue(key string, cfg *config.EtcdTarget) (v etcdValue, err error) {
	if cfg.Canary == "" && cfg.Stable == "" {
		return etcdValue{document: document{scale: scaleOf(cmp.Or(cfg.Unit, defaultUnit))}, plain: true}, nil
	}
	v.document, err = newDocument(key, cfg.Canary, cfg.Stable, cfg.Unit)
	return v, err
}

func (v etcdValue) read(value []byte, ring int64) (release.Weight, error) {
	if !v.plain {
		return v.document.read(value, ring)
	}
	return v.parse(string(bytes.TrimSpace(value)), "", ring)
}

// write returns the value with another share, and every other byte as it was:
// a line end behind a plain number stays.
func (v etcdValue) write(value []byte, w release.Weight) ([]byte, error) {
	if !v.plain {
		return v.document.write(value, w)
	}
	number, _, err := v.render(w)
	if err != nil {
		return nil, err
	}
	start := len(value) - len(bytes.TrimLeft(value, " \t\r\n"))
	end := max(start, len(bytes.TrimRight(value, " \t\r\n")))
	return bytes.Join([][]byte{value[:start], value[end:]}, []byte(number)), nil
}

// start is a value to begin with.
func (v etcdValue) start() string {
	if v.plain {
		return "0"
	}
	return v.example()
}

// shellQuote writes a text as one word of a POSIX shell.
func shellQuote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
