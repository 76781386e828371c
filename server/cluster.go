package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
	"github.com/kuji-dev/kuji/server/internal/admission"
)

// In a cluster each realm is led by one of several servers. A request says which realm it is about. So
// it is decoded first, and then either answered or handed on, as it came:
//
//	held here:             answered. If the realm stopped meanwhile and nothing has happened: handed on
//	a read that says stale: answered from what the realm that follows has; else handed on
//	everything else:       handed on
//
// What is handed on is neither counted nor logged: who answers it does that.

// Cluster says what a server that shares realms with others leads, and reaches the others.
type Cluster interface {
	// Holds reports whether this server leads a realm, and no other can have begun to.
	Holds(realm string) bool
	// Elsewhere answers a request about a realm that this server does not hold, or which stopped
	// before anything happened. GetBody of the request returns its body from the beginning, except of
	// a stream of draws.
	Elsewhere(w http.ResponseWriter, r *http.Request, realm string)
	// Status returns what other servers say of the realms that they lead, as far as they answer. The
	// context is that of a request for the status of all realms.
	Status(ctx context.Context) []*kujiv1.RealmStatus
}

// mayBeStale are the RPCs that a follower can answer, if their requests say stale.
var mayBeStale = map[string]bool{
	kujiv1connect.RewardServiceGetPlayerProcedure: true,
	kujiv1connect.RewardServiceGetPoolProcedure:   true,
	kujiv1connect.RewardServiceGetResultProcedure: true,
}

// errElsewhere ends a request that another server answers. No client sees it.
var errElsewhere = connect.NewError(connect.CodeUnavailable, errors.New("another server answers this"))

type hereKey struct{}

// ServeHere answers a request that [Cluster] was asked to answer: one about a realm that no server leads,
// such as one that is to be created. If it exists by now, Cluster is asked again.
func (s *Server) ServeHere(w http.ResponseWriter, r *http.Request) {
	s.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), hereKey{}, true)))
}

// shares says what this server answers, of the realms that it shares with others.
type shares struct {
	cluster Cluster // nil: it leads all
	realms  *realms
}

// serveShared is serveAdmitted for a server that shares realms with others.
func (s *Server) serveShared(w http.ResponseWriter, r *http.Request, c *call, b *admission.Body) {
	mine := b.Request(r)
	c.shared = true
	if c.endpoint.bidi {
		c.first = &recorded{body: r.Body}
		whole := *r
		whole.Body = c.first
		mine = &whole
	}
	s.serveAdmitted(&sharedWriter{w, c}, mine, c)
	if c.elsewhere == "" {
		return
	}
	clear(w.Header()) // whoever answers sets them all
	again := *r.WithContext(context.WithValue(r.Context(), hereKey{}, false))
	if c.endpoint.bidi {
		again.Body = c.first.again()
	} else {
		data := b.Kept() // whoever sends it may still read it when this has returned
		again.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
		again.Body, _ = again.GetBody()
		again.ContentLength = int64(len(data))
	}
	s.o.Cluster.Elsewhere(w, &again, c.elsewhere)
}

// hold checks that this server answers a request. It is called as soon as the request is decoded.
func (s *shares) hold(ctx context.Context, request any) error {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok || !c.shared {
		return nil
	}
	realm, ok := contract.RealmOf(request)
	if !ok {
		return nil // each server answers for itself
	}
	if s.cluster.Holds(realm) || ctx.Value(hereKey{}) == true {
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

// sharing is who answers a call, in a cluster.
type sharing struct {
	shared    bool      // other servers may answer, too
	held      string    // the realm, if this one tries to answer
	stale     bool      // it tries with what it has, and does not lead
	elsewhere string    // the realm, if another server is to answer
	first     *recorded // what was read of a stream of draws
}

// handOn reports whether another server is to answer a request that ended with an error here.
func (c *call) handOn(err error) bool {
	if !c.shared || c.held == "" || c.endpoint.streams != nil {
		return false
	}
	if c.stale { // who leads may know better
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

// sharedWriter passes on what this server answers, unless another one is to.
type sharedWriter struct {
	http.ResponseWriter
	c *call
}

// Write implements [http.ResponseWriter].
func (w *sharedWriter) Write(p []byte) (int, error) {
	if w.c.elsewhere != "" {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}

// WriteHeader implements [http.ResponseWriter].
func (w *sharedWriter) WriteHeader(status int) {
	if w.c.elsewhere == "" {
		w.ResponseWriter.WriteHeader(status)
	}
}

// Flush implements [http.Flusher].
func (w *sharedWriter) Flush() { _ = w.FlushError() } // the client may be gone

// FlushError flushes for an [http.ResponseController].
func (w *sharedWriter) FlushError() error {
	if w.c.elsewhere != "" {
		return nil
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap gives an [http.ResponseController] what is below.
func (w *sharedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// recorded is the body of a stream, of which what was read is kept until somebody answers it.
type recorded struct {
	body    io.ReadCloser
	read    []byte
	decided bool
}

// Read implements [io.Reader].
func (b *recorded) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if !b.decided {
		b.read = append(b.read, p[:n]...)
	}
	return n, err
}

// Close does nothing: net/http closes the body of a request that it received.
func (b *recorded) Close() error { return nil }

// decide forgets what was read.
func (b *recorded) decide() { b.decided, b.read = true, nil }

// again returns the whole body.
func (b *recorded) again() io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(b.read), b.body), b.body}
}

// Unready returns why the server should get no requests, realms apart; none if it should.
func (s *Server) Unready() []string { return s.busy() }
