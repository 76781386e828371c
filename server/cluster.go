package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"time"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
	"github.com/kuji-dev/kuji/server/internal/admission"
)

// In a cluster, one of several servers leads each realm. The server decodes a request, which names
// its realm, and then answers it or hands it on as it came:
//
//    led here:            answered. If the realm stops before anything has happened: handed on
//    a read that is stale: answered if the realm follows here and has it. Otherwise: handed on
//    everything else:     handed on
//
// The server neither counts nor logs what it hands on: the one that answers does.

// Cluster says what this server leads of the realms that servers share, and reaches the others.
type Cluster interface {
	// Holds reports whether this server leads a realm, and it is certain that no other does.
	Holds(realm string) bool
	// Call has another server answer a call, and returns the answer, whose body may still arrive.
	// [ErrHere]: this server is to answer after all. Any other error tells the client that nobody
	// has answered.
	Call(c *Call) (*http.Response, error)
	// Created takes note of a realm that was created here.
	Created(realm string)
	// Status returns what other servers say of the realms that they lead, as far as they answer.
	// ctx is that of a request for the status of all realms.
	Status(ctx context.Context) []*kujiv1.RealmStatus
	// Nodes asks every server of the cluster how it is.
	Nodes(ctx context.Context) *kujiv1.ListNodesResponse
}

// A Call is a call about a realm that this server does not hold, or that stopped before anything
// happened. It is an HTTP request, as a client sends it: the procedure is its path, the client's
// key is in its header, the message is its body. GetBody returns the body again, from its
// beginning. A stream of draws has no GetBody.
type Call struct {
	Realm   string
	Request *http.Request
	Began   time.Time // when it came to this server
	Tries   int       // how often Call said ErrHere, and the realm was not held after all
	Streams bool      // it has no time limit here: the server that answers sets one
}

// ErrHere is the error of a [Call] that this server is to answer: it leads the realm by now, or
// creates it.
var ErrHere = errors.New("this server answers")

// mayBeStale are the RPCs that a follower can answer, if their requests say stale.
var mayBeStale = map[string]bool{
	kujiv1connect.RewardServiceGetPlayerProcedure:  true,
	kujiv1connect.RewardServiceListQuestsProcedure: true,
	kujiv1connect.RewardServiceListRanksProcedure:  true,
	kujiv1connect.RewardServiceGetRoundProcedure:   true,
	kujiv1connect.RewardServiceListRoundsProcedure: true,
	kujiv1connect.RewardServiceGetHoldProcedure:    true,
	kujiv1connect.RewardServiceListHoldsProcedure:  true,
	kujiv1connect.RewardServiceGetPoolProcedure:    true,
	kujiv1connect.RewardServiceGetResultProcedure:  true,
}

// errElsewhere ends a request that another server answers. No client sees it.
var errElsewhere = connect.NewError(connect.CodeUnavailable, errors.New("another server answers this"))

// shares says what this server answers, of the realms that it shares with others.
type shares struct {
	cluster Cluster // nil: it leads all
	realms  *realms
}

// serveShared is serveAdmitted for a server that shares realms with others.
func (s *Server) serveShared(w http.ResponseWriter, r *http.Request, c *call, b *admission.Body) {
	mine, out := b.Request(r), &Call{Began: c.start, Streams: c.endpoint.stream}
	c.shared = true
	for {
		s.serveAdmitted(w, mine, c)
		if c.elsewhere == "" {
			return
		}
		clear(w.Header()) // the server that answers sets them all
		again := *r
		if c.endpoint.bidi {
			c.body.at, c.body.decided = 0, true
		} else {
			data := b.Kept() // a transport may still read it when this has returned
			again.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
			again.Body, _ = again.GetBody()
			again.ContentLength = int64(len(data))
		}
		out.Realm, out.Request = c.elsewhere, &again
		if !s.handOver(c.answer.ResponseWriter, out, c) {
			return
		}
		out.Tries++
		if c.begin(); c.endpoint.bidi {
			c.body.at, c.body.decided = 0, false
		}
		mine = &again
		if again.GetBody != nil {
			again.Body, _ = again.GetBody()
		}
	}
}

// handOver passes on what another server answers. It reports whether this one is to answer instead.
func (s *Server) handOver(w http.ResponseWriter, out *Call, c *call) (here bool) {
	if out.Streams { // the leader decides how long it takes
		rc := http.NewResponseController(w)
		_, _ = rc.SetReadDeadline(time.Time{}), rc.SetWriteDeadline(time.Time{}) // not supported: no deadline
	}
	proxy := httputil.ReverseProxy{
		Transport:     roundTrip(func(r *http.Request) (*http.Response, error) { out.Request = r; return s.o.Cluster.Call(out) }),
		FlushInterval: -1,                                                        // at once: clients wait for a stream's answers
		Rewrite:       func(r *httputil.ProxyRequest) { r.Out.Host = r.In.Host }, // the leader checks it
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if here = errors.Is(err, ErrHere); here {
				return
			}
			if err := s.routes.errors.Write(w, r, err); err != nil {
				s.journal.log.Debug("writing an error failed", "error", err)
			}
		},
		ErrorLog: slog.NewLogLogger(s.o.Logger.Handler(), slog.LevelDebug),
	}
	proxy.ServeHTTP(w, out.Request)
	return here
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// hold checks that this server answers a request. It is called as soon as the request is decoded.
func (s *shares) hold(ctx context.Context, request any) error {
	c := callOf(ctx)
	if !c.shared {
		return nil
	}
	realm, ok := contract.RealmOf(request)
	if !ok {
		return nil // each server answers for itself
	}
	if s.cluster.Holds(realm) || c.here {
		c.held = realm
		return nil
	}
	if q, ok := request.(interface{ GetStale() bool }); ok && q.GetStale() && mayBeStale[c.endpoint.procedure] && s.realms.follows(realm) {
		c.held = realm
		c.stale = true
		return nil
	}
	c.elsewhere = realm
	return errElsewhere
}

// sharing says which server answers a call, in a cluster.
type sharing struct {
	shared    bool   // other servers may answer, too
	here      bool   // Cluster said that this server is to answer
	held      string // the realm, if this one tries to answer
	stale     bool   // it tries with what it has, and does not lead
	elsewhere string // the realm, if another server is to answer
}

// begin makes this server the one that answers the call, and forgets the last attempt.
func (c *call) begin() {
	c.sharing = sharing{shared: true, here: true}
	c.reached, c.ended, c.code, c.failed, c.work = false, false, 0, nil, 0
}

// handOn reports whether another server is to answer a call that ended with an error here.
func (c *call) handOn(err error) bool {
	if !c.shared || c.held == "" || c.endpoint.stream {
		return false
	}
	if c.stale { // the leader may know more
		return true
	}
	return stoppedBefore(err)
}

// stoppedBefore reports whether an error says that the realm stopped before anything happened.
func stoppedBefore(err error) bool {
	switch kuji.CodeOf(err) {
	case kuji.CodeClosed, kuji.CodeNotLeader, kuji.CodeFailed:
		return true
	}
	return false
}
