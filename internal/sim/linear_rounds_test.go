package sim_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// Histories of rounds have two tables, each with three players of its own, who stake boxes.
const roundHistory = `
kuji: 1
items: {box: {}}
rounds:
  t0: {stake: {item: box, count: {min: 1, max: 3}}, one: true, winner: {gets: everything}}
  t1: {stake: {item: box, count: {min: 1, max: 3}}, one: true, winner: {gets: everything}}
`

const (
	tablePlayers = 3
	tableClients = 8
	tableOps     = 100 // of each client
)

// move is what a client does at a table.
type move struct {
	what   string // grant, open, join, settle; or a read: holds, table
	table  int
	player int // at the table
	boxes  int
}

// seen is what a client was told.
type seen struct {
	status     kuji.Status
	entrants   int    // of the round
	winner     int    // of a settlement; -1: everything went back
	known      bool   // whether the player was ever seen
	free, held int    // boxes of the player
	state      string // of the round; empty: none is open
}

func (m move) name() string { return fmt.Sprintf("p%d-%d", m.table, m.player) }

func (m move) request(id string) kuji.Request {
	boxes, round := []kuji.Stack{{Item: "box", Quantity: uint64(m.boxes)}}, fmt.Sprint("t", m.table)
	switch m.what {
	case "grant":
		return kuji.Grant{ID: id, Player: m.name(), Items: boxes}
	case "open":
		return kuji.OpenRound{ID: id, Player: m.name(), Round: round, Stake: boxes}
	case "join":
		return kuji.Join{ID: id, Player: m.name(), Round: round, Stake: boxes}
	}
	return kuji.Settle{ID: id, Round: round}
}

// play makes a move, and returns what the engine tells.
func (s *embedded) play(ctx context.Context, id string, m move) (out seen, err error) {
	realm, life, err := s.now()
	if err != nil {
		return out, err
	}
	switch m.what {
	case "holds":
		var v kuji.PlayerView
		if v, err = realm.Player(ctx, m.name()); kuji.CodeOf(err) == kuji.CodeNotFound {
			return out, nil
		}
		out.known = true
		for _, it := range v.Items {
			out.free += int(it.Quantity)
		}
		for _, it := range v.Held {
			out.held += int(it.Quantity)
		}
	case "table":
		var all []kuji.RoundView
		all, err = kuji.RoundsOf(realm).Open(ctx)
		for _, v := range all {
			if v.Name == fmt.Sprint("t", m.table) {
				out.state, out.entrants = v.State, int(v.Entrants)
			}
		}
	default:
		var res kuji.Result
		if res, err = realm.Do(ctx, m.request(id)); err == nil {
			out = m.told(res)
		}
	}
	if err != nil {
		return seen{}, s.failed(life, err)
	}
	return out, nil
}

func (m move) told(res kuji.Result) (out seen) {
	out.status, out.winner = res.Status, -1
	if v := res.Round(); v != nil {
		out.state, out.entrants = v.State, int(v.Entrants)
	}
	for _, c := range res.Claims() {
		for p := range tablePlayers {
			if c.Player == (move{table: m.table, player: p}).name() {
				out.winner = p
			}
		}
	}
	return out
}

// table is what the round and the players of a table have.
type table struct {
	open  bool
	stake [tablePlayers]int
	free  [tablePlayers]int
	known [tablePlayers]bool
}

func (t table) entrants() (n, boxes int) {
	for _, b := range t.stake {
		if boxes += b; b > 0 {
			n++
		}
	}
	return n, boxes
}

// answers reports whether an answer is possible, and returns the state after it.
func (t table) answers(m move, out seen) (bool, table) {
	n, boxes := t.entrants()
	switch m.what {
	case "holds":
		return out == seen{known: t.known[m.player], free: t.free[m.player], held: t.stake[m.player]}, t
	case "table":
		if !t.open {
			return out == seen{}, t
		}
		return out == seen{state: "open", entrants: n}, t
	}
	if status := t.decide(m); status != kuji.OK || out.status != kuji.OK {
		return out.status == status, t
	}
	switch m.what {
	case "grant":
		t.free[m.player] += m.boxes
		t.known[m.player] = true
		return true, t
	case "open", "join":
		t.open, t.known[m.player] = true, true
		t.free[m.player] -= m.boxes
		t.stake[m.player] = m.boxes
		return out == seen{state: "open", entrants: n + 1, winner: -1}, t
	}
	want := seen{state: "returned", entrants: n, winner: -1}
	if n > 1 {
		if out.winner < 0 || t.stake[out.winner] == 0 {
			return false, t
		}
		t.free[out.winner] += boxes
		want.state, want.winner = "settled", out.winner
	} else {
		for p, b := range t.stake {
			t.free[p] += b
		}
	}
	t.open, t.stake = false, [tablePlayers]int{}
	return out == want, t
}

// decide returns how a request ends.
func (t table) decide(m move) kuji.Status {
	switch {
	case m.what == "grant":
		return kuji.OK
	case m.what == "open" && t.open:
		return kuji.AlreadyOpen
	case m.what != "open" && !t.open:
		return kuji.UnknownRound
	case m.what == "settle":
		return kuji.OK
	case t.stake[m.player] > 0:
		return kuji.AlreadyJoined
	case t.free[m.player] < m.boxes:
		return kuji.InsufficientItems
	}
	return kuji.OK
}

