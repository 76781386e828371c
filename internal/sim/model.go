package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

// model is what a realm must hold, in plain maps. It gets each event of the log with its outcome,
// judges whether the rules allow it, and keeps what follows from it.
type model struct {
	rulebook
	stamps
	book
	answers
	version uint64   // of the catalog
	owed    []string // for whom an event has settled what was due, on behalf of the command that follows
}

// stamps is the time, by the stamps of the log.
type stamps struct {
	now  int64 // the last stamp, or what it was set back to
	back int64 // how far the clock was set back in all
}

// book is what commands change.
type book struct {
	players map[string]*holder
	starts  bool              // a catalog had starting grants
	drawn   map[string]uint64 // by "pool/entry", over all catalog versions, less what was put back
	refills map[string]uint64 // by pool
	purses  map[string]purse  // by budget and item
	moments map[string]coming // by "pool/entry"
	codeBook
	goals  goalBook
	rounds roundBook
	movers map[string]bool // who has moved which counter of the realm in the event at hand
	beyondBook
	sums // shared by all books
}

// holder is one player.
type holder struct {
	id     string
	number int  // players have numbers in the order in which they join
	waits  bool // for the starting grants
	items  map[string]uint64
	held   map[string]uint64 // by rounds
	lots   map[string]units
	draws  map[limit][]int64 // the steady time of every draw that counted
	free   map[limit][]int64 // the steady time of every draw that was free
	tracks map[string]uint64 // draws since the last hit, by counter
	mail   []letter          // ascending by when they go
	since  map[string]int64  // the steady time from which on items grow
}

func newHolder(id string) *holder {
	return &holder{id: id, since: map[string]int64{}, items: map[string]uint64{}, held: map[string]uint64{}, lots: map[string]units{}, draws: map[limit][]int64{}, free: map[limit][]int64{}, tracks: map[string]uint64{}}
}

func (h *holder) clone() *holder {
	c := &holder{h.id, h.number, h.waits, maps.Clone(h.items), maps.Clone(h.held), maps.Clone(h.lots), maps.Clone(h.draws), maps.Clone(h.free), maps.Clone(h.tracks), slices.Clone(h.mail), maps.Clone(h.since)}
	for item, u := range c.lots {
		c.lots[item] = maps.Clone(u)
	}
	for k, times := range c.draws {
		c.draws[k] = slices.Clone(times)
	}
	for k, times := range c.free {
		c.free[k] = slices.Clone(times)
	}
	return c
}

// limit identifies a player limit across catalog versions.
type limit struct {
	pool   string
	per    catalog.Per
	window int64
}

func newModel() *model {
	return &model{book: book{
		players: map[string]*holder{}, drawn: map[string]uint64{}, refills: map[string]uint64{},
		purses: map[string]purse{}, moments: map[string]coming{}, sums: sums{},
		codeBook: codeBook{codes: map[string][]string{}, owners: map[string][]string{}, uses: map[string][]string{}},
		goals:    goalBook{tallies: map[string]tally{}, quests: map[string]taken{}, ladders: map[string]ladder{}},
		rounds:   newRoundBook(),
	}}
}

// clone returns a book that a command can change without changing b.
func (b book) clone() book {
	players := make(map[string]*holder, len(b.players))
	for id, h := range b.players {
		players[id] = h.clone()
	}
	b.players = players
	b.drawn, b.refills = maps.Clone(b.drawn), maps.Clone(b.refills)
	b.purses, b.moments = maps.Clone(b.purses), maps.Clone(b.moments)
	b.codeBook, b.rounds = b.codeBook.clone(), b.rounds.clone()
	b.goals, b.movers, b.over = b.goals.clone(), map[string]bool{}, map[string]uint64{}
	return b
}

