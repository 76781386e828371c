package rules_test

import (
	"bytes"
	"testing"

	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

func forget(player string) rules.Command {
	return rules.Command{Kind: rules.KindForget, Player: player}
}

// TestForget: nothing of a player is left but the number, by none of the names; what others have stays.
func TestForget(t *testing.T) {
	r := newRealm(t, 1)
	r.put(merging)
	r.ends(forget("bob"), rules.UnknownPlayer)
	for _, cmd := range []rules.Command{
		grant("ann", of("coin", 35)), grant("secret-bob", of("coin", 55), of("gem", 60), of("pass", 2)), grant("cy", of("coin", 5)), register("secret-dan"),
		linkTo("twitch:secret", "secret-bob"), mergeOf("secret-bob", "secret-dan"), linkCode("secret-bob", "code"),
		progressOf("secret-bob", "points", "", 15), claimOf("secret-bob"), progressOf("secret-bob", "map", "y", 1), draw("secret-bob", "p", 4),
		opened("cy", "pool", of("coin", 3)), joined("twitch:secret", "pool", 0, 0, of("coin", 4)), joined("ann", "pool", 0, 0, of("coin", 1)),
	} {
		r.ends(cmd, rules.OK)
	}
	cmd := group(grant("secret-bob", of("coin", 1)), transfer("ann", "secret-bob", of("coin", 1)))
	cmd.ID = "ann's"
	shared := r.ends(cmd, rules.OK)
	r.ends(block("secret-bob", 0), rules.OK)
	others := r.holds("ann", "coin") + r.holds("cy", "coin") + r.held("ann", "coin") + r.held("cy", "coin")
	ev := r.ends(forget("twitch:secret"), rules.OK)
	if rules.Forgets(r.state, &shared) {
		t.Error("the names are gone before they are erased")
	}
	r.sweep()
	if _, ok := r.rules.NextDue(); ok && r.sweep() > 0 {
		t.Error("more is due")
	}
	for _, name := range []string{"secret-bob", "twitch:secret", "secret-dan"} {
		if _, ok := r.state.Player(name); ok {
			t.Errorf("%s is known", name)
		}
	}
	if sum := r.all("coin"); sum != others || r.all("gem")+r.all("pass") != 0 {
		t.Errorf("%d coins, want %d", sum, others)
	}
	for num := range r.state.Players() {
		items, counters := r.state.Slots(num, nil, nil)
		if r.state.PlayerID(num) == "" && len(items)+len(counters) > 0 {
			t.Errorf("number %d still has %v %v", num, items, counters)
		}
	}
	if was, _, err := rules.CommandOf(r.state, &ev); err != nil || was.Player != "twitch:secret" {
		t.Errorf("who was forgotten: %q, %v", was.Player, err)
	}
	if !rules.Forgets(r.state, &shared) {
		t.Error("a request with the player is still answered")
	}
	ends := r.ends(ofRound(rules.KindSettle, "pool", 1), rules.OK)
	if won := r.winners(&ends); len(won) != 1 || won[0] == "" || r.all("coin") != others {
		t.Errorf("%q have won, of %d coins", won, r.all("coin"))
	}
	r.ends(grant("secret-bob", of("coin", 1)), rules.OK)
	r.wantHas("secret-bob", "coin", 6, 0)
	r.replay()
}

// TestForgottenIDs: the id of a request that a forgotten player asked for is known by its hash alone, and that of
// another's is answered as before. No snapshot has the name.
func TestForgottenIDs(t *testing.T) {
	r := newRealm(t, 1)
	r.put(merging)
	for id, cmd := range map[string]rules.Command{
		"r1": grant("ann", of("coin", 35)), "secret-id-of-bob": grant("secret-bob", of("coin", 55)), "r2": transfer("ann", "secret-cy", of("coin", 1)),
	} {
		cmd.ID = id
		r.ends(cmd, rules.OK)
	}
	cmd := forget("secret-bob")
	cmd.ID = "last"
	r.ends(cmd, rules.OK)
	r.sweep()
	check := func(s *store.State) {
		t.Helper()
		for id, kind := range map[string]uint8{"r1": uint8(rules.KindGrant), "secret-id-of-bob": store.KindErased, "last": store.KindErased, "r2": uint8(rules.KindTransfer)} {
			var ev store.Event
			a, ok := s.Begin(id)
			if !ok {
				t.Errorf("%s is not known", id)
				continue
			}
			if _, err := store.Decode(a.Event, &ev); err != nil || ev.Kind != kind {
				t.Errorf("%s is answered by kind %d, want %d: %v", id, ev.Kind, kind, err)
			}
			s.End()
		}
		if err := s.Check(); err != nil {
			t.Error(err)
		}
	}
	check(r.state)
	if !r.state.Rewrites() {
		t.Error("snapshots need not be written again")
	}
	loader := store.NewLoader()
	c := r.state.Capture(nil)
	for kind, data := range c.Blocks(func() {}) {
		if bytes.Contains(data, []byte("secret-bob")) || bytes.Contains(data, []byte("secret-id")) {
			t.Errorf("a block of kind %d has a name that is erased", kind)
		}
		if err := loader.Block(kind, data); err != nil {
			t.Fatal(err)
		}
	}
	r.state.Release(c, true)
	if err := loader.Loaded(); err != nil {
		t.Fatal(err)
	}
	loaded, _, err := loader.State()
	if err != nil {
		t.Fatal(err)
	}
	if check(loaded); loaded.Hash() != r.state.Hash() {
		t.Error("the state that was loaded has another hash")
	}
	r.state.Release(r.state.Capture(nil), true)
	if r.state.Rewrites() {
		t.Error("snapshots must be written a third time")
	}
	r.replay()
}
