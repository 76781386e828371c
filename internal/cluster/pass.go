package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"

	"github.com/kuji-dev/kuji/internal/election"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
	"github.com/kuji-dev/kuji/server"
)

const (
	// WaitForLeader is how long a request waits while nobody leads. Elections take up to 9 s.
	WaitForLeader = 15 * time.Second
	// maxPassed is the most requests that a node has passed on, or that wait for a leader, at a time.
	// Their bodies stay with the client.
	maxPassed = 4096
	// maxConnections and maxPeerConnections are the most connections of clients, if --max-connections
	// does not say otherwise, and of other nodes.
	maxConnections, maxPeerConnections = 16 << 10, 64
	// elsewhereHeader is in the answer of a node that was asked to answer about a realm that it does not
	// lead. Nothing has happened.
	elsewhereHeader = "Kuji-Elsewhere"
	// lookAgain is how long a request waits before it tries a leader again that did not answer it.
	lookAgain = 100 * time.Millisecond
)

// passer passes requests on to other nodes, over one HTTP/2 connection to each.
type passer struct {
	transport http.RoundTripper
	places    chan struct{} // one for each request that is passed on or waits
	errors    *connect.ErrorWriter
}

func newPasser(c *Client, l server.Limits) *passer {
	return &passer{c.http.Transport, make(chan struct{}, cmp.Or(l.InFlight, maxPassed)), connect.NewErrorWriter()}
}

// servePeer answers what another node passes on. It passes nothing on itself.
func (n *node) servePeer(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case nodePath:
		n.serveStatus(w, r)
	case lookPath:
		n.hurry()
	case drainPath, removePath:
		n.serveMove(w, r)
	case logPath:
		n.serveLog(w, r)
	default:
		n.serve(w, r, &journey{passed: true})
	}
}

// serveClient answers a client.
func (n *node) serveClient(w http.ResponseWriter, r *http.Request) {
	if !n.serveOwn(w, r) {
		n.serve(w, r, &journey{})
	}
}

// journey is what a request has been through at this node.
type journey struct {
	passed bool        // another node has passed it on
	header http.Header // with the client's key
	until  time.Time   // no longer does it wait for a leader
	tries  int         // to have it answered
}

type journeyKey struct{}

// serve answers a request, or passes it on: see Elsewhere.
func (n *node) serve(w http.ResponseWriter, r *http.Request, j *journey) {
	j.until, j.header = time.Now().Add(WaitForLeader), r.Header
	s := n.look().serves
	if s == nil {
		ctx, cancel := n.patience(r, j)
		defer cancel()
		if s = n.await(ctx, func(v view) bool { return v.serves != nil }).serves; s == nil {
			n.refuse(w, r, j, fmt.Errorf("node %s has not joined the cluster yet: try again later", n.conf.Node))
			return
		}
	}
	s.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), journeyKey{}, j)))
}

// patience returns the context of a request that waits for a leader.
func (n *node) patience(r *http.Request, j *journey) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithDeadline(r.Context(), j.until)
	stop := context.AfterFunc(n.over, cancel) // a node that has stopped learns of no leader
	return ctx, func() { stop(); cancel() }
}

