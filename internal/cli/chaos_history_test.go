//go:build unix

package cli

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/anishathalye/porcupine"

	"github.com/kuji-dev/kuji/client"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

// There are three realms, of which each is first a different node's. A round of chaos has a pool and a
// player of its own in each of them, so that its history can be checked alone. What
// the player holds and what is left in the pool say the same in two ways: each entry gives another
// number of gems, which add up to one sum for each way in which the pool can have been drawn from.
const (
	chaosRounds  = 200 // pools in the catalog
	chaosClients = 6   // two begin at each node
	chaosPace    = 20 * time.Millisecond

	soldOut = -1 // in place of an entry
)

var (
	chaosEntries = [...]string{"a", "b", "c"}
	chaosStock   = stockLeft{5, 60, 1000}
	chaosGems    = [...]uint64{1_000_000, 10_000, 1}
)

// chaosRealms are realms for which n1, n2 and n3 come first in rank.
var chaosRealms = [...]string{"north", server.DefaultRealm, "spring"}

// stockLeft is what is left of each entry.
type stockLeft [len(chaosEntries)]uint64

// gems returns what was given in all.
func (s stockLeft) gems() (sum uint64) {
	for i, n := range s {
		sum += (chaosStock[i] - n) * chaosGems[i]
	}
	return sum
}

func chaosPool(round int) string   { return fmt.Sprintf("p%d", round) }
func chaosPlayer(round int) string { return fmt.Sprintf("player-%d", round) }

// chaosCatalog remembers request ids for longer than any clock jumps.
func chaosCatalog() []byte {
	yaml := []byte("kuji: 1\nitems: {gem: {}}\nidempotency: {age: 2160h, count: 8000000}\npools:\n")
	for n := range chaosRounds {
		yaml = fmt.Appendf(yaml, "  %s:\n    entries:\n", chaosPool(n))
		for i, e := range chaosEntries {
			yaml = fmt.Appendf(yaml, "      - {id: %s, weight: %d, stock: %d, reward: {items: {gem: %d}}}\n", e, chaosStock[i], chaosStock[i], chaosGems[i])
		}
	}
	return yaml
}

// chaosKind is a kind of question.
type chaosKind int

// chaosQuestion is a question about a realm.
type chaosQuestion struct {
	realm int
	kind  chaosKind
}

const (
	chaosDraw chaosKind = iota
	chaosLook           // what is left in the pool
	chaosHold           // how many gems the player has
)

// chaosReply answers a question: the entry that was drawn, what is left, or how many gems.
type chaosReply struct {
	entry int
	left  stockLeft
	gems  uint64
}

// chaosModel is a pool in each realm that answers one question at a time.
var chaosModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		parts := make([][]porcupine.Operation, len(chaosRealms))
		for _, op := range history {
			realm := op.Input.(chaosQuestion).realm
			parts[realm] = append(parts[realm], op)
		}
		return parts
	},
	Init: func() any { return chaosStock },
	Step: func(state, input, output any) (bool, any) {
		left, r := state.(stockLeft), output.(chaosReply)
		switch input.(chaosQuestion).kind {
		case chaosLook:
			return r.left == left, left
		case chaosHold:
			return r.gems == left.gems(), left
		}
		if r.entry == soldOut {
			return left == stockLeft{}, left
		}
		if left[r.entry] == 0 {
			return false, left
		}
		left[r.entry]--
		return true, left
	},
	Equal:             func(a, b any) bool { return a == b },
	DescribeOperation: func(input, output any) string { return fmt.Sprint(input, " → ", output) },
}

// TestChaosModel: the checker refuses what no pool can have answered.
func TestChaosModel(t *testing.T) {
	op := func(call, ret int64, kind chaosKind, r chaosReply) porcupine.Operation {
		return porcupine.Operation{Input: chaosQuestion{0, kind}, Call: call, Output: r, Return: ret}
	}
	first, after := chaosStock, chaosStock
	after[0]--
	drawn := op(1, 4, chaosDraw, chaosReply{entry: 0})
	other := porcupine.Operation{Input: chaosQuestion{1, chaosLook}, Call: 5, Output: chaosReply{left: first}, Return: 6}
	for name, tc := range map[string]struct {
		history []porcupine.Operation
		want    bool
	}{
		"a draw, seen before it is answered": {[]porcupine.Operation{drawn, op(2, 3, chaosLook, chaosReply{left: after})}, true},
		"a draw, seen by the player":         {[]porcupine.Operation{drawn, op(5, 6, chaosHold, chaosReply{gems: after.gems()})}, true},
		"a read of another realm":            {[]porcupine.Operation{drawn, other}, true},
		"an old read":                        {[]porcupine.Operation{drawn, op(5, 6, chaosLook, chaosReply{left: first})}, false},
		"a draw that the player lacks":       {[]porcupine.Operation{drawn, op(5, 6, chaosHold, chaosReply{})}, false},
		"a draw that was never answered":     {[]porcupine.Operation{op(1, 2, chaosLook, chaosReply{left: after})}, false},
		"sold out too early":                 {[]porcupine.Operation{op(1, 2, chaosDraw, chaosReply{entry: soldOut})}, false},
		"a read that goes back": {[]porcupine.Operation{drawn,
			op(1, 2, chaosHold, chaosReply{gems: after.gems()}), op(3, 4, chaosLook, chaosReply{left: first})}, false},
	} {
		if got := porcupine.CheckOperations(chaosModel, tc.history); got != tc.want {
			t.Errorf("%s: linearizable %v, want %v", name, got, tc.want)
		}
	}
}

