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
)

// Events gather for restTime before they are written, unless ripe ones wait, or somebody asks for them:
// under load, a transaction for each batch of the log would cost more than the realm itself.
const (
	restTime = 100 * time.Millisecond
	ripe     = 1 << 12
)

// Feed returns the events of a realm from a position on, as kuji.Realm's method Events does.
type Feed func(ctx context.Context, from uint64) iter.Seq2[kuji.Record, error]

// Run follows a feed, from where the history has come to, until ctx ends or something fails. Then it
// returns why; called again, it goes on where it was. It returns nil if the feed ends without an error
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
	for {
		err := h.follow(ctx, w, feed)
		t, ok := errors.AsType[*kuji.TrimmedError](err)
		if !ok || t.First <= w.at.at.Position {
			return err
		}
		if err := h.skip(ctx, w, t.First); err != nil {
			return err
		}
	}
}

// follow writes what a feed brings, until it ends.
func (h *DB) follow(ctx context.Context, w *writer, feed Feed) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	q := newQueue(h.most)
	from := w.at
	var reading sync.WaitGroup
	reading.Go(func() { q.end(h.read(ctx, q, from, feed)) })
	defer reading.Wait()
	defer cancel()
	for {
		some, err := q.take(ctx, h.rest, h.asked)
		if len(some) == 0 {
			return err
		}
		if err := h.write(ctx, w, some); err != nil {
			return err
		}
	}
}

// read puts what a feed brings into a queue. It begins with the last event that the history has, to
// see that it is of the same log, unless that event was trimmed.
func (h *DB) read(ctx context.Context, q *queue, from progress, feed Feed) error {
	err := h.readFrom(ctx, q, from, feed, max(from.at.Position, 1), from.at.Position > 0)
	if t, ok := errors.AsType[*kuji.TrimmedError](err); ok && from.last && t.First == from.at.Position+1 && from.at.Position > 0 {
		return h.readFrom(ctx, q, from, feed, t.First, false)
	}
	return err
}

func (h *DB) readFrom(ctx context.Context, q *queue, from progress, feed Feed, start uint64, compare bool) error {
	if !compare {
		h.accept()
	}
	for rec, err := range feed(ctx, start) {
		if err != nil {
			if kuji.CodeOf(err) == kuji.CodeInvalid { // beyond the end of the log
				return h.refuse(err)
			}
			return err
		}
		if at := (Place{rec.Position, rec.Index}); compare {
			if at.seq() < from.at.seq() {
				continue
			}
			if err := h.compare(ctx, at, from.at, &rec); err != nil {
				return err
			}
			compare = false
			continue
		}
		text, err := detailOf(&rec)
		if err != nil {
			return err
		}
		if err := q.put(ctx, event{rec, text}); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// skip notes that the events before a position are gone.
func (h *DB) skip(ctx context.Context, w *writer, first uint64) error {
	next := w.at
	next.at, next.last, next.completeFrom = Place{first - 1, 0}, true, first
	return h.transact(ctx, w, next, func() error { return nil })
}

// write writes events in one transaction.
func (h *DB) write(ctx context.Context, w *writer, some []event) error {
	next, err := w.build(ctx, some)
	if err != nil {
		return err
	}
	old, err := w.outdated(ctx, h.o.Age, some)
	if err != nil {
		return err
	}
	if old != nil {
		next.keptFrom, next.keptTime = old.keptFrom(), old.keptTime
	}
	return h.transact(ctx, w, next, func() error {
		exec := func(sql string, args ...any) error {
			_, err := h.exec(ctx, w.c, sql, args...)
			return err
		}
		if err := w.insert(exec); err != nil {
			return err
		}
		return old.remove(exec)
	})
}

// transact carries out a transaction that brings the history from w.at to next. After an error the
// connection must be closed.
func (h *DB) transact(ctx context.Context, w *writer, next progress, rows func() error) error {
	if _, err := h.exec(ctx, w.c, "BEGIN"); err != nil {
		return err
	}
	// First, for it locks out other writers.
	n, err := h.exec(ctx, w.c, "UPDATE progress SET position = $1, event = $2, last = $3, complete_from = $4, kept_from = $5, kept_time = $6, sum = $7 WHERE id = 1 AND position = $8 AND event = $9 AND sum = $10",
		int64(next.at.Position), int64(next.at.Index), flag(next.last), int64(next.completeFrom), int64(next.keptFrom), next.keptTime, next.sum(h.realm), int64(w.at.at.Position), int64(w.at.at.Index), w.at.sum(h.realm))
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
	if _, err := h.exec(ctx, w.c, "COMMIT"); err != nil {
		return err
	}
	w.at = next
	h.move(next)
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
			var sum int64
			w.check.s, sum = holdingSum(w.check.s, h, q)
			rows = append(rows, h.item, h.player, q, sum)
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

// queue is what waits for the writer.
type queue struct {
	most int // events

	mu    sync.Mutex
	some  []event
	spare []event // the memory of the batch before
	bytes int
	err   error // why no more will come
	ended bool
	came  chan struct{} // holds one when there is something to take
	room  chan struct{} // holds one when there is room again
}

func newQueue(most int) *queue {
	return &queue{most: most, came: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// put adds an event, once there is room.
func (q *queue) put(ctx context.Context, e event) error {
	for {
		q.mu.Lock()
		if len(q.some) < q.most && q.bytes < maxWaitingBytes {
			q.some = append(q.some, e)
			q.bytes += e.rec.Bytes
			tell := len(q.some) == 1 || q.isRipe()
			q.mu.Unlock()
			if tell {
				signal(q.came)
			}
			return nil
		}
		q.mu.Unlock()
		select {
		case <-q.room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// end says that no more will come, and why.
func (q *queue) end(err error) {
	q.mu.Lock()
	q.err, q.ended = err, true
	q.mu.Unlock()
	signal(q.came)
}

// isRipe reports whether enough waits. The caller holds mu.
func (q *queue) isRipe() bool { return len(q.some) >= min(ripe, q.most) || q.bytes >= maxWaitingBytes }

// gather lets events come for a while, until enough wait, none will come any more, or somebody asks.
func (q *queue) gather(ctx context.Context, rest time.Duration, asked <-chan struct{}) {
	over := time.NewTimer(rest)
	defer over.Stop()
	for {
		q.mu.Lock()
		enough := q.ended || q.isRipe()
		q.mu.Unlock()
		if enough {
			return
		}
		select {
		case <-q.came:
		case <-asked:
			return
		case <-over.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// take waits for events, lets others gather, and takes all that there are. None: the feed has ended, with err. What it
// returned before is not used any more.
func (q *queue) take(ctx context.Context, rest time.Duration, asked <-chan struct{}) (some []event, err error) {
	for gathered := false; ; {
		q.mu.Lock()
		if len(q.some) > 0 && !gathered {
			q.mu.Unlock()
			q.gather(ctx, rest, asked)
			gathered = true
			continue
		}
		if len(q.some) > 0 {
			some, q.some, q.bytes = q.some, q.spare[:0], 0
			q.spare = some
			q.mu.Unlock()
			signal(q.room)
			return some, nil
		}
		ended, err := q.ended, q.err
		q.mu.Unlock()
		if ended {
			return nil, err
		}
		select {
		case <-q.came:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