// Elsewhere implements [server.Cluster]: it answers a request with what the leader of its realm answers,
// once there is one. That may be this node by then.
func (n *node) Elsewhere(w http.ResponseWriter, r *http.Request, realm string) {
	j, ok := r.Context().Value(journeyKey{}).(*journey)
	if !ok {
		j = &journey{until: time.Now().Add(WaitForLeader), header: r.Header} // of a Redis client
		r = r.WithContext(context.WithValue(r.Context(), journeyKey{}, j))
	}
	if j.tries++; j.tries == 1 {
		select {
		case n.pass.places <- struct{}{}:
			defer func() { <-n.pass.places }()
		default:
			n.pass.refuse(w, r, kujiv1.Reason_REASON_OVERLOADED, fmt.Errorf("%d requests wait or are passed on to other nodes: try again later", cap(n.pass.places)))
			return
		}
	}
	ctx, cancel := n.patience(r, j)
	defer cancel()
	if j.tries > 1 { // it was held here, and then was not
		n.again(ctx, n.look())
	}
	for {
		v := n.await(ctx, func(v view) bool { return n.Holds(realm) || n.whereTo(v, realm, j) != "" })
		to := n.whereTo(v, realm, j)
		switch {
		case n.Holds(realm):
			v.serves.ServeHTTP(w, unread(r))
			return
		case to == n.conf.Node:
			v.serves.ServeHere(w, unread(r))
			n.adopt(realm)
			return
		case to == "" || j.passed:
			n.refuse(w, r, j, n.nobody(v, realm))
			return
		}
		if n.passOn(w, unread(r), n.conf.Peers[to]) {
			return
		}
		if n.again(ctx, v); ctx.Err() != nil {
			n.refuse(w, r, j, fmt.Errorf("node %s, which leads realm %q, does not answer: try again later", to, realm))
			return
		}
	}
}

// whereTo returns which other node leads a realm. It is this one for a realm that does not exist, if this one is to
// create it. "": nobody knows.
func (n *node) whereTo(v view, realm string, j *journey) string {
	leader := v.leaders[realm]
	switch {
	case leader == n.conf.Node:
		return ""
	case leader != "" || v.known[realm]:
		return leader
	case j.passed:
		return n.conf.Node
	}
	return election.First(v.living, realm)
}

// nobody says why a request was not answered.
func (n *node) nobody(v view, realm string) error {
	switch leader := v.leaders[realm]; {
	case leader != "" && leader != n.conf.Node:
		return fmt.Errorf("node %s does not lead realm %q: node %s does", n.conf.Node, realm, leader)
	case n.over.Err() != nil:
		return fmt.Errorf("node %s stops: try again, at another node", n.conf.Node)
	}
	return fmt.Errorf("nobody has led realm %q for %v: try again later", realm, WaitForLeader)
}

// again waits until there is something new, for a moment at most.
func (n *seating) again(ctx context.Context, v view) {
	t := time.NewTimer(lookAgain)
	defer t.Stop()
	select {
	case <-v.changed:
	case <-t.C:
	case <-ctx.Done():
	}
}

// unread returns a request whose body has not been read, except of a stream.
func unread(r *http.Request) *http.Request {
	if r.GetBody == nil {
		return r
	}
	again := *r
	again.Body, _ = r.GetBody() // from memory
	return &again
}

// Status implements [server.Cluster]: it asks each node that leads realms, with the client's key.
func (n *node) Status(ctx context.Context) []*kujiv1.RealmStatus {
	j, ok := ctx.Value(journeyKey{}).(*journey)
	if !ok || j.passed {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*election.RenewEvery)
	defer cancel()
	leaders := n.await(ctx, func(v view) bool { return len(v.leaders) > 0 }).leaders
	var all []*kujiv1.RealmStatus
	var mu sync.Mutex
	var asking sync.WaitGroup
	for name, p := range n.conf.Peers {
		if name == n.conf.Node || !slices.Contains(slices.Collect(maps.Values(leaders)), name) {
			continue
		}
		asking.Go(func() {
			req := connect.NewRequest(&kujiv1.GetStatusRequest{})
			for _, h := range []string{"Authorization", "X-Api-Key"} {
				if v := j.header.Get(h); v != "" {
					req.Header().Set(h, v)
				}
			}
			ask := connect.NewClient[kujiv1.GetStatusRequest, kujiv1.GetStatusResponse](&n.client.http, "https://"+p.Requests()+kujiv1connect.AdminServiceGetStatusProcedure)
			resp, err := ask.CallUnary(ctx, req)
			if err != nil {
				return // this node says what it knows
			}
			mu.Lock()
			defer mu.Unlock()
			for _, one := range resp.Msg.GetRealms() {
				if leaders[one.GetRealm()] == name {
					all = append(all, one)
				}
			}
		})
	}
	asking.Wait()
	return all
}

