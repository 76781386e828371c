package rules_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/look"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
	"github.com/kuji-dev/kuji/view"
)

// realm joins rules and store as package kuji does, and keeps a log.
type realm struct {
	t     rapid.TB
	state *store.State
	rules *rules.Rules
	src   rules.Source
	now   int64
	log   []logged
	w     store.Writer
	// refused is why the last command was refused that named what there is not.
	refused *rules.CommandError
}

// logged is an event as a log holds it.
type logged struct {
	raw []byte
	at  store.At
}

// monday is a Monday, 00:00 UTC: 2023-11-13.
const monday = 1_699_833_600_000

func newRealm(t rapid.TB, seed uint64) *realm {
	r := &realm{t: t, state: store.New(), src: rand.NewPCG(seed, 1), now: monday}
	r.rules = rules.New(r.state, rules.NoTables())
	return r
}

func parse(t rapid.TB, yaml string) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Parse([]byte(yaml))
	if err != nil {
		t.Fatalf("%v in\n%s", err, yaml)
	}
	return c
}

// put puts a catalog in force.
func (r *realm) put(yaml string) {
	r.t.Helper()
	r.force(parse(r.t, yaml))
}

func (r *realm) force(c *catalog.Catalog) {
	r.t.Helper()
	p, err := rules.Prepare(r.state, r.rules.Tables(), c, nil, 0)
	if err != nil {
		r.t.Fatalf("%v", err)
	}
	if p.Event == nil {
		return
	}
	r.w.Buf = r.w.Buf[:0]
	if err := p.Enter(r.state, r.now, &r.w); err != nil {
		r.t.Fatalf("%v", err)
	}
	r.apply(r.w.Buf)
	p.Tables.Grown(r.state)
	r.rules.Reset(p.Tables)
	r.check()
}

// apply appends an event to the log and applies it.
func (r *realm) apply(raw []byte) (ev store.Event) {
	r.t.Helper()
	at := store.At{Position: uint64(len(r.log) + 1), Index: uint32(len(r.log) % 3), Time: r.now}
	raw = bytes.Clone(raw)
	if n, err := store.Decode(raw, &ev); err != nil || n != len(raw) {
		r.t.Fatalf("%x is decoded as %d bytes, %v", raw, n, err)
	}
	if err := r.state.Apply(&ev, at, nil); err != nil {
		r.t.Fatalf("%x: %v", raw, err)
	}
	r.log = append(r.log, logged{raw, at})
	return ev
}

func (r *realm) check() {
	r.t.Helper()
	if err := r.state.Check(); err != nil {
		r.t.Fatalf("%v", err)
	}
	if err := r.rules.CheckSamplers(); err != nil {
		r.t.Fatalf("%v", err)
	}
	first := uint32(0)
	for name, width := range r.state.CounterNames() {
		for c := first; c < first+width; c++ {
			if r.state.Tally(c) != 0 && !rules.OfRealm(name) {
				r.t.Fatalf("counter %q is the realm's, but not counted as one", name)
			}
		}
		first += width
	}
}

// decide decides a command with a source of randomness and applies nothing.
func (r *realm) decide(cmd *rules.Command, src rules.Source) (rules.Status, store.Event) {
	r.t.Helper()
	if err := cmd.Check(); err != nil {
		r.t.Fatalf("%v", err)
	}
	r.w.Buf = r.w.Buf[:0]
	if err := r.rules.Resolve(cmd); err != nil {
		r.refused = err
		return rules.Refused, store.Event{Status: uint8(rules.Refused)}
	}
	status := r.rules.Decide(cmd, r.now, src, &r.w)
	var ev store.Event
	if n, err := store.Decode(r.w.Buf, &ev); err != nil || n != len(r.w.Buf) || ev.Status != uint8(status) {
		r.t.Fatalf("%+v gives %x, of which %d bytes with status %d are decoded: %v", cmd, r.w.Buf, n, ev.Status, err)
	}
	return status, ev
}

// do carries out a command. The event says which command it answers, before it is applied
// and after. There is no event, and nothing to apply, if the command is refused.
func (r *realm) do(cmd rules.Command) store.Event {
	r.t.Helper()
	status, before := r.decide(&cmd, r.src)
	if status == rules.Refused {
		return before
	}
	r.wantAnswers(&cmd, &before)
	ev := r.apply(r.w.Buf)
	r.wantAnswers(&cmd, &ev)
	if same, err := rules.Same(r.state, &cmd, &ev); !same || err != nil {
		r.t.Fatalf("%+v is not the same as what its event answers: %v", cmd, err)
	}
	r.check()
	return ev
}

func (r *realm) wantAnswers(cmd *rules.Command, ev *store.Event) {
	r.t.Helper()
	was, failed, err := rules.CommandOf(r.state, ev)
	if err != nil || !equal(cmd, &was) || failed >= max(1, len(cmd.Members)) {
		r.t.Fatalf("%x answers %+v, with member %d failed, want %+v: %v", ev.Raw, was, failed, cmd, err)
	}
}

// equal compares commands, of which nil and no items are the same.
func equal(a, b *rules.Command) bool {
	return a.Kind == b.Kind && a.ID == b.ID && a.Player == b.Player && a.To == b.To && a.Pool == b.Pool &&
		a.Count == b.Count && a.Pay == b.Pay && a.Code == b.Code && a.Goal == b.Goal && slices.Equal(a.Items, b.Items) &&
		slices.EqualFunc(a.Members, b.Members, func(x, y rules.Command) bool { return equal(&x, &y) })
}

