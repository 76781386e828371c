package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/internal/election"
	"github.com/kuji-dev/kuji/internal/step"
)

// A log that others keep can lose its end: see [driver.Witness]. Nodes ask each other what they remember
// before one of them leads, and tell each other when one meets a log that falls short of that.

const (
	// markPath is where a node says what it remembers of a realm's log, and is told.
	markPath = "/cluster/mark"
	// acceptPath is where an operator accepts what a log has lost.
	acceptPath = "/cluster/accept-loss"
	// grownPath is where a node says what was appended to logs.
	grownPath = "/cluster/grown"
	// markTime bounds how long a node waits for what another one remembers.
	markTime = time.Second
	// maxTold bounds what one request tells, in bytes.
	maxTold = 256 << 10
)

// recall is what a node has to do with what it and others remember of logs.
type recall struct{ *seating }

// Loss is what a realm's log has lost, as one node knows it.
type Loss struct {
	Realm string `json:"realm"`
	Node  string `json:"node"`  // that remembers
	Last  uint64 `json:"last"`  // cursor of the last entry that is as it was
	Known uint64 `json:"known"` // cursor of an entry that was acknowledged, and is not there any more
	Line  uint64 `json:"line"`  // how many losses were accepted before
	Hash  string `json:"hash"`  // of that entry, in hexadecimal
}

func lossOf(node string, e *driver.CutError) Loss {
	return Loss{e.Realm, node, uint64(e.Last), uint64(e.Known.Cursor), e.Known.Line, hex.EncodeToString(e.Known.Hash[:])}
}

// cut returns the loss as a driver has it.
func (l *Loss) cut() (*driver.CutError, error) {
	hash, err := hex.DecodeString(l.Hash)
	if err != nil || len(hash) != 32 {
		return nil, fmt.Errorf("hash %q: want 64 hexadecimal digits", l.Hash)
	}
	return &driver.CutError{Realm: l.Realm, Last: driver.Cursor(l.Last), Known: driver.Mark{Line: l.Line, Cursor: driver.Cursor(l.Known), Hash: [32]byte(hash)}}, nil
}

// Confirm returns the word that says that a person saw a loss.
func (l *Loss) Confirm() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d %d %s", l.Realm, l.Last, l.Known, l.Line, l.Hash))
	return hex.EncodeToString(sum[:4])
}

// losses returns what the logs of realms have lost, as this node knows it. The caller holds mu.
func (n recall) losses() (all []Loss) {
	for _, s := range n.core.Seats() {
		if cut, ok := errors.AsType[*driver.CutError](s.Why); ok && s.State == election.Broken {
			all = append(all, lossOf(n.conf.Node, cut))
		}
	}
	return all
}

// consult learns what other nodes remember of a realm's log before this one leads it. A node that does not
// answer in time is not heard.
func (n recall) consult(ctx context.Context, realm string) {
	w, ok := n.here.log.(driver.Witness)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, markTime)
	defer cancel()
	var asking sync.WaitGroup
	for name := range n.nodes() {
		if name == n.conf.Node {
			continue
		}
		asking.Go(func() {
			resp, err := n.client.send(ctx, http.MethodGet, name, markPath+"?realm="+realm, nil)
			if err != nil {
				return
			}
			defer resp.Body.Close() // read only
			var m driver.Mark
			if json.NewDecoder(io.LimitReader(resp.Body, maxTold)).Decode(&m) == nil && m.Cursor > 0 {
				w.Tell(realm, m)
			}
		})
	}
	asking.Wait()
}

// spread tells the other nodes of a log that falls short of what this one remembers: they might lead it.
func (n recall) spread(realm string, err error) {
	cut, ok := errors.AsType[*driver.CutError](err)
	if !ok {
		return
	}
	told, err := json.Marshal(cut.Known)
	if err != nil {
		panic(err) // numbers
	}
	for name := range n.nodes() {
		if name == n.conf.Node {
			continue
		}
		n.work.Go(func() {
			ctx, cancel := context.WithTimeout(n.here.ctx, markTime)
			defer cancel()
			if resp, err := n.client.send(ctx, http.MethodPost, name, markPath+"?realm="+realm, told); err == nil {
				_ = resp.Body.Close() // a node that was not reached asks before it leads
			}
		})
	}
}

