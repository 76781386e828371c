package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
	"github.com/kuji-dev/kuji/server"
)

const (
	// waitForLeader is how long a request waits while nobody leads. Elections take up to 9 s.
	waitForLeader = 15 * time.Second
	// maxPassed is the most requests that a node has passed on, or that wait for a leader, at a time.
	// Their bodies stay with the client.
	maxPassed = 4096
	// maxConnections and maxPeerConnections are the most connections of clients, if --max-connections
	// does not say otherwise, and of other nodes.
	maxConnections, maxPeerConnections = 16 << 10, 64
	// nodePath is where a node says of itself what "kuji cluster status" shows, to other nodes.
	nodePath = "/cluster/node"
)

// What a node does.
const (
	stateLeads       = "leads"
	stateTakesOver   = "takes-over"
	stateFollows     = "follows"
	stateNoLeader    = "no-leader"
	stateUnreachable = "unreachable"
)

// passer passes requests on to the leader, over one HTTP/2 connection.
type passer struct {
	transport *http.Transport
	places    chan struct{} // one for each request that is passed on or waits
	errors    *connect.ErrorWriter
}

func newPasser(conf *tls.Config, l server.Limits) *passer {
	return &passer{peerTransport(conf), make(chan struct{}, cmp.Or(l.InFlight, maxPassed)), connect.NewErrorWriter()}
}

// peerTransport returns a transport to other nodes. It finds a connection that is half-open in 4 s.
func peerTransport(conf *tls.Config) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 2 * time.Second}).DialContext,
		TLSClientConfig:     conf,
		TLSHandshakeTimeout: 2 * time.Second,
		Protocols:           protocols,
		DisableCompression:  true, // the answer passes as it is
		HTTP2:               &http.HTTP2Config{SendPingTimeout: 2 * time.Second, PingTimeout: 2 * time.Second},
	}
}

// describe says what this node is now.
func (n *node) describe() nodeJSON {
	v := n.look()
	out := nodeJSON{Node: n.name, Address: n.f.hosts[n.name].log(), Leader: v.leader, Version: version(), State: stateFollows, Ready: true}
	switch {
	case v.term.holds():
		out.State = stateLeads
	case v.term != nil && v.term.leads.Load():
		out.State, out.Ready, out.Why = stateNoLeader, false, "it leads, but could not renew its lease"
	case v.leader == n.name:
		out.State, out.Ready, out.Why = stateTakesOver, false, "it takes the realms over"
	case v.leader == "":
		out.State, out.Ready, out.Why = stateNoLeader, false, "nobody leads"
	}
	if v.term == nil {
		out.Behind = "it opens the realms"
	} else {
		out.Lag = v.term.behind()
		for _, r := range v.term.server.Realms() {
			if out.Positions == nil {
				out.Positions, out.Chains = map[string]uint64{}, map[string]string{}
			}
			st := r.Stats()
			out.Positions[r.Name()], out.Chains[r.Name()] = st.Position, hex.EncodeToString(st.Chain[:])
		}
		if stopped := v.term.server.Stopped(); out.Ready && len(stopped) > 0 {
			out.Ready, out.Why = false, errors.Join(stopped...).Error()
		}
	}
	if n.stopped.Err() != nil {
		out.Ready, out.Why = false, "it stops"
	}
	return out
}

// servePeer answers what another node passes on. It passes nothing on itself.
func (n *node) servePeer(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == nodePath {
		w.Header().Set("Content-Type", "application/json")
		d := n.describe()
		if n.nats != nil {
			if err := n.nats.Current(); err != nil {
				d.Behind = err.Error() // the log comes before the realms
			}
		}
		_ = json.NewEncoder(w).Encode(d) // the other node may be gone: there is nobody to tell
		return
	}
	if r.URL.Path == logPath {
		n.serveLog(w, r)
		return
	}
	v := n.await(r.Context(), func(v view) bool { return v.leader != n.name || v.term.holds() })
	if !v.term.holds() {
		n.pass.refuse(w, r, kujiv1.Reason_REASON_CLOSED, fmt.Errorf("node %s does not lead: try again", n.name))
		return
	}
	v.term.server.ServeHTTP(w, r)
}

