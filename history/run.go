package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/kuji-dev/kuji"
)

// Most of what waits for the writer, and is then one transaction. An event takes ten times its log.
const (
	maxWaiting      = 1 << 15 // events
	maxWaitingBytes = 4 << 20 // of the log
	maxRead         = 64      // events that are read and do not wait yet
)

// Events gather for restTime, unless ripe ones wait or somebody asks: a transaction costs much.
const (
	restTime = 100 * time.Millisecond
	ripe     = 1 << 12
)

// Feed returns the events of a realm from a position on, as kuji.Realm's method Events does.
type Feed func(ctx context.Context, from uint64) iter.Seq2[kuji.Record, error]

// Run follows a feed from where the history ends, until ctx ends or something fails, and returns why; nil if
// the feed ends and all of it is written. Called again, it goes on. If two Runs write one history, in any
// process, one of them fails.
//
// If the feed no longer has what comes next, the history goes on where the feed begins. From then on it has
// no balances, and State.CompleteFrom says so.
//
// CodeConflict: the database is the history of another log, such as one restored from an older copy.
// CodeCorrupt with a [DamagedError]: it is damaged. In both cases it is served no more. The next Run builds a
// damaged one again from where the feed begins: see State.ProvenFrom.
func (h *DB) Run(ctx context.Context, feed Feed) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	h.change(func(s *standing) { s.end = cancel })
	defer func() { err = h.ended(err) }()
	if err := h.replace(ctx, feed); err != nil {
		return err
	}
	again, upto := errForgotten, int64(0)
	for errors.Is(again, errForgotten) {
		again = h.keep(ctx, feed, &upto)
	}
	return again
}

// keep is Run until a player is forgotten.
func (h *DB) keep(ctx context.Context, feed Feed, upto *int64) error {
	return h.writing(ctx, func(t tables) error {
		if err := (&rebuild{t, feed}).build(ctx); err != nil {
			return err
		}
		p, err := t.progress(ctx)
		if err != nil {
			return err
		}
		w, err := newWriter(ctx, t, p)
		if err != nil {
			return err
		}
		h.move(p) // another process may have written
		return (&follower{w, feed, upto}).catchUp(ctx)
	})
}

// follower brings a history up to date with a feed.
type follower struct {
	*writer
	feed Feed
	upto *int64 // seq of the last event for which the history was built again: a name can come back
}

// catchUp follows the feed, past what was trimmed.
func (f *follower) catchUp(ctx context.Context) error {
	for {
		err := f.follow(ctx)
		t, ok := errors.AsType[*kuji.TrimmedError](err)
		if !ok || t.First <= f.p.at.Position {
			return err
		}
		next := f.p
		next.at, next.last, next.CompleteFrom = Place{t.First - 1, 0}, true, t.First
		if err := f.transact(ctx, next, func() error { return nil }); err != nil {
			return err
		}
	}
}

// follow writes what the feed brings, until it ends.
func (f *follower) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	events, batches := make(chan event, maxRead), make(chan []event)
	from := f.p
	var broke error // of the feed; known when batches is closed and ctx goes on
	work.Go(func() {
		defer close(events)
		broke = f.read(ctx, events, from)
	})
	work.Go(func() {
		defer close(batches)
		f.h.gather(ctx, events, batches)
	})
	for some := range batches {
		if err := f.write(ctx, some); err != nil {
			return err
		}
	}
	if ctx.Err() != nil { // the feed's reader may not have ended
		return ctx.Err()
	}
	return broke
}

// read sends what the feed brings. It begins with the history's last event, if kept: the log must be the same.
func (f *follower) read(ctx context.Context, events chan<- event, from progress) error {
	err := f.readFrom(ctx, events, max(from.at.Position, 1), from.at)
	if t, ok := errors.AsType[*kuji.TrimmedError](err); ok && from.last && t.First == from.at.Position+1 && from.at.Position > 0 {
		return f.readFrom(ctx, events, t.First, Place{})
	}
	return err
}

