package rules_test

import (
	"fmt"
	"slices"

	"github.com/kuji-dev/kuji/catalog"
)

// chooser chooses what draws give, from the values that they took, as docs/internals/formats/event.md
// says under Choices.
type chooser struct {
	*model
	tape   *reader
	draws  []paidDraw
	held   map[string]map[string]uint64 // what players hold at this point
	player string                       // who draws
	lines  []string
	now    int64
	paying []part           // the budgets that what is given now comes from
	paid   []string         // those that the draw at hand has spent from
	before map[string]purse // before the command
}

// draw chooses for a whole draw, and returns its effects, but the price and counters.
func (k *chooser) draw(p *catalog.Pool, player string, count int) []string {
	k.player, k.lines, k.paid = player, nil, nil
	hits := make([]int, len(p.Guarantees))
	for i := range count {
		for g := range hits {
			if i%int(p.Guarantees[g].Draws) == 0 {
				hits[g] = 0
			}
		}
		if p.Mode == catalog.ModeEach || p.Rolls.Max > 1 {
			k.lines = append(k.lines, "draw")
		}
		taken := k.single(p, k.due(p, hits, i, count))
		for g := range hits {
			if slices.ContainsFunc(taken, func(e *catalog.Entry) bool { return in(e, p.Guarantees[g].Of) }) {
				hits[g]++
			}
		}
	}
	return append(k.lines, k.tallies()...)
}

// due returns the group of the guarantee that must be hit now, nil for none.
func (k *chooser) due(p *catalog.Pool, hits []int, i, count int) []string {
	all := p.Guarantees
	left, missing := make([]int, len(all)), make([]int, len(all))
	for g := range all {
		n := int(all[g].Draws)
		if begun := i / n * n; begun+n <= count {
			left[g], missing[g] = begun+n-i, max(0, int(all[g].AtLeast)-hits[g])
		}
		if !slices.ContainsFunc(p.Entries, func(e catalog.Entry) bool { return in(&e, all[g].Of) && k.weight(p, &e, true) > 0 }) {
			missing[g] = 0 // out of stock: it waits
		}
	}
	first, pressed, soon := -1, false, false
	common := func(one, other []string) bool {
		return slices.ContainsFunc(p.Entries, func(e catalog.Entry) bool { return in(&e, one) && in(&e, other) && k.weight(p, &e, true) > 0 })
	}
	next := func(t *catalog.Track) int { return int(k.since[k.player+" "+counter(p, t.Name)]) + 1 }
	for g := range all {
		if missing[g] == 0 {
			continue
		}
		if first < 0 || left[g] < left[first] {
			first = g
		}
		sum := 0
		for o := range all {
			if left[o] <= left[g] {
				sum += missing[o]
			}
		}
		pressed = pressed || sum >= left[g]
		for i := range p.Tracks { // those that will need draws of their own
			t := &p.Tracks[i]
			apart := false
			for o := range all {
				apart = apart || missing[o] > 0 && !common(t.Of, all[o].Of)
			}
			apart = apart && t.Certain > 0 && common(t.Of, t.Of)
			for at, n := 0, min(next(t), int(t.Certain)); apart && at < left[g]; at, n = at+1, n+1 {
				if n == int(t.Certain) {
					sum, n = sum+1, 0
				}
			}
		}
		soon = soon || sum >= left[g]
	}
	own := first >= 0 && slices.ContainsFunc(p.Tracks, func(t catalog.Track) bool {
		return t.Certain > 0 && next(&t) >= int(t.Certain) && common(t.Of, t.Of) && !common(t.Of, all[first].Of)
	})
	if pressed || soon && !own {
		return all[first].Of
	}
	return nil
}

func (k *chooser) between(low, high uint64) uint64 {
	if low == high {
		return low
	}
	return low + k.tape.below(high-low+1)
}

// single makes one draw from a pool, and returns what it took from it.
func (k *chooser) single(p *catalog.Pool, due []string) (taken []*catalog.Entry) {
	for range k.between(uint64(p.Rolls.Min), uint64(p.Rolls.Max)) {
		if p.Mode != catalog.ModeEach {
			var without []*catalog.Entry
			if p.Rolls.Distinct {
				without = taken
			}
			e := k.pick(p, without, due)
			if e == nil {
				return taken
			}
			taken = append(taken, e)
			k.take(p, e)
			continue
		}
		for i := range p.Entries {
			if e := &p.Entries[i]; k.weight(p, e, true) > 0 && k.tape.below(100*p.WeightScale) < e.Weight {
				k.take(p, e)
			}
		}
	}
	return taken
}

