package history

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"iter"
	"slices"

	"github.com/kuji-dev/kuji"
)

// Report is what Verify has compared.
type Report struct {
	From, To uint64 // the first and the last position; 0: none
	Events   uint64
	State    State // of the history
}

// Verify compares a history with the events of its log, in order, from where the log begins: every
// event that both have, every row that leads to one, and that balances follow from one another. It
// reads one snapshot of the database and writes nothing.
//
// CodeCorrupt with a [DamagedError] names the first difference. CodeConflict says that the history
// has events that the log does not have: it is that of another log.
func (h *DB) Verify(ctx context.Context, log iter.Seq2[kuji.Record, error]) (report Report, err error) {
	err = h.reading(ctx, func(r *reader) error {
		v := &verification{reader: r, seed: maphash.MakeSeed(), first: Place{Position: r.p.keptFrom}.seq(), end: r.p.at.seq()}
		err := v.run(ctx, log)
		if v.report.State = r.p.state(); v.report.Events == 0 {
			v.report.From, v.report.To = 0, 0
		}
		report = v.report
		return err
	})
	return report, err
}

// verification compares a history with its log. What rows a table must have is kept as the sum of their
// hashes, so that they can be compared in any order.
type verification struct {
	*reader
	report     Report
	seed       maphash.Seed
	first, end int64 // the places that are compared
	began      bool
	last       uint64 // position of the log's last event

	changes, pools, items uint64 // sums of hashes
}

// rowHash identifies a row, by names.
type rowHash struct {
	name  string
	seq   int64
	item  string
	delta int64
}

func (v *verification) hash(row rowHash) uint64 { return maphash.Comparable(v.seed, row) }

// verifyAtOnce is how many events are compared at a time.
const verifyAtOnce = 256

func (v *verification) run(ctx context.Context, log iter.Seq2[kuji.Record, error]) error {
	var some []kuji.Record
	for rec, err := range log {
		if err != nil {
			return err
		}
		seq := placeOf(&rec).seq()
		if v.last = rec.Position; !v.began {
			v.began, v.first = true, max(v.first, seq)
		}
		if seq < v.first || seq > v.end {
			continue
		}
		if some = append(some, rec); len(some) == verifyAtOnce {
			if err := v.compare(ctx, some); err != nil {
				return err
			}
			some = some[:0]
		}
	}
	if err := v.compare(ctx, some); err != nil {
		return err
	}
	if at := placeAt(v.end).Position; at > v.last {
		return &kuji.Error{Code: kuji.CodeConflict, Message: fmt.Sprintf("the history goes to position %d, and the last event of the log is at position %d: it is the history of another log", at, v.last)}
	}
	if v.report.Events == 0 {
		v.first = v.end + 1
	}
	for _, check := range []func(context.Context) error{v.count, v.named, v.index, v.changed, v.held} {
		if err := check(ctx); err != nil {
			return err
		}
	}
	return nil
}

// compare compares some events, which ascend.
func (v *verification) compare(ctx context.Context, some []kuji.Record) error {
	for len(some) > 0 {
		seqs := make([]int64, len(some))
		for i := range some {
			seqs[len(some)-1-i] = placeOf(&some[i]).seq()
		}
		got, err := v.records(ctx, seqs) // the newest, as many as fit
		if err != nil {
			return err
		}
		newest := some[len(some)-max(len(got), 1):]
		for i := range newest {
			if want := &newest[len(newest)-1-i]; i >= len(got) || !sameEvent(&got[i], want) {
				return damaged("%v: the log has another event", placeOf(want))
			}
			v.expect(&newest[i])
		}
		some = some[:len(some)-len(newest)]
	}
	return nil
}

// expect adds the rows of an event to those that must be there.
func (v *verification) expect(rec *kuji.Record) {
	seq := placeOf(rec).seq()
	if v.report.Events++; v.report.From == 0 {
		v.report.From = rec.Position
	}
	v.report.From, v.report.To = min(v.report.From, rec.Position), max(v.report.To, rec.Position)
	players, pools, items := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, c := range rec.Changes {
		players[c.Player], items[c.Item] = true, true
		v.changes += v.hash(rowHash{c.Player, seq, c.Item, c.Delta})
	}
	about(rec, func(id string) {
		if !players[id] {
			players[id] = true
			v.changes += v.hash(rowHash{name: id, seq: seq})
		}
	}, func(id string) { pools[id] = true })
	for id := range pools {
		v.pools += v.hash(rowHash{name: id, seq: seq})
	}
	for id := range items {
		v.items += v.hash(rowHash{name: id, seq: seq})
	}
}

