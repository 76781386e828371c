package rules_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/examples"
	"github.com/kuji-dev/kuji/internal/plan"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// TestPrepareConflicts: what a realm's past refuses of a catalog that is well formed.
func TestPrepareConflicts(t *testing.T) {
	r := newRealm(t, 1)
	r.put(`{kuji: 1, items: {gem: {kind: currency}, sword: {}}, pools: {p: {entries: [{id: a, weight: 1}]}}}`)
	r.put(`{kuji: 1, items: {other: {}}}`)
	hash, tables := r.state.Hash(), r.rules.Tables()
	for yaml, want := range map[string]string{
		`{kuji: 1, items: {gem: {}}}`:                                        "item gem: its kind cannot change",
		`{kuji: 1, items: {other: {kind: currency}}}`:                        "item other: its kind cannot change",
		`{kuji: 1, items: {sword: {kind: currency}, gem: {kind: currency}}}`: "item sword: its kind cannot change",
		`{kuji: 1, items: {gem: {kind: currency}, sword: {}}}`:               "",
		`{kuji: 1, items: {new: {kind: currency}}, pools: {p: {entries: [{id: b, weight: 1}]}, gem: {entries: [{id: b, weight: 1}]}}}`: "",
	} {
		c := parse(t, yaml)
		_, err := rules.Prepare(r.state, tables, c, nil, 0)
		_, planned := plan.NewPlanner(r.state, tables, c, r.now).Plan(c, waits)
		var conflict *rules.ConflictError
		if want == "" {
			if err != nil || planned != nil {
				t.Errorf("%s: %v, planned: %v", yaml, err, planned)
			}
			continue
		}
		if !errors.As(err, &conflict) || !strings.HasPrefix(err.Error(), want) || !reflect.DeepEqual(err, planned) {
			t.Errorf("%s: %v, planned: %v, want %q", yaml, err, planned, want)
		}
	}
	if r.state.Hash() != hash || r.rules.Tables() != tables {
		t.Error("preparing a catalog changed the realm")
	}
}

// TestUnchanged: the catalog in force is nothing to log, however it is written.
func TestUnchanged(t *testing.T) {
	r := newRealm(t, 1)
	r.put(`{kuji: 1, items: {gem: {}}}`)
	p, err := rules.Prepare(r.state, r.rules.Tables(), parse(t, "kuji: 1\nitems:\n  gem: {kind: item} # a comment\n"), nil, 0)
	if err != nil || p.Event != nil || p.Tables != r.rules.Tables() {
		t.Errorf("%+v, %v", p, err)
	}
	for _, yaml := range []string{`{kuji: 1, items: {gem: {}}, name: new}`, `{kuji: 1, items: {gem: {}}}`} {
		was := r.rules.Tables().Version
		r.put(yaml)
		if got := r.rules.Tables().Version; got != was+1 || r.state.Catalog().Version != got {
			t.Errorf("%s: version %d after %d, the state says %d", yaml, got, was, r.state.Catalog().Version)
		}
	}
}

// numbers returns every number that a realm's names have.
func (r *realm) numbers() map[string]uint32 {
	all := map[string]uint32{}
	for i := range uint32(r.state.Items()) {
		all["item "+r.state.ItemID(i)] = i
	}
	for i := range uint32(r.state.Pools()) {
		all["pool "+r.state.PoolID(i)] = i
		for e := range uint32(r.state.Entries(i)) {
			all["entry "+r.state.PoolID(i)+"/"+r.state.EntryID(i, e)] = e
		}
	}
	for _, l := range []string{"draws", "draws/day", "draws/week", "draws/1800000ms", "draws/1ms"} {
		for i := range 6 {
			name := fmt.Sprintf("p%d/%s", i, l)
			if first, ok := r.state.CounterNum(name); ok {
				all["counters "+name] = first
			}
		}
	}
	return all
}

