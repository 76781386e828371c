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

// Histories of holds have ten counters of a shop, one after the other and two at a time. Each has a pool of one to three
// prizes and three players of its own. No request reaches from one to another, so each can be checked alone.
const (
	heldClients = 8
	heldOps     = 100 // of each client
	heldPhase   = 20  // of them, at the same two counters
	heldPlayers = 3
	heldSlots   = heldClients * heldPhase / 2 // the request ids at a counter
)

func heldStock(at int) int8 { return int8(1 + at%3) }

func heldCatalog() string {
	text := "{kuji: 1, items: {coin: {kind: currency}, prize: {}}, pools: {"
	for at := range heldOps / heldPhase * 2 {
		text += fmt.Sprintf("s%d: {price: {coin: 1}, entries: [{id: prize, weight: 1, stock: %d, reward: {items: {prize: 1}}}]}, ", at, heldStock(at))
	}
	return text + "}}"
}

// deal is what a client does at a counter.
type deal struct {
	what   string // grant, draw, hold, lend, pair, confirm, cancel, reverse; or a read: has, left, state
	at     int    // the counter
	slot   int    // that of the request id
	of     int    // the slot of the request that it is about
	player int
	to     int // of a lend, and of a pair
	n      int
	refund bool
	prize  bool // what a lend is of; else coins
}

// dealt is what a client was told.
type dealt struct {
	status kuji.Status
	state  string // of a hold
	drawn  int    // outcomes that it shows
	known  bool   // whether the player was ever seen
	has    purse
	left   int8
}

// purse is what a player can spend, and what is held.
type purse struct{ coins, coinsHeld, prizes, prizesHeld int8 }

// slotID returns the request id of a slot.
func (d deal) slotID(slot int) string { return fmt.Sprintf("%d-%d", d.at, slot) }

func (d deal) name(player int) string { return fmt.Sprintf("p%d-%d", d.at, player) }

func (d deal) request() kuji.Request {
	id, coins, pool := d.slotID(d.slot), []kuji.Stack{{Item: "coin", Quantity: uint64(d.n)}}, fmt.Sprint("s", d.at)
	held := kuji.Holding{For: kuji.MaxHold, Refund: d.refund}
	switch d.what {
	case "grant":
		return kuji.Grant{ID: id, Player: d.name(d.player), Items: coins}
	case "draw":
		return kuji.Draw{ID: id, Player: d.name(d.player), Pool: pool, Count: d.n}
	case "hold":
		return kuji.Draw{ID: id, Player: d.name(d.player), Pool: pool, Count: d.n, Hold: held}
	case "lend":
		if d.prize {
			coins[0].Item = "prize"
		}
		return kuji.Transfer{ID: id, From: d.name(d.player), To: d.name(d.to), Items: coins, Hold: held}
	case "pair":
		return kuji.Atomic{ID: id, Hold: held, Members: []kuji.Request{
			kuji.Transfer{From: d.name(d.player), To: d.name(d.to), Items: coins},
			kuji.Draw{Player: d.name(d.player), Pool: pool},
		}}
	case "confirm":
		return kuji.Confirm{ID: id, Hold: d.slotID(d.of)}
	case "cancel":
		return kuji.Cancel{ID: id, Hold: d.slotID(d.of)}
	}
	return kuji.Reverse{ID: id, Request: d.slotID(d.of), Note: kuji.Note{Reason: "a chargeback"}}
}

