package history

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/kuji-dev/kuji"
)

// event is an event on its way from the feed to the writer.
type event struct {
	rec     kuji.Record
	detail  string
	forgets []string // names of the player whom it has forgotten
}

// detail is what a record says that has no column, as JSON: a record whose other fields are hidden.
type detail struct {
	Version uint64 `json:"catalog_version,omitempty"`
	kuji.Record
	Position   *struct{} `json:"position,omitempty"`
	Index      *struct{} `json:"index,omitempty"`
	Time       *struct{} `json:"time,omitempty"`
	Kind       *struct{} `json:"kind,omitempty"`
	ID         *struct{} `json:"id,omitempty"`
	Status     *struct{} `json:"status,omitempty"`
	NewVersion *struct{} `json:"new_catalog_version,omitempty"` // follows from the other
	Player     *struct{} `json:"player,omitempty"`
	Pool       *struct{} `json:"pool,omitempty"`
	Changes    *struct{} `json:"changes,omitempty"`
	Last       bool      `json:"last,omitempty"`
}

// detailOf returns the detail of a record.
func detailOf(rec *kuji.Record) (string, error) {
	d := detail{Version: rec.CatalogVersion, Record: *rec, Last: rec.Last}
	d.Members = slices.Clone(d.Members)
	d.ids(textOf)
	b, err := json.Marshal(&d)
	return string(b), err
}

// fill is the inverse of detailOf, for a record that has what has columns.
func fill(rec *kuji.Record, text string) error {
	d := detail{Record: *rec}
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return err
	}
	d.ids(idOf)
	*rec = d.Record
	rec.CatalogVersion, rec.Last = d.Version, d.Last
	if rec.Kind == "catalog" || rec.Kind == "approve" {
		rec.NewCatalogVersion = rec.CatalogVersion + 1
	}
	return nil
}

// ids writes the ids in a detail in another form. Members must be its own.
func (d *detail) ids(form func(string) string) {
	d.To, d.Key = form(d.To), form(d.Key)
	d.Beyond = slices.Clone(d.Beyond)
	for i := range d.Beyond {
		d.Beyond[i].Player = form(d.Beyond[i].Player)
	}
	d.Claims = slices.Clone(d.Claims)
	for i := range d.Claims {
		d.Claims[i].Player = form(d.Claims[i].Player)
	}
	if d.Due != nil {
		due := *d.Due
		due.Players = slices.Clone(due.Players)
		for i := range due.Players {
			due.Players[i] = form(due.Players[i])
		}
		d.Due = &due
	}
	d.Entrants = slices.Clone(d.Entrants)
	for i := range d.Entrants {
		d.Entrants[i] = form(d.Entrants[i])
	}
	if d.Round != nil {
		r := *d.Round
		r.Opener, r.Winners = form(r.Opener), slices.Clone(r.Winners)
		for i := range r.Winners {
			r.Winners[i].Player = form(r.Winners[i].Player)
		}
		d.Round = &r
	}
	d.holds(form)
	for i := range d.Members {
		m := &d.Members[i]
		m.Player, m.To, m.Key = form(m.Player), form(m.To), form(m.Key)
	}
}

// holds is ids of what a detail says of holds.
func (d *detail) holds(form func(string) string) {
	d.Freed = slices.Clone(d.Freed)
	for i := range d.Freed {
		d.Freed[i] = kuji.Freed{Player: form(d.Freed[i].Player), Hold: form(d.Freed[i].Hold)}
	}
	if d.Due != nil {
		d.Due.Holds = slices.Clone(d.Due.Holds) // Due is its own: see ids
		for i := range d.Due.Holds {
			d.Due.Holds[i] = form(d.Due.Holds[i])
		}
	}
	if d.Hold == nil {
		return
	}
	h := *d.Hold
	h.ID, h.By, h.Parts = form(h.ID), form(h.By), slices.Clone(h.Parts)
	for i := range h.Parts {
		h.Parts[i].Player, h.Parts[i].To = form(h.Parts[i].Player), form(h.Parts[i].To)
	}
	d.Hold = &h
}

// textOf writes bytes that not every database takes, not UTF-8, NUL and \, as \xNN. Nearly no id has any.
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

var escaped = regexp.MustCompile(`\\x[0-9a-fA-F]{2}`)

