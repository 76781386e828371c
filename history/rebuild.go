package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/kuji-dev/kuji"
)

// A damaged history is built again:
//
//	a reader or the writer finds damage and notes it: nothing is served, and Run ends
//	the next Run asks the feed where the log begins
//	the log has everything:  the tables are made again, and everything is read
//	it was trimmed:          the rows of what it still has are removed, and it is read from there; older
//	                         rows stay, and are not proven
//	the database cannot be read at all (SQLite): the file is replaced; it is kept aside if the log was
//	                         trimmed
//
// What players held where the log begins is what they hold at the history's end, less what the log says
// has changed since. If that cannot be known, there are no balances, as after a gap.

// Rebuild lets the next Run, in any process, build the history again. Nobody may write it meanwhile.
func (h *DB) Rebuild(ctx context.Context) error {
	return h.writing(ctx, func(t tables) error {
		p, err := t.progress(ctx)
		if damageOf(err) != nil || p.rebuild { // the next Run will see that
			return nil
		}
		if err != nil {
			return err
		}
		next := p
		next.rebuild = true
		return t.update(ctx, p, next)
	})
}

// begins returns the first position that a feed has.
func begins(ctx context.Context, feed Feed) (uint64, error) {
	for _, err := range feed(ctx, 1) {
		if t, ok := errors.AsType[*kuji.TrimmedError](err); ok {
			return t.First, nil
		}
		return 1, err
	}
	return 1, ctx.Err()
}

// replace makes way for another database if the one that is there cannot be read. The rebuild fills it.
func (h *DB) replace(ctx context.Context, feed Feed) error {
	d := damageOf(h.now().damage)
	if d == nil || !d.database {
		return nil
	}
	first, err := begins(ctx, feed)
	if err != nil {
		return err
	}
	if err := h.pool.take(ctx); kuji.CodeOf(failed("", err)) == kuji.CodeCanceled {
		return failed("replacing", err)
	} // any other error comes from what is damaged
	defer h.pool.give(maxReads)
	return failed("replacing", h.db.replace(first > 1))
}

// rebuild builds a history again, through a connection.
type rebuild struct {
	tables
	feed Feed
}

// build builds the history again, as far as the log goes back, if it is damaged or somebody asked for it.
func (b *rebuild) build(ctx context.Context) error {
	if err := b.create(ctx); err != nil {
		return err
	}
	p, err := b.progress(ctx)
	known := b.h.now().damage != nil
	if err != nil && !(known && damageOf(err) != nil) {
		return err
	}
	sound := err == nil
	if sound && !known && !p.rebuild {
		return nil
	}
	b.h.change(func(s *standing) { s.damage = cmp.Or(s.damage, damaged("it was upgraded, or somebody asked for it")) })
	some, err := b.one(ctx, "SELECT 1 FROM events LIMIT 1")
	if err != nil && damageOf(failed("", err)) == nil {
		return err
	}
	first := uint64(1)
	if some != nil {
		if first, err = begins(ctx, b.feed); err != nil {
			return err
		}
	}
	if first <= 1 {
		p, err = nothing, b.startOver(ctx)
	} else {
		p, err = b.keepOlder(ctx, p, sound, first)
	}
	if err != nil {
		return failed("building again", err)
	}
	b.h.healed(p)
	return nil
}

// startOver makes the tables and views again, with nothing in them.
func (b *rebuild) startOver(ctx context.Context) error {
	statements := []string{"BEGIN", "DROP VIEW IF EXISTS claims", "DROP VIEW IF EXISTS beyond", "DROP VIEW IF EXISTS collected", "DROP VIEW IF EXISTS joins", "DROP VIEW IF EXISTS wins",
		"DROP VIEW IF EXISTS held", "DROP VIEW IF EXISTS freed"}
	for _, table := range []string{"players", "items", "pools", "events", "pool_events", "item_events", "changes", "holdings", "progress"} {
		statements = append(statements, "DROP TABLE IF EXISTS "+table)
	}
	statements = append(statements, b.h.db.words().statements(progressTable+";"+schema+";"+allViews)...)
	if err := b.run(ctx, statements...); err != nil {
		return err
	}
	return b.finish(ctx, nothing)
}

// finish ends the transaction, with the row that says how far the history goes.
func (b *rebuild) finish(ctx context.Context, p progress) error {
	if err := b.insertProgress(ctx, p); err != nil {
		return err
	}
	return b.run(ctx, "COMMIT")
}

