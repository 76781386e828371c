package sim

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

// model is what a realm must hold, in plain maps. It gets each event of the log with its outcome,
// judges whether the rules allow it, and keeps what follows from it.
type model struct {
	catalog *catalog.Catalog // nil: none yet
	version uint64
	logClock
	players  map[string]*holder
	drawn    map[string]uint64   // by "pool/entry", over all catalog versions, less what was put back
	refills  map[string]uint64   // by pool
	ids      []answeredID        // oldest first, the newest answer of each id last
	purses   map[string]purse    // by budget and item
	moments  map[string]coming   // by "pool/entry"
	codes    map[string][]string // by list
	owners   map[string][]string // by list: who got its codes
	uses     map[string][]string // by code, see spelled: who redeemed it
	files    int                 // of codes that were imported
	starts   bool                // a catalog had starting grants
	repeated int                 // ids answered again after they were forgotten
}

// logClock is the time of the log.
type logClock struct {
	now  int64 // the last time stamp, or what it was set back to
	back int64 // how far the clock was set back in all
}

// steady returns the time that never goes back.
func (c *logClock) steady() int64 { return c.now + c.back }

// holder is one player.
type holder struct {
	waits  bool // for the starting grants
	items  map[string]uint64
	draws  map[limit][]int64 // the steady time of every draw that counted
	free   map[limit][]int64 // the steady time of every draw that was free
	tracks map[string]uint64 // draws since the last hit, by counter
}

func newHolder() *holder {
	return &holder{items: map[string]uint64{}, draws: map[limit][]int64{}, free: map[limit][]int64{}, tracks: map[string]uint64{}}
}

// limit identifies a player limit across catalog versions.
type limit struct {
	pool   string
	per    catalog.Per
	window int64
}

// answeredID is a request id that an event answered.
type answeredID struct {
	id     string
	record kuji.Record
	steady int64 // when
	// forgettable is set once the window no longer covered the id: from then on the engine may
	// have forgotten it.
	forgettable bool
}

func newModel() *model {
	return &model{
		players: map[string]*holder{}, drawn: map[string]uint64{}, refills: map[string]uint64{},
		purses: map[string]purse{}, moments: map[string]coming{}, codes: map[string][]string{}, owners: map[string][]string{}, uses: map[string][]string{},
	}
}

func (m *model) clone() *model {
	c := *m
	c.players = make(map[string]*holder, len(m.players))
	for id, h := range m.players {
		draft := newHolder()
		draft.waits = h.waits
		draft.items, draft.tracks = maps.Clone(h.items), maps.Clone(h.tracks)
		for k, times := range h.draws {
			draft.draws[k] = slices.Clone(times)
		}
		for k, times := range h.free {
			draft.free[k] = slices.Clone(times)
		}
		c.players[id] = draft
	}
	c.drawn, c.refills = maps.Clone(m.drawn), maps.Clone(m.refills)
	m.cloneCampaigns(&c)
	return &c
}

// apply judges one event and applies it. c is the catalog of a catalog event.
func (m *model) apply(rec kuji.Record, c *catalog.Catalog) error {
	if rec.Time < m.now {
		return fmt.Errorf("time stamp %d after %d", rec.Time, m.now)
	}
	m.now = rec.Time
	if rec.CatalogVersion != m.version {
		return fmt.Errorf("decided under catalog version %d, %d was in force", rec.CatalogVersion, m.version)
	}
	if err := m.checkID(rec); err != nil {
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
		m.catalog, m.version, m.starts = c, m.version+1, m.starts || len(c.Start) > 0
		m.forget()
		return nil
	}
	if rec.Kind == "codes" {
		return listsOf(m).importCodes(rec)
	}
	draft := m.clone()
	status, subject, err := draft.carryOut(rec)
	if err != nil {
		return err
	}
	if got := rec.Status; got != status.String() || status != kuji.OK && rec.Subject != subject {
		return fmt.Errorf("ended %s (%s), the model wants %v (%s)", got, rec.Subject, status, subject)
	}
	if status == kuji.OK { // anything else changes nothing
		m.players, m.drawn, m.refills = draft.players, draft.drawn, draft.refills
		m.purses, m.moments, m.owners, m.uses = draft.purses, draft.moments, draft.owners, draft.uses
	}
	if status == kuji.UnknownCode { // but a guess counts
		listsOf(m).guess(rec.Player)
	}
	if rec.ID != "" {
		m.ids = append(m.ids, answeredID{id: rec.ID, record: rec, steady: m.steady()})
	}
	m.forget()
	return nil
}

