package rules_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

const rounds = `
kuji: 1
items:
  coin: {kind: currency}
  box: {family: boxes}
  crate: {family: boxes}
  key: {most: 3, beyond: cut}
rounds:
  gamble:
    stake: {family: boxes, count: {min: 1, max: 5}, same: true}
    entrants: {min: 2, max: 3}
    open: 2m
    winner: {gets: everything}
  pool:
    stake: {any: true, count: {min: 1, max: 9}}
    entrants: {min: 2, max: 20}
    winners: {count: 2, gets: everything, shares: [70, 30]}
  giveaway:
    ticket: {price: {coin: 10}, most: 100}
    open: 1h
    winners: {count: 5, reward: {items: {key: 1}}, rerolls: {most: 3, within: 2h}}
  jackpot:
    ticket: {price: {coin: 1}, most: 1000, adds: {pot: 0.9}}
    one: true
    winner: {gets: pot}
`

func opened(player, name string, items ...catalog.Stack) rules.Command {
	return rules.Command{Kind: rules.KindOpenRound, Player: player, Items: items, Hands: rules.Hands{Round: &rules.RoundOf{Name: name}}}
}

func joined(player, name string, number, tickets uint64, items ...catalog.Stack) rules.Command {
	return rules.Command{Kind: rules.KindJoin, Player: player, Items: items, Hands: rules.Hands{Round: &rules.RoundOf{Name: name, Number: number, Tickets: tickets}}}
}

func ofRound(kind rules.Kind, name string, number uint64) rules.Command {
	return rules.Command{Kind: kind, Hands: rules.Hands{Round: &rules.RoundOf{Name: name, Number: number}}}
}

// held returns how many of an item a player has that cannot be spent.
func (r *realm) held(player, item string) uint64 {
	num, _ := r.state.Player(player)
	it, _ := r.state.ItemNum(item)
	return r.state.Balance(num, store.HeldOf(it))
}

// wantHas checks what a player can spend of an item, and what is held.
func (r *realm) wantHas(player, item string, free, held uint64) {
	r.t.Helper()
	if got, kept := r.holds(player, item), r.held(player, item); got != free || kept != held {
		r.t.Fatalf("%s has %d of %s and %d held; want %d and %d", player, got, item, kept, free, held)
	}
}

// winners returns who has won by an event, in their places.
func (r *realm) winners(ev *store.Event) (all []string) {
	r.t.Helper()
	player := ""
	effects := ev.Changes()
	for e := (store.Effect{}); effects.Next(&e); {
		switch e.Verb {
		case store.Player:
			player = r.state.PlayerID(e.N)
		case store.Place:
			if all = append(all, player); int(e.N) != len(all) {
				r.t.Fatalf("place %d after %d", e.N, len(all)-1)
			}
		}
	}
	return all
}

// records returns how many records there are.
func (r *realm) records() int {
	n, _ := r.state.RecordsSize()
	return n
}

// TestGamble: everyone stakes what the opener did, the winner gets everything, and it is settled when it is full.
func TestGamble(t *testing.T) {
	r := newRealm(t, 1)
	r.put(rounds)
	for _, p := range []string{"ann", "bob", "cid", "dan"} {
		r.do(grant(p, of("box", 10)))
	}
	r.want(joined("ann", "gamble", 0, 0, of("box", 5)), rules.UnknownRound, "")
	r.want(opened("ann", "gamble", of("box", 5)), rules.OK, "")
	r.wantHas("ann", "box", 5, 5)
	r.want(joined("ann", "gamble", 0, 0, of("box", 5)), rules.AlreadyJoined, "")
	r.want(joined("bob", "gamble", 1, 0, of("box", 4)), rules.WrongStake, "")
	r.want(joined("bob", "gamble", 1, 0), rules.OK, "")
	r.want(joined("cid", "gamble", 0, 0, of("box", 5)), rules.OK, "")
	cmd := joined("dan", "gamble", 1, 0)
	r.settle(&cmd)
	r.want(cmd, rules.RoundClosed, "")
	sum := uint64(0)
	for _, p := range []string{"ann", "bob", "cid"} {
		sum += r.holds(p, "box")
		if n := r.holds(p, "box"); n != 5 && n != 20 || r.held(p, "box") != 0 {
			t.Fatalf("%s has %d boxes, %d held", p, n, r.held(p, "box"))
		}
	}
	if sum != 30 {
		t.Fatalf("%d boxes; want 30", sum)
	}
	r.now += 25 * 3600 * 1000
	if r.sweep(); r.records() != 0 {
		t.Fatalf("%d records are left", r.records())
	}
	r.check()
	r.replay()
}

