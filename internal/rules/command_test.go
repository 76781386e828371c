package rules_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

const shop = `{kuji: 1, items: {gem: {kind: currency}, key: {}, sword: {}}, start: {gem: 3}, pools: {
	box: {price: {key: 1}, max_count: 9, entries: [{id: a, weight: 1, stock: 50, reward: {items: {sword: 1}}}, {id: b, weight: 1}]},
	free: {pity: {a: {certain: 3}}, entries: [{id: a, weight: 1}]}}}`

// sixtyFour is as long as an id may be.
var sixtyFour = strings.Repeat("x", 64)

// commands are all kinds of commands, some of them of players, pools and items that there
// are not, and how they end in a realm of the catalog shop that has never seen anybody.
var commands = []struct {
	cmd     rules.Command
	status  rules.Status
	subject string
}{
	{draw("ann", "free", 1), rules.OK, ""},
	{draw(sixtyFour, sixtyFour, 1), rules.Refused, "pool"},
	{draw("ann", "box", 2), rules.InsufficientItems, "key"},
	{draw("bob", "box", 10), rules.CountTooLarge, "box"},
	{grant("ann", of("key", 9), of("gem", rules.MaxQuantity-3)), rules.OK, ""},
	{grant("ann", of("gem", 1)), rules.BalanceOverflow, "gem"},
	{grant("cat", of("nosuch", 1), of("key", 1)), rules.Refused, "items[0].item"},
	{grant("cat", of("key", 1), of(sixtyFour, 1)), rules.Refused, "items[1].item"},
	{consume("ann", of("key", 1)), rules.OK, ""},
	{consume("nobody", of("key", 1)), rules.InsufficientItems, "key"},
	{consume("dan", of("gem", 3)), rules.InsufficientItems, "gem"}, // dan has not come
	{register("dan"), rules.OK, ""},
	{register("dan"), rules.OK, ""},
	{consume("dan", of("gem", 3)), rules.OK, ""}, // of the starting grants
	{transfer("ann", "eve", of("key", 2)), rules.OK, ""},
	{transfer("dan", "gus", of("gem", 1)), rules.InsufficientItems, "gem"},
	{transfer("fay", "gus", of("gem", 1)), rules.InsufficientItems, "gem"},
	{draw("eve", "box", 2), rules.OK, ""}, // comes
	{transfer("hal", "ann", of("key", 1)), rules.InsufficientItems, "key"},
	{transfer("hal", "ian", of("nosuch", 1)), rules.Refused, "items[0].item"},
	{draw("ann", "box", 3), rules.OK, ""},
	{redeem("ann", "no code"), rules.UnknownCode, ""},
	{redeem("rob", "other"), rules.UnknownCode, ""},
	{setTrack("ann", "free/a", 7, "ops", "a fault"), rules.OK, ""},
	{setTrack("pia", "free/a", 0, "", strings.Repeat("y", rules.MaxReason)), rules.OK, ""}, // joins
	{setTrack("quin", "free/b", catalog.MaxTrackDraws, sixtyFour, "x"), rules.Refused, "track"},
	{setTrack("ann", sixtyFour+"/"+sixtyFour, 1, "", "x"), rules.Refused, "track"},
	{group(grant("jim", of("key", 2)), draw("jim", "box", 1), transfer("jim", "kay", of("key", 1)), consume("kay", of("key", 1)), draw("lou", "free", 2)), rules.OK, ""},
	{group(draw("ann", "free", 1), draw("max", "box", 1)), rules.InsufficientItems, "key"},
	{group(grant("max", of("nosuch", 1)), draw("ned", "nopool", 1), transfer("max", "ned", of("gem", 1))), rules.Refused, "members[0].items[0].item"},
	{group(grant("ann", of("key", 1)), draw("ned", "nopool", 1), transfer("max", "ned", of("nosuch", 1))), rules.Refused, "members[1].pool"},
}