func (k *chooser) take(p *catalog.Pool, e *catalog.Entry) {
	k.lines = append(k.lines, "take "+p.ID+"/"+e.ID)
	k.drawn[p.ID+"/"+e.ID]++
	paying := k.paying
	k.paying = k.open(p, e)
	k.give(&e.Reward)
	k.paying = paying
	if p.Mode != catalog.ModeRaffle || k.total(p) > 0 {
		return
	}
	k.give(&p.Last)
	if k.refills[p.ID] >= uint64(p.Refill) {
		return
	}
	for i := range p.Entries {
		at := p.ID + "/" + p.Entries[i].ID
		if n := k.drawn[at]; n > 0 {
			k.lines = append(k.lines, fmt.Sprint("return ", at, " ", n))
		}
		k.drawn[at] = 0
	}
	k.refills[p.ID]++
	k.lines = append(k.lines, fmt.Sprint("tally ", p.ID, "/refills ", k.refills[p.ID]))
}

func (k *chooser) give(w *catalog.Reward) {
	for _, q := range w.Items {
		n := k.between(q.Min, q.Max)
		k.held[k.player][q.Item] += n
		k.lines = append(k.lines, fmt.Sprint("gain ", k.player, " ", q.Item, " ", n))
		k.pay(q.Item, n)
	}
	for _, list := range w.Codes {
		k.lines = append(k.lines, fmt.Sprint("code ", list, " ", k.given[list]))
		k.given[list]++
		k.met["code"]++
	}
	for _, d := range w.Draws {
		for range k.between(uint64(d.Min), uint64(d.Max)) {
			k.single(k.pool(d.Pool), nil)
		}
	}
}

// weight returns the current weight of an entry for the player.
func (k *chooser) weight(p *catalog.Pool, e *catalog.Entry, ask bool) uint64 {
	left, unlimited := k.left(p, e)
	switch {
	case left == 0 && !unlimited, ask && !k.applies(p, e, k.player, k.held[k.player]), !k.fits(p, e), !k.hasCodes(e):
		return 0
	case !k.conditional(p, e):
		return k.shown(p, e)
	}
	have, w := k.held[k.player][e.Luck.Item], e.Weight
	if e.Luck.Track != "" {
		have = k.since[k.player+" "+counter(p, e.Luck.Track)]
	}
	for _, s := range e.Luck.Steps {
		if have >= s.From {
			w = s.Weight
		}
	}
	return w
}

func in(e *catalog.Entry, of []string) bool {
	return slices.Contains(of, e.ID) || e.Group != "" && slices.Contains(of, e.Group)
}

// layout returns a pool's entries in the order in which their weights are laid out.
func (k *chooser) layout(p *catalog.Pool) (all []*catalog.Entry, classes int) {
	class, at := map[string]int{}, map[*catalog.Entry]int{}
	for i := range p.Entries {
		e, groups := &p.Entries[i], ""
		for _, t := range p.Tracks {
			groups += fmt.Sprint(in(e, t.Of))
		}
		for _, g := range p.Guarantees {
			groups += fmt.Sprint(in(e, g.Of))
		}
		if _, ok := class[groups]; !ok {
			class[groups] = len(class)
		}
		all, at[e] = append(all, e), class[groups]
	}
	slices.SortFunc(all, func(a, b *catalog.Entry) int {
		switch {
		case at[a] != at[b]:
			return at[a] - at[b]
		case k.conditional(p, a) != k.conditional(p, b):
			if k.conditional(p, a) {
				return 1
			}
			return -1
		}
		return slices.Index(k.order[p.ID], a.ID) - slices.Index(k.order[p.ID], b.ID)
	})
	return all, len(class)
}

// pick picks an entry that is none of some, nil if there is none.
func (k *chooser) pick(p *catalog.Pool, without []*catalog.Entry, due []string) *catalog.Entry {
	if e := k.won(p, due); e != nil {
		k.counted(p, e)
		return e
	}
	all, classes := k.layout(p)
	weights, total := map[*catalog.Entry]uint64{}, uint64(0)
	weigh := func(ask bool) {
		for _, e := range all {
			if !slices.Contains(without, e) {
				weights[e] = k.weight(p, e, ask)
				total += weights[e]
			}
		}
	}
	if weigh(true); total == 0 && k.collects(p) {
		weigh(false)
	}
	if total == 0 {
		return nil
	}
	within := func(e *catalog.Entry, groups [][]string) bool {
		return !slices.ContainsFunc(groups, func(of []string) bool { return !in(e, of) })
	}
	sum := func(groups, missed [][]string) (n uint64) {
		for _, e := range all {
			if within(e, groups) && !slices.ContainsFunc(missed, func(of []string) bool { return in(e, of) }) {
				n += weights[e]
			}
		}
		return n
	}
	var hit, missed [][]string
	if len(p.Tracks) > 0 || classes > 1 || slices.ContainsFunc(all, func(e *catalog.Entry) bool { return k.conditional(p, e) }) {
		hit, missed = k.decided(p, due, total, sum)
	}
	point := k.tape.below(sum(hit, missed))
	for _, e := range all {
		if !within(e, hit) || slices.ContainsFunc(missed, func(of []string) bool { return in(e, of) }) {
			continue
		}
		if point >= weights[e] {
			point -= weights[e]
			continue
		}
		k.counted(p, e)
		return e
	}
	return nil
}

