package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server/access"
	"github.com/kuji-dev/kuji/server/internal/admission"
	"github.com/kuji-dev/kuji/server/internal/feeds"
)

// ServeHTTP implements [http.Handler]. It admits a request that presents a key, if the server has
// keys, and whose key's share of memory and connections has room. All others belong to the crowd.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := s.routes.endpoints[r.URL.Path]
	c := &call{endpoint: e, access: access.Passerby, start: time.Now(), logged: logged{method: methodOf(e, r.URL.Path), peer: r.RemoteAddr}}
	c.answer = answer{ResponseWriter: w, c: c}
	if s.journal.access != nil || s.o.Cluster != nil {
		w = &c.answer
	}
	defer s.journal.call(c)
	conn := admission.ConnOf(r.Context())
	s.sites.crossOrigin(w, r, e)
	var a *access.Access
	var refusal *connect.Error
	asked := s.sites.isPreflight(r)
	if !asked {
		a, refusal = s.admit(c, conn, r)
	}
	if a == nil {
		s.gate.Conns.Touch(conn)
		defer s.gate.Crowd.Leave(s.gate.Crowd.Enter(w))
	} else {
		c.access = a
		defer s.gate.Leave(conn, a.Who)
	}
	if asked {
		s.gate.Hurry(w, r)
		refusal = s.sites.preflight(w, r, e)
	}
	switch {
	case refusal != nil:
		s.gate.Hurry(w, r)
		s.refuse(w, r, c, refusal)
	case asked:
	case e == nil:
		s.serveOther(w, r)
	default:
		s.serveEndpoint(w, r, c)
	}
	if r.ProtoMajor == 2 {
		// Else requests pile up after their handlers, uncounted, if the client reads no answers.
		_ = http.NewResponseController(c.answer.ResponseWriter).Flush() // the client may be gone
	}
}

// admit returns the access of a request that the gate counts; nil: it is refused, or for health or a page.
func (s *Server) admit(c *call, conn *admission.Conn, r *http.Request) (*access.Access, *connect.Error) {
	e := c.endpoint
	if refusal := s.sites.check(r, e != nil); refusal != nil {
		return nil, refusal
	}
	role := kujiv1.Role_ROLE_READ // of /metrics
	switch {
	case e != nil && e.open, e == nil && (isHealthPath(r.URL.Path) || (pages{s.o.Console}).has(r.URL.Path)):
		return nil, nil
	case e != nil:
		role = e.role
	case r.URL.Path != metricsPath:
		return nil, contract.Refused(connect.CodeUnimplemented, kujiv1.Reason_REASON_NOT_FOUND,
			fmt.Errorf("there is nothing at %.100q", r.URL.Path))
	}
	a, refusal := s.authorize(r, conn, role)
	if a != nil {
		c.key = a.Name
	}
	if refusal == nil && e == nil {
		refusal = a.CheckWhole()
	}
	if refusal == nil {
		refusal = s.gate.Enter(conn, a)
	}
	if refusal != nil {
		return nil, refusal
	}
	return a, nil
}

// serveEndpoint answers a call. A unary call counts only once its body has arrived.
func (s *Server) serveEndpoint(w http.ResponseWriter, r *http.Request, c *call) {
	e, who := c.endpoint, c.access.Who
	if ce := e.wrongType(r); ce != nil {
		s.gate.Hurry(w, r)
		s.refuseType(w, c, ce)
		return
	}
	b := &admission.Body{Who: who}
	if e.bidi {
		s.gate.Hurry(w, r) // Connect refuses it over HTTP/1.1
		c.body = &streamBody{ReadCloser: r.Body, c: c, decided: s.o.Cluster == nil || e.exempt}
		r.Body = c.body
	} else {
		defer s.gate.Free(b)
		if err := s.gate.Receive(b, r, e.limit); err != nil {
			if err.Code() != connect.CodeInvalidArgument { // a broken body has no rest
				s.gate.Hurry(w, r)
			}
			c.received = int64(len(b.Data))
			s.refuse(w, r, c, err)
			return
		}
	}
	c.arrived, c.received = time.Now(), int64(len(b.Data))
	if s.o.Cluster != nil && !e.exempt {
		s.serveShared(w, r, c, b)
		return
	}
	s.serveAdmitted(w, b.Request(r), c)
}

