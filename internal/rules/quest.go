package rules

import (
	"slices"
	"strings"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/store"
)

// A quest has tiers, which are claimed in order. It keeps two numbers for each player: how many tiers the
// player has claimed, and the number of the period in which that was. In a later period, none is claimed.
//
// A tier is a pool with one entry that nobody else draws from: the checks of a draw make sure that its reward
// can be given, at its largest. Claims of a quest that is automatic are the last effects of the event that
// reaches it. What does not fit then waits to be claimed.

// Quest is a catalog.Quest by numbers.
type Quest struct {
	Config *catalog.Quest
	Num    uint32 // of the counter of tiers claimed; the next one has the period
	Tiers  []Tier
	When   Condition
	period period
	after  []*Quest // automatic ones that ask for this one
	picks  uint64   // the most that all tiers take together
}

// Tier is a step of a quest.
type Tier struct {
	Needs []Range
	pool  *Pool
}

// Reward returns what the tier gives.
func (t *Tier) Reward() *Reward { return &t.pool.Entries[0].Reward }

// Range says where a counter must stand.
type Range struct {
	Counter  *Counter
	Min, Max uint64
}

// QuestDone says how many tiers of a quest must be claimed.
type QuestDone struct {
	Quest *Quest
	Tiers uint64
}

const questWidth = 2

// QuestName returns the name of a quest's numbers. If it begins again at other times, they have another
// name: numbers of days and of weeks do not compare.
func QuestName(q *catalog.Quest) string { return "/quest/" + q.ID + "/" + q.Per.Shape() }

// QuestOf returns the quest that has a name.
func QuestOf(name string) (id string, ok bool) {
	name, ok = strings.CutPrefix(name, "/quest/")
	id, _, _ = strings.Cut(name, "/")
	return id, ok
}

// questing is the quests of a catalog.
type questing struct {
	Quests    []*Quest // in the order of the catalog
	QuestByID map[string]*Quest
	automatic []*Quest
	asking    map[uint32][]*Quest // automatic ones that ask for an item, by its number
	tierPools []*Pool
}

// quests numbers the quests of a catalog. Their tiers' pools have numbers after those of all others, which no
// event names.
func (d *definer) quests(c *catalog.Catalog) {
	d.t.QuestByID = make(map[string]*Quest, len(c.Quests))
	for i := range c.Quests {
		config := &c.Quests[i]
		q := &Quest{Config: config, Num: d.counters(QuestName(config), questWidth), period: d.t.period(config.Per)}
		d.t.Quests, d.t.QuestByID[config.ID] = append(d.t.Quests, q), q
		if config.Claim == catalog.ClaimAutomatic {
			d.t.automatic = append(d.t.automatic, q)
		}
		for range config.Steps() {
			q.Tiers = append(q.Tiers, Tier{pool: d.tierPool()})
		}
	}
}

// tierPool numbers a pool for a reward that nobody else draws.
func (d *definer) tierPool() *Pool {
	pt := &Pool{Num: d.nextPool + uint32(len(d.t.tierPools))}
	d.t.tierPools = append(d.t.tierPools, pt)
	return pt
}

// compileTier fills in such a pool. nest adds what its draw can give.
func (t *Tables) compileTier(pt *Pool, reward *catalog.Reward) {
	pt.Config = &catalog.Pool{Mode: catalog.ModeWeighted, Internal: true, MaxCount: 1, WeightScale: 1, Rolls: catalog.Rolls{Min: 1, Max: 1},
		Entries: []catalog.Entry{{Weight: 1, Stock: catalog.Stock{Unlimited: true}, Reward: *reward}}}
	pt.single, pt.tier, pt.Order = true, true, []uint32{0}
	pt.Entries = []Entry{{Config: &pt.Config.Entries[0], Present: true, Weight: 1, Most: 1, Reward: t.reward(reward)}}
}

// compileQuests fills in what follows from the catalog and its numbers.
func (t *Tables) compileQuests() {
	for _, q := range t.Quests {
		q.When = t.condition(nil, &q.Config.When)
		for i, config := range q.Config.Steps() {
			tier := &q.Tiers[i]
			tier.Needs = t.ranges(config.Needs)
			t.compileTier(tier.pool, &config.Reward)
		}
	}
}

// watchQuests notes what reaches the quests that are automatic.
func (t *Tables) watchQuests() {
	for _, q := range t.automatic {
		needs := slices.Clone(q.When.Counters)
		for i := range q.Tiers {
			needs = append(needs, q.Tiers[i].Needs...)
		}
		for _, n := range needs {
			if c := n.Counter; !slices.Contains(c.quests, q) {
				c.quests = append(c.quests, q)
			}
		}
		for _, d := range q.When.Quests {
			d.Quest.after = append(d.Quest.after, q)
		}
		t.watchItems(&q.When, func(item uint32) {
			if t.asking == nil {
				t.asking = map[uint32][]*Quest{}
			}
			t.asking[item] = append(t.asking[item], q)
		})
	}
}