// TestRoundsComeToNothing: with too few entrants, or if it is cancelled, everything goes back.
func TestRoundsComeToNothing(t *testing.T) {
	ends := map[string]func(r *realm){
		"deadline":  func(r *realm) { r.now += 2 * 60 * 1000; r.sweep() },
		"settled":   func(r *realm) { r.want(ofRound(rules.KindSettle, "gamble", 1), rules.OK, "") },
		"cancelled": func(r *realm) { r.want(ofRound(rules.KindCancelRound, "gamble", 0), rules.OK, "") },
		"gone": func(r *realm) {
			r.want(joined("bob", "gamble", 0, 0), rules.OK, "")
			r.put("kuji: 1\nitems: {coin: {kind: currency}, box: {}, crate: {}, key: {}}")
			r.now += 2 * 60 * 1000
			r.sweep()
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			r := newRealm(t, 1)
			r.put(rounds)
			r.do(grant("ann", of("box", 10)))
			r.do(grant("bob", of("box", 10)))
			r.want(opened("ann", "gamble", of("box", 5)), rules.OK, "")
			end(r)
			r.wantHas("ann", "box", 10, 0)
			r.wantHas("bob", "box", 10, 0)
			r.check()
			r.replay()
		})
	}
}

// TestJackpotIsExact: what a pot gets is exactly its share of the price, over all rounds, and its remainder stays.
func TestJackpotIsExact(t *testing.T) {
	r, rng := newRealm(t, 1), rand.New(rand.NewPCG(1, 2))
	r.put(rounds)
	in, out := uint64(0), uint64(0)
	for round := range 60 {
		r.want(opened("", "jackpot"), rules.OK, "")
		r.want(opened("", "jackpot"), rules.AlreadyOpen, "")
		for i := range 1 + rng.IntN(9) {
			p, n := fmt.Sprint("p", i), 1+rng.Uint64N(13)
			r.do(grant(p, of("coin", n)))
			r.want(joined(p, "jackpot", 0, n), rules.OK, "")
			in += n
		}
		ev := r.want(ofRound(rules.KindSettle, "jackpot", 0), rules.OK, "")
		won := r.winners(&ev)
		if len(won) != 1 {
			t.Fatalf("round %d has winners %v", round, won)
		}
		got := r.holds(won[0], "coin")
		out += got
		if want := in * 9 / 10; out != want {
			t.Fatalf("round %d: %d coins were paid of %d; want %d", round, out, in, want)
		}
		if got > 0 {
			r.do(consume(won[0], of("coin", got)))
		}
	}
	r.check()
	r.replay()
}

// TestGiveawayOfMany: five different winners, more entrants than one event deals with, and winners drawn again who have
// never won.
func TestGiveawayOfMany(t *testing.T) {
	r := newRealm(t, 1)
	r.put(rounds)
	r.want(opened("", "giveaway"), rules.OK, "")
	const many = 300
	for i := range many {
		p := fmt.Sprint("p", i)
		r.do(grant(p, of("coin", 30)))
		r.want(joined(p, "giveaway", 1, uint64(1+i%3)), rules.OK, "")
	}
	r.want(joined("p1", "giveaway", 1, 1), rules.AlreadyJoined, "")
	r.want(joined("poor", "giveaway", 1, 1), rules.InsufficientItems, "coin")
	r.now += 3600 * 1000
	var d rules.Due
	if !r.rules.Sweep(r.now, rules.SweepPlayers, &d) || d.Round != 1 {
		t.Fatalf("due is %+v", d)
	}
	ev := r.due(&d)
	won := r.winners(&ev)
	for range 3 {
		ev := r.want(ofRound(rules.KindReroll, "giveaway", 1), rules.OK, "")
		more := r.winnersAfter(&ev, len(won))
		won = append(won, more...)
	}
	r.want(ofRound(rules.KindReroll, "giveaway", 1), rules.NobodyLeft, "")
	seen := map[string]bool{}
	for _, p := range won {
		if seen[p] || r.holds(p, "key") != 1 {
			t.Fatalf("winners are %v; %s has %d keys", won, p, r.holds(p, "key"))
		}
		seen[p] = true
	}
	if len(won) != 8 {
		t.Fatalf("winners are %v", won)
	}
	r.sweep()
	for i := range many {
		r.wantHas(fmt.Sprint("p", i), "coin", uint64(30-10*(1+i%3)), 0)
	}
	r.now += 25 * 3600 * 1000
	if r.sweep(); r.records() != 0 {
		t.Fatalf("%d records are left", r.records())
	}
	r.check()
	r.replay()
}