// want carries out a command that must end so.
func (r *realm) want(cmd rules.Command, status rules.Status, subject string) store.Event {
	r.t.Helper()
	ev := r.do(cmd)
	if got := rules.Status(ev.Status); got != status || r.subject(&ev) != subject {
		r.t.Fatalf("%+v ends %v %q, want %v %q", cmd, got, r.subject(&ev), status, subject)
	}
	return ev
}

// subject returns the id of what an event's status is about, or the field that refused names.
func (r *realm) subject(ev *store.Event) string {
	switch status := rules.Status(ev.Status); {
	case status == rules.OK, status == rules.UnknownCode, status == rules.TooManyGuesses, status >= rules.UnknownHold && status <= rules.Forgotten, status == rules.NothingToCollect:
		return ""
	case status == rules.Refused:
		return r.refused.Field
	case status == rules.InsufficientItems, status == rules.PriceNotOffered, status == rules.BalanceOverflow, status == rules.TooManyLots:
		return r.state.ItemID(ev.Subject)
	case status == rules.NotReached, status == rules.AlreadyClaimed, status == rules.RewardUnavailable:
		id, _ := rules.QuestOf(r.state.CounterName(ev.Subject))
		return id
	}
	return r.state.PoolID(ev.Subject)
}

// failed returns which member of a group failed.
func (r *realm) failed(ev *store.Event) int {
	if ev.Status == uint8(rules.Refused) {
		return 0
	}
	_, failed, err := rules.CommandOf(r.state, ev)
	if err != nil {
		r.t.Fatalf("%v", err)
	}
	return failed
}

// holds returns how many of an item a player holds.
func (r *realm) holds(player, item string) uint64 {
	q, _, _ := r.state.HoldingOf(player, item)
	return q
}

// pool returns a pool of the catalog in force, whole.
func (r *realm) pool(id string) view.Pool {
	r.t.Helper()
	p, known, current := look.PoolOf(r.rules.Tables(), r.state, id, 0, 1<<20, nil)
	if !known || !current {
		r.t.Fatalf("pool %q is known: %v, current: %v", id, known, current)
	}
	return p
}

// replay applies the log to a new realm, as recovery does, with rules that decide nothing.
func (r *realm) replay() *realm {
	r.t.Helper()
	again := newRealm(r.t, 1)
	var ev store.Event
	for _, l := range r.log {
		if _, err := store.Decode(l.raw, &ev); err != nil {
			r.t.Fatalf("%v", err)
		}
		if err := again.state.Apply(&ev, l.at, nil); err != nil {
			r.t.Fatalf("%v", err)
		}
	}
	t, err := rules.Load(again.state, again.state.Catalog())
	if err != nil {
		r.t.Fatalf("%v", err)
	}
	again.log, again.now = slices.Clone(r.log), r.now
	again.rules.Reset(t)
	again.check()
	if again.state.Hash() != r.state.Hash() {
		r.t.Fatalf("replaying gives another state")
	}
	return again
}

func draw(player, pool string, count int) rules.Command {
	return rules.Command{Kind: rules.KindDraw, Player: player, Pool: pool, Count: count}
}

func grant(player string, items ...catalog.Stack) rules.Command {
	return rules.Command{Kind: rules.KindGrant, Player: player, Items: items}
}

func register(player string) rules.Command {
	return rules.Command{Kind: rules.KindRegister, Player: player}
}

func setTrack(player, track string, draws uint64, by, reason string) rules.Command {
	return rules.Command{Kind: rules.KindSetTrack, Player: player, Hands: rules.Hands{Set: &rules.TrackSet{Track: track, Draws: draws, By: by, Reason: reason}}}
}

func consume(player string, items ...catalog.Stack) rules.Command {
	return rules.Command{Kind: rules.KindConsume, Player: player, Items: items}
}

func transfer(from, to string, items ...catalog.Stack) rules.Command {
	return rules.Command{Kind: rules.KindTransfer, Player: from, To: to, Items: items}
}

func group(members ...rules.Command) rules.Command {
	return rules.Command{Kind: rules.KindAtomic, Members: members}
}

func of(item string, quantity uint64) catalog.Stack {
	return catalog.Stack{Item: item, Quantity: quantity}
}

// TestRealmStory is the house's smallest story: a key opens a box.
func TestRealmStory(t *testing.T) {
	r := newRealm(t, 1)
	r.want(draw("ann", "box", 1), rules.Refused, "pool") // before there is any catalog
	r.put(`{kuji: 1, items: {key: {}, sword: {}}, start: {key: 1},
		pools: {box: {price: {key: 1}, entries: [{id: a, weight: 1, stock: 2, reward: {items: {sword: 1}}}]}}}`)
	r.want(draw("ann", "box", 1), rules.OK, "")
	r.want(draw("ann", "box", 1), rules.InsufficientItems, "key")
	r.want(transfer("bob", "ann", of("key", 1)), rules.InsufficientItems, "key")
	r.want(register("bob"), rules.OK, "")
	r.want(transfer("bob", "ann", of("key", 1)), rules.OK, "")
	r.want(draw("ann", "box", 1), rules.OK, "")
	r.want(draw("cat", "box", 1), rules.SoldOut, "box")
	if r.holds("ann", "sword") != 2 || r.holds("ann", "key") != 0 || r.holds("bob", "key") != 0 {
		t.Errorf("ann holds %d swords and %d keys", r.holds("ann", "sword"), r.holds("ann", "key"))
	}
	if n := r.state.Players(); n != 2 {
		t.Errorf("%d players: who only failed must not be one", n)
	}
	r.replay()
}
