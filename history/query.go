package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kuji-dev/kuji"
)

// Query asks for what happened to a player, in a pool or to an item: one of them, or an item of a player.
type Query struct {
	Player string
	Pool   string
	Item   string
	Before Place // only events before this place; zero: the newest
	Limit  int   // of events; 0: DefaultPage, at most MaxPage
}

// Page is some events, the newest first, with balances in their changes as far as they are known.
type Page struct {
	Events []kuji.Record
	// More says that older events may follow, from Before on. Such a page can be short, even empty.
	More   bool
	Before Place
	State  State
}

// maxPageBytes is how much of the details of events a page holds, in bytes, unless it is one event.
const maxPageBytes = 4 << 20

// errFull ends a page.
var errFull = errors.New("the page is full")

// maxScan is how many changes of a player a Query for one of the player's items looks at.
const maxScan = 20_000

// answerTime bounds a database that is away. It is no measure of one that works.
const answerTime = 30 * time.Second

// answer calls f like reading, for at most answerTime. It refuses what is not of the realm, and notes
// damage, unless the history was built again meanwhile.
func (h *DB) answer(ctx context.Context, f func(ctx context.Context, r *reader) error) error {
	now := h.now()
	if err := now.unfit(); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	err := h.reading(bounded, func(r *reader) error { return f(bounded, r) })
	if bounded.Err() != nil && ctx.Err() == nil && err != nil {
		return &kuji.Error{Code: kuji.CodeFailed, Message: fmt.Sprintf("the history's database does not answer within %v", answerTime)}
	}
	if damageOf(err) != nil && h.now().built == now.built {
		h.hurt(err)
	}
	return err
}

// reader reads rows, and checks them.
type reader struct {
	tables
	p progress // how far the history goes
	s summing  // of the last row
}

// reading calls f with a reader of one snapshot. After an error with a code, the connection is as it was.
func (h *DB) reading(ctx context.Context, f func(r *reader) error) error {
	var refusal error
	err := h.pool.reading(ctx, func(c conn) error {
		t := tables{h, c}
		p, err := t.progress(ctx)
		if err != nil {
			return err
		}
		if refusal = f(&reader{tables: t, p: p}); kuji.CodeOf(refusal) == 0 {
			return refusal
		}
		return nil
	})
	return cmp.Or(err, refusal)
}

// proven reports whether the event at a place must be as it was written.
func (r *reader) proven(seq int64) bool { return placeAt(seq).Position >= r.p.unproven() }

func limitOf(limit int) (int, error) {
	switch {
	case limit == 0:
		return DefaultPage, nil
	case limit < 0 || limit > MaxPage:
		return 0, &kuji.Error{Code: kuji.CodeInvalid, Field: "limit", Message: fmt.Sprintf("is %d, want at most %d", limit, MaxPage)}
	}
	return limit, nil
}

func (q *Query) check() error {
	asked := 0
	for _, id := range []string{q.Player, q.Pool, q.Item} {
		if id != "" {
			asked++
		}
	}
	if asked == 0 || q.Pool != "" && asked > 1 {
		return &kuji.Error{Code: kuji.CodeInvalid, Message: "want a player, a pool or an item, or an item of a player"}
	}
	if q.Before.Index < 0 || q.Before.Index >= 1<<indexBits || q.Before.Position > maxPosition {
		return &kuji.Error{Code: kuji.CodeInvalid, Field: "before", Message: fmt.Sprintf("position %d, index %d: want the place of an event", q.Before.Position, q.Before.Index)}
	}
	return nil
}

// Events answers a query. CodeNotFound says that nothing has happened yet to what it names.
func (h *DB) Events(ctx context.Context, q Query) (page Page, err error) {
	limit, err := limitOf(q.Limit)
	if err == nil {
		err = q.check()
	}
	if err != nil {
		return page, err
	}
	err = h.answer(ctx, func(ctx context.Context, r *reader) error {
		page.State = r.p.state()
		seqs, end, err := q.seqs(ctx, r, limit)
		if err != nil {
			return err
		}
		if end >= 0 {
			page.More, page.Before = true, placeAt(end)
		}
		if page.Events, err = r.records(ctx, seqs); err != nil {
			return err
		}
		if n := len(page.Events); n > 0 && n < len(seqs) {
			last := placeOf(&page.Events[n-1])
			if i := slices.Index(seqs, last.seq()); i < len(seqs)-1 { // the page is full
				page.More, page.Before = true, last
			}
		}
		return q.follows(ctx, r, seqs, &page)
	})
	return page, err
}

