package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kuji-dev/kuji"
)

// Query asks for what happened to a player, in a pool or to an item: one of them, or an item of a
// player.
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
	// More says that there may be older events, and Before is where to go on with them. A page can
	// have fewer events than its limit, even none, and not be the last.
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

// answerTime is how long a database may take to answer. It is a bound for one that is away, not a
// measure of one that works.
const answerTime = 30 * time.Second

// answer calls f like reading, with what the history knows. It refuses what is not of the realm, and
// notes damage.
func (h *DB) answer(ctx context.Context, f func(ctx context.Context, r *reader) error) error {
	now := h.now()
	if err := now.unfit(); err != nil {
		return err
	}
	var refusal error // which leaves the connection as it was
	bounded, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	err := h.pool.reading(bounded, func(c conn) error {
		p, err := h.tables(c).progress(bounded)
		if err != nil {
			return err
		}
		if err = f(bounded, newReader(c, &p)); kuji.CodeOf(err) != 0 {
			refusal, err = err, nil
		}
		return err
	})
	if bounded.Err() != nil && ctx.Err() == nil && err != nil {
		err = &kuji.Error{Code: kuji.CodeFailed, Message: fmt.Sprintf("the history's database does not answer within %v", answerTime)}
	}
	err = errors.Join(err, refusal)
	h.met(err, now.built)
	return err
}

// reader reads what an answer shows, and checks it.
type reader struct {
	c     conn
	p     *progress
	check *checker
}

func newReader(c conn, p *progress) *reader { return &reader{c, p, newChecker(p)} }

// proven reports whether the event at a place must be as it was written.
func (r *reader) proven(seq int64) bool { return placeOf(seq).Position >= r.p.unproven() }

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
			page.More, page.Before = true, placeOf(end)
		}
		if page.Events, err = r.records(ctx, seqs); err != nil {
			return err
		}
		if n := len(page.Events); n > 0 && n < len(seqs) {
			last := Place{page.Events[n-1].Position, page.Events[n-1].Index}
			if i := slices.Index(seqs, last.seq()); i < len(seqs)-1 { // the page is full
				page.More, page.Before = true, last
			}
		}
		return q.follows(ctx, r, seqs, &page)
	})
	return page, err
}

