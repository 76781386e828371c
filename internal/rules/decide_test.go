package rules_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// TestSameBytes: the same seed and commands give the same bytes, whatever the rules have
// decided before: those of a realm that restarts after every few events, and that follows
// others' events, too. Then every event is decided again from what it says was asked.
func TestSameBytes(t *testing.T) {
	for seed := range uint64(8) {
		one, two := newRealm(t, seed), newRealm(t, seed)
		pick := seeded(seed)
		for n := range 300 {
			if n%100 == 0 {
				yaml := randomCatalog(pick)
				one.put(yaml)
				two.put(yaml)
			}
			one.now += int64(pick("time", 1_000_000))
			two.now = one.now
			cmd := randomCommand(pick)
			cmd.ID = fmt.Sprint(n)
			one.do(cmd)
			two.do(cmd)
			if n%7 == 0 {
				src := two.src
				two = two.replay()
				two.src = src
			}
			if l, m := one.log[len(one.log)-1], two.log[len(two.log)-1]; !bytes.Equal(l.raw, m.raw) {
				t.Fatalf("seed %d, command %d, %+v: %x and %x", seed, n, cmd, l.raw, m.raw)
			}
		}
		again := newRealm(t, seed)
		var ev store.Event
		for i, l := range one.log {
			again.now = l.at.Time
			if _, err := store.Decode(l.raw, &ev); err != nil {
				t.Fatal(err)
			}
			if rules.Kind(ev.Kind) == rules.KindCatalog {
				again.apply(l.raw)
				tables, err := rules.Load(again.state, again.state.Catalog())
				if err != nil {
					t.Fatal(err)
				}
				again.rules.Reset(tables)
				continue
			}
			cmd, _, err := rules.CommandOf(again.state, &ev)
			if err != nil {
				t.Fatal(err)
			}
			again.do(cmd)
			if got := again.log[i].raw; !bytes.Equal(got, l.raw) {
				t.Fatalf("seed %d, event %d, %+v: %x is decided again as %x", seed, i, cmd, l.raw, got)
			}
		}
	}
}

// TestDecideChangesNoState: what is decided and not applied leaves no trace in the state.
func TestDecideChangesNoState(t *testing.T) {
	r := newRealm(t, 1)
	pick := seeded(9)
	r.put(randomCatalog(pick))
	for range 200 {
		cmd := randomCommand(pick)
		was := r.state.Hash()
		r.decide(&cmd, r.src)
		if r.state.Hash() != was {
			t.Fatalf("%+v changed the state before its event was applied", cmd)
		}
		r.rules.Reset(r.rules.Tables())
		r.check()
		r.do(randomCommand(pick))
	}
}

// TestDecideAllocatesNothing: not for the draws that games make all the time.
func TestDecideAllocatesNothing(t *testing.T) {
	r := newRealm(t, 1)
	r.put(`{kuji: 1, items: {gem: {kind: currency}, sword: {}}, start: {gem: 1000000}, pools: {
		plain: {entries: [{id: a, weight: 1, reward: {items: {sword: 1}}}, {id: b, weight: 3}]},
		limits: {limits: [{per: day, draws: 100000}, {per: window, window: 1h, draws: 60}], entries: [{id: a, weight: 1}]},
		priced: {price: {gem: 1}, mode: raffle, entries: [{id: a, stock: 1000000, reward: {items: {sword: {min: 1, max: 9}}}}]},
		nested: {price: {gem: 1}, max_count: 10, entries: [{id: a, weight: 1, reward: {pool: plain}}, {id: b, weight: 1, reward: {pool: priced}}]}}}`)
	r.want(grant("ann", of("sword", 5)), rules.OK, "")
	r.want(grant("bob", of("sword", 5)), rules.OK, "")
	r.w.Buf = make([]byte, 0, 1<<16)
	for name, cmd := range map[string]rules.Command{
		"plain": draw("ann", "plain", 1), "limits": draw("ann", "limits", 1), "priced": draw("ann", "priced", 1), "nested": draw("ann", "nested", 10),
		"refused": draw("ann", "limits", 61), "grant": grant("ann", of("sword", 1)), "transfer": transfer("ann", "bob", of("sword", 1)),
		"group": group(draw("ann", "nested", 3), consume("ann", of("gem", 1)), draw("bob", "plain", 1)),
	} {
		cmd.ID = "0123456789abcdef"
		if n := testing.AllocsPerRun(100, func() {
			r.w.Buf = r.w.Buf[:0]
			if err := r.rules.Resolve(&cmd); err != nil {
				t.Fatal(err)
			}
			r.rules.Decide(&cmd, r.now, r.src, &r.w)
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
		r.rules.Reset(r.rules.Tables())
	}
}

// TestNewPlayersAreCounted: as many as a command makes, or more.
func TestNewPlayersAreCounted(t *testing.T) {
	r := newRealm(t, 1)
	pick := seeded(3)
	r.put(`{kuji: 1, items: {gem: {kind: currency}}, start: {gem: 100}, pools: {p1: {entries: [{id: a, weight: 1}]}}}`)
	if n := (&rules.Command{Kind: rules.KindAtomic, Members: []rules.Command{transfer("ann", "bob", of("gem", 1)), draw("cat", "p1", 4)}}); n.NewPlayers(r.state) != 3 || n.Draws() != 4 {
		t.Errorf("%d new players and %d draws, want 3 and 4", n.NewPlayers(r.state), n.Draws())
	}
	for n := range 300 {
		cmd := randomCommand(pick)
		for i := range cmd.Members {
			cmd.Members[i].Player += fmt.Sprint(n % 40)
		}
		before, most := int(r.state.Players()), cmd.NewPlayers(r.state)
		r.do(cmd)
		if got := int(r.state.Players()) - before; got > most {
			t.Fatalf("%+v made %d players, %d were counted", cmd, got, most)
		}
	}
}