// serveAdmitted answers a call whose body has arrived, if there is a place for it.
func (s *Server) serveAdmitted(w http.ResponseWriter, r *http.Request, c *call) {
	e, who := c.endpoint, c.access.Who
	taken := 0
	defer func() {
		for _, places := range e.places[:taken] {
			places.Give(who, 1)
		}
	}()
	for _, places := range e.places {
		if refusal := places.Take(who, 1); refusal != nil {
			s.refuse(w, r, c, refusal)
			return
		}
		taken++
	}
	if e.turns != nil {
		// A turn ends, at the latest, when the answer could no longer be sent.
		ctx, cancel := context.WithDeadline(r.Context(), c.start.Add(s.o.Limits.WriteTimeout))
		defer cancel()
		r = r.WithContext(ctx)
		if err := e.turns.Wait(ctx, who, 1); err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				s.refuse(w, r, c, e.turns.Refusal(who))
				return
			}
			c.reached, c.code = true, connect.CodeCanceled // the client is gone
			return
		}
		defer e.turns.Give(who, 1)
	}
	s.serveCall(w, r, c)
}

func (s *Server) serveCall(w http.ResponseWriter, r *http.Request, c *call) {
	e := c.endpoint
	defer func() { s.gate.GiveWork(c.access.Who, c.work) }() // the answer is sent
	defer func() {
		c.ended = true
		if !e.stream { // the batches of a stream are measured one by one
			c.took = time.Since(c.arrived)
		}
		if p := recover(); p != nil {
			// It was in decoding or encoding: the interceptor catches the panics of handlers.
			if p != http.ErrAbortHandler { //nolint:errorlint // net/http compares like this
				s.journal.panicked(e.procedure, p)
			}
			c.reached, c.code = true, connect.CodeInternal
			e.metrics.done(c.label(), c.took)
			panic(http.ErrAbortHandler)
		}
		if !c.handedOver() {
			e.metrics.done(c.label(), c.took)
		}
	}()
	if r.Method == http.MethodGet {
		w.Header().Set("Cache-Control", "no-store")
	}
	r = r.WithContext(context.WithValue(r.Context(), callKey{}, c))
	e.handler.ServeHTTP(w, r)
}

// authorize returns the access of a request; nil: no good key or token. It refuses a lesser role.
func (s *Server) authorize(r *http.Request, conn *admission.Conn, want kujiv1.Role) (*access.Access, *connect.Error) {
	if s.o.Keys == nil {
		return access.Anybody, nil
	}
	secret, asked := access.SecretOf(r.Header), false
	if secret == "" && r.URL.Path == feeds.Path {
		secret, asked = r.URL.Query().Get(feeds.TokenParameter), true
	}
	const want401 = "want a valid API key or player token in the header Authorization: Bearer KEY, or X-Api-Key: KEY"
	a, refusal := s.gate.Find(r.Context(), s.o.Keys, conn, r.RemoteAddr, secret, want401)
	switch {
	case refusal != nil:
		return nil, refusal
	case asked && a.Player == "":
		return nil, access.BadSecret(want401, access.Unsigned("an API key stands in the URL, where only a player's token may be"))
	}
	return a, a.CheckRole(want)
}

// refuse answers a request without its handler, in the client's protocol.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, c *call, ce *connect.Error) {
	metrics := s.metrics.unrouted
	if c.endpoint != nil {
		metrics = c.endpoint.metrics
	}
	c.failed, c.code = ce, ce.Code()
	c.reached = len(ce.Details()) > 0 // otherwise receive could not read it
	metrics.done(c.label(), 0)
	if ce.Code() == connect.CodeUnauthenticated {
		w.Header().Set("WWW-Authenticate", `Bearer realm="kuji"`)
	}
	if err := s.routes.errors.Write(w, r, ce); err != nil {
		s.journal.log.Debug("writing an error failed", "error", err)
	}
}

// refuseType answers HTTP 415, as Connect does, in JSON: what the client speaks is not known.
func (s *Server) refuseType(w http.ResponseWriter, c *call, ce *connect.Error) {
	c.failed, c.code = ce, ce.Code()
	c.endpoint.metrics.done(c.label(), 0)
	w.Header().Set("Accept-Post", strings.Join(c.endpoint.types, ", "))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnsupportedMediaType)
	_ = json.NewEncoder(w).Encode(map[string]string{"code": ce.Code().String(), "message": ce.Message()}) // the client may be gone
}
