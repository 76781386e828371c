package economy_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/economy"
)

// history makes a log of random commands, in batches of one to four events, under
// catalogs that change.
func history(t testing.TB, seed uint64, keep int) []logged {
	t.Helper()
	m, r := newMachine(t, seed), rand.New(rand.NewPCG(seed, 3))
	m.s.SetKeep(keep)
	catalogs, command := []string{plainCatalog}, plainCommand
	if seed%2 == 0 {
		catalogs, command = []string{testCatalog, testCatalog + "# again\n"}, randomCommand
	}
	for n := range 400 {
		if n%200 == 0 {
			m.apply(catalogs[n/200%len(catalogs)])
		}
		m.now += r.Int64N(20 * 60 * 1000)
		cmd := command(r, n)
		m.do(cmd)
		if last := len(m.log) - 1; r.IntN(4) > 0 && m.log[last].raw[0]>>3 != byte(economy.KindCatalog) {
			// One batch with the one before: positions are not in the events.
			was, is := m.log[last-1].at, &m.log[last].at
			is.Position, is.Index, is.Time = was.Position, was.Index+1, max(was.Time, is.Time)
		}
	}
	return m.log
}

// one applies a log event by event. It returns where the first event stands that does not fit.
func one(t testing.TB, log []logged, keep int) (*economy.State, economy.At, error) {
	s := economy.New()
	s.SetKeep(keep)
	for _, l := range log {
		var ev economy.Event
		if _, err := economy.Decode(l.raw, &ev); err != nil {
			t.Fatal(err)
		}
		if err := s.Apply(&ev, l.raw, l.at); err != nil {
			return s, l.at, err
		}
	}
	return s, economy.At{}, nil
}

// some applies a log by groups of any size, whose ids are remembered at once or some groups
// later, settling now and then.
func some(t testing.TB, log []logged, keep int, r *rand.Rand, most int) (*economy.State, economy.At, error) {
	s := economy.New()
	s.SetKeep(keep)
	var applied, free []*economy.Group
	fresh := true
	remember := func(behind int) {
		for ; len(applied) > behind; applied = applied[1:] {
			fresh = fresh && s.RememberGroup(applied[0])
			applied[0].Reset(true)
			free = append(free, applied[0])
		}
	}
	for rest := log; len(rest) > 0; {
		if len(free) == 0 {
			free = append(free, s.NewGroup())
		}
		g := free[0]
		free = free[1:]
		n := min(len(rest), 1+r.IntN(most))
		for i, l := range rest[:n] {
			if i == 0 || l.at.Index == 0 || l.at.Position != rest[i-1].at.Position || l.at.Time != rest[i-1].at.Time {
				g.Begin(l.at)
			}
			if size, err := g.Add(l.raw); err != nil || size != len(l.raw) {
				t.Fatalf("%x: took %d of %d bytes, %v", l.raw, size, len(l.raw), err)
			}
		}
		rest = rest[n:]
		at, err := s.ApplyGroup(g)
		if g.Len() != n {
			t.Fatalf("a group of %d events, %d were added", g.Len(), n)
		}
		applied = append(applied, g)
		remember(r.IntN(5))
		if r.IntN(4) == 0 {
			fresh = s.SettlePlayers() && fresh
		}
		if r.IntN(4) == 0 {
			fresh = s.SettleIDs() && fresh
		}
		if err != nil || !fresh || len(rest) == 0 || r.IntN(4) == 0 {
			remember(0)
			if first, clash := s.Settle(); clash != nil {
				return s, first, clash
			}
			if !fresh {
				t.Fatal("something was there already, and Settle does not say what")
			}
		}
		if err != nil {
			return s, at, err
		}
	}
	return s, economy.At{}, nil
}