// deals carries out a deal, and returns what the engine tells.
func (s *embedded) deals(ctx context.Context, d deal) (out dealt, err error) {
	realm, life, err := s.now()
	if err != nil {
		return out, err
	}
	missing := false
	switch d.what {
	case "has":
		var v kuji.PlayerView
		v, err = realm.Player(ctx, d.name(d.player))
		missing = kuji.CodeOf(err) == kuji.CodeNotFound
		out.known = !missing
		for _, it := range v.Items {
			*map[string]*int8{"coin": &out.has.coins, "prize": &out.has.prizes}[it.Item] = int8(it.Quantity)
		}
		for _, it := range v.Held {
			*map[string]*int8{"coin": &out.has.coinsHeld, "prize": &out.has.prizesHeld}[it.Item] = int8(it.Quantity)
		}
	case "left":
		var v kuji.PoolView
		if v, err = realm.Pool(ctx, fmt.Sprint("s", d.at)); err == nil {
			out.left = int8(v.Entries[0].Left)
		}
	case "state":
		var v kuji.HoldView
		v, err = kuji.HoldsOf(realm).Get(ctx, d.slotID(d.of))
		missing = kuji.CodeOf(err) == kuji.CodeNotFound
		out.state = v.State
	default:
		var res kuji.Result
		if res, err = realm.Do(ctx, d.request()); err == nil {
			out = d.told(res)
		}
	}
	if err != nil && !missing {
		return dealt{}, s.failed(life, err)
	}
	return out, nil
}

func (d deal) told(res kuji.Result) dealt {
	out := dealt{status: res.Status, drawn: len(res.Outcomes)}
	for _, m := range res.Members {
		out.drawn += len(m.Outcomes)
	}
	if h := res.Hold(); h != nil {
		out.state = h.State
	}
	return out
}

// slot is what became of a request.
type slot struct {
	is           byte
	by, to       int8
	price, gift  int8 // coins that a hold took; or that a draw did
	lent         int8 // prizes that a hold took
	gives        int8 // prizes that a hold gives, or that a draw gave
	draws, coins int8 // draws that a hold makes; coins of a grant
}

const (
	slotUnknown = iota // nobody has asked
	slotDone           // it cannot be reversed
	slotGiven          // it can
	slotReversed
	slotOpen
	slotConfirmed
	slotCancelled
)

var slotStates = [...]string{slotOpen: "open", slotConfirmed: "confirmed", slotCancelled: "cancelled"}

// shop is what a counter, its players and its requests have.
type shop struct {
	begun          bool
	left, reserved int8
	known          [heldPlayers]bool
	has            [heldPlayers]purse
	slots          [heldSlots]slot
}

// answers reports whether an answer is possible, and returns the state after it.
func (s shop) answers(d deal, out dealt) (bool, shop) {
	if !s.begun {
		s.begun, s.left = true, heldStock(d.at)
	}
	of := &s.slots[d.of]
	switch d.what {
	case "has":
		return out == dealt{known: s.known[d.player], has: s.has[d.player]}, s
	case "left":
		return out == dealt{left: s.left}, s
	case "state":
		want := ""
		if of.is >= slotOpen {
			want = slotStates[of.is]
		}
		return out == dealt{state: want}, s
	}
	own, was := &s.slots[d.slot], *of
	own.is = slotDone
	want := dealt{status: s.decide(d, was)}
	if want.status == kuji.HoldEnded {
		want.state = slotStates[was.is]
	}
	if want.status != kuji.OK {
		return out == want, s
	}
	p, n := &s.has[d.player], int8(d.n)
	switch d.what {
	case "grant":
		p.coins += n
		*own = slot{is: slotGiven, by: int8(d.player), coins: n}
		s.known[d.player] = true
	case "draw":
		p.coins -= n
		p.prizes += n
		s.left -= n
		*own = slot{is: slotGiven, by: int8(d.player), price: n, gives: n}
		want.drawn = d.n
	case "confirm":
		want.state, want.drawn = "confirmed", int(was.draws)
		s.confirms(was)
		of.is = slotConfirmed
	case "cancel":
		want.state = "cancelled"
		s.cancels(was)
		of.is = slotCancelled
	case "reverse":
		s.reverses(was)
		of.is = slotReversed
	default:
		want.state = "open"
		want.drawn = s.holds(d, own)
	}
	return out == want, s
}

