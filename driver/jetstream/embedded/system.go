package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// system returns a connection for an operator's requests.
func (s *Server) system() (*nats.Conn, error) { return nats.Connect("", s.connect(operator)) }

// errNobody is the error of a request that no server answers: the cluster's servers have no leader now.
var errNobody = errors.New("no server answers: they have no leader now")

// ask sends an operator's request to the servers of the cluster, and decodes the first answer.
func ask(ctx context.Context, conn *nats.Conn, subject string, request, answer any) error {
	data, err := json.Marshal(request)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, once)
	defer cancel()
	msg, err := conn.RequestWithContext(ctx, subject, data)
	switch {
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", errNobody, err)
	case err != nil:
		return err
	}
	var refused server.ApiResponse
	if err := json.Unmarshal(msg.Data, &refused); err != nil {
		return fmt.Errorf("answer to %s: %w", subject, err)
	}
	if refused.Error != nil {
		return fmt.Errorf("%s: %w", subject, refused.Error)
	}
	return json.Unmarshal(msg.Data, answer)
}

// once bounds one request to the servers.
const once = 5 * time.Second

// members returns the members of the cluster but this one.
func (s *Server) members() ([]*server.PeerInfo, error) {
	info, err := s.NATS().Jsz(nil)
	if err != nil {
		return nil, err
	}
	if info.Meta == nil {
		return nil, errors.New("the server is not one of a cluster")
	}
	return info.Meta.Replicas, nil
}

// removeOthers removes one member after the other, and reports whether none is left but this server.
func (s *Server) removeOthers(ctx context.Context) (done bool, err error) {
	others, err := s.members()
	if err != nil || len(others) == 0 {
		return err == nil, err
	}
	return false, s.remove(ctx, others[0].Peer)
}

// raft returns what this server is to each group that agrees on something: the list of streams, and each stream.
func (s *Server) raft() (all []server.RaftzGroup) {
	for _, account := range []string{server.DEFAULT_SYSTEM_ACCOUNT, server.DEFAULT_GLOBAL_ACCOUNT} {
		if status := s.NATS().Raftz(&server.RaftzOptions{AccountFilter: account}); status != nil {
			all = slices.AppendSeq(all, maps.Values((*status)[account]))
		}
	}
	return all
}

// errRuns is the error of a node that cannot be removed.
var errRuns = errors.New("it runs: stop it first")

// Remove makes another server no member of the cluster any more. It must not run: otherwise it would be one again.
// The others notice within moments that one has stopped.
func (s *Server) Remove(ctx context.Context, node string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	t := time.NewTicker(handAgain)
	defer t.Stop()
	for {
		members, err := s.members()
		if err != nil {
			return err
		}
		i := slices.IndexFunc(members, func(p *server.PeerInfo) bool { return p.Name == node })
		if i < 0 {
			return nil // by an earlier attempt
		}
		if members[i].Offline {
			return s.remove(ctx, members[i].Peer)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("node %s: %w", node, errRuns)
		case <-t.C:
		}
	}
}

func (s *Server) remove(ctx context.Context, peer string) error {
	conn, err := s.system()
	if err != nil {
		return err
	}
	defer conn.Close()
	return ask(ctx, conn, server.JSApiRemoveServer, server.JSApiMetaServerRemoveRequest{Peer: peer}, &server.JSApiMetaServerRemoveResponse{})
}
