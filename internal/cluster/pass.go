package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"

	"github.com/kuji-dev/kuji/internal/contract"
	"github.com/kuji-dev/kuji/internal/election"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
	"github.com/kuji-dev/kuji/server"
)

const (
	// maxPassed is how many requests a node passes on or lets wait. Their bodies stay with the client.
	maxPassed = 4096
	// maxConnections is for clients, without --max-connections, and maxPeerConnections for other nodes.
	maxConnections, maxPeerConnections = 16 << 10, 64
	// elsewhereHeader marks an answer of a node that does not lead the realm. Nothing has happened.
	elsewhereHeader = "Kuji-Elsewhere"
	// lookAgain is how long a request waits at most before it tries again.
	lookAgain = 100 * time.Millisecond
)

// passer passes calls on to the nodes that lead their realms, over one HTTP/2 connection to each.
type passer struct {
	seating
	places  chan struct{}      // one for each call that is passed on or waits
	stopped context.Context    // ends when the process is told to stop
	over    context.Context    // ends when calls need not wait for a leader any more
	stop    context.CancelFunc // ends stopped
	forget  context.CancelFunc // ends over
}

// servePeer answers what another node passes on. It passes nothing on itself.
func (n *Node) servePeer(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case nodePath:
		n.serveStatus(w, r)
	case lookPath:
		n.hurry()
	case drainPath, removePath:
		n.serveMove(w, r)
	case logPath:
		n.serveLog(w, r)
	case markPath:
		recall{&n.seating}.serveMark(w, r)
	case acceptPath:
		recall{&n.seating}.serveAccept(w, r)
	case grownPath:
		recall{&n.seating}.serveGrown(w, r)
	default:
		n.serve(w, r, true)
	}
}

// serveClient answers a client.
func (n *Node) serveClient(w http.ResponseWriter, r *http.Request) {
	if !n.serveOwn(w, r) {
		n.serve(w, r, false)
	}
}

// journey is what a request has been through before it came to the server.
type journey struct {
	passed bool        // another node has passed it on
	header http.Header // with the client's key
	answer http.Header // of the answer
}

type journeyKey struct{}

func journeyOf(ctx context.Context) journey {
	j, _ := ctx.Value(journeyKey{}).(journey) // none: of a Redis client
	return j
}

// serve lets the server answer a request. The server passes it on if need be: see Call.
func (n *passer) serve(w http.ResponseWriter, r *http.Request, passed bool) {
	j := journey{passed, r.Header, w.Header()}
	s := n.look().serves
	if s == nil {
		ctx, cancel := n.patience(r.Context(), time.Now())
		defer cancel()
		if s = n.await(ctx, func(v *view) bool { return v.serves != nil }).serves; s == nil {
			err := n.refusal(j, fmt.Errorf("node %s has not joined the cluster yet: try again later", n.conf.Node))
			_ = connect.NewErrorWriter().Write(w, r, err) // the client may be gone: there is nobody to tell
			return
		}
	}
	s.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), journeyKey{}, j)))
}

// patience returns the context of a call that waits for a leader.
func (n *passer) patience(ctx context.Context, began time.Time) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithDeadline(ctx, began.Add(n.waits.Leader))
	stop := context.AfterFunc(n.over, cancel) // a node that has stopped learns of no leader
	return ctx, func() { stop(); cancel() }
}

// Call implements [server.Cluster]: it waits for the realm's leader, and returns its answer.
func (n *passer) Call(c *server.Call) (*http.Response, error) {
	select {
	case n.places <- struct{}{}:
	default:
		return nil, contract.Refused(connect.CodeUnavailable, kujiv1.Reason_REASON_OVERLOADED, fmt.Errorf("%d requests wait or are passed on to other nodes: try again later", cap(n.places)))
	}
	resp, err := n.call(c, journeyOf(c.Request.Context()))
	if err != nil {
		<-n.places
		return nil, err
	}
	resp.Body = &body{resp.Body, sync.OnceFunc(func() { <-n.places })}
	return resp, nil
}

func (n *passer) call(c *server.Call, j journey) (*http.Response, error) {
	ctx, cancel := n.patience(c.Request.Context(), c.Began)
	defer cancel()
	if c.Tries > 0 { // it was held here, and then was not
		if n.again(ctx, n.look()); ctx.Err() != nil {
			return nil, n.refusal(j, n.nobody(n.look(), c.Realm))
		}
	}
	for {
		v := n.await(ctx, func(v *view) bool { return n.Holds(c.Realm) || n.whereTo(v, c.Realm, j) != "" })
		to := n.whereTo(v, c.Realm, j)
		switch {
		case n.Holds(c.Realm), to == n.conf.Node:
			return nil, server.ErrHere
		case to == "" || j.passed:
			return nil, n.refusal(j, n.nobody(v, c.Realm))
		}
		if resp, err := n.passOn(c, v.nodes[to]); !errors.Is(err, errElsewhere) {
			return resp, err
		}
		if n.again(ctx, v); ctx.Err() != nil {
			return nil, n.refusal(j, fmt.Errorf("node %s, which leads realm %q, does not answer: try again later", to, c.Realm))
		}
	}
}

