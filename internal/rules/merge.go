package rules

import (
	"slices"
	"strings"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/store"
)

// A Merge makes two players one, in one event: all that To has becomes Player's, and To another name of Player. Nothing
// of what it writes depends on chance, and nothing undoes it.
//
//	balances     sums. What is beyond a cap waits in the mailbox; where the realm has none, it stays above the cap
//	lots         keep their ends
//	mail         is one mailbox
//	held         is held, for the same rounds: an entrant is who joined, by whatever name
//	limits       sums of what counts now
//	counters     sums; of the highest, the larger; of a streak, the longer; of different keys, all keys
//	tracks       the one that is nearer to its hit, or with Strict, the other one
//	quests       the furthest
//	ranks        by the counter. A standing that has ended stays as it was, without To
//	link code    that of Player
//
// Grants at the start come once: if one of the two has had them, both have.

// mergeMail is how long waits in the mailbox what is beyond a cap that has no time for it, milliseconds.
const mergeMail = 30 * 24 * 3600 * 1000

// mergeKind is a Merge. With Count 1 it is strict.
type mergeKind struct{ noted }

func (mergeKind) alone() string { return "an atomic group cannot merge players" }
func (mergeKind) barred() bool  { return false }

func (mergeKind) form(c *Command) *CommandError {
	if err := checkPlayer("from", c.To); err != nil {
		return err
	}
	if c.Player == c.To {
		return malformed("from", "the players are both %q; they must differ", c.To)
	}
	return nil
}

func (mergeKind) ask(r *effects, c *Command, _ Status) {
	r.w.Ref(r.refTo(c.To))
	r.w.Uint(uint64(c.Count))
}

func (mergeKind) asked(a *asked, c *Command) {
	c.To = a.player(a.Ref("the player who is merged"))
	c.Count = int(a.Uint("whether it is strict", 1))
}

func (mergeKind) check(r *checks, c *Command) failure {
	into, ok := r.state.Player(c.Player)
	from, known := r.state.Player(c.To)
	switch {
	case !ok, !known:
		return failure{UnknownPlayer, 0}
	case into == from:
		return failure{AlreadyLinked, 0}
	case len(aliasesOf(r.state, into))+len(aliasesOf(r.state, from)) >= MaxAliases:
		return failure{TooManyAliases, 0}
	}
	u := uniting{r}
	for _, it := range u.merges(from) {
		if f := u.mayMerge(into, from, it); f.status != OK {
			return f
		}
	}
	for _, l := range r.mailbox(from).all {
		if !u.letterFits(into, l) {
			return failure{MailboxFull, l.Item}
		}
	}
	return failure{}
}

// holdings is what a player has of an item: what can be spent, as far as it is written, and what is held.
type holdings struct {
	item       uint32
	free, held uint64
}

// holdingsOf returns what a player has in the state, ascending by item. What has grown may be more.
func holdingsOf(s State, player uint32) (all []holdings) {
	items, _ := s.Slots(player, nil, nil)
	for _, it := range items {
		item := it.Counter &^ store.HeldOf(0)
		i := slices.IndexFunc(all, func(h holdings) bool { return h.item == item })
		if i < 0 {
			i = len(all)
			all = append(all, holdings{item: item})
		}
		if it.Counter == item {
			all[i].free = it.Value
		} else {
			all[i].held = it.Value
		}
	}
	slices.SortFunc(all, func(a, b holdings) int { return int(a.item) - int(b.item) })
	return all
}

// uniting knows what two players have, and whether it can be one's.
type uniting struct{ *checks }

// merges returns what a player has that can be merged: also what has grown from nothing.
func (r uniting) merges(player uint32) []holdings {
	all := holdingsOf(r.state, player)
	for i := range r.t.Growths {
		item := r.t.Growths[i].Item
		if !slices.ContainsFunc(all, func(h holdings) bool { return h.item == item }) {
			all = append(all, holdings{item: item})
		}
	}
	return all
}