// agree checks that a log applied by groups gives what it gives event by event.
func agree(t *testing.T, log []logged, keep int, r *rand.Rand, most int) error {
	t.Helper()
	want, wantAt, wantErr := one(t, log, keep)
	got, at, err := some(t, log, keep, r, most)
	if fmt.Sprint(err) != fmt.Sprint(wantErr) || at.Position != wantAt.Position || at.Index != wantAt.Index {
		t.Fatalf("by groups: %+v, %v\nevent by event: %+v, %v", at, err, wantAt, wantErr)
	}
	if err != nil {
		return err
	}
	if got.Hash() != want.Hash() {
		t.Fatal("by groups, a log gives another state than event by event")
	}
	if err := got.Check(); err != nil {
		t.Fatal(err)
	}
	for _, l := range log {
		var ev economy.Event
		if _, err := economy.Decode(l.raw, &ev); err != nil {
			t.Fatal(err)
		}
		_, is := got.Remembered(ev.ID)
		if _, was := want.Remembered(ev.ID); is != was {
			t.Fatalf("request id %q: remembered %v, event by event %v", ev.ID, is, was)
		}
		if ev.Player.ID == "" {
			continue
		}
		is2, ok := got.Player(ev.Player.ID)
		if was, seen := want.Player(ev.Player.ID); ok != seen || !slices.Equal(is2.Items, was.Items) {
			t.Fatalf("player %q: %v, %+v; event by event %v, %+v", ev.Player.ID, ok, is2, seen, was)
		}
	}
	return nil
}

// TestReplay: a log applied by groups, as recovery does, gives what it gives event
// by event, whether it fits or not.
func TestReplay(t *testing.T) {
	errs := map[string]int{
		"a second time": 0, "is not new": 0, "player number": 0, "pool number": 0, "no entry number": 0, "beyond its stock": 0,
		"not of the shape": 0, " taken of ": 0, " after position ": 0,
	}
	for seed := range uint64(16) {
		r := rand.New(rand.NewPCG(seed, 4))
		keep := []int{1 << 20, 5}[seed/2%2] // the second forgets all the time
		log := history(t, seed, keep)
		for range 3 {
			if err := agree(t, log, keep, r, 60); err != nil {
				t.Fatal(err)
			}
		}
		for range 60 {
			bad := slices.Clone(log)
			for range 1 + r.IntN(2) {
				tamper(r, bad)
			}
			if err := agree(t, bad, keep, r, 60); err != nil {
				for kind := range errs {
					if strings.Contains(err.Error(), kind) {
						errs[kind]++
					}
				}
			}
		}
	}
	for kind, n := range errs {
		if n < 5 {
			t.Errorf("of all tampered logs, %d gave %q: %v", n, kind, errs)
		}
	}
}

// tamper changes an event of a log.
func tamper(r *rand.Rand, log []logged) {
	pick := func() *economy.Event {
		for {
			l := log[r.IntN(len(log))]
			var ev economy.Event
			if _, err := economy.Decode(l.raw, &ev); err == nil && ev.Kind != economy.KindCatalog && ev.Kind != economy.KindAtomic {
				return &ev
			}
		}
	}
	at := 2 + r.IntN(len(log)-2)
	var ev economy.Event
	if _, err := economy.Decode(log[at].raw, &ev); err != nil || ev.Kind == economy.KindCatalog || ev.Kind == economy.KindAtomic {
		return
	}
	switch r.IntN(7) {
	case 0:
		ev.ID = pick().ID
	case 1: // somebody who was or will be new
		for ev.Player = pick().Player; ev.Player.ID == "" && r.IntN(100) > 0; ev.Player = pick().Player {
		}
	case 2:
		ev.Player = economy.Ref{Known: true, Num: uint32(r.IntN(12))}
	case 3:
		if ev.Kind == economy.KindDraw {
			ev.Pool = economy.Ref{Known: true, Num: uint32(r.IntN(12))}
		}
	case 4:
		if len(ev.Choices) > 0 {
			ev.Choices = []economy.Choice{{Entry: uint32(r.IntN(4))}}
			ev.Count, ev.Quantities = 1, nil
		}
	case 5:
		log[at].at.Time -= 1 << 40
	case 6:
		other := pick()
		ev = *other
	}
	log[at].raw = economy.AppendEvent(nil, &ev)
}

