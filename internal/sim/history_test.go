package sim_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/kuji-dev/kuji"
)

var (
	histories = flag.Int("histories", 40, "how many histories TestLinearizable takes of an engine within the test, through power cuts")
	served    = flag.Int("served", 3, "how many histories TestLinearizableServer takes of a server process, through SIGKILLs")
)

// A history has 1 000 operations in two corners. Each corner has three players and two pools. No
// request reaches from one into the other, so each can be checked alone.
const (
	historyClients = 8
	historyOps     = 125 // of each client
	historyPools   = 2 * cornerPools

	cornerPlayers = 3
	cornerPools   = 2
	mostActs      = 3
)

const historyCatalog = `
kuji: 1
items: {gem: {}, gold: {kind: currency}}
pools:
  p0: {mode: raffle, entries: [{id: a, stock: 20, reward: {items: {gem: 1}}}, {id: b, stock: 60}, {id: c, stock: 100}]}
  p1: {entries: [{id: a, weight: 1, stock: 9}, {id: b, weight: 9, stock: 90, reward: {items: {gem: 2}}}, {id: c, weight: 1, stock: 1}]}
  p2: {mode: raffle, entries: [{id: a, stock: 3}, {id: b, stock: 4}, {id: c, stock: 5, reward: {items: {gold: 3}}}]}
  p3: {entries: [{id: a, weight: 1, stock: 1000000}, {id: b, weight: 1, stock: 5}, {id: c, weight: 0.001, stock: 2}]}
`

// stock is how many are left of the entries a, b and c, or were drawn of them.
type stock [3]int

var firstStock = [historyPools]stock{{20, 60, 100}, {9, 90, 1}, {3, 4, 5}, {1_000_000, 5, 2}}

// items is a number of gems and of gold.
type items [2]int

var itemNames = [...]string{"gem", "gold"}

// rewards is what the entries of each pool give.
var rewards = [historyPools][3]items{0: {{1, 0}}, 1: {1: {2, 0}}, 2: {2: {0, 3}}}

// playerNames are the players of the first corner, then those of the second.
var playerNames = [...]string{"ann", "ben", "cat", "dan", "eva", "fay"}

// question is what a client asks: a request of one act, an atomic group of several, or, without acts, a
// read of a pool or a player.
type question struct {
	acts         []act
	holds        bool
	pool, player int
}

// act is a draw or, with a count of 0, a movement of items.
type act struct {
	pool, count int
	from, to    int // players; nobody: a grant, a consumption. A draw is from's
	items       items
}

const nobody = -1

func drawing(pool, count int) question {
	return question{acts: []act{{pool: pool, count: count, to: nobody}}}
}
func looking(pool int) question   { return question{pool: pool} }
func holding(player int) question { return question{holds: true, player: player} }

// reply is what a client was told.
type reply struct {
	status   kuji.Status
	failed   int // of a group: the member that the status is about
	replayed bool
	drawn    [mostActs]stock // by the acts
	left     stock
	known    bool // whether the player was ever seen
	holds    items
}

// errDead is wrapped by errors after which it is useless to ask again.
var errDead = errors.New("the service does not come back")

// service is a system whose histories are checked. An error means that the outcome is not known. Then
// the client asks again under the same id.
type service interface {
	ask(ctx context.Context, id string, q question) (reply, error)
}

// corner returns the corner that a question is about.
func (q question) corner() int {
	switch {
	case len(q.acts) > 0:
		return max(q.acts[0].from, q.acts[0].to) / cornerPlayers
	case q.holds:
		return q.player / cornerPlayers
	}
	return q.pool / cornerPools
}

// someQuestion makes up a question.
func someQuestion(r *rand.Rand) question {
	corner := r.IntN(2)
	switch k := r.IntN(20); {
	case k < 3:
		return looking(corner*cornerPools + r.IntN(cornerPools))
	case k < 9:
		return holding(somePlayer(r, corner))
	case k < 13:
		return someRequest(r, corner, 2+r.IntN(mostActs-1))
	}
	return someRequest(r, corner, 1)
}

