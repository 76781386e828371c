package economy_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/economy"
)

const testCatalog = `
kuji: 1
items:
  gem: {kind: currency}
  gem2: {kind: currency}
  gold: {kind: currency}
  sword: {}
  shield: {}
pools:
  weighted:
    price: {gem: 2}
    max_count: 3
    entries:
      - {id: common, weight: 0.7, reward: {items: {shield: 1, gold: {min: 1, max: 6}}}}
      - {id: rare, weight: 0.25, stock: 40, reward: {items: {sword: 2}}}
      - {id: nothing, weight: 0.05, stock: 60, reward: nothing}
  raffle:
    mode: raffle
    entries:
      - {id: a, stock: 3, reward: {items: {sword: 1}}}
      - {id: b, stock: 150, reward: {items: {gold: 1}}}
      - {id: c, stock: 60, reward: {pool: weighted}}
  chain:
    entries:
      - {id: x, weight: 1, stock: 50, reward: {pool: raffle}}
      - {id: y, weight: 3, stock: 200, reward: {items: {gem: 3}}}
  limited:
    limits:
      - {per: day, draws: 5}
      - {per: week, draws: 12}
      - {per: window, window: 1h, draws: 3}
      - {per: forever, draws: 40}
    entries:
      - {id: l, weight: 1, reward: {items: {gem: 1}}}
start: {gem: 20}
idempotency: {count: 500, age: 24h}
`

func parse(t testing.TB, yaml string) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Parse([]byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// machine drives a State as the engine does, through encoded events.
type machine struct {
	t   testing.TB
	s   *economy.State
	src economy.Source
	log []logged
	now int64
}

type logged struct {
	raw []byte
	at  economy.At
}

func newMachine(t testing.TB, seed uint64) *machine {
	m := &machine{t: t, s: economy.New(), src: rand.NewPCG(seed, 1), now: 1_700_000_000_000}
	if err := m.s.Ready(); err != nil {
		t.Fatal(err)
	}
	return m
}

// commit applies a decided event and returns it decoded from its bytes.
func (m *machine) commit(ev *economy.Event) *economy.Event {
	m.t.Helper()
	raw, at := economy.AppendEvent(nil, ev), m.next()
	back := m.decode(raw)
	if err := m.s.Apply(ev, raw, at); err != nil {
		m.t.Fatal(err)
	}
	m.log = append(m.log, logged{raw, at})
	return back
}

// next is where the next event stands.
func (m *machine) next() economy.At {
	return economy.At{Position: max(uint64(len(m.log)+1), m.s.Position()+1), Time: m.now}
}

// decode returns an event decoded, which must give the same bytes again.
func (m *machine) decode(raw []byte) *economy.Event {
	m.t.Helper()
	var back economy.Event
	if n, err := economy.Decode(raw, &back); err != nil || n != len(raw) {
		m.t.Fatalf("decoding %x: took %d of %d bytes, %v", raw, n, len(raw), err)
	}
	if again := economy.AppendEvent(nil, &back); !bytes.Equal(again, raw) {
		m.t.Fatalf("decoded and encoded again:\n%x, was\n%x", again, raw)
	}
	return &back
}

// apply puts a catalog in force, every second one without the steps before Apply that may be left out.
func (m *machine) apply(yaml string) {
	m.t.Helper()
	if ev := m.catalog(yaml, len(m.log)%2 == 0); ev != nil {
		m.commit(ev)
	}
}

// catalog returns the event that puts a catalog in force, nil if it is.
func (m *machine) catalog(yaml string, staged bool) *economy.Event {
	m.t.Helper()
	prepared, err := m.s.Prepare(parse(m.t, yaml))
	if err != nil {
		m.t.Fatal(err)
	}
	if staged && m.s.Watch(prepared) {
		m.s.Stage(prepared)
	}
	ev, err := m.s.DecideCatalog(prepared)
	if err != nil {
		m.t.Fatal(err)
	}
	return ev
}

// do carries out a command, every second one as a plain draw or grant if it is one.
func (m *machine) do(cmd economy.Command) *economy.Event {
	m.t.Helper()
	if err := cmd.Check(); err != nil {
		m.t.Fatal(err)
	}
	if len(m.log)%2 == 0 && (cmd.Kind == economy.KindDraw || cmd.Kind == economy.KindGrant) {
		at := m.next()
		at.Time = max(at.Time, m.s.Now())
		var raw []byte
		var ok bool
		var err error
		if cmd.Kind == economy.KindDraw {
			raw, _, ok, err = drawPlain(m.s, &cmd, m.src, at, nil)
		} else {
			raw, ok, err = m.s.GrantPlain(&cmd, m.s.HashIDs(cmd.ID, cmd.Player), &at, nil)
		}
		if err != nil {
			m.t.Fatal(err)
		}
		if ok {
			m.log = append(m.log, logged{raw, at})
			return m.decode(raw)
		}
	}
	return m.commit(m.s.Decide(&cmd, m.now, m.src))
}

// replay applies the log to a fresh state.
func (m *machine) replay() *economy.State {
	m.t.Helper()
	s := economy.New()
	for _, l := range m.log {
		var ev economy.Event
		if _, err := economy.Decode(l.raw, &ev); err != nil {
			m.t.Fatal(err)
		}
		if err := s.Apply(&ev, l.raw, l.at); err != nil {
			m.t.Fatal(err)
		}
	}
	return s
}

// TestAgainstModel runs random commands and judges every event by the model.
func TestAgainstModel(t *testing.T) {
	statuses := map[economy.Status]int{}
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := newMachine(t, seed)
			m.apply(testCatalog)
			want := newModel()
			want.c = parse(t, testCatalog)
			r := rand.New(rand.NewPCG(seed, 2))
			for n := range 600 {
				m.now += r.Int64N(20 * 60 * 1000)
				cmd := randomCommand(r, n)
				before := m.s.Hash()
				ev := m.s.Decide(&cmd, m.now, m.src)
				if m.s.Hash() != before {
					t.Fatalf("deciding %+v changed the state", cmd)
				}
				back := m.commit(ev)
				statuses[ev.Status]++
				if !m.s.Same(&cmd, back) {
					t.Fatalf("event %+v does not stand for command %+v", back, cmd)
				}
				want = judge(t, want, m.s, &cmd, back, m.now)
				if n%50 == 0 {
					want.compare(t, m.s)
				}
			}
			want.compare(t, m.s)
			if err := m.s.Check(); err != nil {
				t.Fatal(err)
			}
			if got, want := m.replay().Hash(), m.s.Hash(); got != want {
				t.Fatal("replaying the log gives another state")
			}
		})
	}
	for st := economy.OK; st <= economy.BalanceOverflow; st++ {
		if statuses[st] == 0 && st != economy.NotStarted && st != economy.Ended { // TestPoolTimes has those
			t.Errorf("no command ended %v: %v", st, statuses)
		}
	}
}