// follows checks that events are what a query asks for, and that no change of an item is missing: balances
// lead from 0, through each change, to what the player holds.
func (q *Query) follows(ctx context.Context, r *reader, seqs []int64, page *Page) error {
	if !slices.IsSortedFunc(seqs, func(a, b int64) int { return cmp.Compare(b, a) }) {
		return damaged("the events of %s are out of order", q.what())
	}
	type key struct{ player, item string }
	next := map[key]*kuji.BalanceChange{} // the change after, in events that come in this order
	newest := uint64(0)                   // balance
	for i := range page.Events {
		rec := &page.Events[i]
		if !r.proven(placeOf(rec).seq()) {
			return nil
		}
		if !q.about(rec) {
			return damaged("%v: it is not about %s", placeOf(rec), q.what())
		}
		for j := range rec.Changes {
			c := &rec.Changes[j]
			if q.Pool != "" || q.Player != "" && c.Player != q.Player || q.Item != "" && c.Item != q.Item || c.Balance == nil {
				continue
			}
			k := key{c.Player, c.Item}
			if after := next[k]; after != nil && int64(*after.Balance)-after.Delta != int64(*c.Balance) {
				return damaged("position %d: what %q has of %q does not lead to what comes next: an event is missing", rec.Position, c.Player, c.Item)
			}
			if next[k] == nil {
				newest = *c.Balance
			}
			next[k] = c
		}
	}
	if q.Player == "" || page.More || !r.whole() {
		return nil
	}
	for k, c := range next {
		if int64(*c.Balance) != c.Delta {
			return damaged("what %q had of %q at first does not come from nothing: an event is missing", k.player, k.item)
		}
	}
	if q.Item == "" || q.Before.Position > 0 {
		return nil
	}
	holds, err := r.holds(ctx, q.Player, q.Item)
	if err == nil && holds != newest {
		err = damaged("%q holds %d of %q, and the newest event says %d", q.Player, holds, q.Item, newest)
	}
	return err
}

// whole reports whether the history has every event from the beginning, and all are proven.
func (r *reader) whole() bool {
	return r.p.CompleteFrom == 1 && r.p.KeptFrom == 0 && r.p.unproven() == 0
}

// holds returns how many of an item a player holds.
func (r *reader) holds(ctx context.Context, player, item string) (uint64, error) {
	row, err := r.one(ctx, "SELECT h.item, h.player, h.quantity, h.sum FROM holdings h JOIN items i ON i.id = h.item JOIN players p ON p.id = h.player WHERE i.name = $1 AND p.name = $2", textOf(item), textOf(player))
	if err != nil || row == nil {
		return 0, err
	}
	return uint64(row.int(2)), r.check("holdings", row...)
}

// what says what is asked for.
func (q *Query) what() string { return fmt.Sprintf("%.80q", q.Player+q.Pool+q.Item) }

// about reports whether an event is what is asked for.
func (q *Query) about(rec *kuji.Record) bool {
	named, changed := false, q.Item == ""
	is := func(what string) func(string) { return func(id string) { named = named || id == what } }
	about(rec, is(cmp.Or(q.Player, "\x00")), is(cmp.Or(q.Pool, "\x00")))
	for _, c := range rec.Changes {
		named = named || c.Player == q.Player
		changed = changed || c.Item == q.Item && (q.Player == "" || c.Player == q.Player)
	}
	return changed && (named || q.Player == "" && q.Pool == "")
}

// seqs finds the places of the events that a query asks for. Older ones begin at end; -1: no older ones.
func (q *Query) seqs(ctx context.Context, r *reader, limit int) (seqs []int64, end int64, err error) {
	before := int64(1<<63 - 1)
	if q.Before.Position > 0 {
		before = q.Before.seq()
	}
	ids, sql := []any{}, ""
	for _, n := range []struct{ table, name, sql string }{
		{"players", q.Player, "SELECT DISTINCT seq FROM changes WHERE player = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3"},
		{"pools", q.Pool, "SELECT seq FROM pool_events WHERE pool = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3"},
		{"items", q.Item, "SELECT seq FROM item_events WHERE item = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3"},
	} {
		if n.name == "" {
			continue
		}
		id, err := r.number(ctx, n.table, n.name)
		if err != nil {
			return nil, -1, err
		}
		ids, sql = append(ids, id), n.sql
	}
	if len(ids) == 2 {
		return r.playersItem(ctx, ids[0], ids[1], before, limit)
	}
	err = r.query(ctx, sql, func(r row) error {
		seqs = append(seqs, r.int(0))
		return nil
	}, ids[0], before, int64(limit+1))
	if len(seqs) <= limit {
		return seqs, -1, err
	}
	return seqs[:limit], seqs[limit-1], err
}