// TestReplayMany is TestReplay with players and ids too many for the caches, and for one shard.
func TestReplayMany(t *testing.T) {
	m, r := newMachine(t, 1), rand.New(rand.NewPCG(1, 5))
	m.apply(plainCatalog)
	for n := range 40_000 {
		cmd := economy.Command{Kind: economy.KindDraw, ID: fmt.Sprint("request", n), Player: fmt.Sprint("p", r.IntN(30_000)), Pool: "free", Count: 1}
		if n%11 == 0 { // too long to be its own answer
			cmd.ID, cmd.Player = fmt.Sprintf("%060d", n), fmt.Sprintf("%060d", r.IntN(30_000))
		}
		if n%7 == 0 {
			cmd = economy.Command{Kind: economy.KindGrant, Player: cmd.Player, Items: []catalog.Stack{{Item: "gem", Quantity: 2}}}
		}
		m.do(cmd)
	}
	if err := agree(t, m.log, 1<<20, r, 3000); err != nil {
		t.Fatal(err)
	}
	// The second of an id, and of a player, long after the first.
	for _, name := range []func(ev *economy.Event){
		func(ev *economy.Event) { ev.ID = "request1" },
		func(ev *economy.Event) { ev.Player = economy.Ref{ID: "p" + fmt.Sprint(r.IntN(30_000))} },
	} {
		for range 4 {
			bad := slices.Clone(m.log)
			at := 30_000 + 7*r.IntN(1000) + 2
			var ev economy.Event
			if _, err := economy.Decode(bad[at].raw, &ev); err != nil {
				t.Fatal(err)
			}
			name(&ev)
			bad[at].raw = economy.AppendEvent(nil, &ev)
			agree(t, bad, 1<<20, r, 3000)
		}
	}
}

// TestReplayForgets: ids that a catalog, or time, has forgotten are forgotten when a log is
// applied by groups, and catalogs that nothing needs any more with them.
func TestReplayForgets(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 6))
	for seed := range uint64(8) {
		m := newMachine(t, seed)
		m.s.SetKeep(4)
		yaml := func(n, count int) string {
			return fmt.Sprintf("{kuji: 1, items: {gem: {}}, idempotency: {count: %d, age: 1m}, pools: {p: {entries: [{id: a, weight: 1, reward: {items: {gem: %d}}}]}}}", count, n)
		}
		for n := range 12 {
			m.apply(yaml(n+1, 100-n))
			for i := range r.IntN(20) {
				m.do(economy.Command{Kind: economy.KindDraw, ID: fmt.Sprint(n, "-", i), Player: "ann", Pool: "p", Count: 1})
			}
			m.now += r.Int64N(90_000)
		}
		m.now += 60_001
		m.apply(yaml(100, 3)) // which forgets some, as the last event of all
		s := economy.New()
		s.SetKeep(4)
		g := s.NewGroup()
		for _, l := range m.log {
			g.Begin(l.at)
			if _, err := g.Add(l.raw); err != nil {
				t.Fatal(err)
			}
			if _, err := s.ApplyGroup(g); err != nil || !s.RememberGroup(g) {
				t.Fatal(err)
			}
			g.Reset(true)
		}
		if got, want := s.Superseded(), m.s.Superseded()+1; got > want {
			t.Errorf("before it is settled, something is kept of %d catalog versions, want %d at most", got, want)
		}
		for range 20 {
			if err := agree(t, m.log, 4, r, 40); err != nil {
				t.Fatal(err)
			}
			s, _, _ := some(t, m.log, 4, r, 40)
			if got, want := s.Superseded(), m.s.Superseded(); got != want {
				t.Fatalf("something is kept of %d catalog versions, want %d", got, want)
			}
		}
	}
}

// TestGroupOfManyCatalogs: a Group keeps of the catalogs that it puts in force no more than
// answers are remembered by.
func TestGroupOfManyCatalogs(t *testing.T) {
	m := newMachine(t, 1)
	var b strings.Builder
	b.WriteString("kuji: 1\nitems: {gem: {}}\npools:\n  p:\n    entries:\n")
	for i := range 5000 {
		fmt.Fprintf(&b, "      - {id: entry%d, weight: %d, reward: {items: {gem: 1}}}\n", i, 1+i%7)
	}
	m.apply(b.String())
	for n := range 40 {
		m.apply(fmt.Sprintf("{kuji: 1, items: {gem: {}}, pools: {p: {entries: [{id: entry4999, weight: %d, reward: nothing}]}}}", n+1))
	}
	heap := func() int64 {
		runtime.GC()
		var st runtime.MemStats
		runtime.ReadMemStats(&st)
		return int64(st.HeapAlloc)
	}
	s := economy.New()
	g := s.NewGroup()
	for _, l := range m.log {
		g.Begin(l.at)
		if _, err := g.Add(l.raw); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.ApplyGroup(g); err != nil {
		t.Fatal(err)
	}
	held := heap()
	runtime.KeepAlive(g) // until here
	if held -= heap(); held > 1<<20 {
		t.Errorf("a group of %d catalogs holds %d bytes", len(m.log), held)
	}
	runtime.KeepAlive(s)
	runtime.KeepAlive(m)
}