func TestPoolTimes(t *testing.T) {
	m := newMachine(t, 1)
	m.apply(`{kuji: 1, pools: {p: {starts: 2026-04-01T00:00:00Z, ends: 2026-04-02T00:00:00Z, entries: [{id: e, weight: 1, reward: nothing}]}}, items: {gem: {}}}`)
	start := int64(1_775_001_600_000)
	for _, tc := range []struct {
		now  int64
		want economy.Status
	}{
		{start - 1, economy.NotStarted}, {start, economy.OK},
		{start + 86_399_999, economy.OK}, {start + 86_400_000, economy.Ended},
	} {
		m.now = tc.now
		if ev := m.do(economy.Command{Kind: economy.KindDraw, Player: "ann", Pool: "p", Count: 1}); ev.Status != tc.want {
			t.Errorf("at %d: %v, want %v", tc.now, ev.Status, tc.want)
		}
	}
}

// judge returns the model after a command, or fails the test.
func judge(t *testing.T, m *model, s *economy.State, cmd *economy.Command, ev *economy.Event, now int64) *model {
	t.Helper()
	if want, failed := m.judge(cmd, now); ev.Status != want || int(ev.Failed) != failed {
		t.Fatalf("%+v ended %v at member %d, the model says %v at %d", *cmd, ev.Status, ev.Failed, want, failed)
	}
	if ev.Status != economy.OK {
		return m
	}
	after := m.clone()
	members, events := []economy.Command{*cmd}, []economy.Event{*ev}
	if cmd.Kind == economy.KindAtomic {
		members, events = cmd.Members, ev.Members
	}
	for i := range members {
		if err := after.run(&members[i], s.Outcomes(&events[i], s.Version()), now); err != nil {
			t.Fatalf("%+v ended ok, the model says %v", members[i], err)
		}
	}
	return after
}