func somePlayer(r *rand.Rand, corner int) int { return corner*cornerPlayers + r.IntN(cornerPlayers) }

// someRequest makes up a request of a number of acts in a corner.
func someRequest(r *rand.Rand, corner, acts int) question {
	var q question
	for range acts {
		a := act{from: somePlayer(r, corner), to: nobody}
		k := r.IntN(8)
		if k < 3 {
			a.pool, a.count = corner*cornerPools+r.IntN(cornerPools), 1+r.IntN(3)
			q.acts = append(q.acts, a)
			continue
		}
		for a.items == (items{}) {
			a.items = items{r.IntN(3), r.IntN(4)}
		}
		switch {
		case k < 4:
			a.from, a.to = nobody, a.from
		case k < 6:
			for a.to = a.from; a.to == a.from; {
				a.to = somePlayer(r, corner)
			}
		}
		q.acts = append(q.acts, a)
	}
	return q
}

// cornerState is what the pools and players of a corner have.
type cornerState struct {
	left  [cornerPools]stock
	known [cornerPlayers]bool
	holds [cornerPlayers]items
}

func firstCorner(corner int) cornerState {
	return cornerState{left: [cornerPools]stock(firstStock[corner*cornerPools:])}
}

// answers reports whether a reply to a question is possible, and returns the state after it.
func (s cornerState) answers(q question, r reply) (bool, cornerState) {
	switch player := q.player % cornerPlayers; {
	case len(q.acts) > 0:
		status, failed := s.decide(q.acts)
		if r.status != status || r.failed != failed || status != kuji.OK {
			return r.status == status && r.failed == failed && r.drawn == [mostActs]stock{}, s
		}
		return s.carryOut(q, r)
	case q.holds:
		return r.known == s.known[player] && r.holds == s.holds[player], s
	}
	return r.left == s.left[q.pool%cornerPools], s
}

// decide returns how a request ends, and which of its acts fails. A request cannot spend what its own
// draws give.
func (s cornerState) decide(acts []act) (status kuji.Status, failed int) {
	var drawn [cornerPools]int
	for i, a := range acts {
		if p := a.pool % cornerPools; a.count > 0 {
			drawn[p] += a.count
			if left := s.left[p]; left[0]+left[1]+left[2] < drawn[p] {
				return kuji.SoldOut, i
			}
			continue
		}
		for item, n := range a.items {
			if a.from != nobody {
				if s.holds[a.from%cornerPlayers][item] -= n; s.holds[a.from%cornerPlayers][item] < 0 {
					return kuji.InsufficientItems, i
				}
			}
			if a.to != nobody {
				s.holds[a.to%cornerPlayers][item] += n
			}
		}
	}
	return kuji.OK, 0
}

// carryOut does what was decided. The reply says what was drawn.
func (s cornerState) carryOut(q question, r reply) (bool, cornerState) {
	for i, a := range q.acts {
		for _, player := range []int{a.from, a.to} {
			if player != nobody {
				s.known[player%cornerPlayers] = true
			}
		}
		if d := r.drawn[i]; d[0]+d[1]+d[2] != a.count {
			return false, s
		}
	}
	ok := true
	q.effects(r, func(pool, entry, n int) {
		left := &s.left[pool%cornerPools][entry]
		*left -= n
		ok = ok && *left >= 0
	}, func(player, item, n int) {
		s.holds[player%cornerPlayers][item] += n
	})
	return ok, s
}

// effects returns what a request changes when it succeeds.
func (q question) effects(r reply, drawn func(pool, entry, n int), moved func(player, item, n int)) {
	for i, a := range q.acts {
		for item, n := range a.items {
			if a.from != nobody {
				moved(a.from, item, -n)
			}
			if a.to != nobody {
				moved(a.to, item, n)
			}
		}
		if a.count == 0 {
			continue
		}
		for e, n := range r.drawn[i] {
			drawn(a.pool, e, n)
			for item, each := range rewards[a.pool][e] {
				moved(a.from, item, n*each)
			}
		}
	}
}

