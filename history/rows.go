package history

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/kuji-dev/kuji"
)

// event is an event on its way from the feed to the writer.
type event struct {
	rec    kuji.Record
	detail string
}

// detail is what a record says that has no column, as JSON.
type detail struct {
	Version  uint64         `json:"catalog_version,omitempty"`
	Subject  string         `json:"subject,omitempty"`
	Limit    *kuji.Limit    `json:"limit,omitempty"`
	Lacks    []kuji.Lack    `json:"lacks,omitempty"`
	To       string         `json:"to,omitempty"`
	Count    int            `json:"count,omitempty"`
	List     string         `json:"list,omitempty"`
	Number   *uint64        `json:"number,omitempty"`
	Pay      string         `json:"pay,omitempty"`
	Items    []kuji.Stack   `json:"items,omitempty"`
	Outcomes []kuji.Outcome `json:"outcomes,omitempty"`
	Paid     []kuji.Stack   `json:"paid,omitempty"`
	Track    string         `json:"track,omitempty"`
	Draws    *uint64        `json:"draws,omitempty"`
	By       string         `json:"by,omitempty"`
	Reason   string         `json:"reason,omitempty"`
	Metadata string         `json:"metadata,omitempty"`
	Members  []kuji.Record  `json:"members,omitempty"`
	Clock    *kuji.ClockSet `json:"clock,omitempty"`
	Level    uint8          `json:"level,omitempty"`
	Bytes    int            `json:"bytes,omitempty"`
	Last     bool           `json:"last,omitempty"`
}

// detailOf returns the detail of a record.
func detailOf(rec *kuji.Record) (string, error) {
	members := slices.Clone(rec.Members)
	for i := range members {
		members[i].Player, members[i].To = textOf(members[i].Player), textOf(members[i].To)
	}
	b, err := json.Marshal(&detail{rec.CatalogVersion, rec.Subject, rec.Limit, rec.Lacks, textOf(rec.To), rec.Count, rec.List, rec.Number, rec.Pay,
		rec.Items, rec.Outcomes, rec.Paid, rec.Track, rec.Draws, rec.By, rec.Reason, rec.Metadata, members, rec.Clock, rec.Level, rec.Bytes, rec.Last})
	return string(b), err
}

// fill is the inverse of detailOf.
func fill(rec *kuji.Record, text string) error {
	var d detail
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return err
	}
	rec.CatalogVersion, rec.Subject, rec.Limit, rec.Lacks, rec.To, rec.Count = d.Version, d.Subject, d.Limit, d.Lacks, idOf(d.To), d.Count
	rec.List, rec.Number, rec.Pay, rec.Items, rec.Outcomes, rec.Paid = d.List, d.Number, d.Pay, d.Items, d.Outcomes, d.Paid
	rec.Track, rec.Draws, rec.By, rec.Reason, rec.Metadata = d.Track, d.Draws, d.By, d.Reason, d.Metadata
	rec.Members, rec.Clock, rec.Level, rec.Bytes, rec.Last = d.Members, d.Clock, d.Level, d.Bytes, d.Last
	if rec.Kind == "catalog" { // follows from the other, so no row has it
		rec.NewCatalogVersion = rec.CatalogVersion + 1
	}
	for i := range rec.Members {
		rec.Members[i].Player, rec.Members[i].To = idOf(rec.Members[i].Player), idOf(rec.Members[i].To)
	}
	return nil
}

// textOf returns an id as text that every database takes: bytes that are not UTF-8, NUL and \ are
// written as \xNN. Nearly no id has any.
func textOf(id string) string {
	if utf8.ValidString(id) && !strings.ContainsAny(id, "\x00\\") {
		return id
	}
	var b strings.Builder
	for len(id) > 0 {
		r, n := utf8.DecodeRuneInString(id)
		if r == utf8.RuneError && n == 1 || r == 0 || r == '\\' {
			fmt.Fprintf(&b, `\x%02x`, id[0])
		} else {
			b.WriteString(id[:n])
		}
		id = id[n:]
	}
	return b.String()
}

