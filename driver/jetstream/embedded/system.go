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

// operate sends an operator's request to the cluster, and returns the error in its answer.
func (s *Server) operate(ctx context.Context, subject string, request any) error {
	data, err := json.Marshal(request)
	if err != nil {
		return err
	}
	conn, err := s.system()
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, once)
	defer cancel()
	msg, err := conn.RequestWithContext(ctx, subject, data)
	switch {
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no server answers: they have no leader now: %w", err)
	case err != nil:
		return err
	}
	var answer server.ApiResponse
	if err := json.Unmarshal(msg.Data, &answer); err != nil {
		return fmt.Errorf("answer to %s: %w", subject, err)
	}
	if answer.Error != nil {
		return fmt.Errorf("%s: %w", subject, answer.Error)
	}
	return nil
}

// once bounds one request to the servers.
const once = 5 * time.Second

// members returns the other members of the cluster.
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

// raft returns this server's part in each Raft group: the list of streams, and each stream.
func (s *Server) raft() (all []server.RaftzGroup) {
	for _, account := range []string{server.DEFAULT_SYSTEM_ACCOUNT, server.DEFAULT_GLOBAL_ACCOUNT} {
		if status := s.NATS().Raftz(&server.RaftzOptions{AccountFilter: account}); status != nil {
			all = slices.AppendSeq(all, maps.Values((*status)[account]))
		}
	}
	return all
}

// Remove removes another server from the cluster. It must have stopped, or it would join again. The
// others notice within moments that it has.
func (s *Server) Remove(ctx context.Context, node string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := poll(ctx, func() (bool, error) {
		members, err := s.members()
		i := slices.IndexFunc(members, func(p *server.PeerInfo) bool { return p.Name == node })
		switch {
		case err != nil || i < 0: // removed by an earlier attempt
			return err == nil, err
		case members[i].Offline:
			return true, s.remove(ctx, members[i].Peer)
		}
		return false, nil
	})
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("node %s: it runs: stop it first", node)
	}
	return err
}

func (s *Server) remove(ctx context.Context, peer string) error {
	return s.operate(ctx, server.JSApiRemoveServer, server.JSApiMetaServerRemoveRequest{Peer: peer})
}

// pollEvery is the time between two questions of poll.
const pollEvery = 20 * time.Millisecond

// poll asks whether something is done until it is, or until that fails or ctx ends.
func poll(ctx context.Context, done func() (bool, error)) error {
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollEvery):
		}
	}
}
