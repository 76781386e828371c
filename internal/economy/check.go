package economy

import (
	"math"
	"slices"

	"github.com/kuji-dev/kuji/catalog"
)

// Check verifies the invariants that the state must hold at every position:
// stock is never below zero and never over-given, every item's supply is the
// sum of the balances, balances are within bounds, and the indexes agree with
// what they index. It takes time in proportion to the state.
func (s *State) Check() error {
	if err := s.checkPools(); err != nil {
		return err
	}
	if err := s.checkPlayers(); err != nil {
		return err
	}
	n := s.ids.head
	for at, r := range s.ids.from(n) {
		id := string(answerID(r.answer))
		if got, ok := s.ids.find(id); !ok || &got.answer[0] != &r.answer[0] || at != n {
			return inconsistent("request id %q, number %d, is not found by its index as number %d", id, at, n)
		}
		if r.version > s.current.version {
			return inconsistent("request id %q is of catalog version %d, the one in force is %d", id, r.version, s.current.version)
		}
		n++
	}
	if n != s.ids.tail {
		return inconsistent("%d request ids are kept, %d counted", n-s.ids.head, s.ids.count())
	}
	return nil
}

// MostValues returns how many values the draws that the state counts can have
// taken from their sources. More are possible with a probability below 2^-64: a
// choice among n takes more than one with a probability of at most a half, each time.
func (s *State) MostValues() uint64 {
	const each = 4 * (1 + catalog.MaxBundle) // an entry, and the quantities of its reward
	var drawn uint64
	for _, p := range s.pools {
		for _, n := range p.drawn {
			drawn += min(n, math.MaxUint64-drawn)
		}
	}
	return 256 + min(drawn, (math.MaxUint64-256)/each)*each
}

func (s *State) checkPools() error {
	for _, pt := range s.current.pools {
		if pt == nil {
			continue
		}
		p := s.pools[pt.num]
		for _, num := range pt.order {
			e := &pt.entries[num]
			if want := leftAfter(catalog.Stock{Count: e.stock}, p.drawn[num]); e.limited && p.left[num] != want {
				return inconsistent("pool %q, entry %q: stock %d, %d drawn, but %d left instead of %d", p.id, e.id, e.stock, p.drawn[num], p.left[num], want)
			}
			if p.sampler == nil {
				continue
			}
			if w := p.sampler.Weight(int(num)); w != s.weight(pt, num, p.left[num]) {
				return inconsistent("pool %q, entry %q: the sampler has weight %d instead of %d", p.id, e.id, w, s.weight(pt, num, p.left[num]))
			}
		}
	}
	for _, pt := range s.current.bottomUp {
		have, want := &s.odds[pt.num], s.oddsOf(pt)
		if have.live != want.live || !slices.Equal(have.left, want.left) {
			return inconsistent("pool %q: %d groups live with %d left, instead of %d with %d", pt.config.ID, have.live, have.left, want.live, want.left)
		}
	}
	return nil
}

func (s *State) checkPlayers() error {
	sums := make([]sum, len(s.items))
	for n := range uint32(s.players.count()) {
		id := s.players.id(n)
		if got, ok := s.players.find(id); !ok || got != n || s.players.at(n) != s.players.block(content(0, s.players.addrs.get(n))) {
			return inconsistent("player %q is not found by the index", id)
		}
		want := uint16(s.players.key.hash(id) % playerGuards)
		if head, page := s.players.at(n), s.players.addrs.pages.own[n/pageLen]; head.guard != want || page.guards[n%pageLen] != want {
			return inconsistent("player %q: guards %d and %d, want %d", id, head.guard, page.guards[n%pageLen], want)
		}
		prev := int64(-1)
		for _, sl := range s.players.holdings(n) {
			if sl.key&limitSlot != 0 {
				break
			}
			v := sl.value()
			if int64(sl.key) <= prev || int(sl.key) >= len(s.items) || v == 0 || v > MaxQuantity {
				return inconsistent("player %q: slot with key %d, value %d after key %d", id, sl.key, v, prev)
			}
			prev = int64(sl.key)
			sums[sl.key].add(v)
		}
	}
	for i, it := range s.items {
		if s.peak < maxPeak && (it.supply.hi != 0 || it.supply.lo > s.peak) {
			return inconsistent("item %q: the supply is %v, above the bound of all supplies, %d", it.id, it.supply, s.peak)
		}
		if sums[i] != it.supply {
			return inconsistent("item %q: balances sum up to %v, the supply is %v", it.id, sums[i], it.supply)
		}
	}
	return nil
}