// counted counts a pick in the tracks of its pool.
func (k *chooser) counted(p *catalog.Pool, e *catalog.Entry) {
	for _, t := range p.Tracks {
		at := k.player + " " + counter(p, t.Name)
		if k.since[at]++; in(e, t.Of) {
			k.since[at] = 0
		}
	}
}

// decided returns the groups that pity and a guarantee hit, and those that were missed on the way.
func (k *chooser) decided(p *catalog.Pool, due []string, total uint64, sum func(hit, missed [][]string) uint64) (hit, missed [][]string) {
	whole, last := uint64(1), -1
	for i, t := range p.Tracks {
		n := k.since[k.player+" "+counter(p, t.Name)] + 1
		if due != nil || t.Certain > 0 && n >= uint64(t.Certain) || t.Rising.From > 0 && n >= uint64(t.Rising.From) {
			last = i
		}
		whole = max(whole, 100*t.Rising.Scale)
	}
	if last < 0 && due == nil {
		return nil, nil
	}
	left := total * whole
	point := k.tape.below(left)
	some := func(groups [][]string) bool { return sum(groups, nil) > 0 }
	var base [][]string // of the guarantee
	if due != nil {
		base = [][]string{due}
	}
	with := func(groups [][]string, of []string) [][]string { return append(slices.Clip(groups), of) }
	added, certain := make([]uint64, len(p.Tracks)), make([]bool, len(p.Tracks))
	sure, served := base, make([]bool, len(p.Tracks))
	for i, t := range p.Tracks[:last+1] {
		n := k.since[k.player+" "+counter(p, t.Name)] + 1
		if !some(with(base, t.Of)) {
			continue
		}
		if from := uint64(t.Rising.From); from > 0 && n >= from {
			by := t.Rising.By[0] * (n - from + 1)
			if t.Rising.Table {
				by = t.Rising.By[min(n-from, uint64(len(t.Rising.By)-1))]
			}
			added[i] = min(by*(whole/(100*t.Rising.Scale)), whole) * total
		}
		certain[i] = t.Certain > 0 && n >= uint64(t.Certain) || added[i] > 0 && sum(with(base, t.Of), nil)*whole+added[i] >= left
		if served[i] = certain[i] && some(with(sure, t.Of)); served[i] {
			sure = with(sure, t.Of)
		}
	}
	unmissed := func(groups [][]string) [][]string { // what of missed leaves something of the groups
		n := len(missed)
		for n > 0 && sum(groups, missed[:n]) == 0 {
			n--
		}
		return missed[:n]
	}
	for i, t := range p.Tracks[:last+1] {
		if certain[i] {
			return sure, unmissed(sure)
		}
		own := with(base, t.Of)
		groups, taken := own, !some(own)
		for o, other := range p.Tracks {
			switch {
			case !certain[o]:
			case some(with(groups, other.Of)):
				groups = with(groups, other.Of)
			case served[o] && some(with(own, other.Of)):
				taken = true
			}
		}
		if taken {
			continue
		}
		chance := min(sum(groups, missed)*whole+added[i], left)
		if point < chance {
			return groups, unmissed(groups)
		}
		point, left, missed = point-chance, left-chance, append(missed, t.Of)
	}
	switch {
	case due == nil:
		return nil, missed
	case sum([][]string{due}, missed) == 0:
		return [][]string{due}, nil
	}
	return [][]string{due}, missed
}

// counter names the counter of a pool's track.
func counter(p *catalog.Pool, track string) string {
	for _, t := range p.Tracks {
		if t.Name == track && t.Share != "" {
			return "/" + t.Share
		}
	}
	return p.ID + "/" + track
}

// applies reports whether the conditions of an entry hold for a player who holds so much.
func (m *model) applies(p *catalog.Pool, e *catalog.Entry, player string, held map[string]uint64) bool {
	for _, q := range e.Reward.Items {
		if e.Unique && held[q.Item] > 0 {
			return false
		}
	}
	return m.fulfils(&e.When, p, player, held)
}

func (m *model) fulfils(c *catalog.Condition, p *catalog.Pool, player string, held map[string]uint64) bool {
	for _, s := range c.Holds {
		if held[s.Item] < s.Quantity {
			return false
		}
	}
	for _, item := range c.Lacks {
		if held[item] > 0 {
			return false
		}
	}
	for _, t := range c.Tracks {
		if m.since[player+" "+counter(p, t.Track)] < t.Draws {
			return false
		}
	}
	return true
}