// TestCommands carries out commands of all kinds. What an event answers is told before and
// after it is applied, and ever after, and from every other command.
func TestCommands(t *testing.T) {
	r := newRealm(t, 1)
	r.put(shop)
	for i := range commands {
		c := &commands[i]
		for _, id := range []string{"", sixtyFour[:60] + string(rune('A'+i)) + "!"} {
			cmd := c.cmd
			if cmd.ID = id; id == "" && (c.status == rules.OK || i%2 == 0) {
				continue // once is enough
			}
			r.want(cmd, c.status, c.subject)
		}
	}
	var events []store.Event
	for _, l := range r.log[1:] {
		var ev store.Event
		if _, err := store.Decode(l.raw, &ev); err != nil {
			t.Fatal(err)
		}
		events = append(events, ev)
	}
	r.put(`{kuji: 1, items: {gem: {kind: currency}, nosuch: {}}, pools: {nopool: {entries: [{id: a, weight: 1}]}}}`)
	for range 2 { // what was not known then may be known now, and the other way round
		for i := range events {
			cmd, _, err := rules.CommandOf(r.state, &events[i])
			if err != nil {
				t.Fatalf("event %d: %v", i, err)
			}
			for j := range events {
				same, err := rules.Same(r.state, &cmd, &events[j])
				if err != nil || same != (i == j) {
					t.Errorf("command %+v is that of event %d: %v, want %v: %v", cmd, j, same, i == j, err)
				}
			}
			for j, other := range alter(cmd) {
				if same, _ := rules.Same(r.state, &other, &events[i]); same {
					t.Errorf("%+v, altered in way %d, is taken for the same", cmd, j)
				}
			}
		}
		for _, id := range []string{"nobody", "hal", "ian", "max", "ned", sixtyFour} {
			r.want(grant(id, of("nosuch", 1)), rules.OK, "")
		}
	}
	r.replay()
}

// alter returns commands that differ from c in one thing each.
func alter(c rules.Command) (out []rules.Command) {
	change := func(f func(d *rules.Command)) {
		d := c
		d.Items, d.Members = slices.Clone(c.Items), slices.Clone(c.Members)
		f(&d)
		out = append(out, d)
	}
	change(func(d *rules.Command) { d.ID += "x" })
	if c.Kind == rules.KindAtomic {
		for i := range c.Members {
			for _, m := range alter(c.Members[i])[1:] {
				change(func(d *rules.Command) { d.Members[i] = m })
			}
		}
		change(func(d *rules.Command) { d.Members = d.Members[1:] })
		change(func(d *rules.Command) { d.Members = append(d.Members, d.Members[0]) })
		return out
	}
	change(func(d *rules.Command) { d.Player = "other" })
	switch c.Kind {
	case rules.KindDraw:
		change(func(d *rules.Command) { d.Count++ })
		change(func(d *rules.Command) { d.Pool += "x" })
		return out
	case rules.KindSetTrack:
		set := func(f func(s *rules.TrackSet)) {
			change(func(d *rules.Command) { s := *c.Set; f(&s); d.Set = &s })
		}
		set(func(s *rules.TrackSet) { s.Track += "x" })
		set(func(s *rules.TrackSet) { s.Draws++ })
		set(func(s *rules.TrackSet) { s.Reason += "x" })
		return out
	case rules.KindRedeem:
		change(func(d *rules.Command) { d.Code[15] ^= 1 })
		change(func(d *rules.Command) { d.Player += "x" })
		return out
	case rules.KindTransfer:
		change(func(d *rules.Command) { d.To = "other" })
	case rules.KindGrant:
		change(func(d *rules.Command) { d.Kind = rules.KindConsume })
	}
	for i := range c.Items {
		change(func(d *rules.Command) { d.Items[i].Quantity++ })
		change(func(d *rules.Command) { d.Items[i].Item += "x" })
	}
	change(func(d *rules.Command) { d.Items = append(d.Items, of("more", 1)) })
	return out
}