// apply judges one event and applies it. c is the catalog of a catalog event.
func (m *model) apply(rec kuji.Record, c *catalog.Catalog) error {
	if rec.Time < m.now {
		return fmt.Errorf("time stamp %d after %d", rec.Time, m.now)
	}
	m.now = rec.Time
	holdings{m}.grow()
	if rec.CatalogVersion != m.version {
		return fmt.Errorf("decided under catalog version %d, %d was in force", rec.CatalogVersion, m.version)
	}
	if err := m.check(rec, m.rulebook, m.now); err != nil {
		return err
	}
	if rec.Kind == "clock" {
		if back := m.now - rec.Clock.To; back > 0 {
			m.now -= back
			m.back += back
		}
		return nil
	}
	if rec.Kind == "catalog" {
		if c == nil {
			return fmt.Errorf("a catalog in the log that nobody applied")
		}
		was := m.rulebook
		m.goals.calendar(c)
		m.catalog, m.version, m.starts = c, m.version+1, m.starts || len(c.Start) > 0
		m.forget(m.rulebook, m.steady())
		holdings{m}.growsBy(was)
		return nil
	}
	if rec.Kind == "codes" {
		return m.importCodes(rec)
	}
	if rec.Kind == "due" {
		if err := settle(m, rec); err != nil {
			return err
		}
		return m.adds(m, rec)
	}
	if err := settled(m, rec); err != nil {
		return err
	}
	draft := *m
	draft.book = m.book.clone()
	status, subject, err := draft.carryOut(rec)
	if err != nil {
		return err
	}
	if got := rec.Status; got != status.String() || status != kuji.OK && rec.Subject != subject {
		return fmt.Errorf("ended %s (%s), the model wants %v (%s)", got, rec.Subject, status, subject)
	}
	if status == kuji.OK { // anything else changes nothing
		before := rankings{m}.balances()
		m.book = draft.book
		if isRound(rec.Kind) {
			if err := (rankings{m}).changed(before, rec); err != nil {
				return err
			}
		}
		if err := m.adds(m, rec); err != nil {
			return err
		}
	}
	if status == kuji.UnknownCode { // but a guess counts
		m.guess(rec.Player)
	}
	if rec.ID != "" {
		m.ids = append(m.ids, answeredID{id: rec.ID, record: rec, steady: m.steady()})
	}
	m.forget(m.rulebook, m.steady())
	return nil
}

// carryOut carries out a command and returns how it must end. That depends on the state alone. What
// was drawn only changes what players have afterwards.
func (m *model) carryOut(rec kuji.Record) (kuji.Status, string, error) {
	members := rec.Members
	if rec.Kind != "atomic" {
		members = []kuji.Record{rec}
	}
	for i, member := range members {
		if what := unknown(m.catalog, member); what != "" {
			return 0, "", fmt.Errorf("member %d names %s, which the catalog in force does not have: it is to be refused", i, what)
		}
	}
	t := trial{model: m, sight: m.goals.clone(), came: map[string]bool{}, sure: map[string]map[string]uint64{}, upmost: map[string]map[string]uint64{}, posted: map[string]map[string]uint64{}, wrong: rec.Subject}
	for i, member := range members {
		status, subject := t.member(member)
		if status == kuji.OK && member.Status == kuji.TooManyLots.String() && t.crowded(rec, rec.Subject) {
			return kuji.TooManyLots, rec.Subject, nil
		}
		if status == kuji.OK {
			continue
		}
		if member.Status != status.String() {
			return 0, "", fmt.Errorf("member %d is %s, the model wants %v", i, member.Status, status)
		}
		return status, subject, t.explained(rec)
	}
	m.movers = map[string]bool{}
	before, fired := questing{m}.reached(), rec.Claims
	for _, member := range members {
		if comes(member) {
			m.come(member.Player)
		}
		if isRound(member.Kind) {
			var err error
			if fired, err = (hosts{m}).carry(member); err != nil {
				return 0, "", err
			}
			continue
		}
		if member.Kind == "claim" {
			rest, err := questing{m}.claims(member, t.tiers[0])
			if err != nil {
				return 0, "", err
			}
			if t.earlier, t.tiers = t.earlier[t.tiers[0]:], t.tiers[1:]; rec.Kind == "claim" {
				fired = rest
			}
			continue
		}
		if member.Kind != "draw" && member.Kind != "redeem" {
			if err := m.move(member); err != nil {
				return 0, "", err
			}
			continue
		}
		d := t.earlier[0]
		t.earlier = t.earlier[1:]
		if !slices.Equal(d.rec.Paid, d.price) {
			return 0, "", fmt.Errorf("a draw cost %v, the model says %v", d.rec.Paid, d.price)
		}
		h := m.meet(d.rec.Player)
		for _, it := range d.price {
			holdings{m}.spends(h, it.Item, it.Quantity)
		}
		ledger{m, m.goals}.stacks(d.rec.Player, d.price, ofSpends)
		if err := m.draw(d); err != nil {
			return 0, "", err
		}
		if member.Kind == "redeem" {
			if err := m.use(member, d.rec); err != nil {
				return 0, "", err
			}
		}
	}
	if err := (questing{m}).fires(rec, fired, before); err != nil {
		return 0, "", err
	}
	return kuji.OK, "", m.says(rec)
}