// TestNobodyWinsTwice: as long as others are left, nobody wins a round twice, when it is settled or drawn again.
func TestNobodyWinsTwice(t *testing.T) {
	for seed := range uint64(40) {
		r := newRealm(t, seed)
		r.put(rounds)
		r.want(opened("", "giveaway"), rules.OK, "")
		const players = 7
		for i := range players {
			p := fmt.Sprint("p", i)
			r.do(grant(p, of("coin", 1000)))
			r.want(joined(p, "giveaway", 1, 1+99*uint64(i/6)), rules.OK, "") // the last one is likely to win again
		}
		ev := r.want(ofRound(rules.KindSettle, "giveaway", 1), rules.OK, "")
		won := r.winners(&ev)
		for len(won) < players {
			ev := r.want(ofRound(rules.KindReroll, "giveaway", 1), rules.OK, "")
			won = append(won, r.winnersAfter(&ev, len(won))...)
		}
		r.want(ofRound(rules.KindReroll, "giveaway", 1), rules.NobodyLeft, "")
		for i := range players {
			if p := fmt.Sprint("p", i); r.holds(p, "key") != 1 {
				t.Fatalf("seed %d: %s has won %d times; the winners are %v", seed, p, r.holds(p, "key"), won)
			}
		}
		r.replay()
	}
}

// TestSameStakeFromNowOn: where a catalog wants all to stake the same while a round is open, that is what the first
// entrant has staked. Nobody joins for nothing.
func TestSameStakeFromNowOn(t *testing.T) {
	r := newRealm(t, 1)
	r.put(strings.Replace(rounds, ", same: true", "", 1))
	for _, p := range []string{"ann", "bob", "cid"} {
		r.do(grant(p, of("box", 10)))
	}
	r.want(opened("ann", "gamble", of("box", 5)), rules.OK, "")
	r.put(rounds)
	r.want(joined("bob", "gamble", 0, 0, of("box", 4)), rules.WrongStake, "")
	r.want(joined("bob", "gamble", 0, 0), rules.OK, "")
	r.wantHas("bob", "box", 5, 5)
	r.replay()
}

// TestRerollsEnd: winners are drawn again within a time, and not as long as the round can be read.
func TestRerollsEnd(t *testing.T) {
	r := newRealm(t, 1)
	r.put(rounds)
	r.want(opened("", "giveaway"), rules.OK, "")
	for i := range 8 {
		p := fmt.Sprint("p", i)
		r.do(grant(p, of("coin", 10)))
		r.want(joined(p, "giveaway", 1, 1), rules.OK, "")
	}
	r.want(ofRound(rules.KindSettle, "giveaway", 1), rules.OK, "")
	r.now += 2*3600*1000 - 1
	r.want(ofRound(rules.KindReroll, "giveaway", 1), rules.OK, "")
	r.now++
	r.want(ofRound(rules.KindReroll, "giveaway", 1), rules.RoundClosed, "")
	for _, within := range []string{"3h", "100h"} { // the catalog in force says how long
		r.put(strings.Replace(rounds, "within: 2h", "within: "+within, 1))
		r.want(ofRound(rules.KindReroll, "giveaway", 1), rules.OK, "")
	}
	r.replay()
}

// winnersAfter is winners of an event in which places begin after n.
func (r *realm) winnersAfter(ev *store.Event, n int) (all []string) {
	player := ""
	effects := ev.Changes()
	for e := (store.Effect{}); effects.Next(&e); {
		switch e.Verb {
		case store.Player:
			player = r.state.PlayerID(e.N)
		case store.Place:
			if all = append(all, player); int(e.N) != n+len(all) {
				r.t.Fatalf("place %d after %d", e.N, n)
			}
		}
	}
	return all
}

// TestChanceByTickets: who has more tickets wins more often, in proportion.
func TestChanceByTickets(t *testing.T) {
	n := 20_000
	if testing.Short() {
		n = 2000
	}
	r := newRealm(t, 7)
	r.put(rounds)
	tickets, won := []uint64{1, 2, 3, 10, 34}, map[string]float64{}
	for i := range tickets {
		r.do(grant(fmt.Sprint("p", i), of("coin", 1<<40)))
	}
	for range n {
		r.do(opened("", "jackpot"))
		for i, k := range tickets {
			r.do(joined(fmt.Sprint("p", i), "jackpot", 0, k))
		}
		ev := r.do(ofRound(rules.KindSettle, "jackpot", 0))
		won[r.winners(&ev)[0]]++
		if r.records() > 1000 {
			r.now += 25 * 3600 * 1000
			r.sweep()
		}
	}
	chi := 0.0
	for i, k := range tickets {
		want := float64(n) * float64(k) / 50
		chi += math.Pow(won[fmt.Sprint("p", i)]-want, 2) / want
	}
	if chi > 18.5 { // 0.1 % of 4 degrees of freedom; the seed is fixed
		t.Fatalf("chi-square is %.1f: %v", chi, won)
	}
}