// TestMalformed: what a command must be like, whatever the state.
func TestMalformed(t *testing.T) {
	long := strings.Repeat("x", 65)
	many := func(n int) (all []catalog.Stack) {
		for i := range n {
			all = append(all, of(strings.Repeat("i", 1+i%60)+string(rune('a'+i/60)), 1))
		}
		return all
	}
	members := func(n int, m rules.Command) rules.Command { return group(slices.Repeat([]rules.Command{m}, n)...) }
	for _, c := range []struct {
		field string // empty: well formed
		cmd   rules.Command
	}{
		{"", draw("a", "p", 1)}, {"", draw(sixtyFour, sixtyFour, rules.MaxDrawCount)},
		{"player", draw("", "p", 1)}, {"player", draw(long, "p", 1)},
		{"pool", draw("a", "", 1)}, {"pool", draw("a", long, 1)},
		{"count", draw("a", "p", 0)}, {"count", draw("a", "p", -1)}, {"count", draw("a", "p", rules.MaxDrawCount+1)},
		{"id", rules.Command{Kind: rules.KindDraw, ID: long, Player: "a", Pool: "p", Count: 1}},
		{"kind", rules.Command{Kind: rules.KindCatalog, Player: "a"}}, {"kind", rules.Command{Player: "a"}},
		{"", grant("a", many(rules.MaxStacks)...)}, {"items", grant("a", many(rules.MaxStacks+1)...)}, {"items", consume("a")},
		{"items[0].item", grant("a", of("", 1))}, {"items[1].item", grant("a", of("g", 1), of(long, 1))}, {"items[1].item", grant("a", of("g", 1), of("g", 1))},
		{"", grant("a", of("g", rules.MaxQuantity))}, {"items[0].quantity", grant("a", of("g", rules.MaxQuantity+1))}, {"items[0].quantity", grant("a", of("g", 0))},
		{"from", transfer("", "b", of("g", 1))}, {"to", transfer("a", "", of("g", 1))}, {"to", transfer("a", "a", of("g", 1))}, {"items", transfer("a", "b")},
		{"", setTrack("a", long+long[1:], catalog.MaxTrackDraws, sixtyFour, strings.Repeat("x", 1024))}, {"player", setTrack("", "t", 1, "", "x")},
		{"track", setTrack("a", "", 1, "", "x")}, {"track", setTrack("a", long+long, 1, "", "x")}, {"draws", setTrack("a", "t", 1_000_001, "", "x")},
		{"by", setTrack("a", "t", 1, long, "x")}, {"reason", setTrack("a", "t", 1, "", "")}, {"reason", setTrack("a", "t", 1, "", strings.Repeat("x", 1025))},
		{"members[1].kind", group(draw("a", "p", 1), setTrack("a", "t", 1, "", "x"))},
		{"", redeem("a", "x")}, {"player", redeem("", "x")}, {"members[1].kind", group(draw("a", "p", 1), redeem("a", "x"))},
		{"members", group()}, {"", members(rules.MaxAtomic, draw("a", "p", 1))}, {"members", members(rules.MaxAtomic+1, draw("a", "p", 1))},
		{"", members(2, draw("a", "p", rules.MaxDrawCount))}, {"members", group(draw("a", "p", 1), draw("a", "p", rules.MaxDrawCount), draw("a", "p", rules.MaxDrawCount))},
		{"members[0].kind", group(group(draw("a", "p", 1)))}, {"members[1].count", group(draw("a", "p", 1), draw("a", "p", 0))},
		{"members[0].id", group(rules.Command{Kind: rules.KindDraw, ID: "i", Player: "a", Pool: "p", Count: 1})},
		{"members[0].player", group(draw("", "p", 1))},
	} {
		err := c.cmd.Check()
		if c.field == "" {
			if err != nil {
				t.Errorf("%+v: %v", c.cmd, err)
			}
			continue
		}
		if err == nil || err.Field != c.field || err.Message == "" {
			t.Errorf("%.200v: %v, want a fault of %s", c.cmd, err, c.field)
		}
	}
}

