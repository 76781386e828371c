package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
)

// defaultAddress is where serve listens and clients look, unless told otherwise.
const defaultAddress = "127.0.0.1:7700"

// maxKeyFile bounds a file with an API key, in bytes.
const maxKeyFile = 4096

// connection is what the settings say of how to reach a server.
type connection struct {
	app      *app
	settings *settings
	server   string
	context  string
	key      string
	keyFile  string
	ca       string
	realm    string
	timeout  time.Duration

	serverFlag string // the flag that server comes from, where that is not --server
}

// clientCommand makes a command one of those that talk to a server.
func (a *app) clientCommand(cmd *cobra.Command) *connection {
	cmd.GroupID = "client"
	return a.connection(cmd.Flags())
}

// connection adds the flags of every command that talks to a server.
func (a *app) connection(flags *pflag.FlagSet) *connection {
	c := &connection{app: a, settings: newSettings(flags, a.getenv)}
	flags.StringVar(&c.server, "server", "", "`URL` of the server, or of several nodes of a cluster, with commas (default: that of the context in use, else http://"+defaultAddress+")")
	flags.StringVar(&c.context, "context", "", "`name` of the server's context: see \"kuji context --help\"")
	flags.StringVar(&c.key, "key", "", "API `key`; other users of this machine can see it, so prefer --key-file (default $KUJI_KEY)")
	flags.StringVar(&c.keyFile, "key-file", "", "`file` that holds the API key and nothing else")
	flags.StringVar(&c.ca, "tls-ca", "", "`file` with the certificates (PEM) to trust, instead of the system's")
	flags.StringVar(&c.realm, "realm", "default", "`name` of the realm")
	flags.DurationVar(&c.timeout, "timeout", 10*time.Second, "how long to try, including retries")
	return c
}

// run returns what a command does once it has a client.
func (c *connection) run(do func(*cobra.Command, *client, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		cl, err := c.dial()
		if err != nil {
			return err
		}
		return do(cmd, cl, args)
	}
}

// settle completes the flags from variables and the context. A context goes with
// its server: if something else names the server, there is none.
func (c *connection) settle() error {
	s := c.settings
	if err := errors.Join(s.either("server", "context"), s.either("key", "key-file"), s.fromVariables("tls-ca", "realm", "timeout")); err != nil {
		return err
	}
	if s.given("server") {
		return nil
	}
	all, err := c.app.loadContexts()
	if err != nil {
		return err
	}
	name := cmp.Or(c.context, all.Current)
	if name == "" {
		c.server = "http://" + defaultAddress
		return nil
	}
	one, err := all.get(name)
	if err != nil {
		return err
	}
	from := "context " + name + ":"
	if one.KeyFile != "" && !s.given("key") {
		err = s.set("key-file", one.KeyFile, from+" key-file")
	}
	if one.CA != "" {
		err = errors.Join(err, s.set("tls-ca", one.CA, from+" tls-ca"))
	}
	if one.Realm != "" {
		err = errors.Join(err, s.set("realm", one.Realm, from+" realm"))
	}
	return errors.Join(err, s.set("server", one.Server, from+" server"))
}

// client is a connection made: both services, and how long to try.
type client struct {
	rewards kujiv1connect.RewardServiceClient
	admin   kujiv1connect.AdminServiceClient
	realm   string
	timeout time.Duration
	note    func(format string, args ...any)
}

func (c *connection) dial() (*client, error) {
	if err := c.settle(); err != nil {
		return nil, err
	}
	nodes, err := parseServers(c.server)
	if err != nil {
		return nil, usageError{fmt.Errorf("%s %w", cmp.Or(c.serverFlag, c.settings.said("server")), err)}
	}
	if c.timeout <= 0 {
		return nil, usageError{fmt.Errorf("%s %v: expected more than 0", c.settings.said("timeout"), c.timeout)}
	}
	key, err := c.apiKey()
	if err != nil {
		return nil, err
	}
	transport, err := newTransport(c.app, c.ca, 1)
	if err != nil {
		return nil, err
	}
	cl := newClient(&http.Client{Transport: &anyOf{nodes: nodes, transport: transport}}, nodes[0].String(), key)
	cl.realm, cl.timeout = c.realm, c.timeout
	cl.note = c.app.note
	return cl, nil
}

// parseServers returns the URLs of a server, or of several nodes of a cluster.
func parseServers(list string) (nodes []*url.URL, err error) {
	for one := range strings.SplitSeq(list, ",") {
		u, err := url.Parse(one)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
			return nil, fmt.Errorf("%q is not a URL: expected http://HOST:PORT or https://HOST:PORT", one)
		}
		nodes = append(nodes, u)
	}
	return nodes, nil
}

// anyOf sends requests to one node of several, and after a failure the next one to the next node. call
// repeats what failed.
type anyOf struct {
	nodes     []*url.URL
	at        atomic.Uint32
	transport http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t *anyOf) RoundTrip(r *http.Request) (*http.Response, error) {
	at := t.at.Load()
	to := t.nodes[int(at)%len(t.nodes)]
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host, r.Host = to.Scheme, to.Host, to.Host
	resp, err := t.transport.RoundTrip(r)
	if err != nil {
		t.at.CompareAndSwap(at, at+1)
	}
	return resp, err
}

// newClient makes clients of both services that send key with every call.
func newClient(h *http.Client, server, key string, options ...connect.ClientOption) *client {
	server = strings.TrimSuffix(server, "/")
	if key != "" {
		options = append(options, connect.WithInterceptors(bearer(key)))
	}
	return &client{
		rewards: kujiv1connect.NewRewardServiceClient(h, server, options...),
		admin:   kujiv1connect.NewAdminServiceClient(h, server, options...),
		note:    func(string, ...any) {},
	}
}