// historyModel says what the pools and players of a corner can answer, one question at a time.
func historyModel() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			parts := make([][]porcupine.Operation, 2)
			for _, op := range history {
				c := op.Input.(question).corner()
				parts[c] = append(parts[c], op)
			}
			return parts
		},
		// The first question names the corner, so it tells the state before it.
		Init: func() any { return nil },
		Step: func(state, input, output any) (bool, any) {
			q := input.(question)
			if state == nil {
				state = firstCorner(q.corner())
			}
			return state.(cornerState).answers(q, output.(reply))
		},
		Equal: func(a, b any) bool { return a == b },
		DescribeOperation: func(input, output any) string {
			return fmt.Sprintf("%+v → %+v", input, output)
		},
	}
}

// takeHistory lets clients use a service and returns what they saw.
func takeHistory(t *testing.T, s service, seed uint64) []porcupine.Operation {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var clock atomic.Int64 // orders calls and returns as real time does
	all := make([][]porcupine.Operation, historyClients)
	var running sync.WaitGroup
	for c := range historyClients {
		running.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(c)))
			for i := range historyOps {
				q, id := someQuestion(r), fmt.Sprintf("%d-%d", c, i)
				op := porcupine.Operation{ClientId: c, Input: q, Call: clock.Add(1)}
				for {
					out, err := s.ask(ctx, id, q)
					if err == nil {
						op.Output = out
						break
					}
					if ctx.Err() != nil || errors.Is(err, errDead) {
						t.Errorf("client %d got no answer to %s: %v", c, id, err)
						return
					}
					runtime.Gosched()
				}
				op.Return = clock.Add(1)
				all[c] = append(all[c], op)
			}
		})
	}
	running.Wait()
	var history []porcupine.Operation
	for _, ops := range all {
		history = append(history, ops...)
	}
	return history
}

// checks counts what the checker found, and how the requests of all histories ended.
type checks struct {
	sound, unknown int
	ended          [2]map[kuji.Status]int // single requests, groups
}

// check fails if no order of the operations explains what clients saw. If it finds none in time, report
// fails at the end.
func (c *checks) check(t *testing.T, history []porcupine.Operation) {
	t.Helper()
	if len(history) != historyClients*historyOps {
		t.Fatalf("a history of %d operations, want %d", len(history), historyClients*historyOps)
	}
	if c.ended[0] == nil {
		c.ended = [2]map[kuji.Status]int{{}, {}}
	}
	for _, op := range history {
		if n := len(op.Input.(question).acts); n > 0 {
			c.ended[min(n-1, 1)][op.Output.(reply).status]++
		}
	}
	switch porcupine.CheckOperationsTimeout(historyModel(), history, 10*time.Second) {
	case porcupine.Ok:
		c.sound++
	case porcupine.Illegal:
		t.Error("the history is not linearizable")
	case porcupine.Unknown:
		c.unknown++
	}
}

// report logs the counts. It fails if a history was not decided.
func (c *checks) report(t *testing.T, lives int) {
	t.Helper()
	n := c.sound + c.unknown
	t.Logf("%d histories of %d operations, %d crashes: %d linearizable, %d not decided in time",
		n, historyClients*historyOps, lives-n, c.sound, c.unknown)
	t.Logf("single requests: %v; groups: %v", c.ended[0], c.ended[1])
	for _, ended := range c.ended {
		if ended[kuji.OK] == 0 || ended[kuji.SoldOut] == 0 || ended[kuji.InsufficientItems] == 0 {
			t.Errorf("requests ended %v: the histories show too little", ended)
		}
	}
	if c.unknown > 0 {
		t.Errorf("%d histories were not decided in time: take shorter ones or smaller pools", c.unknown)
	}
}

