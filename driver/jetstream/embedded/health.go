package embedded

import (
	"fmt"
	"slices"

	"github.com/nats-io/nats-server/v2/server"
)

// Health is what a server says of itself.
type Health struct {
	Stored uint64 `json:"stored_bytes"` // by all streams
	Most   uint64 `json:"most_bytes"`   // that they may store
	// Free is the space on the server's disk. The caller fills it in: the server does not know it.
	Free uint64 `json:"free_bytes,omitempty"`
	// Meta leads the group that keeps the list of streams; "": nobody does.
	Meta    string `json:"meta_leader,omitempty"`
	Groups  int    `json:"groups"`  // that the server is in: that one, and one for each stream with copies elsewhere
	Leads   int    `json:"leads"`   // how many of these it leads
	Waiting uint64 `json:"waiting"` // the most entries that a group has agreed on and the server has not applied
	// Ill says what is wrong with which group.
	Ill []string `json:"ill,omitempty"`
	// Behind names copies on other servers that lack something of what this server, their leader, has.
	Behind []string `json:"behind,omitempty"`
}

// Health returns what the server says of itself.
func (s *Server) Health() (h Health, err error) {
	info, err := s.NATS().Jsz(&server.JSzOptions{Accounts: true, Streams: true})
	if err != nil {
		return h, err
	}
	h.Stored, h.Most = info.Store, uint64(max(0, info.Config.MaxStore))
	if info.Meta == nil {
		return h, nil // the server is not one of a cluster, and agrees with nobody
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

// stream notes the condition of a stream that the server has a copy of.
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