// playersItem finds changes of one item among those of a player, as far back as maxScan changes.
func (r *reader) playersItem(ctx context.Context, player, item any, before int64, limit int) (seqs []int64, end int64, err error) {
	scanned, last := 0, before
	err = r.query(ctx, "SELECT seq, item FROM changes WHERE player = $1 AND seq < $2 ORDER BY seq DESC, item DESC LIMIT $3", func(r row) error {
		scanned++
		if r[1] == item && len(seqs) <= limit {
			seqs = append(seqs, r.int(0))
		}
		last = r.int(0)
		return nil
	}, player, before, int64(maxScan))
	switch {
	case len(seqs) > limit:
		return seqs[:limit], seqs[limit-1], err
	case scanned == maxScan: // the rest of the last event is not read
		if len(seqs) > 0 && seqs[len(seqs)-1] == last {
			return seqs, last, err
		}
		return seqs, last + 1, err
	}
	return seqs, -1, err
}

// number returns the number of a name.
func (r *reader) number(ctx context.Context, table, name string) (id int64, err error) {
	row, err := r.one(ctx, "SELECT id, name, sum FROM "+table+" WHERE name = $1", textOf(name))
	if err != nil {
		return 0, err
	}
	if row == nil {
		return 0, &kuji.Error{Code: kuji.CodeNotFound, Field: strings.TrimSuffix(table, "s"), Message: fmt.Sprintf("%.80q is not in the history", name)}
	}
	return row.int(0), r.check(table, row...)
}

// found is an event that was read, and what its checksum is about.
type found struct {
	rec     kuji.Record
	there   bool
	row     summing // its columns
	sum     any
	changes []change
}

// records reads the events at descending places, as many as fit on a page. Unproven ones may be missing.
func (r *reader) records(ctx context.Context, seqs []int64) ([]kuji.Record, error) {
	at, keys := map[int64]int{}, make([]any, len(seqs))
	for i, seq := range seqs {
		at[seq], keys[i] = i, seq
	}
	all, bytes, end := make([]found, len(seqs)), 0, len(seqs)
	err := r.lookup(ctx, "SELECT e.seq, e.time, e.kind, e.status, e.player, e.pool, e.request, e.detail, e.sum, p.name, p.sum, o.name, o.sum FROM events e "+
		"LEFT JOIN players p ON p.id = e.player LEFT JOIN pools o ON o.id = e.pool WHERE e.seq IN (VALUES $$) ORDER BY e.seq DESC", []string{number}, keys, func(row row) error {
		i := at[row.int(0)]
		if bytes += len(row.text(7)); bytes > maxPageBytes && bytes > len(row.text(7)) {
			end = i
			return errFull
		}
		return r.event(row, &all[i])
	})
	if err != nil && !errors.Is(err, errFull) {
		return nil, err
	}
	all = all[:end]
	for i := range all {
		if !all[i].there && r.proven(seqs[i]) {
			return nil, damaged("%v: it is missing", placeAt(seqs[i]))
		}
	}
	if err := r.changes(ctx, all, at); err != nil {
		return nil, err
	}
	recs := make([]kuji.Record, 0, len(all))
	for i := range all {
		f := &all[i]
		if !f.there {
			continue
		}
		if f.row = f.row.changes(f.changes); r.proven(seqs[i]) && f.sum != any(f.row.sum()) {
			return nil, damaged("%v: its checksum differs", placeAt(seqs[i]))
		}
		recs = append(recs, f.rec)
	}
	return recs, nil
}

// event reads the row of an event.
func (r *reader) event(row row, f *found) error {
	seq := row.int(0)
	place := placeAt(seq)
	f.there, f.row, f.sum = true, f.row.row("events", row[:8]...), row[8]
	f.rec = kuji.Record{Position: place.Position, Index: place.Index, Time: row.int(1), Kind: row.text(2), Status: row.text(3), ID: idOf(row.text(6))}
	for _, n := range []struct {
		table        string
		number, name int // columns
		id           *string
	}{{"players", 4, 9, &f.rec.Player}, {"pools", 5, 11, &f.rec.Pool}} {
		switch {
		case row[n.number] == nil:
		case row[n.name] != nil:
			if err := r.check(n.table, row[n.number], row[n.name], row[n.name+1]); err != nil {
				return err
			}
			*n.id = idOf(row.text(n.name))
		case r.proven(seq):
			return damaged("number %d of %s is missing", row.int(n.number), n.table)
		default:
			*n.id = unreadable(row.int(n.number))
		}
	}
	if err := fill(&f.rec, row.text(7)); err != nil && r.proven(seq) {
		return damaged("%v: its detail: %v", place, err)
	}
	return nil
}

