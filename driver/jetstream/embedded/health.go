package embedded

import (
	"fmt"
	"slices"

	"github.com/nats-io/nats-server/v2/server"
)

// Health is how a server is, as it says itself.
type Health struct {
	Stored uint64 // bytes of all streams
	Most   uint64 // that they may have
	// Alone: the server is not one of a cluster, and agrees with nobody.
	Alone bool
	// Meta is who leads the group that keeps the list of streams; "": nobody.
	Meta    string
	Groups  int    // in which the server takes part: that one, and one for each stream with copies elsewhere
	Leads   int    // of these, how many it leads
	Waiting uint64 // entries that a group has agreed on and the server has not carried out, at most
	// Ill says what is wrong with which group.
	Ill []string
	// Behind says which copies elsewhere have not all that this server, which leads them, has.
	Behind []string
}

// Health asks the server.
func (s *Server) Health() (h Health, err error) {
	info, err := s.NATS().Jsz(&server.JSzOptions{Accounts: true, Streams: true})
	if err != nil {
		return h, err
	}
	h.Stored, h.Most = info.Store, uint64(max(0, info.Config.MaxStore))
	if info.Meta == nil {
		h.Alone = true
		return h, nil
	}
	h.Meta = info.Meta.Leader
	if h.Meta == "" {
		h.Ill = append(h.Ill, "the list of streams has no leader")
	}
	for _, a := range info.AccountDetails {
		for i := range a.Streams {
			h.stream(&a.Streams[i], s.NATS().Name())
		}
	}
	for _, g := range s.raft() {
		h.Groups++
		if g.State == server.Leader.String() {
			h.Leads++
		}
		h.Waiting = max(h.Waiting, g.Committed-min(g.Committed, g.Applied))
		if g.WALError != nil {
			h.Ill = append(h.Ill, fmt.Sprintf("a group cannot write: %v", g.WALError))
		}
	}
	slices.Sort(h.Ill)
	slices.Sort(h.Behind)
	return h, nil
}

// stream notes how a stream is of which the server has a copy.
func (h *Health) stream(d *server.StreamDetail, self string) {
	if d.Cluster == nil {
		return
	}
	if d.Cluster.Leader == "" {
		h.Ill = append(h.Ill, fmt.Sprintf("stream %s has no leader", d.Name))
	}
	if d.Cluster.Leader != self {
		return // only the leader knows the others
	}
	for _, p := range d.Cluster.Replicas {
		switch {
		case p.Offline:
			h.Behind = append(h.Behind, fmt.Sprintf("stream %s: node %s is away", d.Name, p.Name))
		case !p.Current:
			h.Behind = append(h.Behind, fmt.Sprintf("stream %s: node %s lacks %d entries", d.Name, p.Name, p.Lag))
		}
	}
}