const boxes = `
kuji: 1
items: {gold: {}, sword: {}, box: {family: boxes}, crate: {family: boxes}, coin: {kind: currency}}
pools:
  small: {price: {box: 1}, pity: {sword: {certain: 5}}, entries: [{id: gold, weight: 9, reward: {items: {gold: {min: 1, max: 9}}}}, {id: sword, weight: 1, reward: {items: {sword: 1}}}]}
  large: {price: {crate: 1}, entries: [{id: sword, weight: 1, stock: 40, reward: {items: {sword: 2}}}, {id: gold, weight: 1, stock: 40, reward: {items: {gold: 100}}}]}
rounds:
  gamble:
    stake: {family: boxes, count: {min: 1, max: 5}}
    entrants: {min: 2, max: 5}
    opens: stakes
    winner: {by: {value: {gold: 1, sword: 250}}, gets: everything}
`

// TestBoxesOfAGamble: the staked boxes are opened, each entrant's draws are worth what the catalog says, and the one
// with the highest value gets all of it. If a pool may not have enough, everything goes back.
func TestBoxesOfAGamble(t *testing.T) {
	r, rng := newRealm(t, 3), rand.New(rand.NewPCG(3, 3))
	r.put(boxes)
	settled, returned := 0, 0
	for round := range uint64(60) {
		before := map[string]uint64{}
		for i := range 5 {
			p, kind := fmt.Sprint("p", i), []string{"box", "crate"}[rng.IntN(2)]
			n := 1 + rng.Uint64N(5)
			r.do(grant(p, of(kind, n)))
			before[p] = n
			if i == 0 {
				r.want(opened(p, "gamble", of(kind, n)), rules.OK, "")
			} else {
				r.want(joined(p, "gamble", 0, 0, of(kind, n)), rules.OK, "")
			}
		}
		gold, swords := r.sum("gold"), r.sum("sword")
		var d rules.Due
		if !r.rules.Sweep(r.now, 1, &d) || d.Round != round+1 {
			t.Fatalf("due is %+v", d)
		}
		ev := r.due(&d)
		places := r.winners(&ev)
		if len(places) == 0 {
			returned++
			for p, n := range before {
				if r.holds(p, "box")+r.holds(p, "crate") < n || r.held(p, "box")+r.held(p, "crate") > 0 {
					t.Fatalf("%s did not get %d back", p, n)
				}
			}
			break
		}
		settled++
		best, drawn := r.drawn(&ev)
		if best != places[0] || len(places) != 5 {
			t.Fatalf("places are %v; the highest value is of %s", places, best)
		}
		if r.sum("gold")-gold != drawn["gold"] || r.sum("sword")-swords != drawn["sword"] {
			t.Fatalf("%v were drawn; there are %d gold and %d swords more", drawn, r.sum("gold")-gold, r.sum("sword")-swords)
		}
		for _, p := range places[1:] {
			if r.held(p, "box")+r.held(p, "crate") > 0 {
				t.Fatalf("%s still has a stake", p)
			}
		}
	}
	if settled < 5 || returned != 1 {
		t.Fatalf("%d were settled, %d returned", settled, returned)
	}
	r.check()
	r.replay()
}

// sum returns how many of an item the five players hold.
func (r *realm) sum(item string) (n uint64) {
	for i := range 5 {
		n += r.holds(fmt.Sprint("p", i), item)
	}
	return n
}

// drawn returns who drew the highest value by an event's promises, and what all drew. It fails if two drew as much: a
// tie is for another test.
func (r *realm) drawn(ev *store.Event) (best string, all map[string]uint64) {
	values, player := map[string]uint64{}, ""
	all = map[string]uint64{}
	effects := ev.Changes()
	for e := (store.Effect{}); effects.Next(&e); {
		switch e.Verb {
		case store.Player:
			player = r.state.PlayerID(e.N)
		case store.Promise:
			item := r.state.ItemID(e.N)
			all[item] += e.Value
			values[player] += e.Value * map[string]uint64{"gold": 1, "sword": 250}[item]
		case store.Place:
			if e.N == 1 {
				best = player
			}
		}
	}
	for p, v := range values {
		if v > values[best] {
			r.t.Fatalf("%s drew %d, and %s, who is first, %d", p, v, best, values[best])
		}
	}
	return best, all
}