// serveClient answers a client: itself if this node leads, or if the request is a read that may be stale;
// otherwise with what the leader answers.
func (n *node) serveClient(w http.ResponseWriter, r *http.Request) {
	if n.serveOwn(w, r) {
		return
	}
	t := n.look().term
	if t.holds() {
		t.server.ServeHTTP(w, r)
		return
	}
	select {
	case n.pass.places <- struct{}{}:
		defer func() { <-n.pass.places }()
	default:
		n.pass.refuse(w, r, kujiv1.Reason_REASON_OVERLOADED, fmt.Errorf("%d requests are being passed on to the leader: try again later", cap(n.pass.places)))
		return
	}
	if t == nil || t.leads.Load() { // what it had without the lease may be undone
		n.serveByLeader(w, r)
		return
	}
	t.server.ServeFollower(w, r, http.HandlerFunc(n.serveByLeader))
}

// serveByLeader answers with what the leader answers, once there is one.
func (n *node) serveByLeader(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), waitForLeader)
	defer cancel()
	defer context.AfterFunc(n.stopped, cancel)() // a node that stops learns of no leader
	for {
		v := n.await(ctx, func(v view) bool { return v.term.holds() || v.leader != "" && v.leader != n.name })
		switch {
		case v.term.holds():
			v.term.server.ServeHTTP(w, r)
			return
		case (v.leader == "" || v.leader == n.name) && n.stopped.Err() != nil:
			n.pass.refuse(w, r, kujiv1.Reason_REASON_CLOSED, fmt.Errorf("node %s stops: try again, at another node", n.name))
			return
		case v.leader == "" || v.leader == n.name:
			n.pass.refuse(w, r, kujiv1.Reason_REASON_CLOSED, fmt.Errorf("nobody has led the cluster for %v: try again later", waitForLeader))
			return
		}
		if n.passOn(w, r, n.f.hosts[v.leader]) {
			return
		}
		// The leader cannot be reached, and nothing was sent to it.
		select {
		case <-v.changed:
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			n.pass.refuse(w, r, kujiv1.Reason_REASON_CLOSED, fmt.Errorf("node %s, which leads, cannot be reached: try again later", v.leader))
			return
		}
	}
}

// serveOwn answers what every node answers for itself: health and metrics.
func (n *node) serveOwn(w http.ResponseWriter, r *http.Request) bool {
	leads := n.look().term.holds() && n.stopped.Err() == nil
	health := strings.HasPrefix(r.URL.Path, "/"+grpchealth.HealthV1ServiceName+"/")
	switch {
	case leads || !health && r.URL.Path != "/healthz" && r.URL.Path != "/readyz" && r.URL.Path != "/metrics":
		return false
	case health:
		_, h := grpchealth.NewHandler(n)
		h.ServeHTTP(w, r)
	case r.URL.Path == "/metrics":
		t := n.look().term
		if t == nil {
			http.Error(w, "this node is opening the realms", http.StatusServiceUnavailable)
			break
		}
		t.server.ServeHTTP(w, r)
	default:
		w.Header().Set("Cache-Control", "no-store")
		if d := n.describe(); r.URL.Path == "/readyz" && !d.Ready {
			http.Error(w, "not ready\n"+d.Why, http.StatusServiceUnavailable)
		} else {
			fprintf(w, "%s\n", map[string]string{"/healthz": "ok", "/readyz": "ready"}[r.URL.Path])
		}
	}
	return true
}

// Check implements [grpchealth.Checker] for a node that does not lead.
func (n *node) Check(context.Context, *grpchealth.CheckRequest) (*grpchealth.CheckResponse, error) {
	if !n.describe().Ready {
		return &grpchealth.CheckResponse{Status: grpchealth.StatusNotServing}, nil
	}
	return &grpchealth.CheckResponse{Status: grpchealth.StatusServing}, nil
}