// move carries out a member that is not a draw.
func (m *model) move(rec kuji.Record) error {
	if rec.Kind == "set_counter" {
		return m.setCounter(rec)
	}
	h := m.meet(rec.Player)
	switch rec.Kind {
	case "set_limit":
		return m.setLimit(rec, h)
	case "progress":
		ledger{m, m.goals}.reports(rec)
		return nil
	case "collect":
		return holdings{m}.collect(rec)
	case "register", "grant", "consume", "transfer":
	default:
		return fmt.Errorf("an event of kind %q", rec.Kind)
	}
	to := h
	if rec.Kind == "transfer" {
		to = m.meet(rec.To)
	}
	for _, it := range rec.Items {
		if rec.Kind == "grant" {
			m.gain(h, it.Item, it.Quantity)
			continue
		}
		taken := holdings{m}.spends(h, it.Item, it.Quantity)
		if rec.Kind != "transfer" {
			continue
		}
		fits := holdings{m}.within(to, it.Item, it.Quantity)
		for _, at := range taken.ends() { // they keep their ends
			n := min(fits, taken[at])
			if fits -= n; n > 0 {
				to.add(it.Item, at, n)
			}
		}
	}
	ledger{m, m.goals}.itemFacts(rec)
	return nil
}

// setCounter sets a counter by hand.
func (m *model) setCounter(rec kuji.Record) error {
	c := m.counter(rec.Counter)
	if (c.For == catalog.ForRealm) != (rec.Player == "") || rec.Reason == "" {
		return fmt.Errorf("%s was set for %q, because of %q", c.ID, rec.Player, rec.Reason)
	}
	if rec.Player != "" {
		m.meet(rec.Player)
	}
	m.goals.set(c, rec.Player, *rec.Value, m.now)
	return nil
}

// setLimit sets what a player has used of a limit. Of a window, the earliest draws stay.
func (m *model) setLimit(rec kuji.Record, h *holder) error {
	l, used := limitOf(m.catalog, rec), *rec.Draws
	if rec.Limit.Draws != l.Draws || rec.Limit.Left != l.Draws-min(l.Draws, used) || rec.Reason == "" {
		return fmt.Errorf("set %+v for %q, the catalog has %+v", rec.Limit, rec.Reason, l)
	}
	id := limit{rec.Pool, l.Per, l.Window}
	times := slices.DeleteFunc(h.draws[id], func(at int64) bool { return at <= since(m, *l) || l.Per != catalog.PerWindow })
	for len(times) < int(used) {
		times = append(times, m.steady())
	}
	h.draws[id] = times[:used]
	return nil
}

// meet returns a player. A new one waits for the starting grants, if any catalog has had some.
func (m *model) meet(id string) *holder {
	h := m.players[id]
	if h == nil {
		h = newHolder(id)
		h.number, h.waits = len(m.players), m.starts
		m.players[id] = h
		if m.catalog != nil {
			for _, it := range m.catalog.Items {
				holdings{m}.begins(h, it.ID)
			}
		}
	}
	return h
}

