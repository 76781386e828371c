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
)

var (
	histories = flag.Int("histories", 40, "how many histories TestLinearizable takes of an engine within the test, through power cuts")
	served    = flag.Int("served", 3, "how many histories TestLinearizableServer takes of a server process, through SIGKILLs")
)

// The shape of a history: 1 000 operations on 4 pools.
const (
	historyClients = 8
	historyOps     = 125 // of each client
	historyPools   = 4
)

const historyCatalog = `
kuji: 1
items: {gem: {}}
pools:
  p0: {mode: raffle, entries: [{id: a, stock: 20, reward: {items: {gem: 1}}}, {id: b, stock: 60}, {id: c, stock: 100}]}
  p1: {entries: [{id: a, weight: 1, stock: 9}, {id: b, weight: 9, stock: 90, reward: {items: {gem: 2}}}, {id: c, weight: 1, stock: 1}]}
  p2: {mode: raffle, entries: [{id: a, stock: 3}, {id: b, stock: 4}, {id: c, stock: 5}]}
  p3: {entries: [{id: a, weight: 1, stock: 1000000}, {id: b, weight: 1, stock: 5}, {id: c, weight: 0.001, stock: 2}]}
`

// stock is what is left of the entries a, b and c, or what was drawn of them.
type stock [3]int

var firstStock = [historyPools]stock{{20, 60, 100}, {9, 90, 1}, {3, 4, 5}, {1_000_000, 5, 2}}

// question is what a client asks of a pool: to draw, or what is left.
type question struct {
	pool  int
	count int // 0: what is left
}

// reply is what it was told.
type reply struct {
	soldOut  bool
	replayed bool
	stock    stock // drawn, or left
}

// errDead is wrapped by errors after which asking again is of no use.
var errDead = errors.New("the service does not come back")

// service is what histories are taken of. An error means that the outcome is
// not known: the client asks again under the same id.
type service interface {
	draw(ctx context.Context, id, player string, q question) (reply, error)
	left(ctx context.Context, q question) (reply, error)
}

// poolModel says what a pool may answer, one question at a time.
func poolModel() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			parts := make([][]porcupine.Operation, historyPools)
			for _, op := range history {
				p := op.Input.(question).pool
				parts[p] = append(parts[p], op)
			}
			return parts
		},
		// The pool is in the question; the state before the first one is told by it.
		Init: func() any { return stock{-1} },
		Step: func(state, input, output any) (bool, any) {
			left, q, r := state.(stock), input.(question), output.(reply)
			if left[0] < 0 {
				left = firstStock[q.pool]
			}
			switch {
			case q.count == 0:
				return r.stock == left, left
			case r.soldOut:
				return left[0]+left[1]+left[2] < q.count, left
			}
			drawn := 0
			for i, n := range r.stock {
				drawn += n
				if left[i] -= n; left[i] < 0 {
					return false, state
				}
			}
			return drawn == q.count, left
		},
		Equal: func(a, b any) bool { return a == b },
		DescribeOperation: func(input, output any) string {
			return fmt.Sprintf("%+v → %+v", input, output)
		},
	}
}

// takeHistory lets clients loose on a service and returns what they saw.
func takeHistory(t *testing.T, s service, seed uint64) []porcupine.Operation {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var clock atomic.Int64 // orders calls and returns; what real time orders, it orders too
	all := make([][]porcupine.Operation, historyClients)
	var running sync.WaitGroup
	for c := range historyClients {
		running.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(c)))
			for i := range historyOps {
				q := question{pool: r.IntN(historyPools), count: max(0, r.IntN(5)-1)}
				id, player := fmt.Sprintf("%d-%d", c, i), fmt.Sprint("p", r.IntN(3))
				op := porcupine.Operation{ClientId: c, Input: q, Call: clock.Add(1)}
				for {
					var out reply
					var err error
					if q.count == 0 {
						out, err = s.left(ctx, q)
					} else {
						out, err = s.draw(ctx, id, player, q)
					}
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

// checkHistory fails when no order of the operations explains what clients saw,
// and when none is found in time.
func checkHistory(t *testing.T, history []porcupine.Operation) {
	t.Helper()
	if len(history) != historyClients*historyOps {
		t.Fatalf("a history of %d operations, want %d", len(history), historyClients*historyOps)
	}
	switch porcupine.CheckOperationsTimeout(poolModel(), history, time.Minute) {
	case porcupine.Ok:
	case porcupine.Illegal:
		t.Error("the history is not linearizable")
	case porcupine.Unknown:
		t.Error("the checker found no answer in time: take shorter histories or smaller pools")
	}
}

// TestCheckerSeesFaults: the checker itself refuses histories that no pool can
// have given.
func TestCheckerSeesFaults(t *testing.T) {
	op := func(call, ret int64, q question, r reply) porcupine.Operation {
		return porcupine.Operation{Input: q, Call: call, Output: r, Return: ret}
	}
	one := stock{1, 0, 0}
	full := firstStock[2]
	for name, tc := range map[string]struct {
		history []porcupine.Operation
		want    bool
	}{
		"sound": {[]porcupine.Operation{
			op(1, 4, question{2, 1}, reply{stock: one}), op(2, 3, question{2, 0}, reply{stock: full})}, true},
		"beyond stock":       {[]porcupine.Operation{op(1, 2, question{2, 4}, reply{stock: stock{4, 0, 0}})}, false},
		"sold out too early": {[]porcupine.Operation{op(1, 2, question{2, 3}, reply{soldOut: true})}, false},
		"a draw that is lost": {[]porcupine.Operation{
			op(1, 2, question{2, 1}, reply{stock: one}), op(3, 4, question{2, 0}, reply{stock: full})}, false},
		"a draw seen before it was asked for": {[]porcupine.Operation{
			op(1, 2, question{2, 0}, reply{stock: stock{2, 4, 5}}), op(3, 4, question{2, 1}, reply{stock: one})}, false},
		"fewer than asked for": {[]porcupine.Operation{op(1, 2, question{2, 2}, reply{stock: one})}, false},
	} {
		if got := porcupine.CheckOperations(poolModel(), tc.history); got != tc.want {
			t.Errorf("%s: linearizable %v, want %v", name, got, tc.want)
		}
	}
}
