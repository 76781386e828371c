package economy

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
)

// windowState is a state with a catalog, and what drives it.
type windowState struct {
	*State
	t    testing.TB
	pos  uint64
	at   int64
	src  Source
	twin *State // if there is one, it applies what is committed
}

func newWindow(t testing.TB, yaml string) *windowState {
	w := &windowState{State: New(), t: t, at: 1_700_000_000_000, src: rand.NewPCG(1, 1)}
	if err := w.Ready(); err != nil {
		t.Fatal(err)
	}
	w.put(yaml)
	return w
}

// put puts a catalog in force, every second one without the steps before Apply that may be left out.
func (w *windowState) put(yaml string) Plan { return w.putWith(yaml, w.pos%2 == 0, func(*Prepared) {}) }

// putWith puts a catalog in force, with something that happens while it is made ready.
func (w *windowState) putWith(yaml string, staged bool, meanwhile func(*Prepared)) Plan {
	w.t.Helper()
	c, err := catalog.Parse([]byte(yaml))
	if err != nil {
		w.t.Fatal(err)
	}
	plan, err := w.Plan(c)
	if err != nil {
		w.t.Fatal(err)
	}
	prepared, err := w.Prepare(c)
	if err != nil {
		w.t.Fatal(err)
	}
	if staged && w.Watch(prepared) {
		w.Stage(prepared)
	}
	meanwhile(prepared)
	ev, err := w.DecideCatalog(prepared)
	if err != nil {
		w.t.Fatal(err)
	}
	w.commit(ev)
	return plan
}

// commit applies an event and returns it as the log has it.
func (w *windowState) commit(ev *Event) *Event {
	w.t.Helper()
	raw := AppendEvent(nil, ev)
	w.pos++
	if err := w.Apply(ev, raw, At{Position: w.pos, Time: w.at}); err != nil {
		w.t.Fatal(err)
	}
	var back Event
	if _, err := Decode(raw, &back); err != nil {
		w.t.Fatal(err)
	}
	if w.twin != nil {
		if err := w.twin.Apply(&back, raw, At{Position: w.pos, Time: w.at}); err != nil {
			w.t.Fatal(err)
		}
	}
	return &back
}

func (w *windowState) do(cmd Command) *Event {
	w.t.Helper()
	if full := w.Admit(&cmd, w.at); full != nil {
		w.t.Fatal(full)
	}
	return w.commit(w.Decide(&cmd, w.at, w.src))
}

func gems(id, player string, n uint64) Command {
	return Command{Kind: KindGrant, ID: id, Player: player, Items: []catalog.Stack{{Item: "gem", Quantity: n}}}
}

func (w *windowState) wantRemembered(want string) {
	w.t.Helper()
	got := ""
	for _, id := range "abcdefghij" {
		if _, ok := w.Remembered(string(id)); ok {
			got += string(id)
		}
	}
	if got != want {
		w.t.Fatalf("remembered %q, want %q", got, want)
	}
	if err := w.Check(); err != nil {
		w.t.Fatal(err)
	}
}

// TestNoIDIsForgottenEarly: while an id is within the age it is remembered; when there
// is no room left, a new one is refused, and other commands go on.
func TestNoIDIsForgottenEarly(t *testing.T) {
	w := newWindow(t, `{kuji: 1, items: {gem: {}}, idempotency: {count: 3, age: 10m}}`)
	for _, id := range []string{"a", "b", "c"} {
		w.do(gems(id, "ann", 1))
	}
	w.at += 10 * 60 * 1000 // exactly as old as the age
	fresh := gems("d", "ann", 1)
	if full := w.Admit(&fresh, w.at); full == nil || !full.IDs {
		t.Fatalf("a fourth id within the age: %v", full)
	}
	w.do(gems("", "ann", 1))
	w.wantRemembered("abc")
	if got := w.Window(); got.Remembered != 3 || got.Limit != 3 || got.Oldest != w.at-10*60*1000 || got.Bytes == 0 {
		t.Errorf("window %+v", got)
	}
	w.at++
	w.do(gems("", "ann", 1))
	w.wantRemembered("abc") // aged, but there is room
	w.do(fresh)
	w.wantRemembered("bcd")
	w.do(gems("e", "ann", 1))
	w.wantRemembered("cde")

	w.put(`{kuji: 1, items: {gem: {}}, idempotency: {count: 1, age: 10m}}`)
	w.wantRemembered("de") // c was of age
	if full := w.Admit(&fresh, w.at); full == nil {
		t.Error("a new id, with more remembered than the catalog has room for")
	}
}