// mayMerge reports why what one player has of an item cannot be another one's too.
func (r uniting) mayMerge(into, from uint32, it holdings) failure {
	free := r.balance(from, it.item)
	switch {
	case r.balance(into, it.item)+free+it.held > MaxQuantity, r.balance(into, store.HeldOf(it.item))+it.held > MaxQuantity:
		return failure{BalanceOverflow, it.item}
	case r.above(into, it.item, free, it.held) > 0 && !r.reserve(into, it.item, free):
		return failure{MailboxFull, it.item}
	}
	of := r.t.LotsOf(it.item)
	if of == nil {
		return failure{}
	}
	s := r.shelf(from, of)
	lots := slices.Clone(s.all)
	to := r.shelf(into, of)
	for _, l := range lots {
		if to.add(l.Until, l.Quantity) == nil {
			return failure{TooManyLots, it.item}
		}
	}
	return failure{}
}

// above returns how much of a gain goes to the mailbox, as it is beyond a cap. What is held does not.
func (r uniting) above(player, item uint32, free, held uint64) uint64 {
	c := r.t.CapOf(item)
	if c == nil || r.t.mail == noCounter {
		return 0
	}
	room := c.room(r.has(player, item))
	return free - min(free, room-min(room, held))
}

// letterFits adds a letter to a mailbox, and reports whether there is room.
func (r uniting) letterFits(player uint32, l Letter) bool {
	b := r.mailbox(player)
	for i := range b.all {
		if o := &b.all[i]; o.Until == l.Until && o.Item == l.Item && o.Quantity+l.Quantity <= MaxQuantity {
			o.Quantity += l.Quantity
			return true
		}
	}
	if len(b.all) == MaxMail {
		return false
	}
	b.all = append(b.all, l)
	return true
}

// merging writes a Merge.
type merging struct {
	naming
	into, from uint32
	strict     bool
}

func (mergeKind) write(d *drawing, c *Command) {
	r := merging{naming: naming{d}, strict: c.Count == 1}
	r.into, _ = r.state.Player(c.Player)
	r.from, _ = r.state.Player(c.To)
	_, counters := r.state.Slots(r.from, nil, nil)
	r.items()
	r.turn(r.into)
	r.counters(counters)
	r.turn(r.into)
	r.writeMoves()
	r.clear(counters)
	r.writeDeadlines()
	r.names()
	r.unreached(r.from)
}

// items writes what becomes of items, lots and mail.
func (r *merging) items() {
	all, letters := uniting{&r.checks}.merges(r.from), slices.Clone(r.mailbox(r.from).all)
	r.moves, r.moved = true, r.moved[:0]
	r.turn(r.from)
	for i := range all {
		it := &all[i]
		if it.held > 0 {
			hosting{r.drawing}.keep(store.Release, it.item, it.held)
		}
		it.free = r.balance(r.from, it.item) - it.held
		if it.free+it.held > 0 {
			r.change(store.Spend, it.item, it.free+it.held)
		}
		r.values.put(valueKey(r.from, it.item), 0)
	}
	b := r.mailbox(r.from)
	for i := range b.all {
		l := b.all[i]
		l.Quantity = 0
		r.writeLetter(&l)
		r.gone(r.from, l.Until)
	}
	b.all = b.all[:0]
	r.turn(r.into)
	for _, it := range all {
		r.gain(it)
	}
	for _, l := range letters {
		r.post(l.Until, l.Item, l.Quantity)
	}
	r.moves = false
}

// gain writes that the player gets what the other one had of an item.
func (r *merging) gain(it holdings) {
	g := r.t.GrowthOf(it.item)
	if g != nil {
		r.settleGrowth(g)
	}
	over := uniting{&r.checks}.above(r.into, it.item, it.free, it.held)
	if q := it.free + it.held - over; q > 0 {
		r.changeBy(store.Gain, it.item, q, g, true)
		r.given(q) // quests that claim themselves may follow
	}
	if over > 0 {
		c := *r.t.CapOf(it.item)
		if c.Beyond.Mail == 0 {
			c.Beyond.Mail = mergeMail
		}
		r.deliver(&c, over)
		r.beyond(it.item, over, store.Mailed)
	}
	if it.held > 0 {
		hosting{r.drawing}.keep(store.Hold, it.item, it.held)
	}
}

// numbered is some counters that have a name together.
type numbered struct {
	name         string
	first, width uint32
}

// ranges returns the names of all counters, ascending by number.
func ranges(s State) (all []numbered) {
	next := uint32(0)
	for name, width := range s.CounterNames() {
		all = append(all, numbered{name, next, width})
		next += width
	}
	return all
}

