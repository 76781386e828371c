package rules_test

import (
	"fmt"
	"testing"

	"github.com/kuji-dev/kuji/internal/rules"
)

// TestBoxLowered: a box whose catalog allows fewer of a ticket than were drawn is filled with as
// many as the catalog says.
func TestBoxLowered(t *testing.T) {
	r := newRealm(t, 3)
	yaml := func(a int) string {
		return fmt.Sprintf(`{kuji: 1, items: {gem: {}}, pools: {box: {mode: raffle, refill: 1, entries: [{id: a, stock: %d}, {id: b, stock: 9}]}}}`, a)
	}
	r.put(yaml(9))
	for r.pool("box").Entries[0].Drawn < 5 {
		r.want(draw("ann", "box", 1), rules.OK, "")
	}
	r.put(yaml(2))
	for r.pool("box").Entries[1].Left > 1 {
		r.want(draw("ann", "box", 1), rules.OK, "")
	}
	r.want(draw("ann", "box", 13), rules.SoldOut, "box")
	r.want(draw("ann", "box", 1+2+9), rules.OK, "")
	r.want(draw("ann", "box", 1), rules.SoldOut, "box")
	r.replay()
}

// TestRefillOfAnEmptyBox: only the draw of a last ticket fills a box. Refills that come with a later
// catalog are no stock of an empty one.
func TestRefillOfAnEmptyBox(t *testing.T) {
	r := newRealm(t, 3)
	yaml := func(stock, refill int) string {
		return fmt.Sprintf(`{kuji: 1, items: {gem: {}}, pools: {way: {entries: [{id: in, weight: 1, reward: {pool: box}}]},
			box: {mode: raffle, refill: %d, entries: [{id: a, stock: %d}]}}}`, refill, stock)
	}
	r.put(yaml(3, 0))
	r.want(draw("ann", "box", 3), rules.OK, "")
	r.put(yaml(3, 2))
	for _, pool := range []string{"box", "way"} {
		for count := 1; count < 4; count++ {
			r.want(draw("ann", pool, count), rules.SoldOut, pool)
		}
	}
	r.put(yaml(4, 2))
	r.want(draw("ann", "way", 1+4+4), rules.OK, "")
	r.want(draw("ann", "way", 1), rules.SoldOut, "way")
}

// TestEndlessBelow: entries that lead to pools which cannot run out have their own stock, whatever
// else leads there.
func TestEndlessBelow(t *testing.T) {
	r := newRealm(t, 3)
	r.put(`{kuji: 1, items: {gem: {}}, pools: {
		e: {internal: true, entries: [{id: e, weight: 1}]},
		f: {internal: true, entries: [{id: f, weight: 1, reward: {pool: e}}]},
		wide: {mode: raffle, entries: [{id: x, stock: 9, reward: {pool: e}}, {id: y, stock: 1, reward: {pool: e, times: 2}}]},
		shared: {mode: raffle, entries: [{id: x, stock: 5, reward: {pool: e}}, {id: y, stock: 5, reward: {pool: f}}]}}}`)
	for _, pool := range []string{"wide", "shared"} {
		r.want(draw("ann", pool, 11), rules.SoldOut, pool)
		r.want(draw("ann", pool, 10), rules.OK, "")
	}
}