// TestQuietRealmRemembersLonger: beyond the age ids go only when there are many.
func TestQuietRealmRemembersLonger(t *testing.T) {
	w := newWindow(t, `{kuji: 1, items: {gem: {}}, idempotency: {count: 1000, age: 1m}}`)
	w.ids.keep = 4
	for _, id := range "abcdefg" {
		w.do(gems(string(id), "ann", 1))
	}
	w.wantRemembered("abcdefg")
	w.at += 60_001
	w.do(gems("h", "ann", 1))
	w.wantRemembered("efgh")
	w.at += 1_000_000_000
	w.do(gems("", "ann", 1))
	w.wantRemembered("efgh")
}

// TestWindowChangeWarns: a catalog that leaves too little room for what is
// remembered, or for the rate of the last while, says so.
func TestWindowChangeWarns(t *testing.T) {
	w := newWindow(t, `{kuji: 1, items: {gem: {}}, idempotency: {count: 1000, age: 1h}}`)
	for i := range 50 {
		w.do(gems(fmt.Sprint("id", i), "ann", 1))
	}
	for yaml, want := range map[string]string{
		"{count: 2000, age: 2h}": "",
		"{count: 1000, age: 2h}": "",
		"{count: 1000, age: 5m}": "request ids older than 5m0s may be forgotten at once",
		"{count: 60, age: 1h}":   "50 request ids of the last 1h0m0s are remembered already",
		"{count: 50, age: 1h}":   "new request ids will be refused",
	} {
		c, err := catalog.Parse([]byte(`{kuji: 1, items: {gem: {}}, idempotency: ` + yaml + `}`))
		if err != nil {
			t.Fatal(err)
		}
		plan, err := w.Plan(c)
		if err != nil || len(plan.Changes) != 1 {
			t.Fatalf("%s: %+v, %v", yaml, plan, err)
		}
		if got := plan.Changes[0].Warning; want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: warning %q, want %q", yaml, got, want)
		}
	}
}