// counters writes what becomes of the player's counters. some are those of the other one, ascending.
func (r *merging) counters(some []counterValue) {
	limits := r.limitsOf()
	for _, n := range ranges(r.state) {
		from, _ := searchCounter(some, n.first)
		to, _ := searchCounter(some, n.first+n.width)
		if from == to {
			continue
		}
		_, what, _ := strings.Cut(n.name, "/")
		l := limits[n.first]
		kind, _, _ := strings.Cut(what, "/")
		switch {
		case n.first == r.t.due, strings.HasPrefix(n.name, lotsPrefix), n.name == mailName, strings.HasPrefix(n.name, "/grows/"):
			// they follow the items
		case n.first == r.t.waiting: // below
		case l != nil:
			r.limit(l, some[from:to])
		case kind == "pity":
			r.track(n.first)
		case strings.HasPrefix(n.name, "/quest/"):
			r.quest(n.first)
		case strings.HasPrefix(n.name, "/count/") && r.counterAt(n.first) != nil:
			r.count(r.counterAt(n.first))
		case r.ofCounter(n.first): // with the counter
		default:
			r.copy(n, some[from:to])
		}
	}
	if r.t.waiting != noCounter && r.state.Counter(r.from, r.t.waiting) == 0 && r.counter(r.into, r.t.waiting) != 0 {
		r.wait(r.into, 0)
	}
}

// set gives a counter of the player a value.
func (r *merging) set(counter uint32, v uint64) {
	if v != r.counter(r.into, counter) {
		r.w.Change(store.Set, counter, v)
		r.values.put(valueKey(r.into, counterKey|counter), v)
	}
}

// copy keeps what no catalog in force knows, if only the other player has it.
func (r *merging) copy(n numbered, some []counterValue) {
	if len(r.state.Counters(r.into, n.first, n.first+n.width-1, nil)) > 0 {
		return
	}
	for _, c := range some {
		r.set(c.Counter, c.Value)
	}
}

func (r *merging) track(counter uint32) {
	a, b := r.counter(r.into, counter), r.state.Counter(r.from, counter)
	if r.strict {
		r.set(counter, min(a, b))
	} else {
		r.set(counter, max(a, b))
	}
}

func (r *merging) quest(counter uint32) {
	a, b := r.counter(r.into, counter), r.state.Counter(r.from, counter)
	pa, pb := r.counter(r.into, counter+1), r.state.Counter(r.from, counter+1)
	if pb > pa || pb == pa && b > a {
		r.set(counter, b)
		r.set(counter+1, pb)
	}
}

func (r *merging) counterAt(first uint32) *Counter {
	i := slices.IndexFunc(r.t.Counters, func(c *Counter) bool { return c.Num == first })
	if i < 0 {
		return nil
	}
	return r.t.Counters[i]
}

// ofCounter reports whether counters are keys, or the second place, of a counter of the catalog.
func (r *merging) ofCounter(first uint32) bool {
	return slices.ContainsFunc(r.t.Counters, func(c *Counter) bool { return c.keys != 0 && c.keys == first || c.second != 0 && c.second == first })
}

// count adds what the other player has counted in the present period.
func (r *merging) count(c *Counter) {
	b := *r.stands(c, r.from)
	if !b.open || b.value == 0 && b.is[countCapped] == 0 {
		return
	}
	var keys []uint64
	for i := range uint32(b.value) {
		if c.keys == 0 {
			break
		}
		keys = append(keys, r.keyAt(c, &b, i))
	}
	a := r.stands(c, r.into)
	before := a.is
	switch config := c.Config; {
	case config.Streak.Per != 0:
		if b.value > a.value || b.value == a.value && b.is[countPeriod] > a.is[countPeriod] {
			a.value = b.value
			a.is[countValue], a.is[countPeriod], a.is[countMissed] = b.value, b.is[countPeriod], b.is[countMissed]
		}
	case config.Distinct > 0:
		for _, k := range keys {
			if a.value == uint64(config.Distinct) || r.saw(c, a, k) {
				continue
			}
			at := c.keys + uint32(a.value)
			r.keySets = append(r.keySets, keySet{c, at, k})
			r.values.put(valueKey(r.into, counterKey|at), k)
			a.value++
		}
	case config.Highest:
		a.value = max(a.value, b.value)
	default:
		a.value = min(a.value+b.value, catalog.MaxCount)
	}
	if c.Config.Streak.Per == 0 && a.value > 0 {
		c.keep(a)
	}
	if c.Config.Most.Per != 0 {
		a.is[countCapped] = min(r.usedCap(c, a)+r.usedCap(c, &b), c.Config.Most.Count)
		a.is[countCapPeriod] = max(a.is[countCapPeriod], b.is[countCapPeriod])
	}
	if a.is != before {
		if a.spill = true; !a.moved {
			a.moved = true
			r.moving = append(r.moving, c)
		}
	}
}

