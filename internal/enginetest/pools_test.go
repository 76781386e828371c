package enginetest

import (
	"math"
	"slices"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

// poolsCatalog has a raffle with a refill, a pool that leads to it, and stock beyond what a sum holds.
const poolsCatalog = `
kuji: 1
items: {hat: {}}
pools:
  raffle: {mode: raffle, refill: 1, entries: [{id: a, stock: 2}, {id: b, stock: 1}]}
  outer: {entries: [{id: in, weight: 1, reward: {pool: inner}}]}
  inner: {entries: [{id: hat, weight: 1, stock: 10, reward: {items: {hat: 1}}}, {id: none, weight: 1}]}
`

// TestPoolSums: pools say what was drawn from them and what is left, in the catalog's order, and count
// draws from when the realm was opened.
func TestPoolSums(t *testing.T) {
	dir := t.TempDir()
	engine, r := open(t, dir, worldOptions{})
	c := parse(t, poolsCatalog)
	if _, err := r.Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	check := func(r *kuji.Realm, most int, wantMore int, want ...kuji.PoolSum) {
		t.Helper()
		got, more, err := r.Pools().Sums(t.Context(), most)
		if err != nil || more != wantMore || !slices.Equal(got, want) {
			t.Errorf("of %d pools %+v and %d more, %v\nwant %+v and %d more", most, got, more, err, want, wantMore)
		}
	}
	full := kuji.PoolSum{ID: "raffle", Left: 3, Limited: true}
	check(r, 0, 3)
	check(r, 1, 2, full)
	do(t, r, kuji.Draw{Player: "ann", Pool: "outer", Count: 4})
	do(t, r, kuji.Atomic{Members: []kuji.Request{kuji.Draw{Player: "ann", Pool: "raffle"}, kuji.Draw{Player: "bob", Pool: "raffle"}, kuji.Draw{Player: "bob", Pool: "inner"}}})
	sums, _, err := r.Pools().Sums(t.Context(), math.MaxInt)
	if err != nil || len(sums) != 3 {
		t.Fatalf("%v, %v", sums, err)
	}
	inner := sums[2]
	if inner.Drawn != 5 || inner.Draws != 1 || inner.Left > 10 || inner.Left < 5 {
		t.Errorf("pool inner after 4 draws by way of another and one of its own: %+v", inner)
	}
	raffle, outer := kuji.PoolSum{ID: "raffle", Draws: 2, Drawn: 2, Left: 1, Limited: true}, kuji.PoolSum{ID: "outer", Draws: 4, Drawn: 4}
	check(r, 3, 0, raffle, outer, inner)
	do(t, r, kuji.Draw{Player: "ann", Pool: "raffle"}) // the box is filled again
	check(r, 1, 2, kuji.PoolSum{ID: "raffle", Draws: 3, Left: 3, Limited: true})
	if _, err := r.Do(t.Context(), kuji.Draw{Player: "ann", Pool: "raffle", Count: 9}); err != nil { // sold out
		t.Fatal(err)
	}
	check(r, 1, 2, kuji.PoolSum{ID: "raffle", Draws: 3, Left: 3, Limited: true})
	_, _, err = r.Pools().Sums(t.Context(), -1)
	wantCode(t, err, kuji.CodeInvalid)
	if err := engine.Close(); err != nil {
		t.Fatal(err)
	}
	engine, err = openWorld(dir, worldOptions{})
	if err == nil {
		defer engine.Close() // of no consequence
		r, err = engine.Realm("test")
	}
	if err != nil {
		t.Fatal(err)
	}
	outer.Draws, inner.Draws = 0, 0
	check(r, 3, 0, full, outer, inner)

	// More stock than 64 bits can sum up is as much as they can.
	c.Pools = c.Pools[2:]
	huge := c.Pools[0].Entries[0]
	huge.Stock.Count = catalog.MaxQuantity
	c.Pools[0].Entries = nil
	for i := range 3000 {
		huge.ID = "e" + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676))
		c.Pools[0].Entries = append(c.Pools[0].Entries, huge)
	}
	if _, err := r.Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if sums, _, err := r.Pools().Sums(t.Context(), 1); err != nil || sums[0].Left != math.MaxUint64 {
		t.Errorf("%+v, %v; want all that 64 bits hold", sums, err)
	}
}
