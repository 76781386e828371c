package rules_test

import (
	"fmt"
	"testing"

	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

func linkCode(player, code string) rules.Command {
	return rules.Command{Kind: rules.KindLinkCode, Player: player, Code: rules.SumCode(code)}
}

func linkBy(name, code string) rules.Command {
	return rules.Command{Kind: rules.KindLink, Player: name, Code: rules.SumCode(code)}
}

func linkTo(name, player string) rules.Command {
	return rules.Command{Kind: rules.KindLink, Player: name, To: player}
}

func unlink(name string) rules.Command { return rules.Command{Kind: rules.KindUnlink, Player: name} }

func block(player string, ends int) rules.Command {
	return rules.Command{Kind: rules.KindBlock, Player: player, Count: ends, Note: &rules.Note{Reason: "bots"}}
}

// ends carries out a command, by whatever names, after what is due, and checks how it ends.
func (r *realm) ends(cmd rules.Command, status rules.Status) store.Event {
	r.t.Helper()
	r.settleAll(&cmd)
	if err := r.rules.CheckNew(&cmd); err != nil {
		r.t.Fatal(err)
	}
	got, _ := r.decide(&cmd, r.src)
	if got != status {
		r.t.Fatalf("%+v ends %v, want %v", cmd, got, status)
	}
	if got == rules.Refused {
		return store.Event{}
	}
	ev := r.apply(r.w.Buf)
	if same, err := rules.Same(r.state, &cmd, &ev); !same || err != nil {
		r.t.Fatalf("%+v is not the same as what its event answers: %v", cmd, err)
	}
	r.check()
	return ev
}

const people = `
kuji: 1
items: {coin: {kind: currency}, energy: {grows: {every: 1m, by: 1, to: 10}}}
start: {coin: 5}
pools: {p: {entries: [{id: a, weight: 1, reward: {items: {coin: 1}}}]}}
`

// TestLinks: a name is a player's by a code, once and for ten minutes, or by who has the right to; all requests and reads
// take it. One that is a player of its own is left alone.
func TestLinks(t *testing.T) {
	r := newRealm(t, 1)
	r.put(people)
	r.ends(grant("ann", of("coin", 10)), rules.OK)
	r.ends(linkCode("ann", "ABCD-1234"), rules.OK)
	r.ends(linkBy("twitch:1", "other"), rules.UnknownLinkCode)
	if _, ok := r.state.Player("twitch:1"); ok {
		t.Error("a guess makes a player")
	}
	ev := r.ends(linkBy("twitch:1", "abcd 1234"), rules.OK)
	r.ends(linkBy("twitch:2", "ABCD1234"), rules.UnknownLinkCode)
	r.ends(grant("twitch:1", of("coin", 7)), rules.OK)
	r.wantHas("ann", "coin", 22, 0)
	r.wantHas("twitch:1", "coin", 22, 0)
	r.ends(linkBy("twitch:1", "ABCD1234"), rules.UnknownLinkCode)
	r.ends(linkTo("twitch:1", "ann"), rules.AlreadyLinked)
	r.ends(linkTo("ann", "twitch:1"), rules.AlreadyLinked)
	r.ends(linkTo("discord:1", "nobody"), rules.UnknownPlayer)
	r.ends(linkTo("discord:1", "twitch:1"), rules.OK)
	r.ends(grant("bob", of("coin", 1)), rules.OK)
	r.ends(linkTo("bob", "ann"), rules.MergeNeeded)
	r.ends(unlink("bob"), rules.NotLinked)
	r.ends(unlink("nobody"), rules.UnknownPlayer)
	cmd := transfer("discord:1", "twitch:1", of("coin", 1))
	if err := r.rules.CheckNew(&cmd); err == nil || err.Field != "to" {
		t.Errorf("a player gives to itself: %v", err)
	}
	if cmd := linkBy("twitch:1", "abcd 1234"); true {
		if same, err := rules.Same(r.state, &cmd, &ev); !same || err != nil {
			t.Errorf("a repeat of the link is another request: %v", err)
		}
	}
	r.ends(unlink("twitch:1"), rules.OK)
	r.ends(draw("twitch:1", "p", 1), rules.OK)
	r.wantHas("twitch:1", "coin", 1, 0) // no starting grants
	r.wantHas("ann", "coin", 22, 0)
	if r.records() != 1 { // discord:1, and no code
		r.sweep()
		r.now += 25 * 3600_000
		if r.sweep(); r.records() != 1 {
			t.Errorf("%d records are left", r.records())
		}
	}
	r.replay()
}

// TestLinkCodesLapse: a code is gone after ten minutes, and so are guesses; ten of these are allowed.
func TestLinkCodesLapse(t *testing.T) {
	r := newRealm(t, 1)
	r.put(people)
	r.ends(linkCode("ann", "first"), rules.OK)
	r.ends(linkCode("ann", "second"), rules.OK)
	r.ends(linkCode("bob", "second"), rules.LinkCodeTaken)
	r.ends(linkBy("x", "first"), rules.UnknownLinkCode)
	for range rules.MaxLinkGuesses - 1 {
		r.ends(linkBy("x", "guess"), rules.UnknownLinkCode)
	}
	r.ends(linkBy("x", "second"), rules.TooManyGuesses)
	r.ends(linkBy("x", "guess"), rules.TooManyGuesses)
	r.now += rules.LinkLasts - 1
	r.ends(linkBy("y", "second"), rules.OK)
	r.ends(linkCode("ann", "third"), rules.OK)
	r.now++
	r.ends(linkBy("x", "guess"), rules.UnknownLinkCode)
	r.now += rules.LinkLasts - 1
	r.ends(linkBy("z", "third"), rules.UnknownLinkCode)
	r.now += rules.LinkLasts
	if at, ok := r.rules.NextDue(); !ok || int64(at) > r.now {
		t.Errorf("due next is %d, %v", at, ok)
	}
	if r.sweep(); r.records() != 1 {
		t.Errorf("%d records are left", r.records())
	}
	if _, ok := r.rules.NextDue(); ok {
		t.Error("something is still due")
	}
	r.replay()
}

// TestAliasesAreBounded: a player has at most so many other names.
func TestAliasesAreBounded(t *testing.T) {
	r := newRealm(t, 1)
	r.put(people)
	r.ends(register("ann"), rules.OK)
	for i := range rules.MaxAliases {
		r.ends(linkTo(fmt.Sprint("x:", i), "ann"), rules.OK)
	}
	r.ends(linkTo("y", "ann"), rules.TooManyAliases)
	r.ends(unlink("x:7"), rules.OK)
	r.ends(linkTo("y", "ann"), rules.OK)
	r.replay()
}

// TestBlocked: a player who is blocked can do nothing, by no name, until that ends.
func TestBlocked(t *testing.T) {
	r := newRealm(t, 1)
	r.put(people)
	r.ends(grant("ann", of("coin", 5)), rules.OK)
	r.ends(grant("bob", of("coin", 5)), rules.OK)
	r.ends(linkTo("x", "ann"), rules.OK)
	r.ends(block("nobody", 0), rules.UnknownPlayer)
	for range 2 {
		r.ends(block("x", 0), rules.OK)
	}
	if reason, _, _ := r.state.ReadRecord(rules.BlockRecord(0)); string(reason) != "bots" {
		t.Errorf("ann is blocked for %q", reason)
	}
	for _, cmd := range []rules.Command{
		draw("ann", "p", 1), draw("x", "p", 1), register("x"), grant("ann", of("coin", 1)), consume("ann", of("coin", 1)),
		transfer("ann", "bob", of("coin", 1)), transfer("bob", "x", of("coin", 1)), group(draw("bob", "p", 1), draw("x", "p", 1)),
		linkCode("ann", "c"), linkTo("z", "ann"),
	} {
		r.ends(cmd, rules.Blocked)
	}
	r.ends(draw("bob", "p", 1), rules.OK)
	r.ends(unlink("x"), rules.OK)
	r.ends(block("ann", 1), rules.OK)
	r.ends(block("ann", 1), rules.OK)
	r.ends(draw("ann", "p", 1), rules.OK)
	r.now += 25 * 3600_000
	if r.sweep(); r.records() != 0 {
		t.Errorf("%d records are left", r.records())
	}
	r.replay()
}