// whereTo returns which node leads a realm, or this one if it is to create it; "" if nobody knows.
func (n *passer) whereTo(v *view, realm string, j journey) string {
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

// nobody returns the error of a request that nobody answers.
func (n *passer) nobody(v *view, realm string) error {
	switch leader := v.leaders[realm]; {
	case leader != "" && leader != n.conf.Node:
		return fmt.Errorf("node %s does not lead realm %q: node %s does", n.conf.Node, realm, leader)
	case n.over.Err() != nil:
		return fmt.Errorf("node %s stops: try again, at another node", n.conf.Node)
	}
	return fmt.Errorf("nobody has led realm %q for %v: try again later", realm, n.waits.Leader)
}

// again waits for the next view, for a moment at most.
func (n *passer) again(ctx context.Context, v *view) {
	ctx, cancel := context.WithTimeout(ctx, lookAgain)
	defer cancel()
	select {
	case <-v.changed:
	case <-ctx.Done():
	}
}

// Status implements [server.Cluster]: it asks each node that leads realms, with the client's key.
func (n *passer) Status(ctx context.Context) []*kujiv1.RealmStatus {
	j := journeyOf(ctx)
	if j.header == nil || j.passed {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*election.RenewEvery)
	defer cancel()
	leaders := n.await(ctx, func(v *view) bool { return len(v.leaders) > 0 }).leaders
	var all []*kujiv1.RealmStatus
	var mu sync.Mutex
	var asking sync.WaitGroup
	for name, at := range n.nodes() {
		if name == n.conf.Node || !slices.Contains(slices.Collect(maps.Values(leaders)), name) {
			continue
		}
		asking.Go(func() {
			ctx, call := connect.NewClientContext(ctx)
			for _, h := range []string{"Authorization", "X-Api-Key"} {
				if v := j.header.Get(h); v != "" {
					call.RequestHeader().Set(h, v)
				}
			}
			node := kujiv1connect.NewAdminServiceClient(&n.client.http, "https://"+at)
			resp, _ := node.GetStatus(ctx, &kujiv1.GetStatusRequest{}) // without it, this node says what it knows
			mu.Lock()
			defer mu.Unlock()
			for _, one := range resp.GetRealms() {
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
func (n *Node) serveOwn(w http.ResponseWriter, r *http.Request) bool {
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
func (n *Node) Check(context.Context, *grpchealth.CheckRequest) (*grpchealth.CheckResponse, error) {
	if !n.describe().Ready {
		return &grpchealth.CheckResponse{Status: grpchealth.StatusNotServing}, nil
	}
	return &grpchealth.CheckResponse{Status: grpchealth.StatusServing}, nil
}

// await returns the first view that is good, or the one at the end of ctx.
func (n *passer) await(ctx context.Context, good func(*view) bool) *view {
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

// refusal returns the error of a call that nobody carried out. It tells a node that passed it on to look again.
func (n *passer) refusal(j journey, err error) *connect.Error {
	if j.passed {
		j.answer.Set(elsewhereHeader, n.conf.Node)
	}
	return contract.Refused(connect.CodeUnavailable, kujiv1.Reason_REASON_CLOSED, err)
}

// errElsewhere is the error of a call that did not reach a leader. Nothing has happened.
var errElsewhere = errors.New("it does not lead the realm")

// passOn passes a call on. errElsewhere: nothing has happened, since the node was not reached or does not lead.
func (n *passer) passOn(c *server.Call, to string) (*http.Response, error) {
	r := c.Request
	ctx, cancel := context.WithCancel(r.Context())
	end := func() { cancel() }
	if c.Streams { // until this node stops
		stop := context.AfterFunc(n.stopped, cancel)
		end = func() { stop(); cancel() }
	}
	var sent atomic.Bool // a connection was there, and did not close before it took the request
	out := r.Clone(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { sent.Store(false) },
		GotConn: func(httptrace.GotConnInfo) { sent.Store(true) },
	}))
	out.URL.Scheme, out.URL.Host = "https", to
	switch {
	case r.GetBody != nil && r.ContentLength > 0:
		out.Body, _ = r.GetBody() // from memory
	case r.GetBody != nil:
		out.Body = http.NoBody
	case r.Body != nil:
		out.Body = io.NopCloser(r.Body) // net/http closes the body of a request that it received
	}
	resp, err := n.client.http.Transport.RoundTrip(out)
	elsewhere := err == nil && resp.Header.Get(elsewhereHeader) != "" && r.GetBody != nil
	if err == nil && !elsewhere {
		resp.Header.Del(elsewhereHeader)
		resp.Body = &body{resp.Body, end}
		return resp, nil
	}
	end()
	if err == nil {
		_ = resp.Body.Close() // it was read for nothing
	}
	if elsewhere || !sent.Load() && r.Context().Err() == nil {
		return nil, errElsewhere
	}
	// It may have happened. Whether the request has an id, only the leader could read: a code that retry
	// policies react to would be wrong without one.
	return nil, contract.Refused(connect.CodeUnknown, kujiv1.Reason_REASON_UNKNOWN_OUTCOME, errors.New("the connection to the leader was lost: send the same request id again"))
}

// body is the body of an answer.
type body struct {
	io.ReadCloser
	end func()
}

// Close implements [io.Closer]. It calls end first: an open stream's body is closed only when its client or
// the request's context has ended the request, and the client may wait for the answer's end.
func (b *body) Close() error {
	b.end()
	return b.ReadCloser.Close()
}