func (t *Tables) ranges(all []catalog.Counted) (out []Range) {
	for _, c := range all {
		out = append(out, Range{t.CounterByID[c.Counter], c.Min, c.Max})
	}
	return out
}

// Reaches reports whether counters stand where they must.
func Reaches(all []Range, f Facts) bool {
	for _, c := range all {
		if n := f.Count(c.Counter); n < c.Min || n > c.Max {
			return false
		}
	}
	return true
}

// Claimed returns how many tiers of a quest the current player has claimed in the present period.
func (s *Sight) Claimed(q *Quest) uint64 {
	if n, _ := s.numberOf(&q.period); s.counter(s.player, q.Num+1) < n {
		return 0
	}
	return s.counter(s.player, q.Num)
}

// claimKind is a Claim: a player claims tiers of a quest.
type claimKind struct{ noted }

func (claimKind) form(c *Command) *CommandError {
	if c.Quest == "" {
		return malformed("quest", "empty; want the id of a quest")
	}
	if c.Count < 0 || c.Count > catalog.MaxTiers {
		return malformed("tiers", "%d; want 1 to %d, or 0 for all that are reached", c.Count, catalog.MaxTiers)
	}
	return checkLength("quest", c.Quest, catalog.MaxID)
}

func (claimKind) resolve(f *Finder, c *Command) *CommandError {
	if c.quest = f.QuestByID[c.Quest]; c.quest == nil {
		return f.unknown("quest", "quest", c.Quest)
	}
	return nil
}

func (claimKind) ask(r *effects, c *Command, _ Status) {
	r.w.Uint(uint64(c.quest.Num))
	r.w.Uint(uint64(c.Count))
}

func (claimKind) asked(a *asked, c *Command) {
	c.Quest = a.name("the quest", func(num uint32) string {
		id, _ := QuestOf(a.state.CounterName(num))
		return id
	})
	c.Count = int(a.Uint("the tiers", catalog.MaxTiers))
}

// check reports why a Claim fails: the player is not eligible, all tiers are claimed, the next one is not
// reached, or what it could give is not there or does not fit.
func (claimKind) check(r *checks, c *Command) failure {
	player, f := r.come(c)
	if f.status != OK {
		return f
	}
	q, subject := c.quest, c.quest.Num
	if !q.When.Met(&r.Sight) {
		return failure{NotReached, subject}
	}
	claimed := r.Claimed(q)
	if claimed >= uint64(len(q.Tiers)) {
		return failure{AlreadyClaimed, subject}
	}
	n := 0
	f = failure{NotReached, subject} // if the quest has fewer tiers
	for i := int(claimed); i < len(q.Tiers) && (c.Count == 0 || n < c.Count); i++ {
		if f = r.mayClaim(q, &q.Tiers[i], player); f.status != OK {
			break
		}
		n, f = n+1, failure{NotReached, subject}
	}
	if n == 0 || n < c.Count {
		return f
	}
	r.claim(q, player, claimed+uint64(n))
	c.tiers = n
	return failure{}
}

// mayClaim checks a tier, and adds its draw to the command.
func (r *checks) mayClaim(q *Quest, tier *Tier, player uint32) failure {
	pt := tier.pool
	if !Reaches(tier.Needs, &r.Sight) {
		return failure{NotReached, q.Num}
	}
	if r.picks+pt.Picks > catalog.MaxRequestPicks {
		return failure{RewardUnavailable, q.Num}
	}
	for _, list := range pt.Entries[0].Codes {
		if r.CodesLeft(list) <= r.promised(list) {
			return failure{RewardUnavailable, q.Num}
		}
	}
	r.nextCost()
	if f := r.addDraw(pt, player, 1); f.status != OK {
		if f.status == SoldOut { // of the pool that the reward draws from
			return failure{RewardUnavailable, q.Num}
		}
		return f
	}
	return failure{}
}

// promised returns how many codes of a list the command's draws and claims so far can give.
func (r *checks) promised(list uint32) (n uint64) {
	for i := range r.draws {
		switch d := &r.draws[i]; {
		case d.pool.tier:
			n += d.pool.Entries[0].promises(list)
		case d.pool.codes.Has(list):
			n += d.count * d.pool.Picks
		}
	}
	return n
}