// checkID refuses a second event for an id that the window still covered.
func (m *model) checkID(rec kuji.Record) error {
	if rec.ID == "" {
		return nil
	}
	if m.timeOrdered() && madeAt(rec.ID) > m.now+m.catalog.Idempotency.Ahead.Milliseconds() {
		return fmt.Errorf("request id %q was made at %d, and taken at %d", rec.ID, madeAt(rec.ID), m.now)
	}
	for i, a := range m.ids {
		if a.id != rec.ID {
			continue
		}
		if !a.forgettable {
			return fmt.Errorf("request id %q has a second effect; the first was at position %d", rec.ID, a.record.Position)
		}
		if first := a.record.Time; m.timeOrdered() && madeAt(a.id) <= first+catalog.MaxAhead.Milliseconds() {
			return fmt.Errorf("request id %q carries its time and is carried out again; the first time was at position %d", rec.ID, a.record.Position)
		}
		m.ids = slices.Delete(slices.Clone(m.ids), i, i+1)
		m.repeated++
		return nil
	}
	return nil
}

// forget marks the ids that the idempotency window does not cover.
func (m *model) forget() {
	count, age := uint32(catalog.DefaultIdempotencyCount), catalog.DefaultIdempotencyAge
	if m.catalog != nil {
		count, age = m.catalog.Idempotency.Count, m.catalog.Idempotency.Age
	}
	for i := range m.ids {
		newer := len(m.ids) - 1 - i
		if newer >= min(int(count), 1<<20) && m.steady()-m.ids[i].steady > age.Milliseconds() {
			m.ids[i].forgettable = true
		}
	}
}

// carryOut carries out a command and returns how it must end. That follows from the state alone:
// what was drawn affects only what players have afterwards.
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
	t := trial{model: m, came: map[string]bool{}, sure: map[string]map[string]uint64{}, most: map[string]map[string]uint64{}, wrong: rec.Subject}
	for i, member := range members {
		status, subject := t.member(member)
		if status == kuji.OK {
			continue
		}
		if member.Status != status.String() {
			return 0, "", fmt.Errorf("member %d is %s, the model wants %v", i, member.Status, status)
		}
		return status, subject, t.explained(rec)
	}
	for _, member := range members {
		if comes(member) {
			m.come(member.Player)
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
			h.items[it.Item] -= it.Quantity
		}
		if err := m.draw(d); err != nil {
			return 0, "", err
		}
		if member.Kind == "redeem" {
			if err := listsOf(m).use(member, d.rec); err != nil {
				return 0, "", err
			}
		}
	}
	return kuji.OK, "", nil
}

// move carries out a member that is no draw.
func (m *model) move(rec kuji.Record) error {
	h := m.meet(rec.Player)
	switch rec.Kind {
	case "register", "grant", "consume", "transfer":
	default:
		return fmt.Errorf("an event of kind %q", rec.Kind)
	}
	to := h
	if rec.Kind == "transfer" {
		to = m.meet(rec.To)
	}
	for _, it := range rec.Items {
		if rec.Kind != "grant" {
			h.items[it.Item] -= it.Quantity
		}
		if rec.Kind != "consume" {
			to.items[it.Item] += it.Quantity
		}
	}
	return nil
}

// meet returns a player. A new one waits for the starting grants, once there were some in a catalog.
func (m *model) meet(id string) *holder {
	h := m.players[id]
	if h == nil {
		h = newHolder()
		h.waits = m.starts
		m.players[id] = h
	}
	return h
}