// decide returns how a request ends.
func (s *shop) decide(d deal, of slot) kuji.Status {
	p, n := s.has[d.player], int8(d.n)
	draws := n
	switch d.what {
	case "grant":
		return kuji.OK
	case "confirm", "cancel":
		switch {
		case of.is == slotOpen:
			return kuji.OK
		case of.is > slotOpen:
			return kuji.HoldEnded
		}
		return kuji.UnknownHold
	case "reverse":
		switch of.is {
		case slotUnknown:
			return kuji.UnknownRequest
		case slotGiven:
			return kuji.OK
		case slotReversed:
			return kuji.AlreadyReversed
		}
		return kuji.NotReversible
	case "lend":
		if d.prize && p.prizes < n || !d.prize && p.coins < n {
			return kuji.InsufficientItems
		}
		return kuji.OK
	case "pair":
		draws = 1
		if p.coins < n+1 {
			return kuji.InsufficientItems
		}
	default:
		if p.coins < n {
			return kuji.InsufficientItems
		}
	}
	if s.left-s.reserved < draws {
		return kuji.SoldOut
	}
	return kuji.OK
}

// holds takes what a request takes that is held, and returns how many outcomes it shows.
func (s *shop) holds(d deal, own *slot) (drawn int) {
	p, n := &s.has[d.player], int8(d.n)
	*own = slot{is: slotOpen, by: int8(d.player), to: int8(d.to)}
	draws := n
	switch d.what {
	case "lend":
		s.known[d.to] = true
		draws = 0
		if d.prize {
			own.lent = n
		} else {
			own.gift = n
		}
	case "pair":
		s.known[d.to] = true
		draws = 1
		if d.refund {
			own.gift = n
		} else {
			p.coins -= n // for good
			s.has[d.to].coins += n
		}
	}
	if d.refund {
		own.price, own.draws = draws, draws
		s.reserved += draws
	} else {
		p.coins -= draws
		s.left -= draws
		p.prizesHeld += draws
		own.gives = draws
		drawn = int(draws)
	}
	taken := own.price + own.gift
	p.coins, p.coinsHeld = p.coins-taken, p.coinsHeld+taken
	p.prizes, p.prizesHeld = p.prizes-own.lent, p.prizesHeld+own.lent
	return drawn
}

func (s *shop) confirms(h slot) {
	p := &s.has[h.by]
	p.coinsHeld -= h.price + h.gift
	p.prizesHeld -= h.lent + h.gives
	p.prizes += h.gives + h.draws
	s.has[h.to].coins += h.gift
	s.has[h.to].prizes += h.lent
	s.reserved -= h.draws
	s.left -= h.draws
}

func (s *shop) cancels(h slot) {
	p := &s.has[h.by]
	p.coinsHeld -= h.price + h.gift
	p.coins += h.price + h.gift
	p.prizesHeld -= h.lent + h.gives
	p.prizes += h.lent
	s.reserved -= h.draws
	s.left += h.gives
}

// reverses takes back what there is. If that is all, the price comes back, and the prizes are in the pool again.
func (s *shop) reverses(of slot) {
	p := &s.has[of.by]
	coins, prizes := min(of.coins, p.coins), min(of.gives, p.prizes)
	p.coins -= coins
	p.prizes -= prizes
	if coins == of.coins && prizes == of.gives {
		p.coins += of.price
		s.left += of.gives
	}
}

func heldModel() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			parts := make([][]porcupine.Operation, heldOps/heldPhase*2)
			for _, op := range history {
				at := op.Input.(deal).at
				parts[at] = append(parts[at], op)
			}
			return parts
		},
		Init: func() any { return shop{} },
		Step: func(state, input, output any) (bool, any) {
			return state.(shop).answers(input.(deal), output.(dealt))
		},
		Equal: func(a, b any) bool { return a == b },
	}
}

var someDeals = []string{
	"grant", "grant", "grant", "draw", "draw", "hold", "hold", "hold", "hold", "lend", "pair", "pair", "confirm", "confirm", "confirm",
	"cancel", "cancel", "cancel", "cancel", "reverse", "reverse", "has", "has", "has", "has", "left", "left", "state",
}

