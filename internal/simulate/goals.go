package simulate

import (
	"fmt"
	"math"
	"slices"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/odds"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// Progress is an event that every player reports again and again. It is reported before a request: all that
// holding come together since the request before.
type Progress struct {
	Event string  `json:"event"`
	N     float64 `json:"n"`
	Per   string  `json:"per"`            // draw or day
	Keys  int     `json:"keys,omitempty"` // each comes with one of so many keys, at random; 0: without one
}

// Bounds of progress.
const (
	MaxProgress     = 64   // events
	MaxProgressRate = 1e12 // of one of them
	MaxProgressKeys = 1e6
	maxKeyed        = 1000 // reports with keys before one request
)

const dayMillis = 24 * hourMillis

// goals is what quests and counters need.
type goals struct {
	questAt   map[uint32]int // by the number of a quest's counter: its place in the catalog
	realmWide bool           // a counter is the realm's
	scarcer   bool           // something that quests give is limited
	rising    bool           // the price rises with a counter
	rankedAt  map[uint32]int // by the number of a counter whose ranks have rewards: its place in the catalog
	prized    bool           // there are some
}

// findGoals finds what quests give, and what makes players depend on each other. It returns the most codes
// of one list that quests which claim themselves can give in a request.
func (p *plan) findGoals() (codes uint64) {
	p.questAt = make(map[uint32]int, len(p.tables.Quests))
	p.rising = !p.pool.PriceBy.Empty()
	for i := range p.c.Counters {
		p.realmWide = p.realmWide || p.c.Counters[i].For == catalog.ForRealm
	}
	for i, q := range p.tables.Quests {
		p.questAt[q.Num] = i
		for k, t := range q.Config.Steps() {
			codes = max(codes, p.findGiven(q.Tiers[k].Reward(), &t.Reward))
		}
	}
	return max(codes*rules.MaxFired, findRanks(p))
}

// findGiven finds what the reward of a quest or a rank can give, and returns the most codes of it.
func (p *plan) findGiven(w *rules.Reward, config *catalog.Reward) (codes uint64) {
	p.addLists(config.Codes)
	codes = min(uint64(len(config.Codes)), 1)
	for _, in := range w.Inner {
		for _, pt := range odds.Reach(p.tables, in.Pool) {
			p.scarcer = p.scarcer || len(pt.Config.Budgets) > 0
			for _, num := range pt.Order {
				e := &pt.Entries[num]
				p.addLists(e.Config.Reward.Codes)
				p.scarcer = p.scarcer || e.Limited
			}
		}
		codes += in.Max * in.Pool.Picks
	}
	return codes
}

func (p *plan) checkProgress() error {
	if len(p.Progress) > MaxProgress {
		return wrong("progress", "%d events: expected at most %d", len(p.Progress), MaxProgress)
	}
	for i, g := range p.Progress {
		switch {
		case len(p.tables.Events[g.Event]) == 0:
			return wrong("progress", "%q: expected an event that a counter of the catalog counts", g.Event)
		case slices.ContainsFunc(p.Progress[:i], func(o Progress) bool { return o.Event == g.Event }):
			return wrong("progress", "%s: expected each event once", g.Event)
		case !(g.N > 0 && g.N <= MaxProgressRate):
			return wrong("progress", "%s=%v: expected a number above 0, at most %v", g.Event, g.N, float64(MaxProgressRate))
		case g.Per != "draw" && g.Per != "day":
			return wrong("progress", "%s, per %q: expected draw or day", g.Event, g.Per)
		case g.Per == "day" && p.Rate == 0:
			return wrong("progress", "%s, per day: expected --rate or --days too, or no time passes", g.Event)
		case g.Keys < 0 || g.Keys > MaxProgressKeys:
			return wrong("progress", "%s: expected at most %v keys, found %d", g.Event, float64(MaxProgressKeys), g.Keys)
		}
	}
	return nil
}

// quests is what a crowd has found of quests, by their place in the catalog.
type quests struct {
	tiers  []uint64   // that were claimed
	got    [][]uint64 // players who have claimed each tier
	prizes [][]uint64 // items that it gave, by item number
}

func newQuests(p *plan) (q quests) {
	for i := range p.c.Quests {
		q.got = append(q.got, make([]uint64, len(p.c.Quests[i].Steps())))
		q.prizes = append(q.prizes, make([]uint64, len(p.c.Items)))
	}
	q.tiers = make([]uint64, len(p.c.Quests))
	return q
}

func (q *quests) add(o *quests) {
	addAll(q.tiers, o.tiers)
	for i := range q.got {
		addAll(q.got[i], o.got[i])
		addAll(q.prizes[i], o.prizes[i])
	}
}

// questing is how far the players of a crowd have come.
type questing struct {
	farthest []uint16   // by player, then quest: the highest tier that they have claimed
	told     [][]uint64 // by player, then event of Progress: how much of it was reported
	dues     rules.Due
	makes    rules.Command // a Progress
	claims   rules.Command
	collects rules.Command
	waits    []uint64 // by player: what is in the mailbox
}

// advance reports the progress that a player has made since the request before.
func (c *crowd) advance(i int, now int64) error {
	for k, g := range c.Progress {
		made := g.N * float64(c.players[i].asked)
		if g.Per == "day" {
			made = g.N * float64(now-c.start) / dayMillis
		}
		if c.told[i] == nil {
			c.told[i] = make([]uint64, len(c.Progress))
		}
		n := uint64(math.Floor(made+1e-9)) - c.told[i][k]
		if n == 0 {
			continue
		}
		c.told[i][k] += n
		c.makes.Player, c.makes.Event, c.makes.N = c.cmd.Player, g.Event, min(n, rules.MaxQuantity)
		times := uint64(1)
		if g.Keys > 0 {
			times, c.makes.N = min(n, maxKeyed), 1
		}
		for range times {
			if c.makes.Key = ""; g.Keys > 0 {
				c.makes.Key = fmt.Sprint(c.src.Uint64() % uint64(g.Keys))
			}
			c.makes.Change()
			if st, err := c.do(&c.makes, now); err != nil || st != rules.OK {
				return fmt.Errorf("player %s reports %s: %v: %w", c.cmd.Player, g.Event, st, err)
			}
			if err := c.tell(i, now, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// claimAll claims what a player can claim of all quests, as long as there is more.
func (c *crowd) claimAll(i int, now int64) error {
	for again := len(c.tables.Quests) > 0; again; {
		again = false
		for k, q := range c.tables.Quests {
			if !reaches(c.rules, q, c.cmd.Player, now) {
				continue
			}
			c.claims.Player, c.claims.Quest = c.cmd.Player, c.c.Quests[k].ID
			c.claims.Change()
			st, err := c.do(&c.claims, now)
			if err == nil && st == rules.OK {
				again, err = true, c.tell(i, now, false)
			}
			if err != nil {
				return fmt.Errorf("player %s claims %s: %w", c.cmd.Player, c.claims.Quest, err)
			}
		}
	}
	return nil
}

// reaches reports whether a player has reached the next tier of a quest.
func reaches(r *rules.Rules, q *rules.Quest, player string, now int64) (yes bool) {
	r.Look(player, now, func(s *rules.Sight) {
		n := s.Claimed(q)
		yes = n < uint64(len(q.Tiers)) && q.When.Met(s) && rules.Reaches(q.Tiers[n].Needs, s)
	})
	return yes
}

// claimed counts a tier that a player has claimed. farthest has the highest tier of each quest so far.
func (q *quests) claimed(farthest []uint16, quest int, tier uint64) {
	q.tiers[quest]++
	for at := &farthest[quest]; uint64(*at) < tier; *at++ {
		q.got[quest][*at]++
	}
}

// lacking returns what a request has lacked, from its event.
func lacking(state *store.State, ev *store.Event) (all []catalog.Stack, err error) {
	_, lacks, err := rules.WhyOf(ev)
	for _, l := range lacks {
		if l.Need > catalog.MaxQuantity {
			return nil, err // nobody can hold so much
		}
		all = append(all, catalog.Stack{Item: state.ItemID(l.Item), Quantity: l.Need - l.Have})
	}
	return all, err
}

// Quest is how far the players have come in a quest, and what it has given them.
type Quest struct {
	Quest  string   `json:"quest"`
	Claims uint64   `json:"claims"` // of tiers, by all players, in all periods
	Tiers  []uint64 `json:"tiers"`  // players who have claimed each tier, at least once
	Given  []Prize  `json:"given,omitempty"`
}

// Prize is how many of an item there were in all, such as what a quest has given.
type Prize struct {
	Item      string   `json:"item"`
	Total     uint64   `json:"total"`
	PerPlayer float64  `json:"per_player"`
	PerDay    *float64 `json:"per_player_and_day,omitempty"` // nil: no time passes
}

func (p *plan) reportQuests(t *tally) (all []Quest) {
	for i := range p.c.Quests {
		all = append(all, Quest{p.c.Quests[i].ID, t.quests.tiers[i], t.quests.got[i], prizesOf(p, t.quests.prizes[i])})
	}
	return all
}

// prizesOf says how many of each item there are, by number, for a player and a day.
func prizesOf(p *plan, items []uint64) (all []Prize) {
	days := 0.0
	if p.Rate > 0 {
		days = float64(p.Players) * float64(p.Draws) / p.Rate / 24
	}
	for k, n := range items {
		if n == 0 {
			continue
		}
		prize := Prize{Item: p.c.Items[k].ID, Total: n, PerPlayer: float64(n) / float64(p.Players)}
		if days > 0 {
			prize.PerDay = new(prize.PerPlayer / days)
		}
		all = append(all, prize)
	}
	return all
}