// idOf is the inverse of textOf.
func idOf(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		if strings.HasPrefix(text, `\x`) && len(text) >= 4 {
			if v, err := strconv.ParseUint(text[2:4], 16, 8); err == nil {
				b.WriteByte(byte(v))
				text = text[4:]
				continue
			}
		}
		b.WriteByte(text[0])
		text = text[1:]
	}
	return b.String()
}

// names are the numbers of the names in one table: players, items or pools.
type names struct {
	name  string
	check *checker
	table *table
	ids   map[string]int64
	whole bool  // every id of the table is in ids
	last  int64 // the highest number in the table
	new   []any // rows of the open batch
}

// holding is a player's balance of an item.
type holding struct{ item, player int64 }

const (
	// maxKnown is the most names of a kind, and balances, that a writer keeps in memory. If there are
	// more, those that come are read again.
	maxKnown = 1 << 18
	// lookAtOnce is how many of them a statement reads.
	lookAtOnce = 256
)

// writer makes rows of events. Nothing of it outlives a failure.
type writer struct {
	c        conn
	check    *checker
	remember int
	at       progress
	back     bool // events are taken back: see rewind
	players  names
	items    names
	pools    names
	balances map[holding]int64
	whole    bool  // every holding of the table is in balances
	oldest   int64 // time of the oldest event, if it is known: none is older
	batch    batch
}

// batch is the rows of one transaction, a run of arguments for each table.
type batch struct {
	events  []any
	changes []change
	sorted  []change // of one event
	pools   []uint64 // number<<32 | index into seqs, perhaps twice
	items   []uint64 // the same
	seqs    []int64
	touched map[holding]struct{}
}

type change struct {
	player, seq, item, delta int64
	balance                  any // nil: unknown
}

// newWriter reads what a writer must know.
func (h *DB) newWriter(ctx context.Context, c conn) (*writer, error) {
	p, err := h.tables(c).progress(ctx)
	if err != nil {
		return nil, err
	}
	return h.writerAt(ctx, c, p)
}

// writerAt returns a writer for a history that goes as far as p says.
func (h *DB) writerAt(ctx context.Context, c conn, p progress) (*writer, error) {
	check := newChecker(&p)
	w := &writer{c: c, check: check, at: p, remember: h.remember, balances: map[holding]int64{}, whole: true, batch: batch{touched: map[holding]struct{}{}},
		players: newNames("players", check), items: newNames("items", check), pools: newNames("pools", check)}
	for _, n := range []*names{&w.players, &w.items, &w.pools} {
		if err := n.load(ctx, c, h.remember); err != nil {
			return nil, err
		}
	}
	err := c.query(ctx, "SELECT item, player, quantity, sum FROM holdings LIMIT $1", w.holds, int64(h.remember+1))
	if len(w.balances) > h.remember {
		w.balances, w.whole = map[holding]int64{}, false
	}
	return w, err
}

// holds takes a row of holdings.
func (w *writer) holds(r row) error {
	h := holding{r.int(0), r.int(1)}
	w.balances[h] = r.int(2)
	return w.check.holding(r, 3, h, r.int(2))
}

func newNames(name string, check *checker) names {
	return names{name: name, check: check, table: newTable(name, 3, "")}
}

// takes takes a row: number, name and checksum.
func (n *names) takes(r row) error {
	n.ids[idOf(r.text(1))] = r.int(0)
	return n.check.name(r, 2, n.name, r.int(0), r.text(1))
}

func (n *names) load(ctx context.Context, c conn, remember int) error {
	n.ids, n.whole = map[string]int64{}, true
	if err := c.query(ctx, "SELECT max(id) FROM "+n.name, func(r row) error {
		n.last = r.int(0)
		return nil
	}); err != nil {
		return err
	}
	if n.last > int64(remember) {
		n.whole = false
		return nil
	}
	return c.query(ctx, "SELECT id, name, sum FROM "+n.name, n.takes)
}