// heard is which requests clients have heard of, by counter: those that are held, and those that can be reversed.
type heard struct {
	mu   sync.Mutex
	held [heldOps / heldPhase * 2][]int
	done [heldOps / heldPhase * 2][]int
}

func (h *heard) note(d deal, out dealt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case out.status != kuji.OK:
	case d.what == "hold", d.what == "lend", d.what == "pair":
		h.held[d.at] = append(h.held[d.at], d.slot)
	case d.what == "grant", d.what == "draw":
		h.done[d.at] = append(h.done[d.at], d.slot)
	}
}

// some returns one of the last requests that a deal can be about.
func (h *heard) some(r *rand.Rand, d deal) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.held[d.at]
	if d.what == "reverse" {
		all = h.done[d.at]
	}
	if all = all[max(0, len(all)-4):]; len(all) == 0 || r.IntN(10) == 0 {
		return r.IntN(heldSlots)
	}
	return all[r.IntN(len(all))]
}

// someDeal makes up what a client does as its request number i.
func someDeal(r *rand.Rand, h *heard, client, i int) deal {
	const each = heldPhase / 2
	turn := i % heldPhase / 2
	d := deal{what: someDeals[r.IntN(len(someDeals))], at: i/heldPhase*2 + i%2, slot: client*each + turn}
	d.player, d.n, d.refund, d.prize = r.IntN(heldPlayers), 1+r.IntN(2), r.IntN(2) == 0, r.IntN(2) == 0
	d.to = (d.player + 1 + r.IntN(heldPlayers-1)) % heldPlayers
	switch {
	case turn == 0:
		d.what, d.n = "grant", 3
	case d.what == "lend":
		d.refund = false
	}
	d.of = h.some(r, d)
	return d
}

// TestLinearizableHolds: to concurrent clients, holds, draws of the same few prizes, and reversals look as if requests
// were carried out one at a time, through power cuts and kills too.
func TestLinearizableHolds(t *testing.T) {
	lives, ended, states := 0, map[kuji.Status]int{}, map[string]int{}
	for n := range *histories {
		s := newEmbedded(t, heldCatalog(), uint64(n), n%6)
		history := dealHistory(t, s, uint64(n))
		for _, op := range history {
			out := op.Output.(dealt)
			if ended[out.status]++; out.status == kuji.OK && op.Input.(deal).what != "state" {
				states[out.state]++
			}
		}
		if s.err != nil || len(history) != heldClients*heldOps {
			t.Fatalf("history %d of %d deals: %v", n, len(history), s.err)
		}
		if got := porcupine.CheckOperationsTimeout(heldModel(), history, 10*time.Second); got != porcupine.Ok {
			t.Fatalf("history %d is %v", n, got)
		}
		if err := s.engine.Close(); err != nil && !errors.Is(err, vfs.ErrCrashed) {
			t.Errorf("history %d: %v", n, err)
		}
		lives += s.life
	}
	t.Logf("%d histories of %d deals, %d crashes: all linearizable; they ended %v, of holds %v", *histories, heldClients*heldOps, lives-*histories, ended, states)
	for _, status := range []kuji.Status{kuji.OK, kuji.SoldOut, kuji.InsufficientItems, kuji.UnknownHold, kuji.HoldEnded, kuji.UnknownRequest, kuji.NotReversible, kuji.AlreadyReversed} {
		if ended[status] == 0 || states["confirmed"] == 0 || states["cancelled"] == 0 {
			t.Errorf("no request ended %v, holds %v: the histories show too little", status, states)
		}
	}
}