// chaosBook is what clients asked and were told.
type chaosBook struct {
	clock atomic.Int64 // orders calls and returns; what real time orders, it orders too

	mu      sync.Mutex
	results map[string]*kujiv1.Result   // draws, by request id
	asked   map[string]chaosPlace       // where each was drawn
	ops     []porcupine.Operation       // of the current round
	newest  [len(chaosRealms)]time.Time // when the newest draw of each realm was sent that has been answered
	more    chan struct{}               // closed when another draw is answered
}

// chaosPlace is a round in a realm.
type chaosPlace struct{ realm, round int }

// drew writes down the answer of a draw.
func (b *chaosBook) drew(id string, at chaosPlace, r *kujiv1.Result, sent time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.results[id], b.asked[id] = r, at
	if sent.After(b.newest[at.realm]) {
		b.newest[at.realm] = sent
		close(b.more)
		b.more = make(chan struct{})
	}
}

// entryOf returns what a draw gave.
func entryOf(r *kujiv1.Result) (int, error) {
	switch {
	case r.GetStatus() == kujiv1.Status_STATUS_SOLD_OUT && len(r.GetOutcomes()) == 0:
		return soldOut, nil
	case r.GetStatus() == kujiv1.Status_STATUS_OK && len(r.GetOutcomes()) == 1:
		for i, e := range chaosEntries {
			if r.GetOutcomes()[0].GetEntry() == e {
				return i, nil
			}
		}
	}
	return 0, fmt.Errorf("a draw ended with %v", r)
}

// patient is how long a client waits for one answer before it asks another node: longer than a node
// lets a request wait for a leader.
const patient = 17 * time.Second

// nodesClient is a client that asks one node after the other until it has an answer.
type nodesClient struct {
	*client.Client                  // in use
	from           []*client.Client // one that begins with each node
}

// anyNode returns a client that begins with one of the nodes.
func (c *trio) anyNode(begin int) *nodesClient {
	c.t.Helper()
	var urls []string
	for _, name := range c.flags.Names() {
		urls = append(urls, "http://"+c.listen[name])
	}
	n := &nodesClient{}
	for i := range urls {
		cl, err := client.New(slices.Concat(urls[i:], urls[:i]), client.Options{Timeout: clusterPatience, Attempt: patient})
		if err != nil {
			c.t.Fatal(err)
		}
		n.from = append(n.from, cl)
	}
	n.begin(begin)
	return n
}

func (c *nodesClient) begin(at int) { c.Client = c.from[at%len(c.from)] }

// draw draws once, under an id.
func (c *nodesClient) draw(ctx context.Context, id string, at chaosPlace) (*kujiv1.Result, error) {
	resp, err := c.Draw(ctx, &kujiv1.DrawRequest{RequestId: id, Realm: chaosRealms[at.realm], Player: chaosPlayer(at.round), Pool: chaosPool(at.round)})
	return resp.GetResult(), err
}

func (c *nodesClient) look(ctx context.Context, at chaosPlace) (left stockLeft, err error) {
	resp, err := c.GetPool(ctx, &kujiv1.GetPoolRequest{Realm: chaosRealms[at.realm], Pool: chaosPool(at.round)})
	if err != nil {
		return left, err
	}
	for i, e := range resp.GetPool().GetEntries() {
		left[i] = e.GetLeft()
	}
	return left, nil
}