// sameEvent compares an event of the history with one of the log, which knows no balances.
func sameEvent(got, want *kuji.Record) bool {
	a, err := detailOf(got)
	if err != nil {
		return false
	}
	b, err := detailOf(want)
	return err == nil && a == b && got.Position == want.Position && got.Index == want.Index && got.Time == want.Time && got.Kind == want.Kind &&
		got.Status == want.Status && got.Player == want.Player && got.Pool == want.Pool && got.ID == want.ID && slices.Equal(deltas(got), deltas(want))
}

// deltas returns what an event changes, sorted.
func deltas(rec *kuji.Record) []rowHash {
	all := make([]rowHash, len(rec.Changes))
	for i, c := range rec.Changes {
		all[i] = rowHash{c.Player, 0, c.Item, c.Delta}
	}
	slices.SortFunc(all, func(a, b rowHash) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.item, b.item)) })
	return all
}

// count finds events that the log does not have.
func (v *verification) count(ctx context.Context) error {
	return v.query(ctx, "SELECT count(*) FROM events WHERE seq >= $1", func(r row) error {
		if n := uint64(r.int(0)); n != v.report.Events {
			return damaged("%d events from position %d on, the log has %d", n, placeAt(v.first).Position, v.report.Events)
		}
		return nil
	}, v.first)
}

// named checks all names.
func (v *verification) named(ctx context.Context) error {
	for _, table := range []string{"players", "items", "pools"} {
		if err := v.query(ctx, "SELECT id, name, sum FROM "+table, func(r row) error {
			return v.check(table, r...)
		}); err != nil {
			return err
		}
	}
	return nil
}

// index compares the rows that lead from pools and items to events.
func (v *verification) index(ctx context.Context) error {
	for _, t := range []struct {
		table, sql string
		want       uint64
	}{
		{"pool_events", "SELECT o.name, e.seq FROM pool_events e LEFT JOIN pools o ON o.id = e.pool WHERE e.seq >= $1", v.pools},
		{"item_events", "SELECT o.name, e.seq FROM item_events e LEFT JOIN items o ON o.id = e.item WHERE e.seq >= $1", v.items},
	} {
		var got uint64
		if err := v.query(ctx, t.sql, func(r row) error {
			got += v.hash(rowHash{name: idOf(r.text(0)), seq: r.int(1)})
			return nil
		}, v.first); err != nil {
			return err
		}
		if got != t.want {
			return damaged("the table %s differs from the log", t.table)
		}
	}
	return nil
}

// changed compares the changes of all players, and checks that balances follow from one another.
func (v *verification) changed(ctx context.Context) error {
	got, player := uint64(0), int64(0)
	balances := map[int64]int64{} // of the player
	if err := v.query(ctx, "SELECT c.player, c.seq, c.item, c.delta, c.balance, p.name, i.name FROM changes c LEFT JOIN players p ON p.id = c.player LEFT JOIN items i ON i.id = c.item ORDER BY c.player, c.seq, c.item", func(r row) error {
		if r.int(0) != player {
			player = r.int(0)
			clear(balances)
		}
		seq, item := r.int(1), r.int(2)
		if seq >= v.first {
			got += v.hash(rowHash{idOf(r.text(5)), seq, idOf(r.text(6)), r.int(3)})
		}
		if item == 0 || r[4] == nil || !v.proven(seq) {
			return nil
		}
		before, known := balances[item]
		if known = known || v.whole(); known && before+r.int(3) != r.int(4) {
			return damaged("%v: player %q has %d %q after %+d, and had %d before", placeAt(seq), idOf(r.text(5)), r.int(4), idOf(r.text(6)), r.int(3), before)
		}
		balances[item] = r.int(4)
		return nil
	}); err != nil {
		return err
	}
	if got != v.changes {
		return damaged("the table changes differs from the log")
	}
	return nil
}

// held checks what players hold: if the history is whole, it is what their changes add up to.
func (v *verification) held(ctx context.Context) error {
	var got, want uint64
	if err := v.query(ctx, "SELECT item, player, quantity, sum FROM holdings", func(r row) error {
		got += maphash.Comparable(v.seed, [3]int64{r.int(0), r.int(1), r.int(2)})
		return v.check("holdings", r...)
	}); err != nil || !v.whole() {
		return err
	}
	if err := v.query(ctx, "SELECT item, player, CAST(sum(delta) AS BIGINT) FROM changes WHERE item <> 0 GROUP BY item, player HAVING sum(delta) <> 0", func(r row) error {
		want += maphash.Comparable(v.seed, [3]int64{r.int(0), r.int(1), r.int(2)})
		return nil
	}); err != nil {
		return err
	}
	if got != want {
		return damaged("the table holdings differs from what the changes add up to")
	}
	return nil
}
