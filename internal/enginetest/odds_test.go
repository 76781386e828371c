package enginetest

import (
	"context"
	"math/big"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
)

const oddsCatalog = `
kuji: 1
items: {gem: {}, hero: {}}
start: {gem: 10}
pools:
  banner:
    price: {gem: 1}
    pity: {hero: {certain: 3}}
    entries:
      - {id: hero, weight: 1, stock: 5, reward: {items: {hero: 1}}}
      - {id: blank, weight: 999_999}
`

// TestOdds: odds are those of the state, for a player and for a newcomer.
func TestOdds(t *testing.T) {
	e, err := openWorld("data", worldOptions{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	r, err := e.Realm("test")
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Pools().Odds(t.Context(), "banner", "", 1)
	wantCode(t, err, kuji.CodeNotFound)
	if _, err := r.Apply(t.Context(), parse(t, strings.ReplaceAll(oddsCatalog, "_", ""))); err != nil {
		t.Fatal(err)
	}
	want := func(player string, status kuji.Status, draws uint64, chance *big.Rat) {
		t.Helper()
		o, err := r.Pools().Odds(t.Context(), "banner", player, 1)
		if err != nil {
			t.Fatal(err)
		}
		if o.Status != status || o.CatalogVersion != 1 || o.Position == 0 || len(o.Outcomes) != 2 || o.Outcomes[0].Entry != "hero" || o.Outcomes[0].Chance.Cmp(chance) != 0 {
			t.Errorf("player %q: %+v, want %v and a chance of %v", player, o, status, chance)
		}
		if track := (kuji.TrackOdds{Pool: "banner", Track: "hero", Draws: draws, CertainIn: 3 - draws}); o.Pity[0] != track {
			t.Errorf("player %q: %+v, want %+v", player, o.Pity, track)
		}
	}
	rare, sure := big.NewRat(1, 1_000_000), big.NewRat(1, 1)
	want("", kuji.OK, 0, rare)
	want("ann", kuji.OK, 0, rare)
	do(t, r, kuji.Draw{Player: "ann", Pool: "banner", Count: 2})
	want("ann", kuji.OK, 2, sure)
	want("", kuji.OK, 0, rare)
	do(t, r, kuji.Consume{Player: "ann", Items: []kuji.Stack{{Item: "gem", Quantity: 8}}})
	want("ann", kuji.InsufficientItems, 2, sure)
	_, err = r.Pools().Odds(t.Context(), "nothing", "", 1)
	wantCode(t, err, kuji.CodeNotFound)
	_, err = r.Pools().Odds(t.Context(), "banner", strings.Repeat("x", 65), 1)
	wantCode(t, err, kuji.CodeInvalid)
}

// TestOddsWait: odds are not told before what they depend on is durable.
func TestOddsWait(t *testing.T) {
	disk := vfs.NewMem()
	_, r := open(t, "data", worldOptions{FS: disk})
	held, entered := make(chan struct{}), make(chan struct{}, 16)
	disk.SetHook(func(op vfs.Op) vfs.Fault {
		if op.Kind == vfs.OpSync {
			entered <- struct{}{}
			<-held
		}
		return vfs.Fault{}
	})
	acked := make(chan error, 1)
	r.Submit(kuji.Draw{Player: "ann", Pool: "box"}, func(_ kuji.Result, err error) { acked <- err })
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := r.Pools().Odds(ctx, "box", "ann", 1)
	wantCode(t, err, kuji.CodeCanceled)
	if o, err := r.Pools().Odds(kuji.Stale(t.Context()), "box", "ann", 1); err != nil || len(o.Outcomes) == 0 {
		t.Errorf("stale odds: %+v, %v", o, err)
	}
	close(held)
	if _, err := r.Pools().Odds(t.Context(), "box", "ann", 1); err != nil {
		t.Error(err)
	}
	if err := <-acked; err != nil {
		t.Error(err)
	}
}

// TestDisclose: a catalog is enough for what is published of it.
func TestDisclose(t *testing.T) {
	all, err := kuji.Disclose(parse(t, strings.ReplaceAll(oddsCatalog, "_", "")))
	if err != nil || len(all) != 1 || all[0].Err != nil || all[0].Pool.ID != "banner" {
		t.Fatalf("%+v, %v", all, err)
	}
	// A hit within three draws: p, then p, then for sure. The rate is one in as many draws as that takes.
	miss := new(big.Rat).Sub(big.NewRat(1, 1), big.NewRat(1, 1_000_000))
	wait := new(big.Rat).Add(new(big.Rat).Add(big.NewRat(1, 1), miss), new(big.Rat).Mul(miss, miss))
	off := new(big.Rat).Sub(all[0].LongRun[0], new(big.Rat).Inv(wait))
	if off.Abs(off).Cmp(new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).Exp(big.NewInt(10), big.NewInt(60), nil))) > 0 {
		t.Errorf("the long-run rate is %v, off by %v", all[0].LongRun[0].FloatString(70), off.FloatString(70))
	}
	_, err = kuji.Disclose(nil)
	wantCode(t, err, kuji.CodeInvalid)
}

// TestOddsEndWithTheirCaller: what nobody waits for any more is not computed.
func TestOddsEndWithTheirCaller(t *testing.T) {
	e, err := openWorld("data", worldOptions{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	r, err := e.Realm("test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Apply(t.Context(), parse(t, strings.ReplaceAll(oddsCatalog, "_", ""))); err != nil {
		t.Fatal(err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	_, err = r.Pools().Odds(gone, "banner", "", 1)
	wantCode(t, err, kuji.CodeCanceled)
	if err == nil || !strings.Contains(err.Error(), "computing odds") {
		t.Errorf("%v, want that it was canceled while it computed", err)
	}
}