func tableModel() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			parts := make([][]porcupine.Operation, 2)
			for _, op := range history {
				at := op.Input.(move).table
				parts[at] = append(parts[at], op)
			}
			return parts
		},
		Init: func() any { return table{} },
		Step: func(state, input, output any) (bool, any) {
			return state.(table).answers(input.(move), output.(seen))
		},
		Equal: func(a, b any) bool { return a == b },
	}
}

func someMove(r *rand.Rand) move {
	whats := []string{"grant", "open", "open", "join", "join", "join", "join", "settle", "holds", "holds", "holds", "table"}
	return move{whats[r.IntN(len(whats))], r.IntN(2), r.IntN(tablePlayers), 1 + r.IntN(3)}
}

// TestLinearizableRounds: to concurrent clients, rounds and stakes look as if requests were carried out one at a time,
// through power cuts too.
func TestLinearizableRounds(t *testing.T) {
	lives, ended, settled := 0, map[kuji.Status]int{}, 0
	for n := range *histories {
		s := newEmbedded(t, roundHistory, uint64(n), n%6)
		history := playHistory(t, s, uint64(n))
		for _, op := range history {
			out := op.Output.(seen)
			if ended[out.status]++; out.state == "settled" {
				settled++
			}
		}
		if s.err != nil || len(history) != tableClients*tableOps {
			t.Fatalf("history %d of %d moves: %v", n, len(history), s.err)
		}
		if got := porcupine.CheckOperationsTimeout(tableModel(), history, 10*time.Second); got != porcupine.Ok {
			t.Fatalf("history %d is %v", n, got)
		}
		if err := s.engine.Close(); err != nil && !errors.Is(err, vfs.ErrCrashed) {
			t.Errorf("history %d: %v", n, err)
		}
		lives += s.life
	}
	t.Logf("%d histories of %d moves, %d crashes, %d rounds with a winner: all linearizable; they ended %v", *histories, tableClients*tableOps, lives-*histories, settled, ended)
	for _, status := range []kuji.Status{kuji.OK, kuji.AlreadyOpen, kuji.AlreadyJoined, kuji.UnknownRound, kuji.InsufficientItems} {
		if ended[status] == 0 || settled == 0 {
			t.Errorf("no request ended %v, %d rounds were settled: the histories show too little", status, settled)
		}
	}
}

// playHistory is takeHistory at tables.
func playHistory(t *testing.T, s *embedded, seed uint64) (history []porcupine.Operation) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var clock atomic.Int64 // orders calls and returns as real time does
	all := make([][]porcupine.Operation, tableClients)
	var running sync.WaitGroup
	for c := range tableClients {
		running.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(c)))
			for i := range tableOps {
				m, id := someMove(r), fmt.Sprintf("%d-%d", c, i)
				op := porcupine.Operation{ClientId: c, Input: m, Call: clock.Add(1)}
				for {
					out, err := s.play(ctx, id, m)
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
	for _, ops := range all {
		history = append(history, ops...)
	}
	return history
}

// TestTableCheckerSeesFaults: the checker of rounds refuses histories that are impossible.
func TestTableCheckerSeesFaults(t *testing.T) {
	grant := func(p, n int) move { return move{what: "grant", player: p, boxes: n} }
	open, join, settle := move{what: "open", boxes: 2}, move{what: "join", player: 1, boxes: 3}, move{what: "settle"}
	ann, bob := move{what: "holds"}, move{what: "holds", player: 1}
	none := seen{winner: -1}
	opened, joined := seen{state: "open", entrants: 1, winner: -1}, seen{state: "open", entrants: 2, winner: -1}
	won := func(p int) seen { return seen{state: "settled", entrants: 2, winner: p} }
	type step struct {
		move
		seen
	}
	begun := []step{{grant(0, 2), none}, {grant(1, 3), none}, {open, opened}, {join, joined}}
	for name, c := range map[string]struct {
		then []step
		want bool
	}{
		"a winner":                {[]step{{settle, won(1)}, {ann, seen{known: true}}, {bob, seen{known: true, free: 5}}}, true},
		"a stake that is lost":    {[]step{{settle, won(1)}, {bob, seen{known: true, free: 3}}}, false},
		"a stake that comes back": {[]step{{settle, won(1)}, {ann, seen{known: true, free: 2}}}, false},
		"who did not join":        {[]step{{settle, won(2)}}, false},
		"a second settlement":     {[]step{{settle, won(1)}, {settle, won(0)}}, false},
		"a second join":           {[]step{{join, joined}}, false},
		"a refusal":               {[]step{{join, seen{status: kuji.AlreadyJoined, winner: -1}}, {bob, seen{known: true, held: 3}}}, true},
		"spent twice":             {[]step{{bob, seen{known: true, free: 3, held: 3}}}, false},
	} {
		var history []porcupine.Operation
		for i, s := range append(begun[:len(begun):len(begun)], c.then...) {
			history = append(history, porcupine.Operation{Input: s.move, Output: s.seen, Call: int64(2 * i), Return: int64(2*i + 1)})
		}
		if got := porcupine.CheckOperations(tableModel(), history); got != c.want {
			t.Errorf("%s: linearizable %v, want %v", name, got, c.want)
		}
	}
}