// await returns the first view that is good, or the one at the end of ctx or of the patience.
func (n *node) await(ctx context.Context, good func(view) bool) view {
	ctx, cancel := context.WithTimeout(ctx, waitForLeader)
	defer cancel()
	for {
		v := n.look()
		if good(v) {
			return v
		}
		select {
		case <-v.changed:
		case <-ctx.Done():
			return n.look()
		}
	}
}

// passOn passes a request on, and returns false if the leader was not reached: then nothing was sent.
func (n *node) passOn(w http.ResponseWriter, r *http.Request, to peer) bool {
	ctx := r.Context()
	if r.URL.Path == kujiv1connect.RewardServiceStreamDrawsProcedure {
		// The leader says how long a stream may last. It ends when this node stops.
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(n.stopped, cancel)()
		rc := http.NewResponseController(w)
		_, _ = rc.SetReadDeadline(time.Time{}), rc.SetWriteDeadline(time.Time{}) // not supported: no deadline
	}
	var sent atomic.Bool // a connection was there
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }})
	passed := true
	proxy := httputil.ReverseProxy{
		Transport:     n.pass.transport,
		FlushInterval: -1, // a stream's answers are for now
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.Out.URL.Scheme, pr.Out.URL.Host = "https", to.requests()
			pr.Out.Host = pr.In.Host // what the leader allows
			if pr.Out.Body != nil {
				pr.Out.Body = kept{pr.Out.Body}
			}
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			switch {
			case !sent.Load() && r.Context().Err() == nil:
				passed = false
			default:
				// It may have happened. Whether the request has an id, only the leader could read: a
				// code that retry policies react to would be wrong without one.
				n.pass.fail(w, r, connect.CodeUnknown, kujiv1.Reason_REASON_UNKNOWN_OUTCOME, errors.New("the connection to the leader was lost: send the same request id again"))
			}
		},
		ErrorLog: nil,
	}
	proxy.ServeHTTP(w, r.WithContext(ctx))
	return passed
}

// kept is a request's body that stays open when an attempt to send it fails.
type kept struct {
	body interface{ Read([]byte) (int, error) }
}

func (k kept) Read(p []byte) (int, error) { return k.body.Read(p) }
func (k kept) Close() error               { return nil } // net/http closes the body of a request that it received

// refuse answers a request that has not happened.
func (p *passer) refuse(w http.ResponseWriter, r *http.Request, reason kujiv1.Reason, err error) {
	p.fail(w, r, connect.CodeUnavailable, reason, err)
}

func (p *passer) fail(w http.ResponseWriter, r *http.Request, code connect.Code, reason kujiv1.Reason, err error) {
	ce := connect.NewError(code, err)
	if detail, err := connect.NewErrorDetail(&kujiv1.ErrorDetail{Reason: reason}); err == nil { // always
		ce.AddDetail(detail)
	}
	_ = p.errors.Write(w, r, ce) // the client may be gone: there is nobody to tell
}

// bounded returns l with a limit on its connections. Above it, newcomers are closed.
func bounded(l net.Listener, most int) net.Listener {
	return &boundedListener{l, make(chan struct{}, most)}
}

type boundedListener struct {
	net.Listener
	places chan struct{}
}

// Accept implements [net.Listener].
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.places <- struct{}{}:
			return &placedConn{Conn: conn, leave: sync.OnceFunc(func() { <-l.places })}, nil
		default:
			_ = conn.Close() // refused: there is nobody to tell
		}
	}
}

type placedConn struct {
	net.Conn
	leave func()
}

// Close implements [net.Conn].
func (c *placedConn) Close() error {
	err := c.Conn.Close()
	c.leave()
	return err
}

// CloseWrite lets net/http end the writing side first, so that the client gets to read the answer.
func (c *placedConn) CloseWrite() error {
	if under, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return under.CloseWrite()
	}
	return nil
}
