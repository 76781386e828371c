package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/kuji-dev/kuji"
)

// Items that last. The model keeps when each unit goes, by the rules in docs/reference/catalog.md, and what
// must have been settled before a command.

// mostLots is the most lots of an item that a player can have.
const mostLots = 100

// fewSwept is the fewest players that an event sweeps, if something is due for so many.
const fewSwept = 16

// units are how many of an item go when: by steady time, 0 for those that stay.
type units map[int64]uint64

// gain gives a player some of an item, which go after a while if the catalog says so. It returns how many the
// player gets.
func (m *model) gain(h *holder, item string, q uint64) (gets uint64) {
	if q = (holdings{m}).within(h, item, q); q == 0 {
		return 0
	}
	at := int64(0)
	for _, it := range m.catalog.Items {
		if it.ID != item || it.Lasts == 0 {
			continue
		}
		at = m.steady()
		if it.Extend {
			for end := range h.lots[item] {
				at = max(at, end)
			}
		}
		at += it.Lasts
	}
	h.add(item, at, q)
	return q
}

func (h *holder) add(item string, at int64, q uint64) {
	h.items[item] += q
	if h.lots[item] == nil {
		h.lots[item] = units{}
	}
	h.lots[item][at] += q
}

// ends returns when units go, the first first, those that stay last.
func (u units) ends() []int64 {
	return slices.SortedFunc(maps.Keys(u), func(a, b int64) int { return cmp.Compare(uint64(a-1), uint64(b-1)) })
}

// lose takes some of an item, those that go first, and returns when they would have gone.
func (h *holder) lose(item string, q uint64) (taken units) {
	taken, h.items[item] = units{}, h.items[item]-q
	for _, at := range h.lots[item].ends() {
		n := min(q, h.lots[item][at])
		if q -= n; n > 0 {
			taken[at] = n
		}
		if h.lots[item][at] -= n; h.lots[item][at] == 0 {
			delete(h.lots[item], at)
		}
	}
	return taken
}

// due returns the first moment at which some of what a player holds goes, 0 if nothing ever does.
func (h *holder) due() (first int64) {
	for _, u := range h.lots {
		for at := range u {
			if at > 0 && (first == 0 || at < first) {
				first = at
			}
		}
	}
	if len(h.mail) > 0 && (first == 0 || h.mail[0].until < first) {
		first = h.mail[0].until
	}
	return first
}

// overdue reports whether something that a player holds should have gone.
func overdue(m *model, id string) bool {
	h := m.players[id]
	return h != nil && h.due() > 0 && h.due() <= m.steady()
}

// waiting returns the players something of whose holdings is due, by deadline, then by number.
func waiting(m *model) []string {
	all := slices.DeleteFunc(slices.Collect(maps.Keys(m.players)), func(id string) bool { return !overdue(m, id) })
	slices.SortFunc(all, func(a, b string) int {
		x, y := m.players[a], m.players[b]
		return cmp.Or(cmp.Compare(x.due(), y.due()), cmp.Compare(x.number, y.number))
	})
	return all
}

// settle judges an event that settles what is due, and carries it out.
func settle(m *model, rec kuji.Record) error {
	d := rec.Due
	if d != nil && d.Counter != "" {
		m.over = map[string]uint64{}
		if err := (rankings{m}).step(rec); err != nil {
			return err
		}
		return m.says(rec)
	}
	if d != nil && d.Round != 0 {
		m.over, m.movers = map[string]uint64{}, map[string]bool{}
		if err := (hosts{m}).step(rec); err != nil {
			return err
		}
		return m.says(rec)
	}
	if d == nil || len(d.Players) == 0 {
		return fmt.Errorf("it settles nothing")
	}
	if d.Swept {
		if all, n := waiting(m), len(d.Players); n < min(len(all), fewSwept) || n > min(len(all), 64) || !slices.Equal(d.Players, all[:n]) {
			return fmt.Errorf("%v were swept; those that come first are %v", d.Players, all)
		}
	} else {
		m.owed = d.Players
	}
	var want []string
	m.over = map[string]uint64{}
	for _, id := range d.Players {
		if !overdue(m, id) {
			return fmt.Errorf("nothing is due for %s at %d", id, m.steady())
		}
		h := m.players[id]
		holdings{m}.expire(h)
		for item, u := range h.lots {
			n := uint64(0)
			for at, q := range u {
				if at > 0 && at <= m.steady() {
					n += q
				}
			}
			if n > 0 {
				holdings{m}.spends(h, item, n)
				if h.grew(item) { // see sums
					continue
				}
				want = append(want, fmt.Sprintf("%s -%d %s", id, n, item))
			}
		}
	}
	var got []string
	for _, c := range rec.Changes {
		if m.players[c.Player].grew(c.Item) {
			continue
		}
		got = append(got, fmt.Sprintf("%s %d %s", c.Player, c.Delta, c.Item))
	}
	slices.Sort(got)
	if slices.Sort(want); !slices.Equal(got, want) {
		return fmt.Errorf("it settles %v, the model says %v", got, want)
	}
	return m.says(rec)
}

// settled checks that what is due for the players of a command was settled before it, and for nobody else.
func settled(m *model, rec kuji.Record) error {
	if c := (rankings{m}).first(); c != nil {
		return fmt.Errorf("the period of %s is over, and did not end before", c.ID)
	}
	if first, opens := (hosts{m}).due(); len(first)+len(opens) > 0 {
		return fmt.Errorf("rounds %d were due, or opened: %v, and not before", numbersOf(first), opens)
	}
	named := map[string]bool{}
	for _, one := range append([]kuji.Record{rec}, rec.Members...) {
		named[one.Player], named[one.To] = true, true
	}
	for id := range named {
		if overdue(m, id) {
			return fmt.Errorf("what is due for %s at %d was not settled before", id, m.steady())
		}
	}
	for _, id := range m.owed {
		if !named[id] {
			return fmt.Errorf("what was due for %s was settled for a command that does not name the player", id)
		}
	}
	m.owed = nil
	return nil
}

// crowded reports whether a command can need more lots of an item than a player can have: one for each
// gain, and one for each that the player has or that a giver has.
func (t *trial) crowded(rec kuji.Record, id string) bool {
	n := 0
	for _, h := range t.players {
		n = max(n, len(h.lots[id]))
	}
	n *= 2
	for _, one := range append([]kuji.Record{rec}, rec.Members...) {
		n++
		if p := t.pool(one.Pool); p != nil {
			n += one.Count * int(min(t.best(p, id), mostLots+1))
		}
	}
	return n+1 > mostLots
}

// sameLots compares the lots of a player's view with the model. The clock may have been set back between
// the last change of the player and the view.
func sameLots(m *model, v kuji.PlayerView, h *holder) error {
	var want []kuji.Lot
	for _, it := range v.Items {
		for _, at := range h.lots[it.Item].ends() {
			if at > 0 {
				want = append(want, kuji.Lot{Item: it.Item, Quantity: h.lots[it.Item][at], Until: at})
			}
		}
	}
	same := len(v.Lots) == len(want)
	for i := 0; same && i < len(want); i++ {
		got := v.Lots[i]
		back := want[i].Until - got.Until
		same = got.Item == want[i].Item && got.Quantity == want[i].Quantity && back >= m.back && back == want[0].Until-v.Lots[0].Until
	}
	if !same {
		return fmt.Errorf("player %q has the lots %v, the model says %v, less %d", v.ID, v.Lots, want, m.back)
	}
	return nil
}