// idOf is the inverse of textOf.
func idOf(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	return escaped.ReplaceAllStringFunc(text, func(code string) string {
		b, _ := hex.DecodeString(code[2:])
		return string(b)
	})
}

// maxKnown is how many names of a kind, and balances, a writer keeps in memory. It reads others again.
const maxKnown = 1 << 18

// cache is what a writer knows of a table: the numbers of names, or balances.
type cache[K comparable] struct {
	known map[K]int64
	whole bool     // every row of the table is known
	rows  string   // the statement that reads them
	named string   // the columns that name one
	key   []string // their arguments
	args  func(key K) []any
	add   func(r row) error // checks a row and takes it up
}

// load reads the table, as far as there is room.
func (c *cache[K]) load(ctx context.Context, t tables) error {
	c.known = map[K]int64{}
	err := t.query(ctx, c.rows+" LIMIT $1", c.add, int64(t.h.remember))
	c.whole = len(c.known) < t.h.remember
	return err
}

// all makes room, and reports whether every row of the table is known.
func (c *cache[K]) all(t tables) bool {
	if len(c.known) > t.h.remember {
		c.known, c.whole = map[K]int64{}, false
	}
	return c.whole
}

// look reads the rows of keys that are not known, as far as the table has them.
func (c *cache[K]) look(ctx context.Context, t tables, keys []K) error {
	if c.all(t) {
		return nil
	}
	seen, args := map[K]struct{}{}, []any{}
	for _, key := range keys {
		_, known := c.known[key]
		if _, twice := seen[key]; !known && !twice {
			seen[key] = struct{}{}
			args = append(args, c.args(key)...)
		}
	}
	return t.lookup(ctx, c.rows+" WHERE ("+c.named+") IN (VALUES $$)", c.key, args, c.add)
}

// names are the numbers of the names in one table: players, items or pools.
type names struct {
	cache[string]
	table table
	last  int64 // the highest number in the table
	new   []any // rows of the open batch
}

func (w *writer) names(name string) *names {
	n := &names{table: table{name: name, columns: 3}}
	n.cache = cache[string]{rows: "SELECT id, name, sum FROM " + name, named: "name", key: []string{text},
		args: func(id string) []any { return []any{textOf(id)} },
		add: func(r row) error {
			n.known[idOf(r.text(1))] = r.int(0)
			return w.check(name, r...)
		}}
	return n
}

// number returns the number of an id, a new one if it has none.
func (n *names) number(s *summing, id string) int64 {
	num, ok := n.known[id]
	if !ok {
		n.last++
		num = n.last
		n.known[id] = num
		n.new = s.summed(n.table.name, 2, append(n.new, num, textOf(id)))
	}
	return num
}

// holding is a player's balance of an item.
type holding struct{ item, player int64 }

