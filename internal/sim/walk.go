package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

// walk follows what the draws of a request took, entry by entry, and judges each. It does not choose
// again. It knows which entries had odds for this player at this point, what pity made certain, and
// how much each entry had to give. Where a range leaves open how many entries belong together, the
// walk takes as many as it can. In the simulator's catalogs that is never wrong: no two pools of one
// reward lead to the same pool, and no condition asks for an item of which an entry gives a range.
type walk struct {
	*model
	player string
	h      *holder
	steps  []drawnEntry // of this draw, still to come
	given  []span       // by this outcome, in order
	coded  []kuji.RewardCode
	open   []share // budgets that pay for what is given
	now    *kuji.Outcome
}

// drawnEntry is an entry that was taken.
type drawnEntry struct {
	name    string        // "pool/entry"
	outcome *kuji.Outcome // the one that begins with it; nil: none does
}

// span is how much of an item an outcome gives.
type span struct {
	item     string
	min, max uint64
}

// draw judges the outcomes of a draw, and counts it.
func (m *model) draw(d trialDraw) error {
	rec, outcomes := d.rec, d.rec.Outcomes
	p, k := m.pool(rec.Pool), walk{model: m, player: rec.Player, h: m.players[rec.Player]}
	kept := make([]promise, len(p.Guarantees))
	for i := range rec.Count {
		for len(outcomes) > 0 && outcomes[0].Draw == i {
			k.steps = append(k.steps, drawnEntry{p.ID + "/" + outcomes[0].Entry, &outcomes[0]})
			for _, via := range outcomes[0].Via {
				k.steps = append(k.steps, drawnEntry{name: via})
			}
			outcomes = outcomes[1:]
		}
		for g := range kept {
			kept[g].expect(&k, p, &p.Guarantees[g], i)
		}
		taken, err := k.single(p)
		if err == nil {
			err = k.finish()
		}
		for g := range kept {
			if err == nil {
				err = kept[g].count(&p.Guarantees[g], i, taken)
			}
		}
		if err == nil && len(k.steps) > 0 {
			err = fmt.Errorf("%s was drawn and belongs to nothing", k.steps[0].name)
		}
		if err != nil {
			return fmt.Errorf("draw %d from pool %s: %w", i, p.ID, err)
		}
		ledger{m, m.goals}.facts(rec.Player, 1, p.ID, ofDraws)
	}
	if len(outcomes) > 0 {
		return fmt.Errorf("%d outcomes too many for %d draws", len(outcomes), rec.Count)
	}
	for _, l := range p.Limits {
		drew(m, k.h.draws, limit{p.ID, l.Per, l.Window}, rec.Count)
	}
	drew(m, k.h.free, limit{pool: p.ID, per: p.Free.Per}, d.free)
	return nil
}

// drew counts n draws towards a limit.
func drew(m *model, draws map[limit][]int64, l limit, n int) {
	if n == 0 {
		return
	}
	if l.per != catalog.PerForever && l.per != catalog.PerWindow { // draws count together, as late as the last
		from := since(m, catalog.PlayerLimit{Per: l.per})
		draws[l] = slices.DeleteFunc(draws[l], func(at int64) bool { return at <= from })
		for i := range draws[l] {
			draws[l][i] = m.steady()
		}
	}
	for range n {
		draws[l] = append(draws[l], m.steady())
	}
}

// promise is a guarantee in one set of draws.
type promise struct {
	hits uint32
	none bool // at some draw of the set the group was out of stock
}

func (g *promise) expect(k *walk, p *catalog.Pool, c *catalog.Guarantee, i int) {
	if i%int(c.Draws) == 0 {
		*g = promise{}
	}
	g.none = g.none || sum(p, k.weights(p, nil), c.Of, nil) == 0
}

func (g *promise) count(c *catalog.Guarantee, i int, taken []*catalog.Entry) error {
	for _, e := range taken {
		if within(e, c.Of) {
			g.hits++
		}
	}
	if i%int(c.Draws) == int(c.Draws)-1 && g.hits < c.AtLeast && !g.none {
		return fmt.Errorf("%d of %v in the last %d draws, guaranteed are %d", g.hits, c.Of, c.Draws, c.AtLeast)
	}
	return nil
}