// readFrom sends what comes after the event at a place, which it compares; the zero place: everything.
func (f *follower) readFrom(ctx context.Context, events chan<- event, start uint64, last Place) error {
	if last.Position == 0 {
		f.h.accept()
	}
	for rec, err := range f.feed(ctx, start) {
		if err != nil {
			if kuji.CodeOf(err) == kuji.CodeInvalid { // beyond the end of the log
				return f.h.refuse(err)
			}
			return err
		}
		if last.Position > 0 {
			if placeOf(&rec).seq() < last.seq() {
				continue
			}
			if err := f.h.compare(ctx, &rec, last); err != nil {
				return err
			}
			last = Place{}
			continue
		}
		names := forget(&rec)
		text, err := detailOf(&rec)
		if err != nil {
			return err
		}
		select {
		case events <- event{rec, text, names}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return ctx.Err()
}

// compare compares the event at a place with the last one that the history has.
func (h *DB) compare(ctx context.Context, rec *kuji.Record, want Place) error {
	same := false
	err := h.reading(ctx, func(r *reader) error {
		recs, err := r.records(ctx, []int64{want.seq()})
		if len(recs) == 1 {
			last := &recs[0]
			same = placeOf(rec) == want && last.Time == rec.Time && last.Kind == rec.Kind && last.Status == rec.Status && last.ID == rec.ID
		}
		return err
	})
	if err != nil {
		return err
	}
	if !same {
		return h.refuse(fmt.Errorf("the event at position %d differs", want.Position))
	}
	h.accept()
	return nil
}

// write writes events in one transaction.
func (f *follower) write(ctx context.Context, some []event) error {
	next, err := f.build(ctx, some)
	if err != nil {
		return err
	}
	old, err := f.outdated(ctx, some)
	if err != nil {
		return err
	}
	if old != nil {
		next.KeptFrom, next.KeptFromTime = old.keptFrom(), old.keptTime
	}
	gone, err := f.forgotten(ctx, some, f.upto)
	if err != nil {
		return err
	}
	next.rebuild = len(gone) > 0
	err = f.transact(ctx, next, func() error {
		if err := f.insert(ctx); err != nil {
			return err
		}
		return cmp.Or(old.remove(ctx, f.tables), f.drop(ctx, gone))
	})
	if err == nil && len(gone) > 0 {
		err = errForgotten
	}
	return err
}

// transact makes a transaction that brings the history to next. After an error the connection must be closed.
func (f *follower) transact(ctx context.Context, next progress, rows func() error) error {
	if err := f.run(ctx, "BEGIN"); err != nil {
		return err
	}
	if err := f.update(ctx, f.p, next); err != nil { // first, for it locks out other writers
		return err
	}
	if err := rows(); err != nil {
		if causeOf(err) == taken { // no other writer's: they are locked out
			err = damaged("rows of later events are there: %v", err)
		}
		return err
	}
	if err := f.run(ctx, "COMMIT"); err != nil {
		return err
	}
	f.p = next
	f.h.move(next)
	return nil
}

// table is where rows go.
type table struct {
	name    string
	columns int
	tail    string                  // of its statements
	texts   [len(rowsAtOnce)]string // statements that insert so many
	once    sync.Once
}

// rowsAtOnce are how many rows a statement has. The largest number that fits is taken.
var rowsAtOnce = [...]int{256, 64, 16, 4, 1}

var (
	eventsTable     = table{name: "events", columns: 9}
	poolEventsTable = table{name: "pool_events", columns: 2}
	itemEventsTable = table{name: "item_events", columns: 2}
	changesTable    = table{name: "changes", columns: 5}
	holdingsTable   = table{name: "holdings", columns: 4, tail: " ON CONFLICT (item, player) DO UPDATE SET quantity = excluded.quantity, sum = excluded.sum"}
)

// insert inserts rows, given by their arguments.
func (t *table) insert(ctx context.Context, into tables, args []any) error {
	t.once.Do(func() {
		for i, n := range rowsAtOnce {
			t.texts[i] = "INSERT INTO " + t.name + " VALUES " + tuples(n, slices.Repeat([]string{argument}, t.columns)) + t.tail
		}
	})
	for i, n := range rowsAtOnce {
		for n *= t.columns; len(args) >= n; args = args[n:] {
			if _, err := into.exec(ctx, t.texts[i], args[:n]...); err != nil {
				return err
			}
		}
	}
	return nil
}

// insert inserts the rows of the batch, those of each table in the order of its key.
func (w *writer) insert(ctx context.Context) error {
	for _, n := range w.named() {
		if err := n.table.insert(ctx, w.tables, n.new); err != nil {
			return err
		}
		n.new = n.new[:0]
	}
	b := &w.batch
	for _, rows := range []struct {
		table *table
		args  []any
	}{{&eventsTable, b.events}, {&poolEventsTable, b.index(b.pools)}, {&itemEventsTable, b.index(b.items)}, {&changesTable, b.byPlayer()}} {
		if err := rows.table.insert(ctx, w.tables, rows.args); err != nil {
			return err
		}
	}
	return w.hold(ctx)
}

// index returns the rows of an index: number and seq, sorted.
func (b *batch) index(keys []uint64) []any {
	slices.Sort(keys)
	keys = slices.Compact(keys)
	rows := make([]any, 0, 2*len(keys))
	for _, k := range keys {
		rows = append(rows, int64(k>>32), b.seqs[k&(1<<32-1)])
	}
	return rows
}

// byPlayer returns the rows of changes, sorted by player.
func (b *batch) byPlayer() []any {
	keys := make([]uint64, len(b.changes))
	for i, c := range b.changes {
		keys[i] = uint64(c.player)<<32 | uint64(i)
	}
	slices.Sort(keys)
	rows := make([]any, 0, 5*len(keys))
	for _, k := range keys {
		c := &b.changes[k&(1<<32-1)]
		rows = append(rows, c.player, c.seq, c.item, c.delta, c.balance)
	}
	return rows
}

// hold brings the holdings that the batch has touched up to date.
func (w *writer) hold(ctx context.Context) error {
	touched := slices.SortedFunc(maps.Keys(w.batch.touched), func(a, b holding) int {
		return cmp.Or(cmp.Compare(a.item, b.item), cmp.Compare(a.player, b.player))
	})
	rows := make([]any, 0, holdingsTable.columns*len(touched))
	for _, h := range touched {
		if q := w.balances.known[h]; q != 0 { // below 0 only while it is built again: see rewind
			rows = w.s.summed("holdings", 3, append(rows, h.item, h.player, q))
		} else if _, err := w.exec(ctx, "DELETE FROM holdings WHERE item = $1 AND player = $2", h.item, h.player); err != nil {
			return err
		}
	}
	return holdingsTable.insert(ctx, w.tables, rows)
}

// gather makes batches of the events that come. It hands one on when the writer is ready, once enough
// events wait, or they have waited for a while, or somebody asks for them, or no more come.
func (h *DB) gather(ctx context.Context, events <-chan event, batches chan<- []event) {
	var some, spare []event // the batch that grows, and the memory of the one that the writer has
	bytes, due := 0, false
	rest := time.NewTimer(h.rest)
	defer rest.Stop()
	for events != nil || len(some) > 0 {
		in, out, asked, rested := events, batches, h.asked, rest.C
		if len(some) >= h.most || bytes >= maxWaitingBytes {
			in = nil
		}
		if len(some) == 0 {
			asked, rested = nil, nil
		}
		if len(some) == 0 || !due {
			out = nil
		}
		select {
		case e, ok := <-in:
			if !ok {
				events, due = nil, true
				continue
			}
			if len(some) == 0 {
				rest.Reset(h.rest)
			}
			some = append(some, e)
			bytes += e.rec.Bytes
			due = due || len(some) >= min(ripe, h.most) || bytes >= maxWaitingBytes
		case <-asked:
			due = true
		case <-rested:
			due = true
		case out <- some:
			some, spare = spare[:0], some
			bytes, due = 0, events == nil
		case <-ctx.Done():
			return
		}
	}
}
