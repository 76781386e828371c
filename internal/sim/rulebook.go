package sim

import (
	"fmt"
	"slices"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

// rulebook answers what the catalog in force says, without the stock and the player.
type rulebook struct {
	catalog *catalog.Catalog // nil: none yet
}

// pool returns a pool, nil if the catalog in force does not have it.
func (r rulebook) pool(id string) *catalog.Pool {
	if r.catalog == nil {
		return nil
	}
	for i := range r.catalog.Pools {
		if r.catalog.Pools[i].ID == id {
			return &r.catalog.Pools[i]
		}
	}
	return nil
}

// unknown returns something that a command or a member of a group names and the catalog does not
// have, else "". c is nil if there is no catalog yet.
func unknown(c *catalog.Catalog, rec kuji.Record) string {
	switch {
	case rec.Kind == "redeem", rec.Kind == "cancel_round": // a code that no list has is a guess
		return ""
	case c == nil:
		return "anything"
	}
	if rec.Kind == "draw" && !slices.ContainsFunc(c.Pools, func(p catalog.Pool) bool { return p.ID == rec.Pool && !p.Internal }) {
		return "pool " + rec.Pool
	}
	if rec.Kind == "set_limit" && limitOf(c, rec) == nil {
		return fmt.Sprintf("a limit per %v of pool %s", rec.Limit.Per, rec.Pool)
	}
	switch r := (rulebook{c}); {
	case rec.Kind == "progress" && !slices.ContainsFunc(c.Counters, func(one catalog.Counter) bool { return slices.Contains(one.Events(), rec.Event) }):
		return "event " + rec.Event
	case rec.Kind == "claim" && r.quest(rec.Quest) == nil:
		return "quest " + rec.Quest
	case isRound(rec.Kind) && (r.round(rec.Round.Name) == nil || rec.Kind == "open_round" && r.round(rec.Round.Name).Every != 0): // by the calendar
		return "round " + rec.Round.Name
	case rec.Kind == "set_counter" && r.counter(rec.Counter) == nil:
		return "counter " + rec.Counter
	}
	items := slices.Clone(rec.Items)
	if rec.Pay != "" && !(rulebook{c}).isFamily(rec.Pay) {
		items = append(items, kuji.Stack{Item: rec.Pay})
	}
	for _, it := range items {
		if !slices.ContainsFunc(c.Items, func(known catalog.Item) bool { return known.ID == it.Item }) {
			return "item " + it.Item
		}
	}
	return ""
}

// limitOf returns the limit that a SetLimit is about, nil if the catalog does not have it.
func limitOf(c *catalog.Catalog, rec kuji.Record) *catalog.PlayerLimit {
	for i := range c.Pools {
		for j, l := range c.Pools[i].Limits {
			if c.Pools[i].ID == rec.Pool && l.Per == rec.Limit.Per && l.Window == rec.Limit.Window {
				return &c.Pools[i].Limits[j]
			}
		}
	}
	return nil
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
	case kuji.SetLimit:
		return unknown(c, kuji.Record{Kind: "set_limit", Pool: q.Pool, Limit: &kuji.Limit{Per: q.Per, Window: q.Window}}) != ""
	case kuji.Progress:
		return unknown(c, kuji.Record{Kind: "progress", Event: q.Event}) != ""
	case kuji.Claim:
		return unknown(c, kuji.Record{Kind: "claim", Quest: q.Quest}) != ""
	case kuji.SetCounter:
		return unknown(c, kuji.Record{Kind: "set_counter", Counter: q.Counter}) != ""
	case kuji.OpenRound:
		return unknown(c, kuji.Record{Kind: "open_round", Round: &kuji.RoundView{Name: q.Round}, Items: q.Stake}) != ""
	case kuji.Join:
		return unknown(c, kuji.Record{Kind: "join", Round: &kuji.RoundView{Name: q.Round}, Items: q.Stake}) != ""
	case kuji.Settle:
		return unknown(c, kuji.Record{Kind: "settle", Round: &kuji.RoundView{Name: q.Round}}) != ""
	case kuji.Reroll:
		return unknown(c, kuji.Record{Kind: "reroll", Round: &kuji.RoundView{Name: q.Round}}) != ""
	case kuji.Atomic:
		return slices.ContainsFunc(q.Members, func(m kuji.Request) bool { return namesUnknown(c, m) })
	}
	return false
}

func (r rulebook) timeOrdered() bool {
	return r.catalog != nil && r.catalog.Idempotency.IDs == catalog.IDsTimeOrdered
}

// guesses is the limit on codes that do not exist: none before there is a catalog.
func (r rulebook) guesses() catalog.PlayerLimit {
	if r.catalog == nil {
		return catalog.PlayerLimit{}
	}
	return catalog.PlayerLimit{Per: r.catalog.Guesses.Per, Draws: r.catalog.Guesses.Count}
}

// rewarded reports whether rewards give the codes of a list.
func (r rulebook) rewarded(list string) bool {
	for i := range r.catalog.Pools {
		p := &r.catalog.Pools[i]
		if slices.ContainsFunc(p.Entries, func(e catalog.Entry) bool { return slices.Contains(e.Reward.Codes, list) }) {
			return true
		}
	}
	return false
}

