package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

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

// reading calls f with a connection in a transaction that sees one snapshot. f must only read.
func (h *DB) reading(ctx context.Context, f func(c conn) error) (err error) {
	var c conn
	select {
	case some, ok := <-h.reads:
		if !ok {
			return &kuji.Error{Code: kuji.CodeClosed, Message: "the history is closed"}
		}
		c = some
	case <-ctx.Done():
		return failed("reading", ctx.Err())
	}
	defer func() {
		if err != nil && c != nil { // in what state it is, nobody knows
			_ = c.close()
			c = nil
		}
		h.reads <- c
	}()
	if c == nil {
		if c, err = h.db.open(ctx, false); err != nil {
			return failed("opening", err)
		}
	}
	if err := c.read(ctx); err != nil {
		return failed("reading", err)
	}
	if err := f(c); err != nil {
		return failed("reading", err)
	}
	_, err = c.exec(ctx, "COMMIT")
	return failed("reading", err)
}

// answer calls f like reading, with what the history knows. It refuses what is not of the realm.
func (h *DB) answer(ctx context.Context, f func(c conn, p progress) error) error {
	h.mu.Lock()
	fault := h.fault
	h.mu.Unlock()
	if fault != nil {
		return fault
	}
	var refusal error // which leaves the connection as it was
	err := h.reading(ctx, func(c conn) error {
		p, err := h.progress(ctx, c)
		if err != nil {
			return err
		}
		if err = f(c, p); kuji.CodeOf(err) != 0 {
			refusal, err = err, nil
		}
		return err
	})
	return errors.Join(err, refusal)
}

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
	err = h.answer(ctx, func(c conn, p progress) error {
		page.State = p.state()
		seqs, end, err := q.seqs(ctx, c, limit)
		if err != nil {
			return err
		}
		if end >= 0 {
			page.More, page.Before = true, placeOf(end)
		}
		if page.Events, err = records(ctx, c, seqs); err == nil && len(page.Events) < len(seqs) {
			page.More, page.Before = true, placeOf(seqs[len(page.Events)-1])
		}
		return err
	})
	return page, err
}