// TestMemoryOfAnID: a draw with an id of 16 bytes takes less than 100 bytes for as long as it is remembered.
func TestMemoryOfAnID(t *testing.T) {
	w := newWindow(t, `{kuji: 1, items: {gem: {}}, pools: {p: {entries: [{id: e, weight: 1, reward: {items: {gem: 1}}}]}}}`)
	const n = 200_000
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	w.do(Command{Kind: KindDraw, Player: "ann", Pool: "p", Count: 1})
	buf := make([]byte, 0, 100)
	cmd := Command{Kind: KindDraw, Player: "ann", Pool: "p", Count: 1}
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("%016d", i)
	}
	before := heap()
	for i := range ids {
		cmd.ID = ids[i]
		ev := w.Decide(&cmd, w.at, w.src)
		buf = AppendEvent(buf[:0], ev)
		if err := w.Apply(ev, buf, At{Position: 2 + uint64(i)/100, Index: uint32(i % 100), Time: w.at + int64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	each := float64(heap()-before) / n
	t.Logf("%.1f bytes", each)
	if each > 70 {
		t.Errorf("%.1f bytes for each id", each)
	}
	if said := float64(w.Window().Bytes) / n; said < each*0.8 || said > each*1.2 {
		t.Errorf("the window says %.1f bytes for each, it takes %.1f", said, each)
	}
	runtime.KeepAlive(w)
	runtime.KeepAlive(ids)
}

// TestLongAnswers: of long requests a digest is kept in place of the
// arguments, which tells the same request from any other.
func TestLongAnswers(t *testing.T) {
	var items strings.Builder
	var all []catalog.Stack
	for i := range 60 {
		fmt.Fprintf(&items, ", item%d: {}", i)
		all = append(all, catalog.Stack{Item: fmt.Sprint("item", i), Quantity: uint64(1000 + i)})
	}
	w := newWindow(t, `{kuji: 1, items: {gem: {kind: currency}`+items.String()+`}, start: {gem: 3}, pools: {
		p: {price: {gem: 1}, max_count: 50, entries: [{id: e, weight: 1, reward: {items: {gem: {min: 1, max: 3}}}}, {id: n, weight: 1, reward: {pool: q}}]},
		q: {entries: [{id: x, weight: 1, stock: 100, reward: {items: {item1: 2}}}]}}}`)
	group := func(last Command) []Command {
		return []Command{
			{Kind: KindGrant, Player: "ann", Items: append([]catalog.Stack{{Item: "gem", Quantity: 50}}, all[1:]...)},
			{Kind: KindDraw, Player: "ann", Pool: "p", Count: 7},
			{Kind: KindTransfer, Player: "ann", To: "new", Items: all[3:40]},
			last,
		}
	}
	var cmds []Command
	for i, c := range []Command{
		{Kind: KindGrant, Player: "bob", Items: all},
		{Kind: KindConsume, Player: "bob", Items: all[:50]},
		{Kind: KindConsume, Player: "bob", Items: all},
		{Kind: KindGrant, Player: "bob", Items: append([]catalog.Stack{{Item: "nosuch", Quantity: 1}}, all[1:]...)},
		{Kind: KindAtomic, Members: group(Command{Kind: KindDraw, Player: "new", Pool: "p", Count: 1})},
		{Kind: KindAtomic, Members: group(Command{Kind: KindDraw, Player: "new", Pool: "nosuch", Count: 1})},
		{Kind: KindAtomic, Members: group(Command{Kind: KindConsume, Player: "zoe", Items: []catalog.Stack{{Item: "gem", Quantity: 900}}})},
	} {
		c.ID = fmt.Sprint("long", i)
		cmds = append(cmds, c)
	}
	for i, cmd := range cmds {
		ev := w.do(cmd)
		raw := len(AppendEvent(nil, ev))
		rec, ok := w.ids.find(cmd.ID)
		if !ok || len(rec.answer) >= raw || len(rec.answer) > 120 {
			t.Errorf("command %d: %d bytes are kept of an event of %d", i, len(rec.answer), raw)
		}
		a, _ := w.Remembered(cmd.ID)
		var back Event
		if err := a.Decode(&back); err != nil {
			t.Fatal(err)
		}
		if !w.Same(&cmd, &back) {
			t.Errorf("command %d is not known as the same", i)
		}
		if back.Status != ev.Status || w.Subject(&back) != w.Subject(ev) || len(back.Members) != len(ev.Members) || back.Failed != ev.Failed {
			t.Errorf("command %d: %v %q, first %v %q", i, back.Status, w.Subject(&back), ev.Status, w.Subject(ev))
		}
		for j := range ev.Members {
			if got, want := w.Outcomes(&back.Members[j], a.Version), w.Outcomes(&ev.Members[j], a.Version); ev.Status == OK && !reflect.DeepEqual(got, want) {
				t.Errorf("command %d, member %d: %v, first %v", i, j, got, want)
			}
		}
		for j, other := range alter(cmd) {
			if w.Same(&other, &back) {
				t.Errorf("command %d altered in way %d is taken for the same", i, j)
			}
		}
	}
}

// alter returns commands that differ from c in one thing each.
func alter(c Command) (out []Command) {
	if c.Kind == KindAtomic {
		for i := range c.Members {
			for _, m := range alter(c.Members[i]) {
				d := c
				d.Members = append([]Command(nil), c.Members...)
				d.Members[i] = m
				out = append(out, d)
			}
		}
		d := c
		d.Members = c.Members[1:]
		return append(out, d)
	}
	d := c
	d.Player += "x"
	out = append(out, d)
	switch c.Kind {
	case KindDraw:
		d = c
		d.Count++
		out = append(out, d)
		d = c
		d.Pool += "x"
		return append(out, d)
	case KindTransfer:
		d = c
		d.To += "x"
		out = append(out, d)
	case KindGrant:
		d = c
		d.Kind = KindConsume
		out = append(out, d)
	}
	for i := range c.Items {
		d = c
		d.Items = append([]catalog.Stack(nil), c.Items...)
		d.Items[i].Quantity++
		out = append(out, d)
	}
	d = c
	d.Items = append(append([]catalog.Stack(nil), c.Items...), catalog.Stack{Item: "gem", Quantity: 1})
	return append(out, d)
}

// TestPlayersFull: a command that would make one player too many is refused,
// and others go on.
func TestPlayersFull(t *testing.T) {
	w := newWindow(t, `{kuji: 1, items: {gem: {}}}`)
	w.most = 3
	for _, id := range []string{"ann", "bob", "cat"} {
		w.do(gems("", id, 5))
	}
	swap := Command{Kind: KindTransfer, Player: "ann", To: "dan", Items: gems("", "", 1).Items}
	for _, cmd := range []Command{gems("", "dan", 1), swap, {Kind: KindAtomic, Members: []Command{gems("", "ann", 1), swap}}} {
		if full := w.Admit(&cmd, w.at); full == nil || full.IDs {
			t.Errorf("%+v: %v, want a refusal for players", cmd, full)
		}
	}
	swap.To = "bob"
	w.do(swap)
	w.do(gems("", "cat", 1))
}

// FuzzDecodeAnswer: no bytes make the decoder of answers panic.
func FuzzDecodeAnswer(f *testing.F) {
	f.Add([]byte("\x1f\x00\x01a0123456789abcdef"))
	f.Add([]byte("\x37\x00\x01a0123456789abcdef\x02\x10\x00\x01\x00\x18"))
	f.Add([]byte("\x37\x03\x01a0123456789abcdef\x02\x00\x01\x03"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var ev Event
		if err := decodeAnswer(b, &ev); err == nil && string(answerID(b)) != ev.ID {
			t.Fatalf("id %q, read as %q", ev.ID, answerID(b))
		}
	})
}