// limitsOf returns all limits of the catalog, by their first counter.
func (r *merging) limitsOf() map[uint32]*Limit {
	all := map[uint32]*Limit{}
	for _, pt := range r.t.PoolByNum {
		if pt == nil {
			continue
		}
		for i := range pt.Limits {
			all[pt.Limits[i].Counter] = &pt.Limits[i]
		}
		if pt.Free != nil {
			all[pt.Free.Counter] = pt.Free
		}
	}
	if g := &r.t.guesses; g.Per != 0 {
		all[g.Counter] = g
	}
	return all
}

// limit adds what the other player has used of a limit, and still counts.
func (r *merging) limit(l *Limit, some []counterValue) {
	now := r.instant()
	if l.Per == catalog.PerForever {
		r.set(l.Counter, min(r.counter(r.into, l.Counter)+some[0].Value, MaxQuantity))
		return
	}
	if l.Per != catalog.PerWindow {
		a, b := r.counter(r.into, l.Counter), some[0].Value
		switch {
		case !now.counts(l, b):
		case a == 0 || !now.counts(l, a):
			r.set(l.Counter, b)
		default:
			r.set(l.Counter, later(a, b))
		}
		return
	}
	for _, c := range some {
		if now.counts(l, c.Value) {
			r.window(l, c.Value)
		}
	}
}

// later returns the counter of the draws of two, at the later time of theirs.
func later(a, b uint64) uint64 {
	draws := min(a&maxStepDraws+b&maxStepDraws, maxStepDraws)
	return max(a, b)&^maxStepDraws | draws
}

// window adds draws to a window: in a free counter, or one that counts no more. If there is none, they join those that
// count a little longer, so that no draw counts too short.
func (r *merging) window(l *Limit, v uint64) {
	now := r.instant()
	join, last := uint32(noCounter), l.Counter
	for n := l.Counter; n < l.Counter+windowWidth; n++ {
		at := r.counter(r.into, n)
		if at == 0 || !now.counts(l, at) {
			r.set(n, v)
			return
		}
		if at>>drawBits >= v>>drawBits && (join == noCounter || at < r.counter(r.into, join)) {
			join = n
		}
		if at > r.counter(r.into, last) {
			last = n
		}
	}
	if join == noCounter {
		join = last
	}
	r.set(join, later(r.counter(r.into, join), v))
}

// clear writes that the other player has no counters any more. some are those it had.
func (r *merging) clear(some []counterValue) {
	r.turn(r.from)
	at := 0
	for _, n := range ranges(r.state) {
		for ; at < len(some) && some[at].Counter < n.first+n.width; at++ {
			switch {
			case n.first == r.t.due, n.name == mailName, strings.HasPrefix(n.name, "/grows/"):
			case strings.HasPrefix(n.name, lotsPrefix): // they went with the items
			default:
				r.w.Change(store.Set, some[at].Counter, 0)
			}
		}
	}
	for i := range r.t.Growths {
		if g := &r.t.Growths[i]; r.counter(r.from, g.Since) != 0 {
			r.w.Change(store.Set, g.Since, 0)
		}
	}
}

// names writes who is another name of whom.
func (r *merging) names() {
	for _, name := range aliasesOf(r.state, r.from) {
		was := merged(r.state, r.from, name)
		r.dropAlias(r.from, name)
		r.keepAlias(r.into, name, was)
		r.identity(name, identityName+uint64(r.into))
	}
	r.dropCodeOf(r.from)
	if r.state.Blocked(r.from) {
		k := key{recordBlock}.short(r.from)
		reason, _ := r.state.Record(k)
		if !r.state.Blocked(r.into) {
			r.w.Put(key{recordBlock}.short(r.into), reason)
			r.identity(r.into, identityBlocked)
		}
		r.w.Drop(k)
	}
	r.keepAlias(r.into, r.from, true)
	r.identity(r.from, identityName+uint64(r.into))
	r.turn(r.into)
}
