package embedded

import (
	"context"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// When a server stops, the others need 4 to 9 s to elect new leaders; one that is told to lead
// needs a moment. So a server that is about to stop steps down from everything that it leads, and
// waits until others lead each stream and the meta group. The server's own LameDuckShutdown waits
// one second, however slow the others are.

// handTime is how long a server tries to hand over what it leads.
const handTime = 10 * time.Second

// stepDownMeta is where the leader of the meta group is asked to step down.
const stepDownMeta = "$JS.API.META.LEADER.STEPDOWN"

// HandOver makes other servers lead what this one leads, if they are a majority.
func (s *Server) HandOver() {
	now := s.running.Load()
	if !now.Running() || !now.JetStreamEnabled() || !now.JetStreamIsClustered() {
		return
	}
	operate, err := s.system()
	if err != nil {
		s.said.Warnf("Nobody was asked to lead what this server leads: %v", err)
		return
	}
	defer operate.Close()
	ctx, cancel := context.WithTimeout(context.Background(), handTime)
	defer cancel()
	_ = poll(ctx, func() (handed bool, _ error) { // the others elect leaders for what is left
		info, err := now.Jsz(&server.JSzOptions{Accounts: true, Streams: true})
		if err != nil || info.Meta == nil || !enough(info.Meta) {
			return true, nil // nobody to hand over to
		}
		handed = info.Meta.Leader != "" && info.Meta.Leader != now.Name()
		if info.Meta.Leader == now.Name() {
			_ = operate.Publish(stepDownMeta, nil) // the next round sees whether it helped
		}
		for _, account := range info.AccountDetails {
			for i := range account.Streams {
				one := &account.Streams[i]
				if one.Cluster == nil || len(one.Cluster.Replicas) == 0 {
					continue // no other server has it
				}
				if one.Cluster.Leader == now.Name() {
					_ = now.JetStreamStepdownStream(account.Id, one.Name)
				}
				handed = handed && one.Cluster.Leader != "" && one.Cluster.Leader != now.Name()
			}
		}
		return handed, nil
	})
}

// enough reports whether the other servers are a majority.
func enough(meta *server.MetaClusterInfo) bool {
	others := 0
	for _, p := range meta.Replicas { // without this one
		if !p.Offline {
			others++
		}
	}
	return others > meta.Size/2
}