// comes reports whether a command that succeeds brings its player the starting grants.
func comes(rec kuji.Record) bool {
	switch rec.Kind {
	case "draw", "redeem", "grant", "register", "progress", "claim":
		return true
	}
	return isRound(rec.Kind) && rec.Player != ""
}

// come gives a player the starting grants, once.
func (m *model) come(id string) {
	h := m.meet(id)
	if h.waits {
		for _, s := range m.catalog.Start {
			m.gain(h, s.Item, s.Quantity)
		}
		ledger{m, m.goals}.startsGained(id)
	}
	h.waits = false
}

// left returns how many are left of an entry. limited is false if that is unlimited.
func (m *model) left(p *catalog.Pool, e *catalog.Entry) (n uint64, limited bool) {
	if e.Stock.Unlimited {
		return 0, false
	}
	return e.Stock.Count - min(e.Stock.Count, m.drawn[p.ID+"/"+e.ID]), true
}

// steady returns the time in which durations run. It never goes back.
func (s stamps) steady() int64 { return s.now + s.back }

// since returns the steady time after which draws count towards a limit.
func since(m *model, l catalog.PlayerLimit) int64 {
	switch l.Per {
	case catalog.PerForever:
		return -1
	case catalog.PerWindow:
		return m.steady() - l.Window
	}
	return m.steady() - (m.now - turned(l.Per, m.now, m.catalog.Day)) - 1
}

// turned returns the stamp at which the hour, day, week or month of now began, in UTC.
func turned(per catalog.Per, now int64, of catalog.Day) int64 {
	if per == catalog.PerHour {
		return now - now%hourMillis
	}
	begins := time.Duration(of.Begins) * time.Minute
	today := time.UnixMilli(now).UTC().Add(-begins)
	year, month, day := today.Date()
	switch per {
	case catalog.PerWeek: // package time begins them on Sunday
		day -= (int(today.Weekday()) + 6 - int(of.Week)) % 7
	case catalog.PerMonth:
		day = 1
	}
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Add(begins).UnixMilli()
}

// holds compares a player's view with the model.
func (m *model) holds(v kuji.PlayerView) error {
	h := m.players[v.ID]
	if h == nil {
		return fmt.Errorf("player %q was never seen", v.ID)
	}
	want, held := 0, maps.Clone(h.items)
	if err := grown(m, v, h, held); err != nil {
		return err
	}
	for _, q := range held {
		if q > 0 {
			want++
		}
	}
	same := len(v.Items) == want
	for _, it := range v.Items {
		same = same && it.Quantity > 0 && held[it.Item] == it.Quantity
	}
	if !same {
		return fmt.Errorf("player %q holds %v, the model says %v", v.ID, v.Items, held)
	}
	if err := cmp.Or(sameHeld(v, h), (rankings{m}).seen(v)); err != nil {
		return err
	}
	if err := sameLots(m, v, h); err != nil {
		return err
	}
	return sameMail(m, v, h)
}

// stocks compares a pool's view with the model.
func (m *model) stocks(v kuji.PoolView) error {
	p := m.pool(v.ID)
	if p == nil || len(p.Entries) != len(v.Entries) || v.CatalogVersion != m.version {
		return fmt.Errorf("pool %q of catalog version %d; the model has version %d", v.ID, v.CatalogVersion, m.version)
	}
	total := uint64(0)
	for i := range p.Entries {
		e, got := &p.Entries[i], v.Entries[i]
		left, limited := m.left(p, e)
		weight := m.shown(p, e)
		total += weight
		want := kuji.EntryView{ID: e.ID, Unlimited: !limited, Left: left, Drawn: m.drawn[p.ID+"/"+e.ID], Weight: weight}
		if got != want {
			return fmt.Errorf("pool %s has %+v, the model says %+v", p.ID, got, want)
		}
	}
	if p.Mode == catalog.ModeEach {
		total = 100 * p.WeightScale
	}
	if v.TotalWeight != total {
		return fmt.Errorf("pool %s: total weight %d, the model says %d", p.ID, v.TotalWeight, total)
	}
	return nil
}
