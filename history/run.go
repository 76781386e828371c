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

// Most of what waits for the writer, and is then one transaction. An event takes some ten times its
// size in the log.
const (
	maxWaiting      = 1 << 15 // events
	maxWaitingBytes = 4 << 20 // of the log
	maxRead         = 64      // events that are read and do not wait yet
)

// Events gather for restTime before they are written, unless ripe ones wait, or somebody asks for them:
// under load, a transaction for each batch of the log would cost more than the realm itself.
const (
	restTime = 100 * time.Millisecond
	ripe     = 1 << 12
)

// Feed returns the events of a realm from a position on, as kuji.Realm's method Events does.
type Feed func(ctx context.Context, from uint64) iter.Seq2[kuji.Record, error]

// Run follows a feed, from where the history ends, until ctx ends or something fails. Then it
// returns why; called again, it continues where it was. It returns nil if the feed ends without an error
// and all of it is written. One Run at a time may write a history: another
// one, in any process, makes one of them fail.
//
// If the feed no longer has what comes next, because it was trimmed, the history goes on where the
// feed begins. From then on it has no balances, and State.CompleteFrom says so.
//
// CodeConflict says that the database is the history of another log, such as one that was restored
// from an older copy. It is served no more. CodeCorrupt with a [DamagedError] says that the history is
// damaged. It is served no more either, and the next Run builds it again from where the feed begins:
// see State.ProvenFrom.
func (h *DB) Run(ctx context.Context, feed Feed) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	h.begin(cancel)
	defer func() { err = h.ended(err) }()
	if err := h.replace(ctx, feed); err != nil {
		return err
	}
	c, err := h.db.open(ctx, true)
	if err != nil {
		return failed("opening", err)
	}
	defer func() { err = failed("writing", errors.Join(err, c.close())) }()
	if err := (&rebuild{h, h.tables(c), feed}).build(ctx); err != nil {
		return err
	}
	w, err := h.newWriter(ctx, c)
	if err != nil {
		return err
	}
	h.move(w.at) // another process may have written
	f := &follower{h, w, feed}
	for {
		err := f.follow(ctx)
		t, ok := errors.AsType[*kuji.TrimmedError](err)
		if !ok || t.First <= w.at.at.Position {
			return err
		}
		if err := f.skip(ctx, t.First); err != nil {
			return err
		}
	}
}

// follower brings a history up to date with a feed.
type follower struct {
	*DB
	w    *writer
	feed Feed
}

// follow writes what the feed brings, until it ends.
func (f *follower) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	events, batches := make(chan event, maxRead), make(chan []event)
	from := f.w.at
	var broke error // of the feed; read it when batches is closed
	work.Go(func() {
		defer close(events)
		broke = f.read(ctx, events, from)
	})
	work.Go(func() {
		defer close(batches)
		f.gather(ctx, events, batches)
	})
	for some := range batches {
		if err := f.write(ctx, some); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return broke
}

// read sends what the feed brings. It begins with the last event that the history has, to
// see that it is of the same log, unless that event was trimmed.
func (f *follower) read(ctx context.Context, events chan<- event, from progress) error {
	err := f.readFrom(ctx, events, from, max(from.at.Position, 1), from.at.Position > 0)
	if t, ok := errors.AsType[*kuji.TrimmedError](err); ok && from.last && t.First == from.at.Position+1 && from.at.Position > 0 {
		return f.readFrom(ctx, events, from, t.First, false)
	}
	return err
}