// TestNumbersStay: what has a number keeps it, whatever catalogs come, and no two have the
// same. What Load makes of the state are the tables in force.
func TestNumbersStay(t *testing.T) {
	for seed := range uint64(10) {
		r, pick := newRealm(t, seed), seeded(seed)
		were := map[string]uint32{}
		for range 20 {
			r.put(randomCatalog(pick))
			are := r.numbers()
			for name, n := range were {
				if got, ok := are[name]; !ok || got != n {
					t.Fatalf("seed %d: %s had number %d and has %d (known: %v)", seed, name, n, got, ok)
				}
			}
			were = are
			for range 10 {
				r.do(randomCommand(pick))
			}
			loaded, err := rules.Load(r.state, r.state.Catalog())
			if err != nil {
				t.Fatal(err)
			}
			if now := r.rules.Tables(); loaded.Version != now.Version || loaded.Hash != now.Hash || !reflect.DeepEqual(loaded, now) {
				t.Fatalf("seed %d: loading gives other tables than those in force", seed)
			}
		}
	}
}

// TestLoadIsStrict: a catalog that names or stocks what the state does not have is damage.
func TestLoadIsStrict(t *testing.T) {
	r := newRealm(t, 1)
	r.put(`{kuji: 1, items: {gem: {}}, pools: {p: {limits: [{per: day, draws: 1}], entries: [{id: a, weight: 1, stock: 3}]}}}`)
	for _, yaml := range []string{
		`{kuji: 1, items: {gem: {}, more: {}}}`,
		`{kuji: 1, items: {gem: {}}, pools: {q: {entries: [{id: a, weight: 1, stock: 3}]}}}`,
		`{kuji: 1, items: {gem: {}}, pools: {p: {entries: [{id: a, weight: 1, stock: 4}]}}}`,
		`{kuji: 1, items: {gem: {}}, pools: {p: {entries: [{id: a, weight: 1}]}}}`,
		`{kuji: 1, items: {gem: {}}, pools: {p: {entries: [{id: a, weight: 1, stock: 3}, {id: b, weight: 1}]}}}`,
		`{kuji: 1, items: {gem: {}}, pools: {p: {limits: [{per: week, draws: 1}], entries: [{id: a, weight: 1, stock: 3}]}}}`,
	} {
		in := r.state.Catalog()
		in.Bytes = parse(t, yaml).AppendCanonical(nil)
		if _, err := rules.Load(r.state, in); err == nil {
			t.Errorf("%s was loaded", yaml)
		}
	}
	in := r.state.Catalog()
	for n := range in.Bytes {
		in.Bytes = in.Bytes[:n:n]
		if _, err := rules.Load(r.state, in); err == nil {
			t.Errorf("the first %d bytes were loaded", n)
		}
		in = r.state.Catalog()
	}
	if tables, err := rules.Load(store.New(), store.InForce{}); err != nil || tables.Version != 0 {
		t.Errorf("no catalog: %+v, %v", tables, err)
	}
}

// TestStockThroughCatalogs: what was drawn counts, however the stock is changed and however
// long an entry is away.
func TestStockThroughCatalogs(t *testing.T) {
	r := newRealm(t, 1)
	for i, step := range []struct {
		entries             string
		draws               int // that must be possible, and no more
		left, drawn, weight uint64
	}{
		{"{id: a, weight: 2, stock: 5}", 5, 0, 5, 0},
		{"{id: a, weight: 2, stock: 7}", 1, 1, 6, 2},
		{"{id: a, weight: 2, stock: 3}", 0, 0, 6, 0},
		{"{id: b, weight: 1}", 3, 0, 0, 0}, // a is away
		{"{id: a, weight: 3, stock: 8}", 2, 0, 8, 0},
		{"{id: a, weight: 3}", 9, 0, 17, 3}, // without a bound
		{"{id: a, weight: 3, stock: 20}", 3, 0, 20, 0},
		{"{id: a, weight: 3, stock: 0}, {id: b, weight: 1, stock: 4}", 1, 0, 20, 0}, // b was drawn three times
	} {
		r.put(`{kuji: 1, items: {gem: {}}, pools: {p: {entries: [` + step.entries + `]}}}`)
		for range step.draws {
			r.want(draw("ann", "p", 1), rules.OK, "")
		}
		p := r.pool("p")
		if e := p.Entries[0]; e.ID == "a" && (e.Left != step.left || e.Drawn != step.drawn || e.Weight != step.weight) {
			t.Errorf("step %d: %+v, want %+v", i, e, step)
		}
		if p.TotalWeight == 0 {
			r.want(draw("ann", "p", 1), rules.SoldOut, "p")
		}
	}
	r.replay()
}