// serveOwn answers what every node answers for itself: health and metrics.
func (n *node) serveOwn(w http.ResponseWriter, r *http.Request) bool {
	health := strings.HasPrefix(r.URL.Path, "/"+grpchealth.HealthV1ServiceName+"/")
	switch {
	case health:
		_, h := grpchealth.NewHandler(n)
		h.ServeHTTP(w, r)
	case r.URL.Path == "/metrics":
		s := n.look().serves
		if s == nil {
			http.Error(w, "this node has not joined the cluster yet", http.StatusServiceUnavailable)
			break
		}
		s.ServeHTTP(w, r)
	case r.URL.Path == "/healthz" || r.URL.Path == "/readyz":
		w.Header().Set("Cache-Control", "no-store")
		if d := n.describe(); r.URL.Path == "/readyz" && !d.Ready {
			http.Error(w, "not ready\n"+d.Why, http.StatusServiceUnavailable)
		} else {
			fmt.Fprintf(w, "%s\n", map[string]string{"/healthz": "ok", "/readyz": "ready"}[r.URL.Path])
		}
	default:
		return false
	}
	return true
}

// Check implements [grpchealth.Checker].
func (n *node) Check(context.Context, *grpchealth.CheckRequest) (*grpchealth.CheckResponse, error) {
	if !n.describe().Ready {
		return &grpchealth.CheckResponse{Status: grpchealth.StatusNotServing}, nil
	}
	return &grpchealth.CheckResponse{Status: grpchealth.StatusServing}, nil
}

// await returns the first view that is good, or the one at the end of ctx.
func (n *node) await(ctx context.Context, good func(view) bool) view {
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

// refuse answers a request that nobody has carried out. If another node passed it on, that one looks again.
func (n *node) refuse(w http.ResponseWriter, r *http.Request, j *journey, err error) {
	if j.passed {
		w.Header().Set(elsewhereHeader, n.conf.Node)
	}
	n.pass.refuse(w, r, kujiv1.Reason_REASON_CLOSED, err)
}

// goesOn are the RPCs whose answers take as long as the leader lets them.
var goesOn = map[string]bool{
	kujiv1connect.RewardServiceStreamDrawsProcedure:  true,
	kujiv1connect.RewardServiceStreamEventsProcedure: true,
	kujiv1connect.AdminServiceBackupProcedure:        true,
	"/events": true,
}

// errElsewhere is the error of an answer with elsewhereHeader.
var errElsewhere = errors.New("it does not lead the realm")

// passOn passes a request on. It returns false if nothing has happened, and nothing was answered: the node
// was not reached, or does not lead the realm.
func (n *node) passOn(w http.ResponseWriter, r *http.Request, to Peer) bool {
	ctx := r.Context()
	if goesOn[r.URL.Path] { // until this node stops
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(n.stopped, cancel)()
		rc := http.NewResponseController(w)
		_, _ = rc.SetReadDeadline(time.Time{}), rc.SetWriteDeadline(time.Time{}) // not supported: no deadline
	}
	var sent atomic.Bool // a connection was there, and did not close before it took the request
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { sent.Store(false) },
		GotConn: func(httptrace.GotConnInfo) { sent.Store(true) },
	})
	passed := true
	proxy := httputil.ReverseProxy{
		Transport:     n.pass.transport,
		FlushInterval: -1, // a stream's answers are for now
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.Out.URL.Scheme, pr.Out.URL.Host = "https", to.Requests()
			pr.Out.Host = pr.In.Host // what the leader allows
			if pr.Out.Body != nil {
				pr.Out.Body = kept{pr.Out.Body}
			}
		},
		ModifyResponse: func(resp *http.Response) error {
			if resp.Header.Get(elsewhereHeader) != "" && r.GetBody != nil {
				return errElsewhere
			}
			resp.Header.Del(elsewhereHeader)
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			switch {
			case errors.Is(err, errElsewhere), !sent.Load() && r.Context().Err() == nil:
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