// writer makes rows of events. Nothing of it outlives a failure.
type writer struct {
	reader        // with how far the history goes
	back     bool // events are taken back: see rewind
	players  *names
	items    *names
	pools    *names
	balances cache[holding]
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

// newWriter returns a writer for a history that goes as far as p says.
func newWriter(ctx context.Context, t tables, p progress) (*writer, error) {
	w := &writer{reader: reader{tables: t, p: p}, batch: batch{touched: map[holding]struct{}{}}}
	w.players, w.items, w.pools = w.names("players"), w.names("items"), w.names("pools")
	for _, n := range w.named() {
		last, err := t.one(ctx, "SELECT max(id) FROM "+n.table.name)
		if err == nil {
			n.last = last.int(0)
			err = n.load(ctx, t)
		}
		if err != nil {
			return nil, err
		}
	}
	w.balances = cache[holding]{rows: "SELECT item, player, quantity, sum FROM holdings", named: "item, player", key: []string{number, number},
		args: func(h holding) []any { return []any{h.item, h.player} },
		add: func(r row) error {
			w.balances.known[holding{r.int(0), r.int(1)}] = r.int(2)
			return w.check("holdings", r...)
		}}
	return w, w.balances.load(ctx, t)
}

func (w *writer) named() []*names { return []*names{w.players, w.items, w.pools} }

// build makes the rows of some events, and returns how far they bring the history.
func (w *writer) build(ctx context.Context, some []event) (progress, error) {
	b, next := &w.batch, w.p
	b.events, b.changes, b.pools, b.items, b.seqs = b.events[:0], b.changes[:0], b.pools[:0], b.items[:0], b.seqs[:0]
	clear(b.touched)
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
	b := &w.batch
	changes := b.changes
	for i, seq := range b.seqs {
		row := b.events[i*eventsTable.columns : (i+1)*eventsTable.columns]
		b.sorted = b.sorted[:0]
		for ; len(changes) > 0 && changes[0].seq == seq; changes = changes[1:] {
			if changes[0].item != 0 {
				b.sorted = append(b.sorted, changes[0])
			}
		}
		w.s = w.s.row("events", row[:len(row)-1]...).changes(b.sorted)
		row[len(row)-1] = w.s.sum()
	}
}

// lookNames reads the numbers of names in some events that are not in memory, as far as they have one.
func (w *writer) lookNames(ctx context.Context, some []event) error {
	if t := w.tables; w.players.all(t) && w.items.all(t) && w.pools.all(t) {
		return nil
	}
	var players, items, pools []string
	for i := range some {
		rec := &some[i].rec
		about(rec, func(id string) { players = append(players, id) }, func(id string) { pools = append(pools, id) })
		for _, c := range rec.Changes {
			players, items = append(players, c.Player), append(items, c.Item)
		}
	}
	return cmp.Or(w.players.look(ctx, w.tables, players), w.items.look(ctx, w.tables, items), w.pools.look(ctx, w.tables, pools))
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
	if rec.Due != nil {
		for _, id := range rec.Due.Players {
			if id != "" { // else the player was forgotten
				player(id)
			}
		}
	}
	for _, id := range rec.Entrants {
		player(id)
	}
	for i := range rec.Freed {
		player(rec.Freed[i].Player)
	}
	for i := range rec.Claims {
		if c := &rec.Claims[i]; c.Place > 0 {
			player(c.Player)
		}
	}
	for i := range rec.Members {
		about(&rec.Members[i], player, pool)
	}
}

// add makes the rows of an event, but for balances.
func (w *writer) add(ev *event) error {
	rec, b := &ev.rec, &w.batch
	at := placeOf(rec)
	if rec.Position > maxPosition || rec.Index >= 1<<indexBits {
		return &kuji.Error{Code: kuji.CodeFailed, Message: fmt.Sprintf("%v: beyond what a history can hold", at)}
	}
	seq := at.seq()
	var player, pool, request any
	if rec.Player != "" {
		player = w.players.number(&w.s, rec.Player)
	}
	if rec.Pool != "" {
		pool = w.pools.number(&w.s, rec.Pool)
	}
	if rec.ID != "" {
		request = textOf(rec.ID)
	}
	b.events = append(b.events, seq, rec.Time, rec.Kind, rec.Status, player, pool, request, ev.detail, nil)
	index := uint64(len(b.seqs))
	b.seqs = append(b.seqs, seq)
	first := len(b.changes)
	for _, c := range rec.Changes {
		item := w.items.number(&w.s, c.Item)
		b.changes = append(b.changes, change{player: w.players.number(&w.s, c.Player), seq: seq, item: item, delta: c.Delta})
		b.items = append(b.items, uint64(item)<<32|index)
	}
	about(rec, func(id string) {
		p := w.players.number(&w.s, id)
		if !slices.ContainsFunc(b.changes[first:], func(c change) bool { return c.player == p }) {
			b.changes = append(b.changes, change{player: p, seq: seq}) // about the player, without a change
		}
	}, func(id string) { b.pools = append(b.pools, uint64(w.pools.number(&w.s, id))<<32|index) })
	return nil
}

// settle fills in the balances after each change.
func (w *writer) settle(ctx context.Context) error {
	if w.p.CompleteFrom != 1 {
		return nil
	}
	b := &w.batch
	keys := make([]holding, 0, len(b.changes))
	for _, c := range b.changes {
		if c.item != 0 {
			keys = append(keys, holding{c.item, c.player})
		}
	}
	if err := w.balances.look(ctx, w.tables, keys); err != nil {
		return err
	}
	for i := range b.changes {
		c := &b.changes[i]
		if c.item == 0 {
			continue
		}
		h, delta := holding{c.item, c.player}, c.delta
		if w.back {
			delta = -delta
		}
		balance := w.balances.known[h] + delta
		if balance < 0 && !w.back {
			return damaged("position %d: a balance of %d", placeAt(c.seq).Position, balance)
		}
		w.balances.known[h], c.balance = balance, balance
		b.touched[h] = struct{}{}
	}
	return nil
}