func (c *nodesClient) hold(ctx context.Context, at chaosPlace) (gems uint64, err error) {
	resp, err := c.GetPlayer(ctx, &kujiv1.GetPlayerRequest{Realm: chaosRealms[at.realm], Player: chaosPlayer(at.round)})
	if connect.CodeOf(err) == connect.CodeNotFound {
		return 0, nil
	}
	for _, s := range resp.GetPlayer().GetItems() {
		gems += s.GetQuantity()
	}
	return gems, err
}

// ask asks until there is an answer.
func (b *chaosBook) ask(ctx context.Context, c *nodesClient, id string, at chaosPlace, kind chaosKind) (r chaosReply, err error) {
	switch kind {
	case chaosLook:
		r.left, err = c.look(ctx, at)
	case chaosHold:
		r.gems, err = c.hold(ctx, at)
	default:
		sent := time.Now()
		var result *kujiv1.Result
		if result, err = c.draw(ctx, id, at); err == nil {
			b.drew(id, at, result, sent)
			r.entry, err = entryOf(result)
		}
	}
	return r, err
}

// drive is one client: it asks one question after the other until stop is closed.
func (b *chaosBook) drive(ctx context.Context, c *nodesClient, seed uint64, round, number int, stop <-chan struct{}) error {
	r := rand.New(rand.NewPCG(seed, uint64(round*chaosClients+number)))
	pace := time.NewTicker(chaosPace)
	defer pace.Stop()
	for i := 0; ; i++ {
		select {
		case <-stop:
			return nil
		case <-pace.C:
		}
		if r.IntN(8) == 0 {
			c.begin(int(r.Uint32()))
		}
		id, kind, at := fmt.Sprintf("%d-%d-%d", round, number, i), chaosKind(max(0, r.IntN(4)-1)), chaosPlace{r.IntN(len(chaosRealms)), round}
		op := porcupine.Operation{ClientId: number, Input: chaosQuestion{at.realm, kind}, Call: b.clock.Add(1)}
		reply, err := b.ask(ctx, c, id, at, kind)
		if err != nil {
			return fmt.Errorf("round %d, client %d, question %d: %w", round, number, i, err)
		}
		op.Output, op.Return = reply, b.clock.Add(1)
		b.mu.Lock()
		b.ops = append(b.ops, op)
		b.mu.Unlock()
	}
}

// linearizable checks the history of a round, and forgets it.
func (b *chaosBook) linearizable(t *testing.T) (operations int) {
	t.Helper()
	b.mu.Lock()
	history := b.ops
	b.ops = nil
	b.mu.Unlock()
	switch porcupine.CheckOperationsTimeout(chaosModel, history, clusterPatience) {
	case porcupine.Illegal:
		t.Error("the history is not linearizable")
	case porcupine.Unknown:
		t.Error("the history could not be checked in time")
	}
	return len(history)
}

// auditChaos asks every node for every answer again, and compares pools and players with what clients were told.
func (c *trio) auditChaos(ctx context.Context, b *chaosBook, rounds int) {
	c.t.Helper()
	left := map[chaosPlace]stockLeft{}
	for round := range rounds {
		for realm := range chaosRealms {
			left[chaosPlace{realm, round}] = chaosStock
		}
	}
	ids := make([]string, 0, len(b.results))
	for id, r := range b.results {
		ids = append(ids, id)
		if e, err := entryOf(r); err == nil && e != soldOut {
			now := left[b.asked[id]]
			now[e]--
			left[b.asked[id]] = now
		}
	}
	for at, name := range c.flags.Names() {
		var asking sync.WaitGroup
		for part := range chaosClients {
			asking.Go(func() {
				cl := c.anyNode(at)
				for i := part; i < len(ids); i += chaosClients {
					want := b.results[ids[i]]
					got, err := cl.draw(ctx, ids[i], b.asked[ids[i]])
					if err != nil || !got.GetReplayed() || answerOf(got) != answerOf(want) {
						c.t.Errorf("draw %s at node %s: answered with %v, and now %v, %v", ids[i], name, want, got, err)
						return
					}
				}
			})
		}
		asking.Wait()
		cl := c.anyNode(at)
		for place, want := range left {
			got, err := cl.look(ctx, place)
			gems, err2 := cl.hold(ctx, place)
			if err := cmp.Or(err, err2); err != nil || got != want || gems != want.gems() {
				c.t.Errorf("node %s, realm and round %v: %v left and %d gems held, %v; want %v and %d", name, place, got, gems, err, want, want.gems())
			}
		}
	}
}

// answerOf is what must be the same in every answer to a request id.
func answerOf(r *kujiv1.Result) string {
	entry, err := entryOf(r)
	return fmt.Sprint(r.GetReceipt().GetPosition(), r.GetStatus(), entry, err)
}