// TestVerify reproduces every choice from the same source, as a verifier does.
func TestVerify(t *testing.T) {
	m := newMachine(t, 7)
	m.apply(testCatalog)
	r := rand.New(rand.NewPCG(7, 3))
	for n := range 500 {
		m.now += r.Int64N(60_000)
		m.do(randomCommand(r, n))
	}
	v := newMachine(t, 7)
	for _, l := range m.log {
		var ev economy.Event
		if _, err := economy.Decode(l.raw, &ev); err != nil {
			t.Fatal(err)
		}
		if ev.Kind != economy.KindCatalog {
			cmd := v.s.CommandOf(&ev)
			if err := cmd.Check(); err != nil {
				t.Fatal(err)
			}
			if again := economy.AppendEvent(nil, v.s.Decide(&cmd, l.at.Time, v.src)); !bytes.Equal(again, l.raw) {
				t.Fatalf("position %d: deciding again gives\n%x, the log has\n%x", l.at.Position, again, l.raw)
			}
		}
		if err := v.s.Apply(&ev, l.raw, l.at); err != nil {
			t.Fatal(err)
		}
	}
	if v.s.Hash() != m.s.Hash() {
		t.Fatal("another state")
	}
}

// TestOldAnswers checks that a remembered answer reads as it did when it was
// first given, though the reward has changed since.
func TestOldAnswers(t *testing.T) {
	m := newMachine(t, 1)
	catalogWith := func(q int) string {
		return fmt.Sprintf(`{kuji: 1, items: {gem: {}}, pools: {p: {entries: [{id: e, weight: 1, reward: {items: {gem: %d}}}]}}}`, q)
	}
	m.apply(catalogWith(5))
	m.do(economy.Command{Kind: economy.KindDraw, ID: "first", Player: "ann", Pool: "p", Count: 1})
	for q := 6; q < 10; q++ {
		m.apply(catalogWith(q))
	}
	for _, s := range []*economy.State{m.s, m.replay()} {
		a, ok := s.Remembered("first")
		if !ok {
			t.Fatal("forgotten")
		}
		var ev economy.Event
		if err := a.Decode(&ev); err != nil {
			t.Fatal(err)
		}
		want := []economy.Outcome{{Entry: "e", Items: []catalog.Stack{{Item: "gem", Quantity: 5}}}}
		if got := s.Outcomes(&ev, a.Version); !reflect.DeepEqual(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

func TestPlanStatesWhatHappensToStock(t *testing.T) {
	m := newMachine(t, 1)
	m.apply(`{kuji: 1, items: {gem: {}, old: {}}, pools: {p: {max_count: 10, entries: [
		{id: keep, weight: 1, stock: 10, reward: nothing},
		{id: gone, weight: 0, stock: 5, reward: {items: {old: 1}}}]}}}`)
	m.do(economy.Command{Kind: economy.KindDraw, Player: "ann", Pool: "p", Count: 7})
	next := parse(t, `{kuji: 1, items: {gem: {}}, pools: {p: {max_count: 10, entries: [
		{id: keep, weight: 1, stock: 4, reward: nothing},
		{id: fresh, weight: 1, stock: 2, reward: {items: {gem: 1}}}]}}}`)
	plan, err := m.s.Plan(next)
	if err != nil {
		t.Fatal(err)
	}
	var got string
	for _, c := range plan.Changes {
		got += c.Text + "\n"
		if c.Warning != "" {
			got += "  warning: " + c.Warning + "\n"
		}
	}
	want := `item old: removed; nobody holds any
pool p, entry keep: stock changed; 7 drawn already; 3 of 10 left before, 0 of 4 after
  warning: 7 were drawn already, 3 more than the new stock: the entry is out of stock
pool p, entry fresh: added with 2 of 2 left
pool p, entry gone: removed with 5 of 5 left; its 0 draws count again if it returns
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	prepared, err := m.s.Prepare(next)
	if err != nil {
		t.Fatal(err)
	}
	ev, err := m.s.DecideCatalog(prepared)
	if err != nil {
		t.Fatal(err)
	}
	m.commit(ev)
	v, _ := m.s.Pool("p")
	if v.Entries[0].Left != 0 || v.Entries[1].Left != 2 || v.Total != 1 {
		t.Errorf("stock after: %+v", v)
	}
	if err := m.s.Check(); err != nil {
		t.Error(err)
	}
	gone, err := m.s.Plan(parse(t, `{kuji: 1, items: {gem: {}}}`))
	if err != nil {
		t.Fatal(err)
	}
	var kinds []economy.ChangeKind
	for _, c := range gone.Changes {
		kinds = append(kinds, c.Kind)
	}
	if want := []economy.ChangeKind{economy.ChangePoolRemoved, economy.ChangeEntryRemoved, economy.ChangeEntryRemoved}; !reflect.DeepEqual(kinds, want) {
		t.Errorf("removing a pool: %v, want %v", kinds, want)
	}
	if _, err := m.s.Plan(parse(t, `{kuji: 1, items: {gem: {kind: currency}}}`)); err == nil {
		t.Error("a change of kind was accepted")
	}
	if p, err := m.s.Plan(next); err != nil || !p.Unchanged {
		t.Errorf("the catalog in force: %+v, %v", p, err)
	}
}

// TestDecodeIsStrict: bytes that no encoder writes are refused.
func TestDecodeIsStrict(t *testing.T) {
	for name, b := range map[string]string{
		"status aborted":        "\x18\x0a\x00\x00\x01\x00\x01",
		"status beyond":         "\x18\x0b\x00\x00\x01\x00\x01",
		"kind 0":                "\x00\x00\x00\x01\x00\x01",
		"version 1":             "\x1a\x00\x00\x01\x00\x01",
		"empty request id":      "\x19\x00\x00\x00\x01\x00\x01",
		"a varint too long":     "\x18\x00\x80\x00\x01\x00\x01",
		"no items":              "\x18\x00\x00\x00",
		"a quantity of 0":       "\x18\x00\x00\x01\x00\x00",
		"a draw of none":        "\x10\x00\x00\x00\x00",
		"a choice of detail 3":  "\x10\x00\x00\x00\x01\x03",
		"a chosen quantity 0":   "\x10\x00\x00\x00\x01\x02\x01\x00",
		"a group of none":       "\x30\x00\x00",
		"a catalog in a group":  "\x30\x00\x01\x08\x00",
		"a failure beyond":      "\x30\x03\x00\x01\x01\x18\x00\x01\x00\x01",
		"cut short":             "\x18\x00\x00\x01\x00",
		"a player out of range": "\x18\x00\xfe\xff\xff\xff\x1f\x01\x00\x01",
	} {
		var ev economy.Event
		if n, err := economy.Decode([]byte(b), &ev); err == nil {
			t.Errorf("%s: % x was decoded, %d bytes", name, b, n)
		}
	}
	for name, b := range map[string]string{"grant": "\x18\x00\x00\x01\x00\x01", "draw": "\x10\x00\x00\x00\x01\x00"} {
		var ev economy.Event
		if _, err := economy.Decode([]byte(b), &ev); err != nil {
			t.Errorf("a %s that is well formed: %v", name, err)
		}
	}
}

// FuzzDecode: no bytes make the decoder panic, and what decodes encodes to
// the bytes that it took.
func FuzzDecode(f *testing.F) {
	m := newMachine(f, 3)
	m.apply(testCatalog)
	r := rand.New(rand.NewPCG(3, 3))
	for n := range 60 {
		m.do(randomCommand(r, n))
	}
	for _, l := range m.log {
		f.Add(l.raw)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var ev economy.Event
		n, err := economy.Decode(b, &ev)
		if err != nil {
			return
		}
		if again := economy.AppendEvent(nil, &ev); !bytes.Equal(again, b[:n]) {
			t.Fatalf("%x decodes, and encodes to %x", b[:n], again)
		}
	})
}

// FuzzApply: no decodable event makes Apply panic, and what it accepts leaves
// the invariants whole.
func FuzzApply(f *testing.F) {
	m := newMachine(f, 3)
	m.apply(testCatalog)
	r := rand.New(rand.NewPCG(3, 3))
	for n := range 60 {
		m.do(randomCommand(r, n))
	}
	for _, l := range m.log[1:] {
		f.Add(l.raw)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var ev economy.Event
		n, err := economy.Decode(b, &ev)
		if err != nil {
			return
		}
		m := machine{t: t, log: m.log, now: m.now}
		s := m.replay()
		if err := s.Apply(&ev, b[:n], economy.At{Position: uint64(len(m.log) + 1), Time: m.now + 1}); err != nil {
			return
		}
		if err := s.Check(); err != nil {
			t.Fatalf("%x was accepted and broke an invariant: %v", b[:n], err)
		}
		s.Hash()
	})
}

// TestAnswersBeforeTheFirstCatalog: a request that came before any catalog is
// remembered, and the state passes its check, when there is one.
func TestAnswersBeforeTheFirstCatalog(t *testing.T) {
	m := newMachine(t, 1)
	m.do(economy.Command{Kind: economy.KindDraw, ID: "early", Player: "ann", Pool: "weighted", Count: 1})
	m.apply(testCatalog)
	if err := m.s.Check(); err != nil {
		t.Error(err)
	}
	if a, ok := m.s.Remembered("early"); !ok || a.Version != 0 {
		t.Errorf("remembered: %+v, %v", a, ok)
	}
}
