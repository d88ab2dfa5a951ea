package cli

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/canaryctl/canaryctl/internal/configapi"
)

// defaultTokenEnv is where serve looks for a token if nobody says where.
const defaultTokenEnv = "CANARYCTL_TOKEN"

// serveOptions are the flags of serve.
type serveOptions struct {
	app      *App
	Listen   string
	Dir      string
	TokenEnv string
	OpenAPI  bool
	format   string
}

func newServeCmd(app *App) *cobra.Command {
	o := &serveOptions{app: app}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the config API that a gateway reads its weights from",
		Long: `Serve one JSON document a service over HTTP, read and replaced with compare-and-swap (ETag and If-Match), and kept
on disk: the other end of target: {config_api: ...}. It moves no weight by itself.

It listens on loopback unless --listen says otherwise, and elsewhere only with a token, which is read from the
environment and never from the command line. It speaks plain HTTP; beyond one machine put TLS in front of it.

EXIT STATUS
  1    it could not go on
  2    it cannot start: no token, the address or the directory is taken, a damaged file
  130  ended by Ctrl-C, with all answers given
  143  ended by SIGTERM, with all answers given`,
		Example: `  canaryctl serve
  CANARYCTL_TOKEN=$(cat token) canaryctl serve --listen 0.0.0.0:8417 --dir /var/lib/canaryctl
  canaryctl serve --listen 127.0.0.1:0 -o json
  canaryctl serve --openapi > openapi.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runServe(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.Listen, "listen", "127.0.0.1:8417", "`address` to listen on; port 0 is any free one")
	f.StringVar(&o.Dir, "dir", ".canaryctl/serve", "`directory` that documents are kept in")
	f.StringVar(&o.TokenEnv, "token-env", defaultTokenEnv, "environment `variable` that holds the token clients must show")
	f.BoolVar(&o.OpenAPI, "openapi", false, "print the API's OpenAPI document and end")
	return cmd
}

func runServe(ctx context.Context, o *serveOptions) (err error) {
	formats := []string{"text", "json"}
	if o.OpenAPI {
		formats = []string{"json"}
	}
	if o.format, err = o.app.wantOutput(formats...); err != nil {
		return err
	}
	if o.OpenAPI {
		_, err := o.app.Stdout.Write(configapi.OpenAPI())
		return err
	}
	token, err := o.token()
	if err != nil {
		return err
	}
	addr, err := o.address(token)
	if err != nil {
		return err
	}
	api, err := o.open(token, addr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, api.Close()) }()
	l, err := net.ListenTCP("tcp", addr)
	if err != nil {
		return usage(fmt.Errorf("listen on %s: %w", o.Listen, inner(err)), "give another address with --listen; port 0 is any free one")
	}
	if err := o.announce(l.Addr(), token); err != nil {
		return errors.Join(err, l.Close())
	}
	return o.serve(ctx, l, newHTTPServer(api.Handler(), o.app.warn, serveLimits))
}

// token reads the token; "" is none. A variable that was named must hold one.
func (o *serveOptions) token() (string, error) {
	token := strings.TrimSpace(o.app.Getenv(o.TokenEnv))
	if token == "" && o.TokenEnv != defaultTokenEnv {
		return "", usage(fmt.Errorf("the environment variable %q holds no token", o.TokenEnv), "set it, or leave --token-env out to serve this machine without a token")
	}
	return token, nil
}

// address finds out where to listen, before anything listens there.
func (o *serveOptions) address(token string) (*net.TCPAddr, error) {
	addr, err := net.ResolveTCPAddr("tcp", o.Listen)
	if err != nil {
		return nil, usage(fmt.Errorf("--listen %s: %w", o.Listen, inner(err)), "give host:port, such as 127.0.0.1:8417")
	}
	if token == "" && !addr.IP.IsLoopback() {
		return nil, usage(fmt.Errorf("--listen %s can be reached from other machines, and there is no token", o.Listen),
			"set the environment variable "+o.TokenEnv+", or listen on 127.0.0.1")
	}
	return addr, nil
}

// open opens the directory of documents.
func (o *serveOptions) open(token string, addr *net.TCPAddr) (*configapi.Server, error) {
	api, err := configapi.New(configapi.Options{
		Dir: o.Dir, Token: token, Loopback: addr.IP.IsLoopback(), Version: version(), Now: time.Now,
		Report: func(err error) { o.app.warn("%v", err) },
	})
	if err == nil {
		return api, nil
	}
	if _, ok := errors.AsType[*configapi.InUseError](err); ok {
		return nil, usage(err, "two servers must not share documents: end the other one, or give another --dir")
	}
	if _, ok := errors.AsType[*configapi.CorruptError](err); ok {
		return nil, usage(err, "restore it from a backup, or move it away and put the service's document again")
	}
	return nil, usage(fmt.Errorf("open %s: %w", o.Dir, err), "give a directory that can be written with --dir")
}

// announce says where it listens, once it does.
func (o *serveOptions) announce(addr net.Addr, token string) error {
	url := "http://" + addr.String()
	host, _ := addr.(*net.TCPAddr)
	switch {
	case token == "":
		o.app.say("documents in %s; no token is asked for: every process of this machine may change them", o.Dir)
	case !host.IP.IsLoopback():
		o.app.say("documents in %s; clients must show the token of %s", o.Dir, o.TokenEnv)
		o.app.warn("tokens and documents travel without TLS; put a proxy with TLS in front, or listen on loopback")
	default:
		o.app.say("documents in %s; clients must show the token of %s", o.Dir, o.TokenEnv)
	}
	if o.format == "json" {
		return encodeLine(o.app.Stdout, struct {
			Schema int    `json:"schema"`
			URL    string `json:"url"`
		}{1, url})
	}
	_, err := fmt.Fprintf(o.app.Stdout, "listening on %s\n", url)
	return err
}

// httpLimits are what a slow or greedy client may cost.
type httpLimits struct {
	Header, Read, Write, Idle time.Duration
	HeaderBytes               int
	Drain                     time.Duration // for the answers under way at the end
}

var serveLimits = httpLimits{
	Header: 5 * time.Second, Read: 15 * time.Second, Write: 30 * time.Second, Idle: time.Minute,
	HeaderBytes: 16 << 10,
	Drain:       10 * time.Second,
}

// httpServer is a server with the time it is given to drain.
type httpServer struct {
	*http.Server
	drain time.Duration
}

func newHTTPServer(h http.Handler, warn func(string, ...any), l httpLimits) httpServer {
	return httpServer{drain: l.Drain, Server: &http.Server{
		Handler:           h,
		ReadHeaderTimeout: l.Header,
		ReadTimeout:       l.Read,
		WriteTimeout:      l.Write,
		IdleTimeout:       l.Idle,
		MaxHeaderBytes:    l.HeaderBytes,
		ErrorLog:          log.New(warnWriter(warn), "", 0),
	}}
}

// warnWriter makes warnings of what net/http logs.
type warnWriter func(string, ...any)

// Write implements [io.Writer].
func (w warnWriter) Write(p []byte) (int, error) {
	w("%s", strings.TrimSpace(string(p)))
	return len(p), nil
}

// serve answers until the context ends, then gives the answers under way and
// returns the context's error, which has its own exit code.
func (o *serveOptions) serve(ctx context.Context, l net.Listener, srv httpServer) error {
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	o.app.say("finishing the answers under way")
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), srv.drain)
	defer cancel()
	if err := srv.Shutdown(drain); err != nil {
		o.app.warn("some answers were broken off after %s", srv.drain)
		_ = srv.Close() // what is left is broken off
	}
	return context.Cause(ctx)
}

// inner is what the system said, without the address that stands beside it.
func inner(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	if sys, ok := errors.AsType[*os.SyscallError](err); ok {
		return sys.Err
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	return err
}
