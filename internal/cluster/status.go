package cluster

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/jetstream/embedded"
	"github.com/kuji-dev/kuji/internal/election"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

const (
	// nodePath is where a node says its status to other nodes and to "kuji cluster status".
	nodePath = "/cluster/node"
	// healthPath is where it says its health as well, which takes longer.
	healthPath = nodePath + "?health=1"
	// maxStatus bounds a status, in bytes.
	maxStatus = 256 << 10
	// maxIll bounds how many things that are wrong a node names.
	maxIll = 20
)

// Status is what a node says of itself, and "kuji cluster status" of it.
type Status struct {
	Node    string `json:"node"`
	Address string `json:"address"` // for the other nodes
	State   string `json:"state"`   // serves, opens, cut-off, or unreachable
	Ready   bool   `json:"ready"`
	Why     string `json:"why,omitempty"`     // it is not ready, cannot be reached, or met damage
	Behind  string `json:"behind,omitempty"`  // why its copy of the log does not count yet; absent: it has caught up
	Version string `json:"version,omitempty"` // of its build
	Time    int64  `json:"time,omitempty"`    // what its wall clock shows, Unix milliseconds

	ClockMS *int64           `json:"clock_ms,omitempty"` // how far its clock is ahead of the node in the middle: see Survey
	Health  *embedded.Health `json:"health,omitempty"`   // at healthPath

	// Survives is the worst that acknowledged entries survive, and Promise why; absent: more than the loss of a
	// machine. See [driver.Promise].
	Survives string `json:"survives,omitempty"`
	Promise  string `json:"promise,omitempty"`
	Losses   []Loss `json:"losses,omitempty"` // of logs, which an operator has to accept: see [Client.AcceptLoss]

	Leads     []string          `json:"leads"`               // realms that it leads
	Leaders   map[string]string `json:"leaders,omitempty"`   // of realms, as far as it knows
	Lag       uint64            `json:"lag"`                 // the most positions by which a realm here is behind its leader
	Positions map[string]uint64 `json:"positions,omitempty"` // how far each realm has come
	Chains    map[string]string `json:"chains,omitempty"`    // the hash of each realm's chain there, in hexadecimal
}

// The states of a node.
const (
	stateServes      = "serves"      // it answers requests, or hands them on
	stateOpens       = "opens"       // it has not come so far
	stateCutOff      = "cut-off"     // it does not know who leads
	stateUnreachable = "unreachable" // it does not answer
)

var states = map[string]kujiv1.NodeState{
	stateServes: kujiv1.NodeState_NODE_STATE_SERVES, stateOpens: kujiv1.NodeState_NODE_STATE_OPENS,
	stateCutOff: kujiv1.NodeState_NODE_STATE_CUT_OFF, stateUnreachable: kujiv1.NodeState_NODE_STATE_UNREACHABLE,
}

// Reached reports whether the node answered.
func (s *Status) Reached() bool { return s.State != stateUnreachable }

// Client talks to the nodes of a cluster, at the addresses that they have for each other.
type Client struct {
	http  http.Client
	nodes func() map[string]string // where they are, as HOST:PORT
}

// Client returns a client. If the nodes' addresses are on the board, it reads them there once.
func (c *Config) Client(ctx context.Context) (*Client, error) {
	nodes := c.peers()
	if !c.Store.within() {
		log, err := c.OpenLog(ctx)
		if err != nil {
			return nil, err
		}
		board, err := readBoard(ctx, log)
		if err := errors.Join(err, log.Close()); err != nil {
			return nil, connect.NewError(connect.CodeUnavailable, err)
		}
		addAddresses(nodes, board)
	}
	return c.client("", func() map[string]string { return nodes })
}

// peers returns where the nodes are that the configuration names.
func (c *Config) peers() map[string]string {
	all := map[string]string{}
	for name, p := range c.Peers {
		all[name] = p.Requests()
	}
	return all
}

// addAddresses adds where nodes say that they are, but for those of which this process was told.
func addAddresses(nodes map[string]string, b election.Board) {
	for name, post := range b.Nodes {
		if _, told := nodes[name]; !told && post.Address != "" {
			nodes[name] = post.Address
		}
	}
}

// readBoard reads a board, and changes nothing.
func readBoard(ctx context.Context, b driver.Board) (board election.Board, err error) {
	err = b.Update(ctx, func(old []byte) ([]byte, error) {
		board = election.ReadBoard(old)
		return old, nil
	})
	return board, err
}

// Names returns the names of the nodes, in order.
func (c *Client) Names() []string { return slices.Sorted(maps.Keys(c.nodes())) }