// serveMark answers a node that asks what this one remembers of a log, or tells what it does itself.
func (n recall) serveMark(rw http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	w, ok := n.here.log.(driver.Witness)
	n.mu.Unlock()
	realm := r.URL.Query().Get("realm")
	switch {
	case !ok:
		http.Error(rw, "this node remembers nothing of logs", http.StatusNotFound)
	case r.Method == http.MethodPost:
		var m driver.Mark
		if err := json.NewDecoder(io.LimitReader(r.Body, maxTold)).Decode(&m); err != nil {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		w.Tell(realm, m)
		n.work.Go(func() { n.examine(realm, w) })
	default:
		m, _ := w.Mark(realm)
		_ = json.NewEncoder(rw).Encode(m) // the other node may be gone
	}
}

// examine closes a realm whose log falls short of what is remembered. Opened again, it says so.
func (n recall) examine(realm string, w driver.Witness) {
	ctx, cancel := context.WithTimeout(n.here.ctx, closeTimeout)
	defer cancel()
	cut, err := w.Cut(ctx, realm)
	if err != nil || cut == nil {
		return // the next call on the log compares
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.core.Reopen(realm, n.clocks.now(), cut)
	n.carryOut()
	n.publish()
}

// serveAccept gives up what a log has lost, if this node is the one that remembers, and opens the realm again.
func (n recall) serveAccept(rw http.ResponseWriter, r *http.Request) {
	var l Loss
	err := json.NewDecoder(io.LimitReader(r.Body, maxTold)).Decode(&l)
	if err == nil && r.Method != http.MethodPost {
		err = errors.New("want POST")
	}
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	if err := n.accept(r.Context(), l); err != nil {
		http.Error(rw, err.Error(), http.StatusConflict)
	}
}

func (n recall) accept(ctx context.Context, l Loss) error {
	n.mu.Lock()
	w, ok := n.here.log.(driver.Witness)
	srv, lost := n.here.server, n.losses()
	n.mu.Unlock()
	if !ok || srv == nil {
		return errors.New("this node remembers nothing of logs")
	}
	if l.Node == n.conf.Node {
		if !slices.Contains(lost, l) {
			return fmt.Errorf("realm %s has not lost this, or not any more: look again", l.Realm)
		}
		cut, err := l.cut()
		if err == nil {
			err = srv.CloseRealm(ctx, l.Realm)
		}
		if err == nil {
			err = w.AcceptCut(ctx, l.Realm, cut)
		}
		if err != nil {
			return err
		}
		n.log.Warn("cluster: an operator gave up what a log has lost", "node", n.conf.Node, "realm", l.Realm, "last", l.Last, "known", l.Known)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.core.Reopen(l.Realm, n.clocks.now(), nil)
	n.carryOut()
	n.publish()
	n.hurry()
	return nil
}

// grown collects what was appended here, until the other nodes are told.
type grown struct {
	mu   sync.Mutex
	at   map[string]driver.Cursor // by realm
	wake chan struct{}
}

// nudgeEvery is the least time between two times that nodes are told.
const nudgeEvery = 10 * time.Millisecond

// nudge tells the other nodes what is appended here, until ctx ends.
func (n recall) nudge(ctx context.Context, d driver.Nudged) {
	g := grown{at: map[string]driver.Cursor{}, wake: make(chan struct{}, 1)}
	d.OnAppend(func(realm string, at driver.Cursor) {
		g.mu.Lock()
		g.at[realm] = max(g.at[realm], at)
		g.mu.Unlock()
		select {
		case g.wake <- struct{}{}:
		default:
		}
	})
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.wake:
		}
		g.mu.Lock()
		told := g.at
		g.at = map[string]driver.Cursor{}
		g.mu.Unlock()
		n.tell(ctx, told)
		step.Pause(ctx, nudgeEvery)
	}
}

// tell tells the other nodes what was appended. One that does not hear of it asks the log.
func (n recall) tell(ctx context.Context, at map[string]driver.Cursor) {
	body, err := json.Marshal(at)
	if err != nil {
		panic(err) // names and numbers
	}
	ctx, cancel := context.WithTimeout(ctx, markTime)
	defer cancel()
	var telling sync.WaitGroup
	for name := range n.nodes() {
		if name == n.conf.Node {
			continue
		}
		telling.Go(func() {
			if resp, err := n.client.send(ctx, http.MethodPost, name, grownPath, body); err == nil {
				_ = resp.Body.Close()
			}
		})
	}
	telling.Wait()
}

// serveGrown hears what another node has appended.
func (n recall) serveGrown(rw http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	d, ok := n.here.log.(driver.Nudged)
	n.mu.Unlock()
	at := map[string]driver.Cursor{}
	if err := json.NewDecoder(io.LimitReader(r.Body, maxTold)).Decode(&at); err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	for realm, cursor := range at {
		if ok && driver.CheckRealm(realm) == nil {
			d.Nudge(realm, cursor)
		}
	}
}

// AcceptLoss gives up what a realm's log has lost. All nodes close the realm and open it again.
func (c *Client) AcceptLoss(ctx context.Context, l Loss) error {
	body, err := json.Marshal(l)
	if err != nil {
		return err
	}
	names := slices.DeleteFunc(c.Names(), func(name string) bool { return name == l.Node })
	for _, name := range append([]string{l.Node}, names...) { // first the one that accepts it
		resp, err := c.send(ctx, http.MethodPost, name, acceptPath, body)
		switch {
		case err == nil:
			_ = resp.Body.Close()
		case name == l.Node:
			return orderError(name, err)
		} // another node that was not reached learns of it from the log
	}
	return nil
}