// seqs finds the places of the events that a query asks for. end is where older ones begin; -1: there
// are none.
func (q *Query) seqs(ctx context.Context, c conn, limit int) (seqs []int64, end int64, err error) {
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
			if *n.id, err = number(ctx, c, n.table, n.name); err != nil {
				return nil, -1, err
			}
		}
	}
	if player != 0 && item != 0 {
		return q.ofPlayersItem(ctx, c, player, item, before, limit)
	}
	sql, id := "SELECT seq FROM item_events WHERE item = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3", item
	switch {
	case player != 0:
		sql, id = "SELECT DISTINCT seq FROM changes WHERE player = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3", player
	case pool != 0:
		sql, id = "SELECT seq FROM pool_events WHERE pool = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3", pool
	}
	err = c.query(ctx, sql, func(r row) error {
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
func number(ctx context.Context, c conn, table, name string) (id int64, err error) {
	err = c.query(ctx, "SELECT id FROM "+table+" WHERE name = $1", func(r row) error {
		id = r.int(0)
		return nil
	}, textOf(name))
	if err == nil && id == 0 {
		kind := strings.TrimSuffix(table, "s")
		err = &kuji.Error{Code: kuji.CodeNotFound, Field: kind, Message: fmt.Sprintf("the history has no %s %.80q", kind, name)}
	}
	return id, err
}

// records reads the events at some places, which descend, as many as fit on a page.
func records(ctx context.Context, c conn, seqs []int64) ([]kuji.Record, error) {
	if len(seqs) == 0 {
		return nil, nil
	}
	at := make(map[int64]int, len(seqs))
	args := make([]any, len(seqs))
	for i, seq := range seqs {
		at[seq], args[i] = i, seq
	}
	all, bytes, read := make([]kuji.Record, len(seqs)), 0, 0
	err := c.query(ctx, "SELECT e.seq, e.time, e.kind, e.status, p.name, o.name, e.request, e.detail FROM events e "+
		"LEFT JOIN players p ON p.id = e.player LEFT JOIN pools o ON o.id = e.pool WHERE e.seq IN "+tuple(1, len(args))+" ORDER BY e.seq DESC", func(r row) error {
		i, text := at[r.int(0)], r.text(7)
		if bytes += len(text); bytes > maxPageBytes && read > 0 {
			return errFull
		}
		read++
		place := placeOf(r.int(0))
		all[i] = kuji.Record{Position: place.Position, Index: place.Index, Time: r.int(1), Kind: r.text(2), Status: r.text(3),
			Player: idOf(r.text(4)), Pool: idOf(r.text(5)), ID: idOf(r.text(6))}
		return fill(&all[i], text)
	}, args...)
	if errors.Is(err, errFull) {
		all = all[:read]
	} else if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Kind == "" {
			return nil, &kuji.Error{Code: kuji.CodeCorrupt, Message: fmt.Sprintf("position %d: the history is damaged: delete it, and it is built again", placeOf(seqs[i]).Position)}
		}
	}
	return all, changes(ctx, c, all, at)
}

// changes fills in the changes of events.
func changes(ctx context.Context, c conn, all []kuji.Record, at map[int64]int) error {
	players := map[string][]int64{} // by text: the places of their events
	for i := range all {
		seq := Place{all[i].Position, all[i].Index}.seq()
		about(&all[i], func(id string) {
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
		if err := c.query(ctx, "SELECT c.seq, p.name, i.name, c.delta, c.balance FROM players p JOIN changes c ON c.player = p.id AND c.seq IN ("+strings.Join(seqs, ",")+
			") JOIN items i ON i.id = c.item WHERE p.name IN "+tuple(1, len(args))+" ORDER BY c.seq, p.name, i.name", func(r row) error {
			rec := &all[at[r.int(0)]]
			change := kuji.BalanceChange{Player: idOf(r.text(1)), Item: idOf(r.text(2)), Delta: r.int(3)}
			if !r.null(4) {
				change.Balance = new(uint64(r.int(4)))
			}
			rec.Changes = append(rec.Changes, change)
			return nil
		}, args...); err != nil {
			return err
		}
	}
	return nil
}

// Players returns the ids of at most limit players (0: DefaultPage) whom any event was about, sorted
// by their bytes, after an id. more says that there are others behind them.
func (h *DB) Players(ctx context.Context, after string, limit int) (players []string, more bool, state State, err error) {
	if limit, err = limitOf(limit); err != nil {
		return nil, false, state, err
	}
	err = h.answer(ctx, func(c conn, p progress) error {
		state = p.state()
		return c.query(ctx, "SELECT name FROM players WHERE name > $1 ORDER BY name LIMIT $2", func(r row) error {
			players = append(players, idOf(r.text(0)))
			return nil
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
// players came to the realm, after a player; "" is the first. more says that there are others behind
// them. CodeNotFound says that nothing has happened to the item or the player, CodeConflict that the
// history is not complete from the beginning and does not know.
func (h *DB) Holders(ctx context.Context, item, after string, limit int) (holders []Holder, more bool, state State, err error) {
	if limit, err = limitOf(limit); err != nil {
		return nil, false, state, err
	}
	if item == "" {
		return nil, false, state, &kuji.Error{Code: kuji.CodeInvalid, Field: "item", Message: "is empty, want the id of an item"}
	}
	err = h.answer(ctx, func(c conn, p progress) error {
		state = p.state()
		if p.completeFrom != 1 {
			return &kuji.Error{Code: kuji.CodeConflict, Message: fmt.Sprintf("the history begins at position %d: what players held before is not known", p.completeFrom)}
		}
		id, err := number(ctx, c, "items", item)
		if err != nil {
			return err
		}
		last := int64(0)
		if after != "" {
			if last, err = number(ctx, c, "players", after); err != nil {
				return err
			}
		}
		return c.query(ctx, "SELECT p.name, h.quantity FROM holdings h JOIN players p ON p.id = h.player WHERE h.item = $1 AND h.player > $2 ORDER BY h.player LIMIT $3", func(r row) error {
			holders = append(holders, Holder{idOf(r.text(0)), uint64(r.int(1))})
			return nil
		}, id, last, int64(limit+1))
	})
	if more = len(holders) > limit; more {
		holders = holders[:limit]
	}
	return holders, more, state, err
}