// leadsTo returns the pool to which an entry leads: its reward is one draw of one entry from there. It
// is out of stock when that pool is. For other entries it returns nil.
func (r rulebook) leadsTo(e *catalog.Entry) *catalog.Pool {
	if d := e.Reward.Draws; len(d) == 1 && d[0].Max == 1 {
		if p := r.pool(d[0].Pool); p.Mode != catalog.ModeEach && p.Rolls.Max == 1 {
			return p
		}
	}
	return nil
}

// personal reports whether an entry in stock can be missing for some player or at some time.
func (r rulebook) personal(p *catalog.Pool, e *catalog.Entry) bool {
	return e.Moments.Count > 0 || len(e.Reward.Codes) > 0 || r.costly(p, e) || !e.When.Empty() || e.Unique || !e.Luck.Empty()
}

// never reports that an entry has no odds, whatever the stock and the player.
func never(p *catalog.Pool, e *catalog.Entry) bool {
	lucky := slices.ContainsFunc(e.Luck.Steps, func(s catalog.LuckStep) bool { return s.Weight > 0 })
	return p.Mode != catalog.ModeRaffle && e.Weight == 0 && !lucky && e.Moments.Count == 0
}

// collection reports whether every entry of a pool is personal.
func (r rulebook) collection(p *catalog.Pool) bool {
	return p.Mode == catalog.ModeWeighted &&
		!slices.ContainsFunc(p.Entries, func(e catalog.Entry) bool { return !r.personal(p, &e) && e.Weight > 0 })
}

// endless reports whether a pool can never run out.
func (r rulebook) endless(p *catalog.Pool) bool {
	return p.Mode == catalog.ModeEach || slices.ContainsFunc(p.Entries, func(e catalog.Entry) bool {
		to := r.leadsTo(&e)
		return e.Stock.Unlimited && e.Weight > 0 && !r.personal(p, &e) && (to == nil || r.endless(to))
	})
}

// rewards returns everything that a pool can give at once: its entries' rewards, and the last.
func rewards(p *catalog.Pool) (all []*catalog.Reward) {
	for i := range p.Entries {
		if e := &p.Entries[i]; !never(p, e) {
			all = append(all, &e.Reward)
		}
	}
	return append(all, &p.Last)
}

// below returns the pools that a draw from p can take from, including p.
func (r rulebook) below(p *catalog.Pool) map[string]bool {
	all := map[string]bool{}
	if !r.endless(p) { // only what can run out is shared
		all[p.ID] = true
	}
	for _, w := range rewards(p) {
		for id := range r.reach(w) {
			all[id] = true
		}
	}
	return all
}

// reach returns the pools that a reward can take from.
func (r rulebook) reach(w *catalog.Reward) map[string]bool {
	all := map[string]bool{}
	for _, d := range w.Draws {
		for id := range r.below(r.pool(d.Pool)) {
			all[id] = true
		}
	}
	return all
}

func intersect(a, b map[string]bool) bool {
	for id := range a {
		if b[id] {
			return true
		}
	}
	return false
}

// leaves returns how often one draw from p can end in pools that lead no further.
func (r rulebook) leaves(p *catalog.Pool) uint64 {
	most, sum := uint64(0), uint64(0)
	for i := range p.Entries {
		if e := &p.Entries[i]; !never(p, e) {
			n := max(1, r.ends(&e.Reward))
			most, sum = max(most, n), sum+n
		}
	}
	if p.Mode == catalog.ModeEach {
		most = sum
	}
	return (most + r.ends(&p.Last)) * uint64(p.Rolls.Max)
}

// ends does the same for a reward: 0 if it draws nothing.
func (r rulebook) ends(w *catalog.Reward) (n uint64) {
	for _, d := range w.Draws {
		n += uint64(d.Max) * r.leaves(r.pool(d.Pool))
	}
	return n
}

// best returns the most of an item that one draw from p can give.
func (r rulebook) best(p *catalog.Pool, item string) (most uint64) {
	sum := uint64(0)
	for i := range p.Entries {
		if e := &p.Entries[i]; !never(p, e) {
			n := r.gives(&e.Reward, item)
			most, sum = max(most, n), sum+n
		}
	}
	if p.Mode == catalog.ModeEach {
		most = sum
	}
	return (most + r.gives(&p.Last, item)) * uint64(p.Rolls.Max)
}

func (r rulebook) gives(w *catalog.Reward, item string) (n uint64) {
	for _, q := range w.Items {
		if q.Item == item {
			n += q.Max
		}
	}
	for _, d := range w.Draws {
		n += r.best(r.pool(d.Pool), item) * uint64(d.Max)
	}
	return n
}

// costly reports whether an entry can give an item that a budget of its pool limits.
func (r rulebook) costly(p *catalog.Pool, e *catalog.Entry) bool {
	return slices.ContainsFunc(shares(p), func(s share) bool { return r.gives(&e.Reward, s.item) > 0 })
}

// share is one item of a pool's budget.
type share struct {
	name string
	per  catalog.Per
	item string
	most uint64
}

func shares(p *catalog.Pool) (all []share) {
	for _, b := range p.Budgets {
		owner := "pool " + p.ID
		if b.Share != "" {
			owner = "all " + b.Share
		}
		for _, s := range b.Of {
			all = append(all, share{fmt.Sprint(owner, " ", b.Per, " ", s.Item), b.Per, s.Item, s.Quantity})
		}
	}
	return all
}
