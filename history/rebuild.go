package history

import (
	"context"
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"

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

// Rebuild lets the next Run build the history again, as if it were damaged, also after the process has
// ended. Nobody may write the history meanwhile.
func (h *DB) Rebuild(ctx context.Context) (err error) {
	c, err := h.db.open(ctx, true)
	if err != nil {
		return failed("opening", err)
	}
	defer func() { err = errors.Join(err, c.close()) }()
	p, err := h.tables(c).progress(ctx)
	if damageOf(err) != nil { // the next Run will see that
		return nil
	}
	if err != nil {
		return err
	}
	p.rebuild = true
	_, err = c.exec(ctx, "UPDATE progress SET rebuild = 1, sum = $1 WHERE id = 1", p.sum(h.realm))
	return failed("writing", err)
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

// replace makes another database if the one that is there cannot be read.
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
	} // any other error is of what is damaged
	defer h.pool.give(maxReads)
	done, err := h.db.replace(first > 1)
	if err != nil || !done {
		return failed("replacing", err)
	}
	if err := h.prepare(ctx); err != nil {
		return err
	}
	h.healed(progress{last: true, completeFrom: 1})
	return nil
}

// rebuild builds a history again, through a connection.
type rebuild struct {
	h *DB
	tables
	feed Feed
}

// build builds the history again, as far as the log goes back, if it is damaged or if that was asked for.
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
	b.h.unserve(damaged("it was upgraded, or somebody asked for it"))
	some := false
	if err := b.c.query(ctx, "SELECT 1 FROM events LIMIT 1", func(row) error {
		some = true
		return nil
	}); err != nil && damageOf(failed("", err)) == nil {
		return err
	}
	first := uint64(1)
	if some {
		if first, err = begins(ctx, b.feed); err != nil {
			return err
		}
	}
	if first <= 1 {
		p, err = b.startOver(ctx)
	} else {
		p, err = b.keepOlder(ctx, p, sound, first)
	}
	if err != nil {
		return failed("building again", err)
	}
	b.h.healed(p)
	return nil
}

// startOver makes the tables again, with nothing in them.
func (b *rebuild) startOver(ctx context.Context) (p progress, err error) {
	statements := []string{"BEGIN"}
	for _, table := range []string{"players", "items", "pools", "events", "pool_events", "item_events", "changes", "holdings", "progress"} {
		statements = append(statements, "DROP TABLE IF EXISTS "+table)
	}
	statements = append(statements, b.db.words().statements(progressTable)...)
	if err := b.run(ctx, append(statements, b.db.words().statements(schema)...)...); err != nil {
		return p, err
	}
	p = progress{last: true, completeFrom: 1}
	if err := b.insertProgress(ctx, p, ""); err != nil {
		return p, err
	}
	return p, b.run(ctx, "COMMIT")
}

// keepOlder removes what a log has from a position on, and keeps what is older. p is how far the history
// goes, if sound.
func (b *rebuild) keepOlder(ctx context.Context, p progress, sound bool, first uint64) (next progress, err error) {
	next = p
	if sound {
		if err := b.sameLog(ctx, p); err != nil {
			return p, err
		}
	} else {
		next = progress{at: Place{Position: first}, completeFrom: first}
		if next.keptFrom, next.keptTime, err = oldest(ctx, b.c); err != nil {
			return p, err
		}
	}
	next.rebuild, next.provenFrom = false, first
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
	check := &checker{unproven: !sound || p.unproven() > 0}
	named, err := b.mendNames(ctx, check)
	if err == nil && named && next.completeFrom == 1 {
		named, err = b.rewind(ctx, p, first)
	}
	if err != nil {
		return p, err
	}
	if !named || next.completeFrom != 1 {
		next.completeFrom = max(next.completeFrom, first)
		if err := b.run(ctx, "DELETE FROM holdings"); err != nil {
			return p, err
		}
	}
	if err := b.insertProgress(ctx, next, ""); err != nil {
		return p, err
	}
	return next, b.run(ctx, "COMMIT")
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
		at := Place{rec.Position, rec.Index}
		if at.seq() < p.at.seq() {
			continue
		}
		if err = b.h.compare(ctx, at, p.at, &rec); damageOf(err) != nil {
			return nil
		}
		return err
	}
	return ctx.Err()
}

// oldest returns the place and the time of the oldest event that is not the log's first, or 0.
func oldest(ctx context.Context, c conn) (position uint64, time int64, err error) {
	err = c.query(ctx, "SELECT seq, time FROM events ORDER BY seq LIMIT 1", func(r row) error {
		if at := placeOf(r.int(0)); at.Position > 1 {
			position, time = at.Position, r.int(1)
		}
		return nil
	})
	return position, time, err
}

// mendNames replaces names that cannot be read. It reports whether there was none.
func (b *rebuild) mendNames(ctx context.Context, check *checker) (bool, error) {
	all := true
	for _, table := range []string{"players", "items", "pools"} {
		var bad []int64
		if err := b.c.query(ctx, "SELECT id, name, sum FROM "+table, func(r row) error {
			if check.name(r, 2, table, r.int(0), r.text(1)) != nil {
				bad = append(bad, r.int(0))
			}
			return nil
		}); err != nil {
			return false, err
		}
		for _, id := range bad {
			all = false
			text := unreadable(id)
			if _, err := b.exec(ctx, "UPDATE "+table+" SET name = $1, sum = $2 WHERE id = $3", text, check.nameSum(table, id, text), id); err != nil {
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
	w, err := b.h.writerAt(ctx, b.c, p)
	if damageOf(err) != nil {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	w.back = true
	exec := b.h.executor(ctx, b.c)
	var some []event
	flush := func() error {
		if len(some) == 0 {
			return nil
		}
		_, err := w.build(ctx, some)
		if err == nil && len(w.players.new)+len(w.items.new)+len(w.pools.new) > 0 {
			err = damaged("names that the log has are missing")
		}
		some = some[:0]
		if err != nil {
			return err
		}
		return w.hold(exec)
	}
	end := p.at.seq()
	for rec, err := range b.upTo(ctx, first, end) {
		if err != nil {
			return false, err
		}
		if some = append(some, event{rec: rec}); len(some) < b.h.most {
			continue
		}
		if err := flush(); err != nil {
			return false, passOver(err)
		}
	}
	if err := flush(); err != nil {
		return false, passOver(err)
	}
	known := true
	err = b.c.query(ctx, "SELECT 1 FROM holdings WHERE quantity < 0 LIMIT 1", func(row) error {
		known = false
		return nil
	})
	return known, err
}

// passOver returns an error, unless it is about damaged rows.
func passOver(err error) error {
	if d := damageOf(err); d != nil && !d.database {
		return nil
	}
	return err
}

// upTo is the events of a feed from a position up to a place.
func (b *rebuild) upTo(ctx context.Context, first uint64, end int64) func(yield func(kuji.Record, error) bool) {
	return func(yield func(kuji.Record, error) bool) {
		if placeOf(end).Position < first {
			return
		}
		for rec, err := range b.feed(ctx, first) {
			seq := Place{rec.Position, rec.Index}.seq()
			if err == nil && seq > end || !yield(rec, err) || err != nil || seq == end {
				return
			}
		}
	}
}

// taken reports whether a row could not be inserted because one with its key is there.
func taken(err error) bool {
	return errors.Is(err, sqlite3.CONSTRAINT) || postgresCode(err) == "23505"
}
