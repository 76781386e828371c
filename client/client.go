// Package client talks to Kuji servers. It keeps the one rule of docs/reference/api.md: a command goes out under
// one request id, and again under the same id, until there is an answer. So a lost connection, a busy
// server or a node that dies never makes a draw happen twice, and never loses one.
//
//	c, err := client.New([]string{"https://kuji.example:7700"}, client.Options{Key: key})
//	...
//	res, err := c.Draw(ctx, &kujiv1.DrawRequest{Player: "ann", Pool: "splash"})
//
// A [Client] has the calls of the API's services, with messages of package kujiv1. With several
// servers, the nodes of a cluster, it goes from one that fails to the next. [Client.Events] and
// [Client.Draws] are streams that go on after a break.
//
// The package has no rules and no storage. It depends on Connect and Protocol Buffers, and on nothing of
// the engine or the server.
package client

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji/internal/ulid"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
)

// DefaultTimeout is how long a call is tried if Options does not say.
const DefaultTimeout = 10 * time.Second

// DefaultSilence is how long a feed may bring nothing if Options does not say.
const DefaultSilence = 25 * time.Second

// MaxAnswer is the largest message that a client takes, in bytes. A catalog of the largest size fits.
const MaxAnswer = 64 << 20

// Options say how to call. The zero value works with a server that wants no key.
type Options struct {
	// Key is an API key or a player's token. It goes with every call.
	Key string
	// TLS is for https URLs. nil: the system's certificates, TLS 1.2 or newer.
	TLS *tls.Config
	// Transport, if not nil, carries the requests, without TLS. Clients can share one.
	Transport http.RoundTripper
	// Timeout is how long a call is tried, repeats included. For a feed or a stream, it is how long one
	// goes without an answer. 0: DefaultTimeout. Below 0: until the context ends.
	Timeout time.Duration
	// Attempt is how long one attempt may take before the next, at another server if any. 0: the call's time.
	Attempt time.Duration
	// Silence is how long a feed may bring nothing before it is asked for again. A server sends a message at
	// least every 10 seconds. 0: DefaultSilence. Below 0: no limit.
	Silence time.Duration
	// Retry, if not nil, gets the first failure since a call, a feed or a stream last got on.
	Retry func(err error)
	// Connect are options of Connect, such as connect.WithGRPC().
	Connect []connect.ClientOption
}

// Client calls the servers of one cluster, or a single one. Several goroutines may use it. Commands without a
// request id get one, which stays in the message. An error is a [connect.Error] of the server, see [Reason],
// an [UnknownError] or an [UnreachableError].
type Client struct {
	kujiv1connect.RewardServiceClient                                  // Draw, Grant, GetPlayer, …
	Admin                             kujiv1connect.AdminServiceClient // ApplyCatalog, GetStatus, …
	Chat                              kujiv1connect.ChatServiceClient  // HandleMessage

	options Options
	servers *servers
	streams kujiv1connect.RewardServiceClient // over HTTP/2
}

// New returns a client of a server or of nodes of one cluster. It connects on first use, to the first URL.
func New(urls []string, o Options) (*Client, error) {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Silence == 0 {
		o.Silence = DefaultSilence
	}
	c := &Client{options: o, servers: &servers{}}
	for _, one := range urls {
		u, err := url.Parse(one)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
			return nil, fmt.Errorf("%q is not a URL: expected http://HOST:PORT or https://HOST:PORT", one)
		}
		c.servers.all = append(c.servers.all, u)
	}
	if len(urls) == 0 {
		return nil, errors.New("no URL: expected that of a server")
	}
	base := strings.TrimSuffix(c.servers.all[0].String(), "/")
	options := append([]connect.ClientOption{
		connect.WithReadMaxBytes(MaxAnswer), connect.WithInterceptors(connect.UnaryInterceptorFunc(c.call)),
	}, o.Connect...)
	calls, streams := o.Transport, o.Transport
	if calls == nil {
		calls, streams = newTransport(o.TLS, false), newTransport(o.TLS, true)
	}
	h := &http.Client{Transport: &anyOf{c.servers, o.Key, wholeMessages{calls}}}
	c.RewardServiceClient = kujiv1connect.NewRewardServiceClient(h, base, options...)
	c.Admin = kujiv1connect.NewAdminServiceClient(h, base, options...)
	c.Chat = kujiv1connect.NewChatServiceClient(h, base, options...)
	h = &http.Client{Transport: &anyOf{c.servers, o.Key, wholeMessages{streams}}}
	c.streams = kujiv1connect.NewRewardServiceClient(h, base, options...)
	return c, nil
}

// NewID returns a new request id, a ULID. Keep it to be able to ask later what came of the command.
func NewID() string { return ulid.New(time.Now()) }

// newTransport has room for many connections to few servers. http2 is for streams: HTTP/2 without TLS, too.
func newTransport(conf *tls.Config, http2 bool) *http.Transport {
	if conf == nil {
		conf = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	t := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 256,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: 5 * time.Second,
		TLSClientConfig:     conf,
	}
	if http2 {
		t.Protocols = new(http.Protocols)
		t.Protocols.SetHTTP2(true)
		t.Protocols.SetUnencryptedHTTP2(true)
		t.HTTP2 = &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 5 * time.Second} // the other end may be gone without a word
	}
	return t
}

// servers are the servers of a client, and the one in use.
type servers struct {
	all []*url.URL
	at  atomic.Uint32
}

// leave goes on to the next server, unless another call has done so.
func (s *servers) leave(at uint32) { s.at.CompareAndSwap(at, at+1) }

// anyOf sends requests to the server in use, with the key.
type anyOf struct {
	*servers
	key       string
	transport http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t *anyOf) RoundTrip(r *http.Request) (*http.Response, error) {
	at := t.at.Load()
	to := t.all[int(at)%len(t.all)]
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host, r.Host = to.Scheme, to.Host, to.Host
	if t.key != "" {
		r.Header.Set("Authorization", "Bearer "+t.key)
	}
	resp, err := t.transport.RoundTrip(r)
	if asked, ok := r.Context().Value(pauseAsked{}).(*atomic.Int64); ok && err == nil && resp.StatusCode >= http.StatusBadRequest {
		asked.Store(int64(retryAfter(resp.Header.Get("Retry-After"), time.Now())))
	}
	if err != nil && r.Context().Err() == nil {
		t.leave(at)
	}
	return resp, err
}