// follows checks that events are what a query asks for, and that none of an item's changes is missing:
// the balance after each is that after the one before, and what it changed. The first one begins at 0,
// and the last one leads to what the player holds.
func (q *Query) follows(ctx context.Context, r *reader, seqs []int64, page *Page) error {
	if !slices.IsSortedFunc(seqs, func(a, b int64) int { return cmp.Compare(b, a) }) {
		return damaged("the events of %s are out of order", q.what())
	}
	type key struct{ player, item string }
	next := map[key]*kuji.BalanceChange{} // the change after, in events that come in this order
	newest := uint64(0)                   // balance
	for i := range page.Events {
		rec := &page.Events[i]
		if !r.proven(Place{rec.Position, rec.Index}.seq()) {
			return nil
		}
		if !q.about(rec) {
			return damaged("%v: it is not about %s", Place{rec.Position, rec.Index}, q.what())
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
	return r.p.completeFrom == 1 && r.p.keptFrom == 0 && r.p.unproven() == 0
}

// holds returns how many of an item a player holds.
func (r *reader) holds(ctx context.Context, player, item string) (n uint64, err error) {
	err = r.c.query(ctx, "SELECT h.item, h.player, h.quantity, h.sum FROM holdings h JOIN items i ON i.id = h.item JOIN players p ON p.id = h.player WHERE i.name = $1 AND p.name = $2", func(row row) error {
		n = uint64(row.int(2))
		return r.check.holding(row, 3, holding{row.int(0), row.int(1)}, row.int(2))
	}, textOf(item), textOf(player))
	return n, err
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

// seqs finds the places of the events that a query asks for. end is where older ones begin; -1: there
// are none.
func (q *Query) seqs(ctx context.Context, r *reader, limit int) (seqs []int64, end int64, err error) {
	before := int64(1<<63 - 1)
	if q.Before.Position > 0 {
		before = q.Before.seq()
	}
	var player, pool, item int64
	for _, n := range []struct {
		table, name string
		id          *int64
	}{{"players", q.Player, &player}, {"pools", q.Pool, &pool}, {"items", q.Item, &item}} {
		if n.name != "" {
			if *n.id, err = r.number(ctx, n.table, n.name); err != nil {
				return nil, -1, err
			}
		}
	}
	if player != 0 && item != 0 {
		return q.ofPlayersItem(ctx, r.c, player, item, before, limit)
	}
	sql, id := "SELECT seq FROM item_events WHERE item = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3", item
	switch {
	case player != 0:
		sql, id = "SELECT DISTINCT seq FROM changes WHERE player = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3", player
	case pool != 0:
		sql, id = "SELECT seq FROM pool_events WHERE pool = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3", pool
	}
	err = r.c.query(ctx, sql, func(r row) error {
		seqs = append(seqs, r.int(0))
		return nil
	}, id, before, int64(limit+1))
	if len(seqs) <= limit {
		return seqs, -1, err
	}
	return seqs[:limit], seqs[limit-1], err
}

// ofPlayersItem finds changes of one item among those of a player, as far back as maxScan changes.
func (q *Query) ofPlayersItem(ctx context.Context, c conn, player, item, before int64, limit int) (seqs []int64, end int64, err error) {
	scanned, last := 0, before
	err = c.query(ctx, "SELECT seq, item FROM changes WHERE player = $1 AND seq < $2 ORDER BY seq DESC, item DESC LIMIT $3", func(r row) error {
		scanned++
		if r.int(1) == item && len(seqs) <= limit {
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
	err = r.c.query(ctx, "SELECT id, name, sum FROM "+table+" WHERE name = $1", func(row row) error {
		id = row.int(0)
		return r.check.name(row, 2, table, id, row.text(1))
	}, textOf(name))
	if err == nil && id == 0 {
		kind := strings.TrimSuffix(table, "s")
		err = &kuji.Error{Code: kuji.CodeNotFound, Field: kind, Message: fmt.Sprintf("the history has no %s %.80q", kind, name)}
	}
	return id, err
}

// found is an event that was read, and what its checksum is about.
type found struct {
	rec     kuji.Record
	there   bool
	row     summing // its columns
	sum     int64
	summed  bool
	changes []change
}

// records reads the events at some places, which descend, as many as fit on a page. Those that are not
// proven may be missing.
func (r *reader) records(ctx context.Context, seqs []int64) ([]kuji.Record, error) {
	if len(seqs) == 0 {
		return nil, nil
	}
	at := make(map[int64]int, len(seqs))
	args := make([]any, len(seqs))
	for i, seq := range seqs {
		at[seq], args[i] = i, seq
	}
	all, bytes, end := make([]found, len(seqs)), 0, len(seqs)
	err := r.c.query(ctx, "SELECT e.seq, e.time, e.kind, e.status, e.player, e.pool, e.request, e.detail, e.sum, p.name, p.sum, o.name, o.sum FROM events e "+
		"LEFT JOIN players p ON p.id = e.player LEFT JOIN pools o ON o.id = e.pool WHERE e.seq IN "+tuple(1, len(args))+" ORDER BY e.seq DESC", func(row row) error {
		i := at[row.int(0)]
		if bytes += len(row.text(7)); bytes > maxPageBytes && bytes > len(row.text(7)) {
			end = i
			return errFull
		}
		return r.event(row, &all[i])
	}, args...)
	if err != nil && !errors.Is(err, errFull) {
		return nil, err
	}
	all = all[:end]
	for i := range all {
		if !all[i].there && r.proven(seqs[i]) {
			return nil, damaged("%v: it is missing", placeOf(seqs[i]))
		}
	}
	if err := r.changes(ctx, all, at); err != nil {
		return nil, err
	}
	recs := make([]kuji.Record, 0, len(all))
	for i := range all {
		if err := r.agrees(&all[i], seqs[i]); err != nil {
			return nil, err
		}
		if all[i].there {
			recs = append(recs, all[i].rec)
		}
	}
	return recs, nil
}

// event reads the row of an event.
func (r *reader) event(row row, f *found) error {
	seq := row.int(0)
	place := placeOf(seq)
	f.there, f.sum, f.summed = true, row.int(8), !row.null(8)
	f.row = f.row.begin("events").int(seq).int(row.int(1)).text(row.text(2)).text(row.text(3)).column(row, 4).column(row, 5)
	if row.null(6) {
		f.row = f.row.value(nil)
	} else {
		f.row = f.row.text(row.text(6))
	}
	f.row = f.row.text(row.text(7))
	f.rec = kuji.Record{Position: place.Position, Index: place.Index, Time: row.int(1), Kind: row.text(2), Status: row.text(3), ID: idOf(row.text(6))}
	for _, n := range []struct {
		table             string
		number, name, sum int
		id                *string
	}{{"players", 4, 9, 10, &f.rec.Player}, {"pools", 5, 11, 12, &f.rec.Pool}} {
		switch {
		case row.null(n.number):
		case !row.null(n.name):
			if err := r.check.name(row, n.sum, n.table, row.int(n.number), row.text(n.name)); err != nil {
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

// agrees checks an event and its changes.
func (r *reader) agrees(f *found, seq int64) error {
	if !r.proven(seq) {
		return nil
	}
	if f.row = f.row.changes(f.changes); !f.summed || f.row.sum() != f.sum {
		return damaged("%v: its checksum differs", placeOf(seq))
	}
	return nil
}

// changes fills in the changes of events.
func (r *reader) changes(ctx context.Context, all []found, at map[int64]int) error {
	players := map[string][]int64{} // by text: the places of their events
	for i := range all {
		seq := Place{all[i].rec.Position, all[i].rec.Index}.seq()
		about(&all[i].rec, func(id string) {
			name := textOf(id)
			if seqs := players[name]; len(seqs) == 0 || seqs[len(seqs)-1] != seq {
				players[name] = append(seqs, seq)
			}
		}, func(string) {})
	}
	names := make([]string, 0, len(players))
	for name := range players {
		names = append(names, name)
	}
	slices.Sort(names)
	// In a statement: some players, and all places of their events. Each player is looked for at each.
	for some := range slices.Chunk(names, 16) {
		args, set := make([]any, 0, len(some)), map[int64]struct{}{}
		for _, name := range some {
			args = append(args, name)
			for _, seq := range players[name] {
				set[seq] = struct{}{}
			}
		}
		seqs := make([]string, 0, len(set))
		for seq := range set {
			seqs = append(seqs, strconv.FormatInt(seq, 10))
		}
		if err := r.c.query(ctx, "SELECT c.seq, c.player, p.name, p.sum, c.item, i.name, i.sum, c.delta, c.balance FROM players p JOIN changes c ON c.player = p.id AND c.seq IN ("+strings.Join(seqs, ",")+
			") JOIN items i ON i.id = c.item WHERE p.name IN "+tuple(1, len(args))+" ORDER BY c.seq, p.name, i.name", func(row row) error {
			return r.change(row, &all[at[row.int(0)]])
		}, args...); err != nil {
			return err
		}
	}
	return nil
}

// change reads a row of changes.
func (r *reader) change(row row, f *found) error {
	c := change{player: row.int(1), seq: row.int(0), item: row.int(4), delta: row.int(7)}
	if err := cmp.Or(r.check.name(row, 3, "players", c.player, row.text(2)), r.check.name(row, 6, "items", c.item, row.text(5))); err != nil {
		return err
	}
	shown := kuji.BalanceChange{Player: idOf(row.text(2)), Item: idOf(row.text(5)), Delta: c.delta}
	if !row.null(8) {
		c.balance, shown.Balance = row.int(8), new(uint64(row.int(8)))
	}
	f.changes = append(f.changes, c)
	f.rec.Changes = append(f.rec.Changes, shown)
	return nil
}

// Players returns the ids of at most limit players (0: DefaultPage) whom any event was about, sorted
// by their bytes, after an id. more says that others follow.
func (h *DB) Players(ctx context.Context, after string, limit int) (players []string, more bool, state State, err error) {
	if limit, err = limitOf(limit); err != nil {
		return nil, false, state, err
	}
	err = h.answer(ctx, func(ctx context.Context, r *reader) error {
		state, players = r.p.state(), nil
		return r.c.query(ctx, "SELECT id, name, sum FROM players WHERE name > $1 ORDER BY name LIMIT $2", func(row row) error {
			players = append(players, idOf(row.text(1)))
			return r.check.name(row, 2, "players", row.int(0), row.text(1))
		}, textOf(after), int64(limit+1))
	})
	if more = len(players) > limit; more {
		players = players[:limit]
	}
	return players, more, state, err
}

// Holder is a player who holds an item.
type Holder struct {
	Player   string
	Quantity uint64 // from 1
}

// Holders returns at most limit players (0: DefaultPage) who hold an item, in the order in which
// players came to the realm, after a player; "" is the first. more says that others follow.
// CodeNotFound says that nothing has happened to the item or the player, CodeConflict that the
// history is not complete from the beginning and does not know.
func (h *DB) Holders(ctx context.Context, item, after string, limit int) (holders []Holder, more bool, state State, err error) {
	if limit, err = limitOf(limit); err != nil {
		return nil, false, state, err
	}
	if item == "" {
		return nil, false, state, &kuji.Error{Code: kuji.CodeInvalid, Field: "item", Message: "is empty, want the id of an item"}
	}
	err = h.answer(ctx, func(ctx context.Context, r *reader) error {
		state, holders = r.p.state(), nil
		if r.p.completeFrom != 1 {
			return &kuji.Error{Code: kuji.CodeConflict, Message: fmt.Sprintf("the history begins at position %d: what players held before is not known", r.p.completeFrom)}
		}
		id, err := r.number(ctx, "items", item)
		if err != nil {
			return err
		}
		last := int64(0)
		if after != "" {
			if last, err = r.number(ctx, "players", after); err != nil {
				return err
			}
		}
		return r.c.query(ctx, "SELECT h.player, h.quantity, h.sum, p.name, p.sum FROM holdings h LEFT JOIN players p ON p.id = h.player WHERE h.item = $1 AND h.player > $2 ORDER BY h.player LIMIT $3", func(row row) error {
			player, quantity := row.int(0), row.int(1)
			holders = append(holders, Holder{idOf(row.text(3)), uint64(quantity)})
			return cmp.Or(r.check.holding(row, 2, holding{id, player}, quantity), r.check.name(row, 4, "players", player, row.text(3)))
		}, id, last, int64(limit+1))
	})
	if more = len(holders) > limit; more {
		holders = holders[:limit]
	}
	return holders, more, state, err
}