// look reads the numbers of some ids, as far as they have one.
func (n *names) look(ctx context.Context, c conn, unknown set) error {
	all := make([]any, 0, len(unknown))
	for id := range unknown {
		all = append(all, textOf(id))
	}
	return lookups(all, 1, func(some []any) error {
		return c.lookup(ctx, "SELECT id, name, sum FROM "+n.name+" WHERE name IN "+tuple(1, len(some)), n.takes, some...)
	})
}

// lookups calls look with some of the arguments at a time, of which each lookup has so many. The
// number of arguments is one of few, so that few statements do: the last one is repeated.
func lookups(args []any, each int, look func(some []any) error) error {
	for some := range slices.Chunk(args, each*lookAtOnce) {
		some = slices.Clip(some)
		for len(some) < each*lookAtOnce && len(some) != 16*each {
			some = append(some, some[len(some)-each:]...)
		}
		if err := look(some); err != nil {
			return err
		}
	}
	return nil
}

// number returns the number of an id, a new one if it has none.
func (n *names) number(id string) int64 {
	num, ok := n.ids[id]
	if !ok {
		n.last++
		num = n.last
		n.ids[id] = num
		text := textOf(id)
		n.new = append(n.new, num, text, n.check.nameSum(n.name, num, text))
	}
	return num
}

// tuple returns ($from, …) with n numbers.
func tuple(from, n int) string {
	b := []byte("(")
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, '$'), int64(from+i), 10)
	}
	return string(append(b, ')'))
}

// build makes the rows of some events, and returns how far they bring the history.
func (w *writer) build(ctx context.Context, some []event) (progress, error) {
	b := &w.batch
	b.events, b.changes, b.pools, b.items, b.seqs = b.events[:0], b.changes[:0], b.pools[:0], b.items[:0], b.seqs[:0]
	clear(b.touched)
	next := w.at
	if err := w.lookNames(ctx, some); err != nil {
		return next, err
	}
	for i := range some {
		if err := w.add(&some[i]); err != nil {
			return next, err
		}
	}
	end := &some[len(some)-1].rec
	next.at, next.last = Place{end.Position, end.Index}, end.Last
	err := w.settle(ctx)
	w.addSums()
	return next, err
}

// addSums fills in the checksums of events.
func (w *writer) addSums() {
	b, s := &w.batch, w.check.s
	changes := b.changes
	for i, seq := range b.seqs {
		row := b.events[i*eventsTable.columns : (i+1)*eventsTable.columns]
		s = s.begin("events")
		for _, v := range row[:len(row)-1] {
			s = s.value(v)
		}
		b.sorted = b.sorted[:0]
		for ; len(changes) > 0 && changes[0].seq == seq; changes = changes[1:] {
			if changes[0].item != 0 {
				b.sorted = append(b.sorted, changes[0])
			}
		}
		s = s.changes(b.sorted)
		row[len(row)-1] = s.sum()
	}
	w.check.s = s
}

// lookNames reads the numbers of names in some events that are not in memory, as far as they have one.
func (w *writer) lookNames(ctx context.Context, some []event) error {
	for _, n := range []*names{&w.players, &w.pools, &w.items} {
		if len(n.ids) > w.remember {
			n.ids, n.whole = map[string]int64{}, false
		}
	}
	var players, pools, items set
	for i := range some {
		rec := &some[i].rec
		if !w.players.whole || !w.pools.whole {
			about(rec, func(id string) { players.add(&w.players, id) }, func(id string) { pools.add(&w.pools, id) })
		}
		for _, c := range rec.Changes {
			players.add(&w.players, c.Player)
			items.add(&w.items, c.Item)
		}
	}
	return cmp.Or(w.players.look(ctx, w.c, players), w.pools.look(ctx, w.c, pools), w.items.look(ctx, w.c, items))
}

// set is ids to look for.
type set map[string]struct{}

// add adds an id, unless all are in memory, or this one.
func (s *set) add(n *names, id string) {
	if n.whole {
		return
	}
	if _, ok := n.ids[id]; !ok {
		if *s == nil {
			*s = set{}
		}
		(*s)[id] = struct{}{}
	}
}