// next returns the entry that comes next, nil if it is not in p.
func (k *walk) next(p *catalog.Pool) *catalog.Entry {
	if len(k.steps) == 0 {
		return nil
	}
	pool, entry, _ := strings.Cut(k.steps[0].name, "/")
	if pool != p.ID {
		return nil
	}
	for i := range p.Entries {
		if p.Entries[i].ID == entry {
			return &p.Entries[i]
		}
	}
	return nil
}

// single follows one draw from a pool, and returns what it took from the pool itself.
func (k *walk) single(p *catalog.Pool) (taken []*catalog.Entry, err error) {
	if p.Mode == catalog.ModeEach {
		return nil, k.each(p)
	}
	for n := range p.Rolls.Max {
		e := k.next(p)
		if e == nil && n >= p.Rolls.Min {
			break
		}
		if e == nil {
			return nil, fmt.Errorf("%d entries of pool %s, want at least %d", n, p.ID, p.Rolls.Min)
		}
		without := taken
		if !p.Rolls.Distinct {
			without = nil
		}
		if err := k.could(p, e, without); err != nil {
			return nil, err
		}
		k.counted(p, e)
		if err := k.take(p, e); err != nil {
			return nil, err
		}
		taken = append(taken, e)
	}
	return taken, nil
}

// each follows one draw from a drop table.
func (k *walk) each(p *catalog.Pool) error {
	for n := range p.Rolls.Max {
		if n >= p.Rolls.Min && k.next(p) == nil {
			return nil
		}
		for i := range p.Entries {
			e := &p.Entries[i]
			chance := k.weighs(p, e, true)
			switch {
			case k.next(p) != e && chance < 100*p.WeightScale:
			case k.next(p) != e:
				return fmt.Errorf("%s/%s is certain and was not given", p.ID, e.ID)
			case chance == 0:
				return fmt.Errorf("%s/%s was given, which has no chance or no stock", p.ID, e.ID)
			default:
				if err := k.take(p, e); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// take takes an entry from its pool, and gives its reward.
func (k *walk) take(p *catalog.Pool, e *catalog.Entry) error {
	if k.steps[0].outcome != nil {
		if err := k.finish(); err != nil {
			return err
		}
		k.now = k.steps[0].outcome
	}
	k.steps = k.steps[1:]
	k.drawn[p.ID+"/"+e.ID]++
	ledger{k.model, k.goals}.facts(k.player, 1, p.ID+"/"+e.ID, ofEntries)
	open := k.open
	k.open = k.opens(p, e)
	err := k.give(&e.Reward)
	k.open = open
	if err != nil || p.Mode != catalog.ModeRaffle {
		return err
	}
	for i := range p.Entries {
		if k.shown(p, &p.Entries[i]) > 0 {
			return nil
		}
	}
	err = k.give(&p.Last)
	if k.refills[p.ID] < uint64(p.Refill) {
		k.refills[p.ID]++
		for i := range p.Entries {
			k.drawn[p.ID+"/"+p.Entries[i].ID] = 0
		}
	}
	return err
}

func (k *walk) give(w *catalog.Reward) error {
	for _, q := range w.Items {
		if err := k.spend(q); err != nil {
			return err
		}
		gets := k.gain(k.h, q.Item, q.Min)
		ledger{k.model, k.goals}.facts(k.player, q.Min, q.Item, ofGains)
		if gets == 0 && q.Max == q.Min { // an outcome says only what the player got; what has a cap comes in no range
			continue
		}
		i := slices.IndexFunc(k.given, func(s span) bool { return s.item == q.Item })
		if i < 0 {
			i = len(k.given)
			k.given = append(k.given, span{item: q.Item})
		}
		k.given[i].min += gets
		k.given[i].max += gets + q.Max - q.Min
	}
	k.hand(w)
	for _, d := range w.Draws {
		p := k.pool(d.Pool)
		for n := range d.Max {
			if n >= d.Min && k.next(p) == nil {
				break
			}
			if _, err := k.single(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// finish ends an outcome, and compares what it gave.
func (k *walk) finish() error {
	o := k.now
	if o == nil {
		return nil
	}
	fits := len(o.Items) == len(k.given)
	for i := 0; fits && i < len(k.given); i++ {
		got, want := o.Items[i], k.given[i]
		fits = got.Item == want.item && got.Quantity >= want.min && got.Quantity <= want.max
		if more := got.Quantity - want.min; fits && more > 0 {
			k.gain(k.h, got.Item, more)
			ledger{k.model, k.goals}.facts(k.player, more, got.Item, ofGains)
		}
		if k.h.items[got.Item] > kuji.MaxQuantity {
			return fmt.Errorf("%s made %s overflow", o.Entry, got.Item)
		}
	}
	if !fits {
		return fmt.Errorf("%s (%v) gave %v, the catalog says %v", o.Entry, o.Via, o.Items, k.given)
	}
	if !slices.Equal(o.Codes, k.coded) {
		return fmt.Errorf("%s (%v) gave codes %#v, the model says %v", o.Entry, o.Via, o.Codes, k.coded)
	}
	k.now, k.given, k.coded = nil, nil, nil
	return nil
}

// weighs returns the weight of an entry for the player, 0 if it cannot be taken. Without ask, it
// assumes that the entry's condition holds.
func (k *walk) weighs(p *catalog.Pool, e *catalog.Entry, ask bool) uint64 {
	left, limited := k.left(p, e)
	switch {
	case limited && left == 0, ask && !k.applies(e, p, k.player, k.h.items), !k.affords(p, e), !k.hasCodes(e):
		return 0
	case !k.personal(p, e):
		return k.shown(p, e)
	}
	weight := e.Weight
	for _, s := range e.Luck.Steps {
		have := k.has(k.h.items, e.Luck.Item)
		switch {
		case e.Luck.Counter != "":
			have = k.goals.counts(k.counter(e.Luck.Counter), k.player, k.model.now)
		case e.Luck.Track != "":
			have = k.h.tracks[counterOf(p, e.Luck.Track)]
		}
		if have >= s.From {
			weight = s.Weight
		}
	}
	return weight
}

// weights returns the weights of a pool's entries, except those in without.
func (k *walk) weights(p *catalog.Pool, without []*catalog.Entry) []uint64 {
	all, total := make([]uint64, len(p.Entries)), uint64(0)
	for _, ask := range []bool{true, false} {
		for i := range p.Entries {
			if e := &p.Entries[i]; !slices.Contains(without, e) {
				all[i] = k.weighs(p, e, ask)
				total += all[i]
			}
		}
		if total > 0 || !k.collection(p) { // a group can give what a collection lacked when it was checked
			break
		}
	}
	return all
}

// within reports whether an entry is in a group.
func within(e *catalog.Entry, of []string) bool {
	return slices.Contains(of, e.ID) || e.Group != "" && slices.Contains(of, e.Group)
}

// sum returns the weight of the group of, nil: of all entries, without those in the groups missed.
func sum(p *catalog.Pool, weights []uint64, of []string, missed [][]string) (n uint64) {
	for i := range p.Entries {
		e := &p.Entries[i]
		out := slices.ContainsFunc(missed, func(of []string) bool { return within(e, of) })
		if !out && (of == nil || within(e, of)) {
			n += weights[i]
		}
	}
	return n
}

// could reports why an entry cannot have been picked. A pick hits each track that is certain. It may
// miss one if it hits a track before that has no entry in common with it, or if the certain tracks
// that it hits before have no entry in common with it together. A track whose group has nothing left
// waits.
func (k *walk) could(p *catalog.Pool, picked *catalog.Entry, without []*catalog.Entry) error {
	if sure, err := k.moment(p, picked); sure || err != nil {
		return err
	}
	weights := k.weights(p, without)
	if weights[slices.IndexFunc(p.Entries, func(e catalog.Entry) bool { return e.ID == picked.ID })] == 0 {
		return fmt.Errorf("%s/%s was given, which has no weight or no stock, or is not for %s", p.ID, picked.ID, k.player)
	}
	whole, total := uint64(1), sum(p, weights, nil, nil)
	for i := range p.Tracks {
		whole = max(whole, 100*p.Tracks[i].Rising.Scale)
	}
	certain := func(t *catalog.Track) bool {
		weight, draw := sum(p, weights, t.Of, nil), k.h.tracks[counterOf(p, t.Name)]+1
		return weight > 0 && (t.Certain != 0 && draw >= uint64(t.Certain) || weight*whole+rise(&t.Rising, draw, whole)*total >= total*whole)
	}
	for i := range p.Tracks {
		t := &p.Tracks[i]
		if within(picked, t.Of) || !certain(t) {
			continue
		}
		excused, together := false, [][]string{t.Of}
		for j := range p.Tracks[:i] {
			if before := &p.Tracks[j]; within(picked, before.Of) {
				excused = excused || !common(p, weights, [][]string{t.Of, before.Of})
				if certain(before) {
					together = append(together, before.Of)
				}
			}
		}
		if !excused && common(p, weights, together) {
			return fmt.Errorf("%s/%s was given in draw %d since %s, which was certain", p.ID, picked.ID, k.h.tracks[counterOf(p, t.Name)]+1, t.Name)
		}
	}
	return nil
}

// common reports whether an entry that has weight is in all groups.
func common(p *catalog.Pool, weights []uint64, groups [][]string) bool {
	for i := range p.Entries {
		if weights[i] > 0 && !slices.ContainsFunc(groups, func(of []string) bool { return !within(&p.Entries[i], of) }) {
			return true
		}
	}
	return false
}

// rise returns how much a chance has risen at a draw since the last hit, in parts of whole.
func rise(r *catalog.Rising, draw, whole uint64) uint64 {
	if r.From == 0 || draw < uint64(r.From) {
		return 0
	}
	steps := draw - uint64(r.From) + 1
	if r.Table {
		return r.By[min(steps, uint64(len(r.By)))-1] * (whole / 100 / r.Scale)
	}
	return min(whole, r.By[0]*steps*(whole/100/r.Scale))
}

// counted counts a pick in the pool's tracks.
func (k *walk) counted(p *catalog.Pool, picked *catalog.Entry) {
	for i := range p.Tracks {
		t := &p.Tracks[i]
		if within(picked, t.Of) {
			k.h.tracks[counterOf(p, t.Name)] = 0
		} else {
			k.h.tracks[counterOf(p, t.Name)]++
		}
	}
}

// counterOf names the counter of a track of a pool.
func counterOf(p *catalog.Pool, track string) string {
	for i := range p.Tracks {
		if t := &p.Tracks[i]; t.Name == track && t.Share != "" {
			return "shared " + t.Share
		}
	}
	return p.ID + " " + track
}

// applies reports whether a player who holds this can get an entry.
func (m *model) applies(e *catalog.Entry, p *catalog.Pool, player string, held map[string]uint64) bool {
	owned := slices.ContainsFunc(e.Reward.Items, func(q catalog.Quantity) bool { return held[q.Item] > 0 })
	return !(e.Unique && owned) && m.fulfils(&e.When, p, player, held, m.goals)
}

// fulfils reports whether a condition of a pool, of one of its entries or of a quest holds.
func (m *model) fulfils(c *catalog.Condition, p *catalog.Pool, player string, held map[string]uint64, goals goalBook) bool {
	return ledger{m, goals}.stand(c.Counters, player) &&
		!slices.ContainsFunc(c.Quests, func(d catalog.Done) bool {
			return uint64(goals.claimed(m.quest(d.Quest), player, m.now)) < d.Tiers
		}) && !slices.ContainsFunc(c.Holds, func(s catalog.Stack) bool { return m.has(held, s.Item) < s.Quantity }) &&
		!slices.ContainsFunc(c.Lacks, func(item string) bool { return m.has(held, item) > 0 }) &&
		!slices.ContainsFunc(c.Tracks, func(want catalog.Reached) bool {
			h := m.players[player]
			return h == nil || h.tracks[counterOf(p, want.Track)] < want.Draws
		})
}