// dealHistory is takeHistory at counters.
func dealHistory(t *testing.T, s *embedded, seed uint64) (history []porcupine.Operation) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var clock atomic.Int64 // orders calls and returns as real time does
	all := make([][]porcupine.Operation, heldClients)
	var h heard
	var running sync.WaitGroup
	for c := range heldClients {
		running.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(c)))
			for i := range heldOps {
				d := someDeal(r, &h, c, i)
				op := porcupine.Operation{ClientId: c, Input: d, Call: clock.Add(1)}
				for {
					out, err := s.deals(ctx, d)
					if err == nil {
						op.Output = out
						h.note(d, out)
						break
					}
					if ctx.Err() != nil || errors.Is(err, errDead) {
						t.Errorf("client %d got no answer to %+v: %v", c, d, err)
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

// TestHoldCheckerSeesFaults: the checker of holds refuses histories that are impossible.
func TestHoldCheckerSeesFaults(t *testing.T) {
	type step struct {
		deal
		dealt
	}
	next := 0
	ask := func(d deal) deal { next++; d.slot = next; return d }
	grant := func(p int) step { return step{ask(deal{what: "grant", player: p, n: 3}), dealt{}} }
	hold := func(refund bool) step {
		out := dealt{state: "open", drawn: 1}
		if refund {
			out.drawn = 0
		}
		return step{deal{what: "hold", slot: 9, n: 1, refund: refund}, out}
	}
	end := func(what, state string, drawn int) step {
		return step{ask(deal{what: what, of: 9}), dealt{state: state, drawn: drawn}}
	}
	draw := func(p int, status kuji.Status) step {
		return step{ask(deal{what: "draw", player: p, n: 1}), dealt{status: status, drawn: map[kuji.Status]int{kuji.OK: 1}[status]}}
	}
	has := func(coins, coinsHeld, prizes, prizesHeld int8) step {
		return step{deal{what: "has"}, dealt{known: true, has: purse{coins, coinsHeld, prizes, prizesHeld}}}
	}
	left := func(n int8) step { return step{deal{what: "left"}, dealt{left: n}} }
	for name, c := range map[string]struct {
		steps []step
		want  bool
	}{
		"held and given":               {[]step{hold(false), left(0), has(2, 0, 0, 1), end("confirm", "confirmed", 0), has(2, 0, 1, 0)}, true},
		"held and back":                {[]step{hold(false), end("cancel", "cancelled", 0), left(1), has(2, 0, 0, 0), draw(1, kuji.OK)}, true},
		"reserved and given":           {[]step{hold(true), left(1), has(2, 1, 0, 0), end("confirm", "confirmed", 1), has(2, 0, 1, 0), left(0)}, true},
		"reserved and back":            {[]step{hold(true), end("cancel", "cancelled", 0), has(3, 0, 0, 0), draw(1, kuji.OK)}, true},
		"what is held is drawn":        {[]step{hold(false), draw(1, kuji.OK)}, false},
		"what is reserved is drawn":    {[]step{hold(true), draw(1, kuji.OK)}, false},
		"the price comes back":         {[]step{hold(false), end("cancel", "cancelled", 0), has(3, 0, 0, 0)}, false},
		"the price does not come back": {[]step{hold(true), end("cancel", "cancelled", 0), has(2, 0, 0, 0)}, false},
		"stock that is lost":           {[]step{hold(false), end("cancel", "cancelled", 0), draw(1, kuji.SoldOut)}, false},
		"confirmed twice":              {[]step{hold(false), end("confirm", "confirmed", 0), end("confirm", "confirmed", 0)}, false},
		"given and back":               {[]step{hold(false), end("confirm", "confirmed", 0), end("cancel", "cancelled", 0)}, false},
		"given twice":                  {[]step{hold(false), end("confirm", "confirmed", 0), has(2, 0, 2, 0)}, false},
	} {
		var history []porcupine.Operation
		for i, s := range append([]step{grant(0), grant(1)}, c.steps...) {
			history = append(history, porcupine.Operation{Input: s.deal, Output: s.dealt, Call: int64(2 * i), Return: int64(2*i + 1)})
		}
		if got := porcupine.CheckOperations(heldModel(), history); got != c.want {
			t.Errorf("%s: linearizable %v, want %v", name, got, c.want)
		}
	}
}