// TestItemsThatGoAndReturn: players keep what a catalog removes, can do nothing with it, and
// hold it when it returns.
func TestItemsThatGoAndReturn(t *testing.T) {
	with, without := `{kuji: 1, items: {gem: {}, sword: {}}, start: {sword: 2}}`, `{kuji: 1, items: {gem: {}}, start: {gem: 1}}`
	r := newRealm(t, 1)
	r.put(with)
	r.want(grant("ann", of("gem", 1)), rules.OK, "")
	r.put(without)
	for _, cmd := range []rules.Command{grant("ann", of("sword", 1)), consume("ann", of("sword", 1)), transfer("ann", "bob", of("sword", 1))} {
		r.want(cmd, rules.Refused, "items[0].item")
	}
	if r.holds("ann", "sword") != 2 {
		t.Errorf("ann holds %d", r.holds("ann", "sword"))
	}
	r.put(with)
	r.want(transfer("ann", "bob", of("sword", 2)), rules.OK, "")
	if r.want(register("bob"), rules.OK, ""); r.holds("bob", "sword") != 4 { // with the starting grants
		t.Errorf("bob holds %d", r.holds("bob", "sword"))
	}
}

// TestTimesOfPools: a pool opens at its start and closes at its end.
func TestTimesOfPools(t *testing.T) {
	r := newRealm(t, 1)
	r.put(`{kuji: 1, items: {gem: {}}, pools: {p: {starts: 2023-11-13T01:00:00Z, ends: 2023-11-13T02:00:00.001Z, entries: [{id: a, weight: 1}]}}}`)
	for _, step := range []struct {
		at     int64
		status rules.Status
	}{{0, rules.NotStarted}, {hour - 1, rules.NotStarted}, {hour, rules.OK}, {2 * hour, rules.OK}, {2*hour + 1, rules.Ended}, {9 * hour, rules.Ended}} {
		r.now = monday + step.at
		subject := "p"
		if step.status == rules.OK {
			subject = ""
		}
		r.want(draw("ann", "p", 1), step.status, subject)
	}
}

// TestExamples: the catalogs that teach the format can be drawn from.
func TestExamples(t *testing.T) {
	for _, name := range []string{"instant-win.yaml", "gacha-banner.yaml", "box-raffle.yaml", "drop-table.yaml", "collection.yaml"} {
		yaml, err := examples.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		r := newRealm(t, 1)
		r.put(string(yaml))
		c := r.rules.Tables().Catalog
		m := newModel()
		m.put(c)
		ok := 0
		for i := range c.Pools {
			p := &c.Pools[i]
			if p.Internal {
				continue
			}
			if p.StartsAt != 0 {
				r.now = max(r.now, p.StartsAt)
			}
			var price []catalog.Stack
			for _, one := range p.Price[:min(1, len(p.Price))] {
				for _, s := range one {
					price = append(price, of(s.Item, 20*s.Quantity))
				}
			}
			if price != nil {
				m.step(r, grant("ann", price...))
			}
			for range 20 {
				if m.step(r, draw("ann", p.ID, 1)) == rules.OK {
					ok++
				}
			}
		}
		if m.compare(r); ok == 0 {
			t.Errorf("%s: nothing was drawn", name)
		}
	}
}