// newTransport is Go's default transport without a proxy for loopback, with
// room for as many idle connections as there are callers.
func newTransport(a *app, ca string, callers int) (*http.Transport, error) {
	t := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: callers,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: 5 * time.Second,
	}
	if ca == "" {
		return t, nil
	}
	pem, err := a.readFile(ca, 1<<20)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, usageError{fmt.Errorf("--tls-ca %s holds no certificate in PEM form", ca)}
	}
	t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return t, nil
}

// bearer is an API key that goes with every call.
type bearer string

func (b bearer) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		req.Header().Set("Authorization", "Bearer "+string(b))
		return next(ctx, req)
	}
}

func (b bearer) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		conn := next(ctx, spec)
		conn.RequestHeader().Set("Authorization", "Bearer "+string(b))
		return conn
	}
}

func (b bearer) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next // clients have none
}

func (c *connection) apiKey() (string, error) {
	if c.keyFile != "" {
		return c.app.readKey(c.settings.said("key-file"), c.keyFile)
	}
	return c.key, nil
}

// readKey reads a file that holds one key. said names what names the file.
func (a *app) readKey(said, file string) (string, error) {
	data, err := a.readFile(file, maxKeyFile)
	if err != nil {
		return "", err
	}
	key := strings.TrimSpace(string(data))
	if key == "" || strings.ContainsAny(key, " \t\r\n") {
		return "", usageError{fmt.Errorf("%s %s: expected one key and nothing else", said, file)}
	}
	return key, nil
}

// The pause between two attempts doubles from the first to the last of these.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = time.Second
)

// call repeats one API call until it has an answer. It tries again after lost
// connections, a busy server and unknown outcomes, with the very same message,
// so that its request id makes the repetition harmless. It gives up when the
// timeout of the client has passed or ctx ends.
func call[Req, Resp any](ctx context.Context, c *client, id string,
	rpc func(context.Context, *Req) (*Resp, error), msg *Req) (*Resp, error) {
	if m, ok := any(msg).(proto.Message); ok {
		if _, err := proto.Marshal(m); err != nil { // an argument that is not UTF-8: no repetition helps
			return nil, usageError{fmt.Errorf("cannot encode the request: %w", err)}
		}
	}
	deadline, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var sent atomic.Bool // a connection was there: this attempt may have arrived
	deadline = httptrace.WithClientTrace(deadline, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }})
	unknown := false // this attempt or an earlier one may have happened
	reached := false // there was a connection once
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		sent.Store(false)
		resp, err := rpc(deadline, msg)
		if err == nil {
			return resp, nil
		}
		again, maybe := retryable(err)
		unknown = unknown || (maybe && sent.Load())
		reached = reached || sent.Load()
		if !again {
			return nil, unresolved(err, unknown && !settled(err), id)
		}
		if pause == firstPause && ctx.Err() == nil {
			c.note("kuji: no answer yet (%v); trying again for %v", shortError(err), c.timeout)
		}
		wait := time.NewTimer(pause/2 + mathrand.N(pause/2))
		select {
		case <-wait.C:
		case <-deadline.Done():
			wait.Stop()
			if ctx.Err() != nil {
				err = ctx.Err() // somebody stopped it: the time was not up
			} else if !reached {
				err = notSentError{err}
			}
			return nil, unresolved(err, unknown, id)
		}
	}
}

// retryable says whether the same message may be sent again, and whether the
// attempt that failed with err may still have happened, if it was sent.
func retryable(err error) (again, maybe bool) {
	var rpc *connect.Error
	if !errors.As(err, &rpc) {
		return false, true
	}
	if distrusted(err) {
		return false, false
	}
	if detail := errorDetail(rpc); detail != nil {
		switch detail.GetReason() {
		case kujiv1.Reason_REASON_OVERLOADED, kujiv1.Reason_REASON_CLOSED, kujiv1.Reason_REASON_HISTORY:
			return true, false
		case kujiv1.Reason_REASON_UNKNOWN_OUTCOME:
			return true, true
		}
		return false, false
	}
	if !connect.IsWireError(rpc) || rpc.Code() == connect.CodeUnavailable {
		return true, true
	}
	return false, false
}

// distrusted reports whether the server's certificate is not one that the client trusts. Trying again
// would not help, and nothing was sent.
func distrusted(err error) bool {
	_, bad := errors.AsType[*tls.CertificateVerificationError](err)
	return bad
}

// settled reports whether err is the answer of the state itself. After it, no
// earlier attempt is in doubt.
func settled(err error) bool {
	var rpc *connect.Error
	if !errors.As(err, &rpc) {
		return false
	}
	detail := errorDetail(rpc)
	return detail != nil && detail.GetReason() == kujiv1.Reason_REASON_ID_REUSED
}

// unknownError is an outcome that nobody knows.
type unknownError struct {
	id  string
	err error
}

func (e unknownError) Error() string {
	return fmt.Sprintf("no answer: it may or may not have happened. Send the same command with --id %s to find out: %v", e.id, e.err)
}
func (e unknownError) Unwrap() error { return e.err }

// notSentError is a server that was never reached.
type notSentError struct{ err error }

func (e notSentError) Error() string {
	return "no connection, so nothing was sent: " + shortError(e.err)
}
func (e notSentError) Unwrap() error { return e.err }

func unresolved(err error, unknown bool, id string) error {
	if unknown && id != "" {
		return unknownError{id: id, err: err}
	}
	return err
}

func shortError(err error) string {
	var rpc *connect.Error
	if errors.As(err, &rpc) {
		return rpc.Message()
	}
	return err.Error()
}

// requestID returns the id given by flag, or a new one that carries the time.
func requestID(flag string) string {
	if flag != "" {
		return flag
	}
	return kuji.NewID(time.Now())
}