// comes reports whether a command that succeeds brings its player the starting grants.
func comes(rec kuji.Record) bool {
	return rec.Kind == "draw" || rec.Kind == "redeem" || rec.Kind == "grant" || rec.Kind == "register"
}

// come gives a player the starting grants, once.
func (m *model) come(id string) {
	h := m.meet(id)
	if h.waits {
		for _, s := range m.catalog.Start {
			h.items[s.Item] += s.Quantity
		}
	}
	h.waits = false
}

// unknown returns what a command or a member of a group names that a catalog does not have, "" if
// there is nothing. c is nil if there is no catalog yet.
func unknown(c *catalog.Catalog, rec kuji.Record) string {
	switch {
	case rec.Kind == "redeem": // a code that no list has is a guess
		return ""
	case c == nil:
		return "anything"
	}
	if rec.Kind == "draw" && !slices.ContainsFunc(c.Pools, func(p catalog.Pool) bool { return p.ID == rec.Pool && !p.Internal }) {
		return "pool " + rec.Pool
	}
	items := slices.Clone(rec.Items)
	if rec.Pay != "" {
		items = append(items, kuji.Stack{Item: rec.Pay})
	}
	for _, it := range items {
		if !slices.ContainsFunc(c.Items, func(known catalog.Item) bool { return known.ID == it.Item }) {
			return "item " + it.Item
		}
	}
	return ""
}

// namesUnknown reports whether a request names something that a catalog does not have.
func namesUnknown(c *catalog.Catalog, req kuji.Request) bool {
	switch q := req.(type) {
	case kuji.Draw:
		return unknown(c, kuji.Record{Kind: "draw", Pool: q.Pool, Pay: q.Pay}) != ""
	case kuji.Register:
		return unknown(c, kuji.Record{}) != ""
	case kuji.Grant:
		return unknown(c, kuji.Record{Items: q.Items}) != ""
	case kuji.Consume:
		return unknown(c, kuji.Record{Items: q.Items}) != ""
	case kuji.Transfer:
		return unknown(c, kuji.Record{Items: q.Items}) != ""
	case kuji.Atomic:
		return slices.ContainsFunc(q.Members, func(m kuji.Request) bool { return namesUnknown(c, m) })
	}
	return false
}

func (m *model) pool(id string) *catalog.Pool {
	if m.catalog == nil {
		return nil
	}
	for i := range m.catalog.Pools {
		if m.catalog.Pools[i].ID == id {
			return &m.catalog.Pools[i]
		}
	}
	return nil
}

// left returns how many are left of an entry. ok is false if it is unlimited.
func (m *model) left(p *catalog.Pool, e *catalog.Entry) (n uint64, limited bool) {
	if e.Stock.Unlimited {
		return 0, false
	}
	return e.Stock.Count - min(e.Stock.Count, m.drawn[p.ID+"/"+e.ID]), true
}

// since returns the steady time after which draws count for a limit.
func (m *model) since(l catalog.PlayerLimit) int64 {
	const day = 24 * 60 * 60 * 1000
	switch l.Per {
	case catalog.PerDay:
		return m.steady() - m.now%day - 1
	case catalog.PerWeek: // 1970-01-05 was a Monday
		return m.steady() - (m.now-4*day)%(7*day) - 1
	case catalog.PerWindow:
		return m.steady() - l.Window
	}
	return -1
}

// holds compares a player's view with the model.
func (m *model) holds(v kuji.PlayerView) error {
	h := m.players[v.ID]
	if h == nil {
		return fmt.Errorf("player %q was never seen", v.ID)
	}
	want := 0
	for _, q := range h.items {
		if q > 0 {
			want++
		}
	}
	same := len(v.Items) == want
	for _, it := range v.Items {
		same = same && it.Quantity > 0 && h.items[it.Item] == it.Quantity
	}
	if !same {
		return fmt.Errorf("player %q holds %v, the model says %v", v.ID, v.Items, h.items)
	}
	return nil
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
		weight := supplyOf(m).shown(p, e)
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