// about calls player and pool for each id that a record names, perhaps twice.
func about(rec *kuji.Record, player, pool func(id string)) {
	for _, id := range []string{rec.Player, rec.To} {
		if id != "" {
			player(id)
		}
	}
	if rec.Pool != "" {
		pool(rec.Pool)
	}
	for i := range rec.Members {
		about(&rec.Members[i], player, pool)
	}
}

// add makes the rows of an event, but for balances.
func (w *writer) add(ev *event) error {
	rec, b := &ev.rec, &w.batch
	if rec.Position > maxPosition || rec.Index >= 1<<indexBits {
		return &kuji.Error{Code: kuji.CodeFailed, Message: fmt.Sprintf("%v: beyond what a history can hold", Place{rec.Position, rec.Index})}
	}
	seq := Place{rec.Position, rec.Index}.seq()
	var player, pool, request any
	if rec.Player != "" {
		player = w.players.number(rec.Player)
	}
	if rec.Pool != "" {
		pool = w.pools.number(rec.Pool)
	}
	if rec.ID != "" {
		request = textOf(rec.ID)
	}
	b.events = append(b.events, seq, rec.Time, rec.Kind, rec.Status, player, pool, request, ev.detail, nil)
	index := uint64(len(b.seqs))
	b.seqs = append(b.seqs, seq)
	first := len(b.changes)
	for _, c := range rec.Changes {
		item := w.items.number(c.Item)
		b.changes = append(b.changes, change{player: w.players.number(c.Player), seq: seq, item: item, delta: c.Delta})
		b.items = append(b.items, uint64(item)<<32|index)
	}
	about(rec, func(id string) {
		p := w.players.number(id)
		if !slices.ContainsFunc(b.changes[first:], func(c change) bool { return c.player == p }) {
			b.changes = append(b.changes, change{player: p, seq: seq}) // about the player, without a change
		}
	}, func(id string) { b.pools = append(b.pools, uint64(w.pools.number(id))<<32|index) })
	return nil
}

// settle fills in the balances after each change.
func (w *writer) settle(ctx context.Context) error {
	if w.at.completeFrom != 1 {
		return nil
	}
	if err := w.lookHoldings(ctx); err != nil {
		return err
	}
	b := &w.batch
	for i := range b.changes {
		c := &b.changes[i]
		if c.item == 0 {
			continue
		}
		h := holding{c.item, c.player}
		delta := c.delta
		if w.back {
			delta = -delta
		}
		balance := w.balances[h] + delta
		if balance < 0 && !w.back {
			return damaged("position %d: a balance of %d", placeOf(c.seq).Position, balance)
		}
		w.balances[h], c.balance = balance, balance
		b.touched[h] = struct{}{}
	}
	return nil
}

// lookHoldings reads the balances that the open batch changes and that are not in memory.
func (w *writer) lookHoldings(ctx context.Context) error {
	b := &w.batch
	if len(w.balances) > w.remember {
		w.balances, w.whole = map[holding]int64{}, false
	}
	if w.whole {
		return nil
	}
	defer clear(b.touched)
	var args []any
	for _, c := range b.changes {
		h := holding{c.item, c.player}
		if _, ok := w.balances[h]; ok || c.item == 0 {
			continue
		}
		if _, ok := b.touched[h]; !ok {
			b.touched[h] = struct{}{}
			args = append(args, h.item, h.player)
		}
	}
	return lookups(args, 2, func(some []any) error {
		return w.c.lookup(ctx, "SELECT item, player, quantity, sum FROM holdings WHERE (item, player) IN (VALUES "+pairs(len(some)/2)+")", w.holds, some...)
	})
}

// pairs returns n pairs of numbers. PostgreSQL takes what stands in VALUES for text, unless told.
func pairs(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("(CAST($%d AS BIGINT),CAST($%d AS BIGINT))", 2*i+1, 2*i+2)
	}
	return strings.Join(all, ",")
}

// tuples returns ($1, …), … with n tuples of some numbers.
func tuples(n, columns int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(tuple(1+i*columns, columns))
	}
	return b.String()
}