// client returns a client of nodes. It finds a connection that is half-open in 4 s.
func (c *Config) client(address string, nodes func() map[string]string) (*Client, error) {
	conf, err := c.tls(address)
	if err != nil {
		return nil, err
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	return &Client{nodes: nodes, http: http.Client{Transport: &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 2 * time.Second}).DialContext,
		TLSClientConfig:     conf,
		TLSHandshakeTimeout: 2 * time.Second,
		Protocols:           protocols,
		DisableCompression:  true, // answers pass as they are
		HTTP2:               &http.HTTP2Config{SendPingTimeout: 2 * time.Second, PingTimeout: 2 * time.Second},
	}}}, nil
}

// send sends a request to a node. Unless the answer is OK, it is in a RefusedError.
func (c *Client) send(ctx context.Context, method, node, path string, body []byte) (*http.Response, error) {
	at, known := c.nodes()[node]
	if !known {
		return nil, fmt.Errorf("nobody says where node %s is", node)
	}
	req, err := http.NewRequestWithContext(ctx, method, "https://"+at+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil || resp.StatusCode == http.StatusOK {
		return resp, err
	}
	defer resp.Body.Close()                                // read only: nothing to lose
	why, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10)) // what came of it will do
	return nil, refused("%s", cmp.Or(strings.TrimSpace(string(why)), "it answers "+resp.Status))
}

// Ask asks a node for its status.
func (c *Client) Ask(ctx context.Context, node string) Status {
	s, _ := c.ask(ctx, node, nodePath)
	return s
}

// ask also returns how far the node's clock is ahead of this process's.
func (c *Client) ask(ctx context.Context, node, path string) (s Status, ahead time.Duration) {
	sent := time.Now()
	resp, err := c.send(ctx, http.MethodGet, node, path, nil)
	if err == nil {
		defer resp.Body.Close() // read only: nothing to lose
		if err = json.NewDecoder(io.LimitReader(resp.Body, maxStatus)).Decode(&s); err != nil {
			err = fmt.Errorf("its answer: %w", err)
		} else if s.Node != node {
			err = fmt.Errorf("node %s answers there", s.Node)
		}
	}
	if err != nil {
		return Status{Node: node, Address: c.nodes()[node], State: stateUnreachable, Why: err.Error()}, 0
	}
	return s, time.UnixMilli(s.Time).Sub(sent.Add(time.Since(sent) / 2))
}

// Survey asks all nodes for their status and health, and compares their clocks with the one in the middle.
func (c *Client) Survey(ctx context.Context) []Status {
	names := c.Names()
	nodes, ahead := make([]Status, len(names)), make([]time.Duration, len(names))
	var asking sync.WaitGroup
	for i, name := range names {
		asking.Go(func() { nodes[i], ahead[i] = c.ask(ctx, name, healthPath) })
	}
	asking.Wait()
	var clocks []time.Duration
	for i := range nodes {
		if nodes[i].Time != 0 {
			clocks = append(clocks, ahead[i])
		}
	}
	slices.Sort(clocks)
	for i := range nodes {
		if nodes[i].Time != 0 {
			ms := (ahead[i] - clocks[(len(clocks)-1)/2]).Milliseconds()
			nodes[i].ClockMS = &ms
		}
	}
	return nodes
}

// RealmLead says who leads a realm.
type RealmLead struct {
	Realm    string `json:"realm"`
	Leader   string `json:"leader,omitempty"` // the node that leads it and answers; "": none
	Position uint64 `json:"position"`         // as far as anybody has come
}

// Leads returns the realms that nodes know, by name.
func Leads(nodes []Status) []RealmLead {
	leaders, positions := map[string]string{}, map[string]uint64{}
	for _, n := range nodes {
		for realm := range n.Leaders {
			positions[realm] = max(positions[realm], 0)
		}
		for realm, position := range n.Positions {
			positions[realm] = max(positions[realm], position)
		}
		for _, realm := range n.Leads {
			leaders[realm], positions[realm] = n.Node, max(positions[realm], 0)
		}
	}
	all := []RealmLead{}
	for _, realm := range slices.Sorted(maps.Keys(positions)) {
		all = append(all, RealmLead{realm, leaders[realm], positions[realm]})
	}
	return all
}

// surveyTime is how long nodes have to answer a client's question about all of them.
const surveyTime = 5 * time.Second