// TestCommandOfIsStrict: arguments that the rules never wrote are refused.
func TestCommandOfIsStrict(t *testing.T) {
	r := newRealm(t, 1)
	r.put(shop)
	r.want(grant("ann", of("key", 1)), rules.OK, "")
	for name, write := range map[string]func(w *store.Writer){
		"a kind that is no request": func(w *store.Writer) {
			w.Begin(9, "")
			w.Player(store.Ref{})
			w.BeginAsked()
		},
		"a player whom there is not": func(w *store.Writer) {
			w.Begin(uint8(rules.KindDraw), "")
			w.Player(store.Ref{Num: 1})
			w.BeginAsked()
			w.Ref(store.Ref{})
			w.Uint(1)
		},
		"too many draws": func(w *store.Writer) {
			w.Begin(uint8(rules.KindDraw), "")
			w.Player(store.Ref{})
			w.BeginAsked()
			w.Ref(store.Ref{})
			w.Uint(rules.MaxDrawCount + 1)
		},
		"too few items": func(w *store.Writer) {
			w.Begin(uint8(rules.KindGrant), "")
			w.Player(store.Ref{})
			w.BeginAsked()
			w.Uint(2)
			w.Ref(store.Ref{})
			w.Uint(1)
		},
		"more than the arguments": func(w *store.Writer) {
			w.Begin(uint8(rules.KindDraw), "")
			w.Player(store.Ref{})
			w.BeginAsked()
			w.Uint(0)
			w.Uint(1 << 1)
			w.Uint(1)
		},
		"a failed member beyond": func(w *store.Writer) {
			w.Begin(uint8(rules.KindAtomic), "")
			w.Fail(1, 0)
			w.BeginAsked()
			w.Uint(1)
			w.Uint(1)
			w.Buf = append(w.Buf, byte(rules.KindDraw))
			w.Ref(store.Ref{})
			w.Ref(store.Ref{})
			w.Uint(1)
		},
		"a pool that nothing has": func(w *store.Writer) {
			w.Begin(uint8(rules.KindDraw), "")
			w.Player(store.Ref{})
			w.BeginAsked()
			w.Uint(9)
			w.Uint(1)
		},
		"a group in a group": func(w *store.Writer) {
			w.Begin(uint8(rules.KindAtomic), "")
			w.BeginAsked()
			w.Uint(1)
			w.Buf = append(w.Buf, byte(rules.KindAtomic))
			w.Ref(store.Ref{})
			w.Uint(0)
		},
	} {
		var w store.Writer
		write(&w)
		w.EndAsked()
		var ev store.Event
		if _, err := store.Decode(w.End(), &ev); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var format *store.FormatError
		if cmd, _, err := rules.CommandOf(r.state, &ev); !errors.As(err, &format) {
			t.Errorf("%s is read as %+v: %v", name, cmd, err)
		}
		if same, err := rules.Same(r.state, &rules.Command{}, &ev); same || err == nil {
			t.Errorf("%s is the same as nothing: %v, %v", name, same, err)
		}
	}
}

// TestNames: what statuses and kinds are called is part of the API.
func TestNames(t *testing.T) {
	for status, want := range map[rules.Status]string{rules.OK: "ok", rules.SoldOut: "sold_out", rules.BalanceOverflow: "balance_overflow", rules.Aborted: "aborted", rules.CodeRequired: "code_required", rules.AlreadyClaimed: "already_claimed", 99: "status(99)", 6: "status(6)", 7: "status(7)", 13: "status(13)", rules.Refused: "refused"} {
		if status.String() != want {
			t.Errorf("status %d is called %v, want %s", uint8(status), status, want)
		}
	}
	for kind, want := range map[rules.Kind]string{rules.KindCatalog: "catalog", rules.KindAtomic: "atomic", rules.KindClock: "clock", 0: "kind(0)", rules.KindSetTrack: "set_track", rules.KindCodes: "codes", rules.KindRedeem: "redeem", rules.KindRegister: "register", rules.KindUpgrade: "upgrade", rules.KindSetLimit: "set_limit", rules.KindProgress: "progress", rules.KindClaim: "claim", rules.KindSetCounter: "set_counter", rules.KindDue: "due", rules.KindCollect: "collect", rules.KindOpenRound: "open_round", rules.KindJoin: "join", rules.KindSettle: "settle", rules.KindReroll: "reroll", rules.KindCancelRound: "cancel_round", rules.KindHold: "hold", rules.KindConfirm: "confirm", rules.KindCancel: "cancel", rules.KindReverse: "reverse", rules.KindPropose: "propose", rules.KindWithdraw: "withdraw", rules.KindApprove: "approve", 37: "kind(37)"} {
		if kind.String() != want {
			t.Errorf("kind %d is called %v, want %s", uint8(kind), kind, want)
		}
	}
}
