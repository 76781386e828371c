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

// Verify compares a history with its log, in order, from where the log begins: every event that both have,
// every row that leads to one, and that balances follow from one another. It reads one snapshot and writes
// nothing. CodeCorrupt with a [DamagedError] names the first difference, CodeConflict says that the history
// is another log's.
func (h *DB) Verify(ctx context.Context, log iter.Seq2[kuji.Record, error]) (report Report, err error) {
	err = h.reading(ctx, func(r *reader) error {
		v := &verification{reader: r, seed: maphash.MakeSeed(), want: map[string]tally{}, first: Place{Position: r.p.KeptFrom}.seq(), end: r.p.at.seq()}
		err := v.run(ctx, log)
		if v.report.State = r.p.state(); v.report.Events == 0 {
			v.report.From, v.report.To = 0, 0
		}
		report = v.report
		return err
	})
	return report, err
}

// verification compares a history with its log.
type verification struct {
	*reader
	report     Report
	seed       maphash.Seed
	first, end int64 // the places that are compared
	began      bool
	last       uint64           // position of the log's last event
	want       map[string]tally // by table
}

// tally is how many rows a table has, and the sum of their hashes, so that they can come in any order.
type tally struct{ rows, sum uint64 }

// fact is what a row says, by names.
type fact struct {
	name  string
	seq   int64
	item  string
	delta int64
}

func (v *verification) count(all tally, one fact) tally {
	return tally{all.rows + 1, all.sum + maphash.Comparable(v.seed, one)}
}

// verifyAtOnce is how many events are compared at a time.
const verifyAtOnce = 256

func (v *verification) run(ctx context.Context, log iter.Seq2[kuji.Record, error]) error {
	var some []kuji.Record
	for rec, err := range log {
		if err != nil {
			return err
		}
		forget(&rec)
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
	for _, check := range []func(context.Context) error{v.named, v.rows, v.balances, v.held} {
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
	seen := map[string]bool{}
	once := func(table, name string, one fact) {
		if !seen[table+" "+name] {
			seen[table+" "+name] = true
			v.want[table] = v.count(v.want[table], one)
		}
	}
	once("events", "", fact{seq: seq})
	for _, c := range rec.Changes {
		once("item_events", c.Item, fact{name: c.Item, seq: seq})
		seen["changes "+c.Player] = true
		v.want["changes"] = v.count(v.want["changes"], fact{c.Player, seq, c.Item, c.Delta})
	}
	about(rec, func(id string) { once("changes", id, fact{name: id, seq: seq}) },
		func(id string) { once("pool_events", id, fact{name: id, seq: seq}) })
}

// sameEvent compares an event of the history with one of the log.
func sameEvent(got, want *kuji.Record) bool { return said(got) == said(want) }

// said is what an event says, except balances, which the log does not know.
func said(rec *kuji.Record) string {
	changes := make([]fact, len(rec.Changes))
	for i, c := range rec.Changes {
		changes[i] = fact{c.Player, 0, c.Item, c.Delta}
	}
	slices.SortFunc(changes, func(a, b fact) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.item, b.item)) })
	text, err := detailOf(rec)
	return fmt.Sprintf("%v %d %q %+v %s %v", placeOf(rec), rec.Time, []string{rec.Kind, rec.Status, rec.Player, rec.Pool, rec.ID}, changes, text, err)
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

// rows compares the rows of the tables that are about events.
func (v *verification) rows(ctx context.Context) error {
	for _, t := range []struct{ table, sql string }{
		{"events", "SELECT '', seq, '', 0 FROM events WHERE seq >= $1"},
		{"pool_events", "SELECT o.name, e.seq, '', 0 FROM pool_events e LEFT JOIN pools o ON o.id = e.pool WHERE e.seq >= $1"},
		{"item_events", "SELECT o.name, e.seq, '', 0 FROM item_events e LEFT JOIN items o ON o.id = e.item WHERE e.seq >= $1"},
		{"changes", "SELECT p.name, c.seq, i.name, c.delta FROM changes c LEFT JOIN players p ON p.id = c.player LEFT JOIN items i ON i.id = c.item WHERE c.seq >= $1"},
	} {
		var got tally
		if err := v.query(ctx, t.sql, func(r row) error {
			got = v.count(got, fact{idOf(r.text(0)), r.int(1), idOf(r.text(2)), r.int(3)})
			return nil
		}, v.first); err != nil {
			return err
		}
		if want := v.want[t.table]; got != want {
			return damaged("the table %s has %d rows from position %d on, and by the log others, %d", t.table, got.rows, placeAt(v.first).Position, want.rows)
		}
	}
	return nil
}

// balances checks that the balances of all players follow from one another.
func (v *verification) balances(ctx context.Context) error {
	player, balances := int64(0), map[int64]int64{} // of the player
	return v.query(ctx, "SELECT c.player, c.seq, c.item, c.delta, c.balance, p.name, i.name FROM changes c LEFT JOIN players p ON p.id = c.player "+
		"LEFT JOIN items i ON i.id = c.item WHERE c.balance IS NOT NULL ORDER BY c.player, c.seq, c.item", func(r row) error {
		if r.int(0) != player {
			player = r.int(0)
			clear(balances)
		}
		seq, item, delta := r.int(1), r.int(2), r.int(3)
		before, known := balances[item]
		if !v.proven(seq) {
			return nil
		}
		if (known || v.whole()) && before+delta != r.int(4) {
			return damaged("%v: player %q has %d %q after %+d, and had %d before", placeAt(seq), idOf(r.text(5)), r.int(4), idOf(r.text(6)), delta, before)
		}
		balances[item] = r.int(4)
		return nil
	})
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
