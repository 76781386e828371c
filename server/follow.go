package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
)

// maxFollowed bounds the body of a request that a follower looks into. Reads are smaller: they have
// names.
const maxFollowed = 4 << 10

// mayBeStale are the RPCs that a follower can answer, if their requests say stale.
var mayBeStale = map[string]bool{
	kujiv1connect.RewardServiceGetPlayerProcedure: true,
	kujiv1connect.RewardServiceGetPoolProcedure:   true,
	kujiv1connect.RewardServiceGetResultProcedure: true,
}

// forLeader says that the leader is to answer a request.
type forLeader struct{ yes bool }

type forLeaderKey struct{}

// errForLeader ends a request that a follower does not answer. No client sees it.
var errForLeader = connect.NewError(connect.CodeUnavailable, errors.New("the leader answers this"))

// ServeFollower answers a request while the engine's realms follow. It answers reads that say stale
// from what this node has, and from nothing else. All that it cannot answer, it hands to leader.
func (s *Server) ServeFollower(w http.ResponseWriter, r *http.Request, leader http.Handler) {
	if !mayBeStale[r.URL.Path] {
		leader.ServeHTTP(w, r)
		return
	}
	data, err := io.ReadAll(io.LimitReader(r.Body, maxFollowed+1))
	again := *r
	again.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(data), r.Body), r.Body}
	if err != nil || len(data) > maxFollowed {
		leader.ServeHTTP(w, &again)
		return
	}
	f := &forLeader{}
	mine := r.WithContext(context.WithValue(r.Context(), forLeaderKey{}, f))
	mine.Body = io.NopCloser(bytes.NewReader(data))
	before := w.Header().Clone()
	s.ServeHTTP(&follower{w, f}, mine)
	if f.yes {
		clear(w.Header())
		maps.Copy(w.Header(), before)
		leader.ServeHTTP(w, &again)
	}
}

// follower passes on what a follower answers, unless the leader is to.
type follower struct {
	http.ResponseWriter
	leader *forLeader
}

// Write implements [http.ResponseWriter].
func (f *follower) Write(p []byte) (int, error) {
	if f.leader.yes {
		return len(p), nil
	}
	return f.ResponseWriter.Write(p)
}

// WriteHeader implements [http.ResponseWriter].
func (f *follower) WriteHeader(status int) {
	if !f.leader.yes {
		f.ResponseWriter.WriteHeader(status)
	}
}

// FlushError flushes for an [http.ResponseController].
func (f *follower) FlushError() error {
	if f.leader.yes {
		return nil
	}
	return http.NewResponseController(f.ResponseWriter).Flush()
}

// Unwrap gives an [http.ResponseController] what is below.
func (f *follower) Unwrap() http.ResponseWriter { return f.ResponseWriter }

// follow hands a request to the leader, unless it is a read that may be stale.
func follow(ctx context.Context, request any) error {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok || c.leader == nil {
		return nil
	}
	if q, ok := request.(interface{ GetStale() bool }); ok && q.GetStale() {
		return nil
	}
	return errForLeader
}

// Lead makes every realm of the engine lead, and creates [DefaultRealm] if it does not exist. From then
// on ServeHTTP answers everything. Errors are those of [kuji.Realm.Lead]; the server must then be shut
// down and the engine closed.
func (s *Server) Lead(ctx context.Context) error {
	s.realms.follow.Store(false)
	if err := s.realms.open(s.engine); err != nil {
		return err
	}
	for _, r := range s.realms.sorted() {
		if err := r.Lead(ctx); err != nil {
			return fmt.Errorf("server: %w", err)
		}
		if s.realms.begin != nil {
			s.realms.begin(r)
		}
	}
	return nil
}

// findRealms opens the realms that the leader has created since.
func (s *Server) findRealms() {
	if !s.realms.follow.Load() {
		return
	}
	if err := s.realms.open(s.engine); err != nil && kuji.CodeOf(err) != kuji.CodeClosed {
		s.log.Warn("a realm that the leader created cannot be followed yet", "error", err)
	}
}

// Realms returns the realms that are open, sorted by name.
func (s *Server) Realms() []*kuji.Realm { return s.realms.sorted() }
