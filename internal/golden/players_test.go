package golden_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
)

// players returns a catalog with rounds, for a realm in which much is held and players have several names.
func players(t *testing.T, worth string) string {
	t.Helper()
	return strings.ReplaceAll(shared(t, "players.yaml"), "WORTH", worth)
}

// playersRequests returns requests in a realm of players.
func playersRequests(i int) []kuji.Request {
	id := func(s string) string { return fmt.Sprint(s, "-", i) }
	before := func(s string, n int) string { return fmt.Sprint(s, "-", i-n) }
	ann, bob, cid := fmt.Sprint("p", i%4), fmt.Sprint("p", (i+1)%4), fmt.Sprint("p", (i+2)%4)
	alias, code := fmt.Sprint("twitch:", i%6), fmt.Sprintf("LINK-%04d", i)
	some := func(item string, n uint64) []kuji.Stack { return []kuji.Stack{{Item: item, Quantity: n}} }
	held, refund := kuji.Holding{For: 3 * time.Hour}, kuji.Holding{For: 3 * time.Hour, Refund: true}
	note := kuji.Note{By: "ops", Reason: "to put it right"}
	box := []string{"small-box", "large-box"}[i%2]
	return []kuji.Request{
		kuji.Grant{ID: id("order"), Player: ann, Items: []kuji.Stack{{Item: "coin", Quantity: 60}, {Item: box, Quantity: 4}}},
		kuji.Grant{ID: id("more"), Player: bob, Items: []kuji.Stack{{Item: "coin", Quantity: 30}, {Item: box, Quantity: 4}}},
		kuji.Progress{ID: id("points"), Player: cid, Event: "points", N: uint64(1 + i%5)},
		kuji.OpenRound{ID: id("gamble"), Player: ann, Round: "gamble", Stake: some(box, uint64(1+i%3))},
		kuji.Join{ID: id("join"), Player: bob, Round: "gamble"},
		kuji.OpenRound{ID: id("giveaway"), Round: "giveaway"},
		kuji.Join{ID: id("ticket"), Player: ann, Round: "giveaway", Tickets: uint64(1 + i%4)},
		kuji.Join{ID: id("ticket2"), Player: cid, Round: "giveaway"},
		kuji.Settle{ID: id("settle"), Round: "giveaway"},
		kuji.Join{ID: id("jackpot"), Player: bob, Round: "jackpot", Tickets: uint64(3 + i%5)},
		kuji.OpenRound{ID: id("duel"), Player: cid, Round: "duel", Stake: some("coin", 2)},
		kuji.CancelRound{ID: id("off"), Round: "duel"},
		kuji.OpenRound{ID: id("race"), Player: ann, Round: "race", Tickets: 1},
		kuji.Join{ID: id("race2"), Player: cid, Round: "race"},
		kuji.Settle{ID: id("race3"), Round: "race"},
		kuji.Draw{ID: id("hold"), Player: ann, Pool: []string{"shop", "tickets"}[i%2], Count: 1 + i%3, Hold: held},
		kuji.Draw{ID: id("refund"), Player: bob, Pool: "shop", Count: 1 + i%4, Hold: refund},
		kuji.Consume{ID: id("eat"), Player: ann, Items: some("coin", 3), Hold: held},
		kuji.Transfer{ID: id("gift"), From: bob, To: cid, Items: some("coin", 4), Hold: held},
		kuji.Atomic{ID: id("both"), Hold: refund, Members: []kuji.Request{kuji.Consume{Player: cid, Items: some("coin", 1)}, kuji.Grant{Player: cid, Items: some("key", 1)}}},
		kuji.Confirm{ID: id("yes"), Hold: before([]string{"hold", "refund", "gift"}[i%3], 1)},
		kuji.Cancel{ID: id("no"), Hold: before([]string{"eat", "hold", "both"}[i%3], 1)},
		kuji.Reverse{ID: id("undo"), Request: before("more", 2), Note: note},
		kuji.Draw{ID: id("tickets"), Player: cid, Pool: "tickets", Count: 1 + i%5},
		kuji.LinkCode{ID: id("code"), Player: ann, Code: code},
		kuji.Link{ID: id("link"), Player: alias, Code: code},
		kuji.Link{ID: id("guess"), Player: alias, Code: "LINK-NONE"},
		kuji.Grant{ID: id("by-alias"), Player: alias, Items: some("coin", 1)},
	}
}

// makePlayers fills a data directory with rounds, holds, reversals and the names of players: also those of who was
// merged, blocked or forgotten.
func makePlayers(t *testing.T) string {
	t.Helper()
	dir, s := filepath.Join(t.TempDir(), "data"), newSteps()
	e, r := openIn(t, s, dir, "players", false)
	note := kuji.Note{By: "ops", Reason: "as the player wishes"}
	for i, worth := range []string{"100", "30"} {
		if _, err := r.Apply(t.Context(), parse(t, players(t, worth))); err != nil {
			t.Fatal(err)
		}
		importCodes(t, r, "list", []string{fmt.Sprint("CODE-", i, "-A"), fmt.Sprint("CODE-", i, "-B")})
		for j := range 20 {
			n := 20*i + j
			results, err := r.DoAll(t.Context(), playersRequests(n))
			if err != nil {
				t.Fatal(err)
			}
			extra := fmt.Sprint("x", n)
			switch n % 8 {
			case 2:
				do(t, r, kuji.Grant{ID: "g" + extra, Player: extra, Items: []kuji.Stack{{Item: "coin", Quantity: 9}}})
				do(t, r, kuji.Consume{ID: "h" + extra, Player: extra, Items: []kuji.Stack{{Item: "coin", Quantity: 2}}, Hold: kuji.Holding{For: time.Hour}})
				do(t, r, kuji.Merge{ID: "m" + extra, Player: "p0", From: extra, Strict: n%16 == 2, Note: note})
			case 4:
				do(t, r, kuji.Grant{ID: "g" + extra, Player: extra, Items: []kuji.Stack{{Item: "coin", Quantity: 9}}})
				do(t, r, kuji.Link{ID: "l" + extra, Player: "mail:" + extra, To: extra})
				do(t, r, kuji.Forget{ID: "f" + extra, Player: extra, Note: note})
			case 6:
				do(t, r, kuji.Register{ID: "r" + extra, Player: extra})
				do(t, r, kuji.Block{ID: "b" + extra, Player: extra, Note: note})
				do(t, r, kuji.Grant{ID: "g" + extra, Player: extra, Items: []kuji.Stack{{Item: "coin", Quantity: 9}}})
				do(t, r, kuji.Block{ID: "u" + extra, Player: extra, Ends: n%16 == 6, Note: note})
			case 7:
				do(t, r, kuji.Unlink{ID: "u" + extra, Player: fmt.Sprint("twitch:", (n-1)%6), Note: note})
				do(t, r, kuji.Reroll{ID: "r" + extra, Round: "giveaway", Number: results[5].Round().Number})
			}
			s.now = s.now.Add(time.Duration(1+n%5) * 71 * time.Minute)
			if n%12 == 9 {
				if err := r.Settle(t.Context()); err != nil {
					t.Fatal(err)
				}
				snapshot(t, r)
			}
		}
	}
	closed(t, e)
	return dir
}