// changes fills in the changes of events.
func (r *reader) changes(ctx context.Context, all []found, at map[int64]int) error {
	type key struct {
		player string // as text
		seq    int64
	}
	var keys []key
	for i := range all {
		rec := &all[i].rec
		about(rec, func(id string) { keys = append(keys, key{textOf(id), placeOf(rec).seq()}) }, func(string) {})
	}
	slices.SortFunc(keys, func(a, b key) int { return cmp.Or(cmp.Compare(a.player, b.player), cmp.Compare(a.seq, b.seq)) })
	var args []any
	for _, k := range slices.Compact(keys) {
		args = append(args, k.player, k.seq)
	}
	return r.lookup(ctx, "WITH asked(name, seq) AS (VALUES $$) SELECT c.seq, c.player, p.name, p.sum, c.item, i.name, i.sum, c.delta, c.balance "+
		"FROM asked a JOIN players p ON p.name = a.name JOIN changes c ON c.player = p.id AND c.seq = a.seq JOIN items i ON i.id = c.item "+
		"ORDER BY c.seq, p.name, i.name", []string{text, number}, args, func(row row) error { return r.change(row, &all[at[row.int(0)]]) })
}

// change reads a row of changes.
func (r *reader) change(row row, f *found) error {
	if err := cmp.Or(r.check("players", row[1], row[2], row[3]), r.check("items", row[4], row[5], row[6])); err != nil {
		return err
	}
	shown := kuji.BalanceChange{Player: idOf(row.text(2)), Item: idOf(row.text(5)), Delta: row.int(7)}
	if row[8] != nil {
		shown.Balance = new(uint64(row.int(8)))
	}
	f.changes = append(f.changes, change{row.int(1), row.int(0), row.int(4), row.int(7), row[8]})
	f.rec.Changes = append(f.rec.Changes, shown)
	return nil
}

// list returns at most limit (0: DefaultPage) of what read adds, up to most. more says that others follow.
func list[T any](ctx context.Context, h *DB, limit int, read func(ctx context.Context, r *reader, all *[]T, most int64) error) (all []T, more bool, state State, err error) {
	if limit, err = limitOf(limit); err != nil {
		return nil, false, state, err
	}
	err = h.answer(ctx, func(ctx context.Context, r *reader) error {
		state, all = r.p.state(), nil
		return read(ctx, r, &all, int64(limit+1))
	})
	if more = len(all) > limit; more {
		all = all[:limit]
	}
	return all, more, state, err
}

// Players returns at most limit players (0: DefaultPage) with events, after an id, sorted by bytes.
func (h *DB) Players(ctx context.Context, after string, limit int) (players []string, more bool, state State, err error) {
	return list(ctx, h, limit, func(ctx context.Context, r *reader, all *[]string, most int64) error {
		return r.query(ctx, "SELECT id, name, sum FROM players WHERE name > $1 ORDER BY name LIMIT $2", func(row row) error {
			*all = append(*all, idOf(row.text(1)))
			return r.check("players", row...)
		}, textOf(after), most)
	})
}

// Holder is a player who holds an item.
type Holder struct {
	Player   string
	Quantity uint64 // from 1
}

// Holders returns at most limit players (0: DefaultPage) who hold an item, in the order in which they came to
// the realm, after a player; "" is the first. more says that others follow. CodeNotFound: nothing has
// happened to the item or the player. CodeConflict: the history does not begin with the realm.
func (h *DB) Holders(ctx context.Context, item, after string, limit int) (holders []Holder, more bool, state State, err error) {
	return list(ctx, h, limit, func(ctx context.Context, r *reader, all *[]Holder, most int64) error {
		if item == "" {
			return &kuji.Error{Code: kuji.CodeInvalid, Field: "item", Message: "is empty, want the id of an item"}
		}
		if r.p.CompleteFrom != 1 {
			return &kuji.Error{Code: kuji.CodeConflict, Message: fmt.Sprintf("the history begins at position %d: what players held before is not known", r.p.CompleteFrom)}
		}
		id, err := r.number(ctx, "items", item)
		last := int64(0)
		if err == nil && after != "" {
			last, err = r.number(ctx, "players", after)
		}
		if err != nil {
			return err
		}
		return r.query(ctx, "SELECT h.item, h.player, h.quantity, h.sum, p.name, p.sum FROM holdings h LEFT JOIN players p ON p.id = h.player WHERE h.item = $1 AND h.player > $2 ORDER BY h.player LIMIT $3", func(row row) error {
			*all = append(*all, Holder{idOf(row.text(4)), uint64(row.int(2))})
			return cmp.Or(r.check("holdings", row[:4]...), r.check("players", row[1], row[4], row[5]))
		}, id, last, most)
	})
}
