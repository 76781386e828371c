package kuji_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/kuji-dev/kuji"
)

// TestRecoverManyPlayers opens a realm of so many players that what its events need is
// fetched ahead: nothing of a batch is left out, whatever their number, and what
// an event makes is there for the one behind it.
func TestRecoverManyPlayers(t *testing.T) {
	dir := t.TempDir()
	e, r := open(t, dir, kuji.Options{Sync: kuji.SyncNone})
	all := func(reqs []kuji.Request) []kuji.Result {
		t.Helper()
		res, err := r.DoAll(t.Context(), reqs)
		if err != nil {
			t.Fatal(err)
		}
		for i := range res {
			if res[i].Status != kuji.OK {
				t.Fatalf("%+v: %+v", reqs[i], res[i])
			}
		}
		return res
	}
	const players = 5*4096 - 10 // the next ones stand on a page of memory of their own
	var first []kuji.Request
	for i := range players {
		first = append(first, kuji.Draw{Player: fmt.Sprint("p", i), Pool: "free"})
	}
	for part := range slices.Chunk(first, kuji.MaxBatch) {
		all(part)
	}
	var asked []kuji.Request
	var got []kuji.Result
	for _, n := range []int{1, 31, 32, 33, 63, 64, 65, 150} {
		reqs := make([]kuji.Request, n)
		for i := range reqs {
			id, player := fmt.Sprint("id", n, "-", i), fmt.Sprint("new", n, "-", i/4)
			switch i % 4 {
			case 0: // who the next ones are about
				reqs[i] = kuji.Grant{ID: id, Player: player, Items: []kuji.Stack{{Item: "sword", Quantity: 3}}}
			case 1:
				reqs[i] = kuji.Draw{ID: id, Player: player, Pool: "free"}
			case 2:
				reqs[i] = kuji.Atomic{ID: id, Members: []kuji.Request{kuji.Draw{Player: player, Pool: "free", Count: 2}, kuji.Draw{Player: "p7", Pool: "free"}}}
			case 3:
				reqs[i] = kuji.Transfer{ID: id, From: player, To: fmt.Sprint("p", i), Items: []kuji.Stack{{Item: "sword", Quantity: 1}}}
			}
		}
		asked, got = append(asked, reqs...), append(got, all(reqs)...)
	}
	want, at, err := r.StateHash(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	_, r = open(t, dir, kuji.Options{Sync: kuji.SyncNone})
	if hash, pos, err := r.StateHash(t.Context()); err != nil || hash != want || pos != at {
		t.Fatalf("recovered %x at %d, %v; it was %x at %d", hash[:4], pos, err, want[:4], at)
	}
	if n := r.Stats().RecoveredEvents; n != uint64(players+len(asked)+1) {
		t.Errorf("%d events recovered, want %d and a catalog", n, players+len(asked))
	}
	again, err := r.DoAll(t.Context(), asked)
	if err != nil {
		t.Fatal(err)
	}
	for i := range again {
		got[i].Replayed = true
		if !reflect.DeepEqual(again[i], got[i]) {
			t.Fatalf("%+v\nwas answered\n%+v\nand is now\n%+v", asked[i], got[i], again[i])
		}
	}
}