// promises returns how many codes of a list a reward can give.
func (w *Reward) promises(list uint32) (n uint64) {
	if slices.Contains(w.Codes, list) {
		n = 1
	}
	for i := range w.Inner {
		if in := &w.Inner[i]; in.Pool.codes.Has(list) {
			n += in.Max * in.Pool.Picks
		}
	}
	return n
}

// claim notes that a player has claimed tiers of a quest. It returns the period, 0 if the state has it.
func (s *Sight) claim(q *Quest, player uint32, tiers uint64) (period uint64) {
	s.values.put(valueKey(player, counterKey|q.Num), tiers)
	if n, _ := s.numberOf(&q.period); n > s.counter(player, q.Num+1) {
		s.values.put(valueKey(player, counterKey|(q.Num+1)), n)
		return n
	}
	return 0
}

func (claimKind) write(r *drawing, c *Command) {
	r.arrive(c.who(&r.Sight))
	for range c.tiers {
		r.nextDraw()
		r.writeClaim(c.quest)
	}
}

// writeClaim writes the reward of a quest's next tier.
func (r *drawing) writeClaim(q *Quest) {
	tier := r.Claimed(q) + 1
	r.w.More(store.Claim, uint64(q.Num), tier)
	period := r.claim(q, r.player, tier)
	r.pool = noPool
	r.give(&q.Tiers[tier-1].pool.Entries[0].Reward)
	r.w.Change(store.Set, q.Num, tier)
	if period > 0 {
		r.w.Change(store.Set, q.Num+1, period)
	}
	r.endDraw()
	for _, next := range q.after {
		r.reached(next)
	}
}

// MaxFired bounds how many tiers an event claims by itself. What is left waits for the next event that moves a
// counter which the quest needs, or to be claimed.
const MaxFired = 100

// reaching is the quests that the event at hand may reach, which claim themselves.
type reaching struct {
	firings []firing
	looked  int // at how many of them the event has looked
	fired   int // how many tiers have claimed themselves
}

// firing is a quest that may be reached.
type firing struct {
	player uint32
	quest  *Quest
}

// mayFire reports whether a quest's next tier is reached, and its reward is there and fits. What the event has
// given so far counts as given to each balance.
func (r *drawing) mayFire(q *Quest, player uint32) bool {
	r.player, player = player, r.player
	defer func() { r.player = player }()
	claimed := r.Claimed(q)
	if claimed >= uint64(len(q.Tiers)) || !q.When.Met(&r.Sight) || !Reaches(q.Tiers[claimed].Needs, &r.Sight) {
		return false
	}
	pt := q.Tiers[claimed].pool
	return r.mayGive(pt, r.player)
}

// mayGive reports whether a reward is there and fits, at its largest. If so, it counts as given.
func (r *drawing) mayGive(pt *Pool, player uint32) bool {
	if r.picks+pt.Picks > catalog.MaxRequestPicks || !r.inStock(pt, player, 1) {
		return false
	}
	for _, list := range pt.Entries[0].Codes {
		if r.CodesLeft(list) == 0 {
			return false
		}
	}
	if !r.mayFill(pt, player) {
		return false
	}
	for _, g := range pt.Gains {
		if !r.t.Capped.Has(g.Item) && r.state.Peak()+r.extra+g.Quantity > MaxQuantity && r.state.Balance(player, g.Item)+r.state.Balance(player, store.HeldOf(g.Item))+r.extra+g.Quantity > MaxQuantity {
			return false
		}
	}
	if !r.roomForLots(pt, player) {
		return false
	}
	r.given(pt.maxGain)
	r.picks += pt.Picks
	return true
}

// Tells reports whether the event of the last decided command says more than what was asked: quests have claimed
// themselves, or something was beyond a cap.
func (r *Rules) Tells() bool { return r.fired+r.over > 0 }

// reached notes that the current player may have reached a quest that is automatic. One that was looked at is
// looked at again: what other quests give may reach it.
func (r *effects) reached(q *Quest) {
	if r.player == noPlayer { // a counter of the realm was set by hand
		return
	}
	if f := (firing{r.player, q}); !slices.Contains(r.firings[r.looked:], f) {
		r.firings = append(r.firings, f)
	}
}

// fire claims what is automatic and was reached.
func (r *drawing) fire() {
	for r.looked < len(r.firings) {
		f := r.firings[r.looked]
		r.looked++
		for r.fired < MaxFired && r.mayFire(f.quest, f.player) {
			if r.fired++; r.fired == 1 && !r.alone {
				r.w.More(store.Member) // after those of the group
			}
			r.turn(f.player)
			r.writeClaim(f.quest)
			r.writeMoves()
		}
	}
}

// Renews returns the time stamp at which a quest begins again, 0 if it never does.
func (s *Sight) Renews(q *Quest) int64 { return s.ends(&q.period, s.counter(s.player, q.Num+1)) }