// TestCheckerSeesFaults: the checker refuses histories that are impossible.
func TestCheckerSeesFaults(t *testing.T) {
	op := func(call, ret int64, q question, r reply) porcupine.Operation {
		return porcupine.Operation{Input: q, Call: call, Output: r, Return: ret}
	}
	drawn := func(s stock) reply { return reply{drawn: [mostActs]stock{s}} }
	left := func(s stock) reply { return reply{left: s} }
	holds := func(gems, gold int) reply { return reply{known: true, holds: items{gems, gold}} }
	const dan, eva = 3, 4
	ofDan, ofEva := holding(dan), holding(eva)
	draw := func(count int) act { return act{pool: 2, count: count, from: dan, to: nobody} }
	one := question{acts: []act{draw(1)}}
	grant := question{acts: []act{{from: nobody, to: dan, items: items{2, 2}}}}
	transfer := question{acts: []act{{from: dan, to: eva, items: items{2, 1}}}}
	group := question{acts: []act{draw(1), transfer.acts[0]}}
	full := firstStock[2]
	for name, tc := range map[string]struct {
		history []porcupine.Operation
		want    bool
	}{
		"sound": {[]porcupine.Operation{
			op(1, 4, one, drawn(stock{1})), op(2, 3, looking(2), left(full))}, true},
		"beyond stock":       {[]porcupine.Operation{op(1, 2, question{acts: []act{draw(4)}}, drawn(stock{4}))}, false},
		"sold out too early": {[]porcupine.Operation{op(1, 2, one, reply{status: kuji.SoldOut})}, false},
		"a draw that is lost": {[]porcupine.Operation{
			op(1, 2, one, drawn(stock{1})), op(3, 4, looking(2), left(full))}, false},
		"a draw seen before it was asked for": {[]porcupine.Operation{
			op(1, 2, looking(2), left(stock{2, 4, 5})), op(3, 4, one, drawn(stock{1}))}, false},
		"fewer than asked for": {[]porcupine.Operation{op(1, 2, question{acts: []act{draw(2)}}, drawn(stock{1}))}, false},
		"a reward in hand": {[]porcupine.Operation{
			op(1, 2, one, drawn(stock{0, 0, 1})), op(3, 4, ofDan, holds(0, 3))}, true},
		"a reward that never came": {[]porcupine.Operation{
			op(1, 2, one, drawn(stock{0, 0, 1})), op(3, 4, ofDan, holds(0, 0))}, false},
		"a transfer": {[]porcupine.Operation{
			op(1, 2, grant, reply{}), op(3, 8, transfer, reply{}), op(4, 5, ofDan, holds(2, 2)), op(6, 7, ofEva, holds(2, 1))}, true},
		"a transfer that arrives before it leaves": {[]porcupine.Operation{
			op(1, 2, grant, reply{}), op(3, 8, transfer, reply{}), op(4, 5, ofEva, holds(2, 1)), op(6, 7, ofDan, holds(2, 2))}, false},
		"half a transfer": {[]porcupine.Operation{
			op(1, 2, grant, reply{}), op(3, 6, transfer, reply{}), op(4, 5, ofDan, holds(0, 2))}, false},
		"what nobody has": {[]porcupine.Operation{op(1, 2, transfer, reply{})}, false},
		"a group that fails": {[]porcupine.Operation{
			op(1, 2, group, reply{status: kuji.InsufficientItems, failed: 1}), op(3, 4, looking(2), left(full)), op(5, 6, ofDan, reply{})}, true},
		"a group that is half done": {[]porcupine.Operation{
			op(1, 2, group, reply{status: kuji.InsufficientItems, failed: 1}), op(3, 4, looking(2), left(stock{2, 4, 5}))}, false},
		"a group that spends what it draws": {[]porcupine.Operation{
			op(1, 2, question{acts: []act{draw(1), {from: dan, to: nobody, items: items{0, 3}}}}, drawn(stock{0, 0, 1}))}, false},
		"a player whom a failure made": {[]porcupine.Operation{
			op(1, 2, transfer, reply{status: kuji.InsufficientItems}), op(3, 4, ofDan, holds(0, 0))}, false},
	} {
		if got := porcupine.CheckOperations(historyModel(), tc.history); got != tc.want {
			t.Errorf("%s: linearizable %v, want %v", name, got, tc.want)
		}
	}
}