// Nodes implements [server.Cluster].
func (n *passer) Nodes(ctx context.Context) *kujiv1.ListNodesResponse {
	ctx, cancel := context.WithTimeout(ctx, surveyTime)
	defer cancel()
	nodes := n.client.Survey(ctx)
	out := &kujiv1.ListNodesResponse{Cluster: n.conf.Name}
	for i := range nodes {
		out.Nodes = append(out.Nodes, nodes[i].message())
	}
	for _, r := range Leads(nodes) {
		out.Realms = append(out.Realms, &kujiv1.RealmLeader{Realm: r.Realm, Leader: r.Leader, Position: r.Position})
	}
	return out
}

// message returns the status as the API says it.
func (s *Status) message() *kujiv1.Node {
	out := &kujiv1.Node{
		Node: s.Node, Address: s.Address, State: states[s.State], Ready: s.Ready, Why: s.Why, Behind: s.Behind,
		Version: s.Version, ClockMs: s.ClockMS, Lag: s.Lag, Leads: uint32(len(s.Leads)),
	}
	if h := s.Health; h != nil {
		out.StoredBytes, out.MostBytes, out.FreeBytes = h.Stored, h.Most, h.Free
		out.Why = cmp.Or(out.Why, strings.Join(h.Ill, "\n"))
	}
	return out
}

// describe says what this node is now.
func (n *Node) describe() Status {
	n.mu.Lock()
	defer n.mu.Unlock()
	v := n.look()
	out := Status{
		Node: n.conf.Node, Address: n.address, Version: n.o.Server.Version, State: stateServes, Ready: true,
		Leaders: v.leaders, Leads: []string{},
	}
	for _, realm := range v.holding.Realms() {
		if n.Holds(realm) {
			out.Leads = append(out.Leads, realm)
		}
	}
	switch {
	case v.serves == nil:
		out.State, out.Ready, out.Why, out.Behind = stateOpens, false, "it has not joined yet", "it has not joined yet"
		return out
	case len(n.board.Nodes) == 0:
		out.State, out.Ready, out.Why = stateCutOff, false, "it does not know who leads"
	case len(v.leaders) == 0:
		out.Ready, out.Why = false, "nobody leads"
	}
	if p, ok := n.here.log.(driver.Promiser); ok {
		promise := p.Promise()
		out.Survives, out.Promise = promise.Survives.String(), promise.Why
	}
	out.Losses = recall{&n.seating}.losses()
	var damaged []string
	for _, s := range n.core.Seats() {
		switch s.State {
		case election.Broken:
			damaged = append(damaged, fmt.Sprintf("realm %s: %v", s.Realm, s.Why))
		case election.Closed, election.Opening, election.Leaving:
			out.Behind = cmp.Or(out.Behind, "it opens realm "+s.Realm)
		}
	}
	out.Why = cmp.Or(out.Why, strings.Join(damaged, "\n"), n.clock)
	if n.core.Drained() {
		out.Why = cmp.Or(out.Why, "it is drained: it leads nothing")
	}
	for _, r := range v.serves.Realms() {
		if out.Positions == nil {
			out.Positions, out.Chains = map[string]uint64{}, map[string]string{}
		}
		st := r.Stats()
		out.Positions[r.Name()], out.Chains[r.Name()] = st.Position, hex.EncodeToString(st.Chain[:])
		out.Lag = max(out.Lag, st.Behind)
	}
	if busy := v.serves.Unready(); len(busy) > 0 {
		out.Ready, out.Why = false, cmp.Or(out.Why, strings.Join(busy, ", "))
	}
	if n.stopped.Err() != nil {
		out.Ready, out.Why = false, "it stops"
	}
	return out
}

// serveStatus answers another node that asks for this one's status.
func (n *Node) serveStatus(w http.ResponseWriter, r *http.Request) {
	s := n.describe()
	if err := n.backend.current(); err != nil {
		s.Behind = err.Error() // the log comes before the realms
	}
	if kept, ok := n.backend.(host); ok && r.URL.Query().Get("health") != "" {
		h, err := kept.health()
		if err != nil {
			s.Why = cmp.Or(s.Why, err.Error())
		} else {
			h.Free, h.Ill, h.Behind = freeSpace(n.o.Data), few(h.Ill), few(h.Behind)
			s.Health = &h
		}
	}
	w.Header().Set("Content-Type", "application/json")
	s.Time = n.clocks.wall().UnixMilli() // when it is sent
	_ = json.NewEncoder(w).Encode(s)     // the other node may be gone: there is nobody to tell
}

// few returns the first of many texts, and how many more there are.
func few(all []string) []string {
	if len(all) <= maxIll {
		return all
	}
	return append(slices.Clone(all[:maxIll]), fmt.Sprintf("and %d more", len(all)-maxIll))
}