func (f *follower) readFrom(ctx context.Context, events chan<- event, from progress, start uint64, compare bool) error {
	if !compare {
		f.accept()
	}
	for rec, err := range f.feed(ctx, start) {
		if err != nil {
			if kuji.CodeOf(err) == kuji.CodeInvalid { // beyond the end of the log
				return f.refuse(err)
			}
			return err
		}
		if at := (Place{rec.Position, rec.Index}); compare {
			if at.seq() < from.at.seq() {
				continue
			}
			if err := f.compare(ctx, at, from.at, &rec); err != nil {
				return err
			}
			compare = false
			continue
		}
		text, err := detailOf(&rec)
		if err != nil {
			return err
		}
		select {
		case events <- event{rec, text}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return ctx.Err()
}

// skip notes that the events before a position are gone.
func (f *follower) skip(ctx context.Context, first uint64) error {
	next := f.w.at
	next.at, next.last, next.completeFrom = Place{first - 1, 0}, true, first
	return f.transact(ctx, next, func() error { return nil })
}

// write writes events in one transaction.
func (f *follower) write(ctx context.Context, some []event) error {
	w := f.w
	next, err := w.build(ctx, some)
	if err != nil {
		return err
	}
	old, err := w.outdated(ctx, f.o.Age, some)
	if err != nil {
		return err
	}
	if old != nil {
		next.keptFrom, next.keptTime = old.keptFrom(), old.keptTime
	}
	return f.transact(ctx, next, func() error {
		exec := f.executor(ctx, w.c)
		if err := w.insert(exec); err != nil {
			return err
		}
		return old.remove(exec)
	})
}

// transact carries out a transaction that brings the history from w.at to next. After an error the
// connection must be closed.
func (f *follower) transact(ctx context.Context, next progress, rows func() error) error {
	w := f.w
	if _, err := f.exec(ctx, w.c, "BEGIN"); err != nil {
		return err
	}
	// First, for it locks out other writers.
	n, err := f.exec(ctx, w.c, "UPDATE progress SET position = $1, event = $2, last = $3, complete_from = $4, kept_from = $5, kept_time = $6, sum = $7 WHERE id = 1 AND position = $8 AND event = $9 AND sum = $10",
		int64(next.at.Position), int64(next.at.Index), flag(next.last), int64(next.completeFrom), int64(next.keptFrom), next.keptTime, next.sum(f.realm), int64(w.at.at.Position), int64(w.at.at.Index), w.at.sum(f.realm))
	if err != nil {
		return err
	}
	if n != 1 {
		return &kuji.Error{Code: kuji.CodeFailed, Message: "somebody else writes this history"}
	}
	if err := rows(); err != nil {
		if taken(err) { // no other writer's: they are locked out
			err = damaged("rows of later events are there: %v", err)
		}
		return err
	}
	if _, err := f.exec(ctx, w.c, "COMMIT"); err != nil {
		return err
	}
	w.at = next
	f.move(next)
	return nil
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// exec carries out a statement that writes.
func (h *DB) exec(ctx context.Context, c conn, sql string, args ...any) (int64, error) {
	if h.failpoint != nil {
		if err := h.failpoint(sql); err != nil {
			return 0, err
		}
	}
	return c.exec(ctx, sql, args...)
}

// table is where rows go.
type table struct {
	columns int
	texts   [len(rowsAtOnce)]string // statements that insert so many
}

// rowsAtOnce are how many rows a statement has. The largest number that fits is taken.
var rowsAtOnce = [...]int{256, 64, 16, 4, 1}

func newTable(name string, columns int, tail string) *table {
	t := &table{columns: columns}
	for i, n := range rowsAtOnce {
		t.texts[i] = "INSERT INTO " + name + " VALUES " + tuples(n, columns) + tail
	}
	return t
}

var (
	eventsTable     = newTable("events", 9, "")
	poolEventsTable = newTable("pool_events", 2, "")
	itemEventsTable = newTable("item_events", 2, "")
	changesTable    = newTable("changes", 5, "")
	holdingsTable   = newTable("holdings", 4, " ON CONFLICT (item, player) DO UPDATE SET quantity = excluded.quantity, sum = excluded.sum")
)

type execute func(sql string, args ...any) error

// executor returns what carries out statements through a connection.
func (h *DB) executor(ctx context.Context, c conn) execute {
	return func(sql string, args ...any) error {
		_, err := h.exec(ctx, c, sql, args...)
		return err
	}
}

// insert inserts rows, given by their arguments.
func (t *table) insert(exec execute, args []any) error {
	for i, n := range rowsAtOnce {
		for n *= t.columns; len(args) >= n; args = args[n:] {
			if err := exec(t.texts[i], args[:n]...); err != nil {
				return err
			}
		}
	}
	return nil
}

// insert inserts the rows of the batch, those of each table in the order of its key.
func (w *writer) insert(exec execute) error {
	b := &w.batch
	for _, n := range []*names{&w.players, &w.items, &w.pools} {
		if err := n.table.insert(exec, n.new); err != nil {
			return err
		}
		n.new = n.new[:0]
	}
	if err := eventsTable.insert(exec, b.events); err != nil {
		return err
	}
	if err := poolEventsTable.insert(exec, b.index(b.pools)); err != nil {
		return err
	}
	if err := itemEventsTable.insert(exec, b.index(b.items)); err != nil {
		return err
	}
	if err := changesTable.insert(exec, b.byPlayer()); err != nil {
		return err
	}
	return w.hold(exec)
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
func (w *writer) hold(exec execute) error {
	touched := slices.SortedFunc(maps.Keys(w.batch.touched), func(a, b holding) int {
		return cmp.Or(cmp.Compare(a.item, b.item), cmp.Compare(a.player, b.player))
	})
	rows := make([]any, 0, holdingsTable.columns*len(touched))
	for _, h := range touched {
		if q := w.balances[h]; q != 0 { // below 0 only while it is built again: see rewind
			rows = append(rows, h.item, h.player, q, w.check.holdingSum(h, q))
		} else if err := exec("DELETE FROM holdings WHERE item = $1 AND player = $2", h.item, h.player); err != nil {
			return err
		}
	}
	return holdingsTable.insert(exec, rows)
}

// compare compares the event at a place with the last one that the history has.
func (h *DB) compare(ctx context.Context, at, want Place, rec *kuji.Record) error {
	same := false
	err := h.pool.reading(ctx, func(c conn) error {
		p, err := h.tables(c).progress(ctx)
		if err != nil {
			return err
		}
		recs, err := newReader(c, &p).records(ctx, []int64{want.seq()})
		if len(recs) == 1 {
			last := &recs[0]
			same = at == want && last.Time == rec.Time && last.Kind == rec.Kind && last.Status == rec.Status && last.ID == rec.ID
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

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// gather makes batches of the events that come. It hands one on when the writer is ready, once enough
// events wait, or they have waited for a while, or somebody asks for them, or no more come.
func (f *follower) gather(ctx context.Context, events <-chan event, batches chan<- []event) {
	var some, spare []event // the batch that grows, and the memory of the one that the writer has
	bytes, due := 0, false
	rest := time.NewTimer(f.rest)
	defer rest.Stop()
	for events != nil || len(some) > 0 {
		in, out, asked, rested := events, batches, f.asked, rest.C
		if len(some) >= f.most || bytes >= maxWaitingBytes {
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
				rest.Reset(f.rest)
			}
			some = append(some, e)
			bytes += e.rec.Bytes
			due = due || len(some) >= min(ripe, f.most) || bytes >= maxWaitingBytes
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