// keepOlder removes what a log has from a position on, and keeps the rest. p is the history's end, if sound.
func (b *rebuild) keepOlder(ctx context.Context, p progress, sound bool, first uint64) (next progress, err error) {
	next = p
	if sound {
		if err := b.sameLog(ctx, p); err != nil {
			return p, err
		}
	} else {
		next = progress{State: State{CompleteFrom: first}, at: Place{Position: first}}
		if next.KeptFrom, next.KeptFromTime, err = b.oldest(ctx); err != nil {
			return p, err
		}
	}
	next.rebuild, next.ProvenFrom = false, first
	if next.at.Position >= first {
		next.at, next.last = Place{Position: first - 1}, true
	}
	statements := []string{"BEGIN", "DELETE FROM progress"} // which locks out other writers
	for _, table := range []string{"changes", "pool_events", "item_events", "events"} {
		statements = append(statements, fmt.Sprintf("DELETE FROM %s WHERE seq >= %d", table, Place{Position: first}.seq()))
	}
	if err := b.run(ctx, statements...); err != nil {
		return p, err
	}
	known, err := b.mendNames(ctx, !sound || p.unproven() > 0)
	if err == nil && known && next.CompleteFrom == 1 {
		known, err = b.rewind(ctx, p, first)
	}
	if err != nil {
		return p, err
	}
	if !known || next.CompleteFrom != 1 {
		next.CompleteFrom = max(next.CompleteFrom, first)
		if err := b.run(ctx, "DELETE FROM holdings"); err != nil {
			return p, err
		}
	}
	return next, b.finish(ctx, next)
}

// sameLog compares the last event that a history has with the feed, as far as both have it.
func (b *rebuild) sameLog(ctx context.Context, p progress) error {
	if p.at.Position == 0 {
		return nil
	}
	for rec, err := range b.feed(ctx, p.at.Position) {
		if _, trimmed := errors.AsType[*kuji.TrimmedError](err); trimmed {
			return nil
		}
		if kuji.CodeOf(err) == kuji.CodeInvalid { // beyond the end of the log
			return b.h.refuse(err)
		}
		if err != nil {
			return err
		}
		if placeOf(&rec).seq() >= p.at.seq() {
			if err = b.h.compare(ctx, &rec, p.at); damageOf(err) != nil {
				return nil
			}
			return err
		}
	}
	return ctx.Err()
}

// oldest returns the position and the time of the oldest event that is not the log's first, or 0.
func (b *rebuild) oldest(ctx context.Context) (position uint64, time int64, err error) {
	r, err := b.one(ctx, "SELECT seq, time FROM events ORDER BY seq LIMIT 1")
	if r != nil && placeAt(r.int(0)).Position > 1 {
		position, time = placeAt(r.int(0)).Position, r.int(1)
	}
	return position, time, err
}

// mendNames replaces names that cannot be read; all: it could. unproven: some rows have no checksum.
func (b *rebuild) mendNames(ctx context.Context, unproven bool) (all bool, err error) {
	check := &reader{p: progress{rebuild: unproven}}
	all = true
	for _, table := range []string{"players", "items", "pools"} {
		var bad []int64
		if err := b.query(ctx, "SELECT id, name, sum FROM "+table, func(r row) error {
			if check.check(table, r...) != nil {
				bad = append(bad, r.int(0))
			}
			return nil
		}); err != nil {
			return false, err
		}
		for _, id := range bad {
			all = false
			row := check.s.summed(table, 2, []any{id, unreadable(id)})
			if _, err := b.exec(ctx, "UPDATE "+table+" SET (name, sum) = ($1, $2) WHERE id = $3", row[1], row[2], id); err != nil {
				return false, err
			}
		}
	}
	return all, nil
}

// unreadable stands for a name that cannot be read. No id has this text: see textOf.
func unreadable(id int64) string { return fmt.Sprintf(`\?%d`, id) }

// rewind makes the holdings those before a position: less what the log says has changed from there to
// where the history ends. It reports false if they are not known.
func (b *rebuild) rewind(ctx context.Context, p progress, first uint64) (bool, error) {
	w, err := newWriter(ctx, b.tables, p)
	if err != nil {
		return false, passOver(err)
	}
	w.back = true
	var some []event
	flush := func() error {
		if len(some) == 0 {
			return nil
		}
		if _, err := w.build(ctx, some); err != nil {
			return err
		}
		if len(w.players.new)+len(w.items.new)+len(w.pools.new) > 0 {
			return damaged("names that the log has are missing")
		}
		some = some[:0]
		return w.hold(ctx)
	}
	for rec, err := range b.upTo(ctx, first, p.at.seq()) {
		forget(&rec)
		if some = append(some, event{rec: rec}); err == nil && len(some) == b.h.most {
			err = flush()
		}
		if err != nil {
			return false, passOver(err)
		}
	}
	if err := flush(); err != nil {
		return false, passOver(err)
	}
	negative, err := b.one(ctx, "SELECT 1 FROM holdings WHERE quantity < 0 LIMIT 1")
	return negative == nil, err
}

// passOver returns an error, unless it is about damaged rows.
func passOver(err error) error {
	if d := damageOf(err); d != nil && !d.database {
		return nil
	}
	return err
}

// upTo is the events of a feed from a position up to a place.
func (b *rebuild) upTo(ctx context.Context, first uint64, end int64) iter.Seq2[kuji.Record, error] {
	return func(yield func(kuji.Record, error) bool) {
		if placeAt(end).Position < first {
			return
		}
		for rec, err := range b.feed(ctx, first) {
			seq := placeOf(&rec).seq()
			if err == nil && seq > end || !yield(rec, err) || err != nil || seq == end {
				return
			}
		}
	}
}
