package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/kuji-dev/kuji"
)

// What clients and administrators do with rounds: a duel for boxes, a lottery whose price goes into a pot, and a gift,
// whose winners can be drawn again. Only whether a round has stakes or tickets is the same in all catalogs.

// roundsText writes rounds, at times without some or all of them.
func roundsText(r *rand.Rand, pf func(string, ...any)) {
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	if r.IntN(6) == 0 {
		return
	}
	pf("rounds:")
	pf("  duel:\n    stake: {item: box, count: {min: %d, max: 3}%s}", 1+r.IntN(2), one("", ", same: true"))
	pf("    entrants: {min: %d, max: %d}%s%s", 1+r.IntN(3)/2, 2+r.IntN(2), one("", "\n    one: true"), one("", "\n    open: 30m", "\n    open: 5h"))
	reward := one("", "", ", reward: {items: {cup: 1}}")
	switch r.IntN(3) {
	case 0:
		pf("    winners: {count: 2, gets: everything, shares: [%s], distinct: %s%s}", one("70, 30", "50, 50", "99, 1"), one("true", "false"), reward)
	default:
		pf("    winner: {gets: everything%s}", reward)
	}
	pf("  lottery:\n    ticket: {price: {chip: %d}, most: 5, adds: {pot: %s}}", 1+r.IntN(3), one("1", "0.9", "0.333333"))
	pf("    entrants: {min: %d, max: %d}%s", 1+r.IntN(3)/2, 2+r.IntN(4), one("\n    every: day", "\n    every: week", "\n    every: month", "\n    open: 20m", ""))
	pf("    winners: {count: %d, gets: pot%s}", 1+r.IntN(2), one("", ", shares: [60]", ", distinct: false"))
	if r.IntN(4) == 0 {
		return
	}
	pf("  gift:\n    ticket: {%smost: 5}%s", one("", "", "", "price: {chip: 1}, "), one("", "\n    open: 3h", "\n    every: day", "\n    every: day"))
	pf("    winners: {count: %d, by: %s, reward: {items: {cup: %d}}%s}", 1+r.IntN(4)/3, one("chance", "tickets"), 1+r.IntN(2), one("", ", rerolls: {most: 2, within: 3h}", ", rerolls: {most: 2, within: 40h}"))
}

// roundRequest opens a round, joins one, settles or cancels it, or draws another winner. Which numbers rounds have, a
// client guesses.
func roundRequest(r *rand.Rand, player string) kuji.Request {
	name := []string{"duel", "lottery", "gift", "gift"}[r.IntN(4)]
	if r.IntN(40) == 0 {
		name = "nosuch"
	}
	var stake []kuji.Stack
	tickets := uint64(0)
	if name == "duel" && r.IntN(8) > 0 {
		stake = []kuji.Stack{{Item: []string{"box", "box", "box", "box", "gem"}[r.IntN(5)], Quantity: 1 + r.Uint64N(3)}}
	}
	if name == "lottery" || name == "gift" {
		tickets = r.Uint64N(6)
	}
	switch r.IntN(16) {
	case 0, 1, 2:
		return kuji.Grant{Player: player, Items: []kuji.Stack{{Item: "box", Quantity: 1 + r.Uint64N(3)}, {Item: "chip", Quantity: 1 + r.Uint64N(9)}}}
	case 3, 4, 5:
		if r.IntN(4) == 0 {
			return kuji.OpenRound{Round: name}
		}
		return kuji.OpenRound{Player: player, Round: name, Stake: stake, Tickets: tickets}
	case 6:
		return kuji.Settle{Round: name}
	case 7:
		return kuji.CancelRound{Round: name, Number: 1 + r.Uint64N(5)}
	case 8, 9:
		return kuji.Reroll{Round: "gift", Number: 1 + r.Uint64N(5)}
	}
	return kuji.Join{Player: player, Round: name, Stake: stake, Tickets: tickets}
}

// aimed makes a request about a round by its number one about the last round that anybody was told of, at times about one
// before it.
func aimed(r *rand.Rand, req kuji.Request, last uint64) kuji.Request {
	number := max(last, 1) - min(max(last, 1)-1, r.Uint64N(6)/3)
	switch q := req.(type) {
	case kuji.CancelRound:
		q.Number = number
		return q
	case kuji.Reroll:
		q.Number = number
		return q
	}
	return req
}

// readRounds looks at the rounds that are open, without waiting.
func readRounds(s *session) {
	w := s.w
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // a read that would have to wait is refused
	rd := read{position: s.realm.Stats().Position, open: true}
	all, err := kuji.RoundsOf(s.realm).Open(ctx)
	w.note("rounds: %+v, %v", all, kuji.CodeOf(err))
	switch code := kuji.CodeOf(err); {
	case code == kuji.CodeCanceled && errors.Is(err, context.Canceled):
		return
	case code == kuji.CodeFailed && s.excused():
		s.poisoned = true
		return
	case err != nil:
		w.fail("%w", fmt.Errorf("rounds cannot be read: %w", err))
	}
	w.report.Reads++
	rd.rounds = all
	s.reads = append(s.reads, rd)
}
