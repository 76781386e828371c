package odds

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
	"github.com/kuji-dev/kuji/view"
)

// With pity, what a pool gives in the long run, to a player who draws again and again, differs from
// what the first draw gives. The counters of its tracks go from state to state: a Markov chain. Its
// stationary distribution, the share of draws made in each state, gives the long-run rate of every
// entry. All is exact, except that the chain is solved in 256 bits.

const (
	maxChain     = 5000    // states of a chain
	maxChainSize = 1 << 19 // states times entries
	maxChainWork = 1 << 28 // as MaxWork, for all states together and for the solution
	precision    = 256     // bits of the numbers in the solution
)

// always is the Going of a caller who waits as long as it takes.
func always() bool { return true }

// Disclose returns the odds of every pool that players can draw from directly.
func Disclose(c *catalog.Catalog, pool string, going Going) ([]view.Disclosed, error) {
	p, err := rules.Prepare(store.New(), rules.NoTables(), c, nil, 0)
	if err != nil {
		return nil, err
	}
	var all []view.Disclosed
	for i := range p.Tables.Catalog.Pools {
		d := view.Disclosed{Pool: &p.Tables.Catalog.Pools[i]}
		if !going() {
			break
		}
		if d.Pool.Internal || pool != "" && pool != d.Pool.ID {
			continue
		}
		var s *Standing
		if s, d.Err = first(p.Tables, d.Pool.ID); d.Err == nil {
			if d.Odds, d.Err = s.Odds(going); d.Err == nil {
				d.LongRun, d.Why = s.longRun(&d.Odds)
				d.Requests = s.requests()
			}
		}
		all = append(all, d)
	}
	return all, nil
}

// LongRun returns how many times a draw from a pool takes each entry, here and below, when a player
// draws again and again in requests for count draws, while stock, codes and budgets last and no moment
// comes. If that is not known, it says why.
func LongRun(t *rules.Tables, pool string, count int) (all []view.OutcomeOdds, why string) {
	s, err := first(t, pool)
	if err != nil {
		return nil, err.Error()
	}
	within := count > 1 && len(s.root.Must) > 0
	if within {
		s.count = uint64(count)
	}
	now, err := s.Odds(always)
	if err != nil {
		return nil, err.Error()
	}
	rates, why := s.longRun(&now)
	if within && why == "" && len(now.Pity) > 0 {
		why = "a guarantee changes what pity gives in requests for several draws"
	}
	if why != "" {
		return nil, why
	}
	for i, e := range now.Outcomes {
		if e.Expected = rates[i]; within {
			e.Expected = new(big.Rat).Quo(e.Expected, new(big.Rat).SetUint64(s.count))
		}
		all = append(all, e)
	}
	return all, ""
}

// requests returns what requests for as many draws as a guarantee needs give.
func (s *Standing) requests() (all []view.DisclosedRequest) {
	var counts []uint64
	for k := range s.root.Must {
		if n := s.root.Must[k].Draws; n > 1 && !slices.Contains(counts, n) {
			counts = append(counts, n)
		}
	}
	slices.Sort(counts)
	for _, n := range counts {
		at := *s
		at.count = n
		o, err := at.Odds(always)
		q := view.DisclosedRequest{Count: int(n), Err: err}
		for i := range o.Outcomes {
			q.Expected = append(q.Expected, o.Outcomes[i].Expected)
		}
		all = append(all, q)
	}
	return all
}

// first returns the standing of a newcomer before the first draw from a pool.
func first(t *rules.Tables, pool string) (*Standing, error) {
	left := func(pt *rules.Pool, entry uint32) uint64 { return pt.Entries[entry].Config.Stock.Count }
	return Newcomer(t, t.PoolByID[pool], left, func(*rules.Pool) uint64 { return 0 })
}

// markov is the Markov chain of a pool's tracks.
type markov struct {
	rows   [][]step     // by state, ascending
	taken  [][]*big.Rat // by state: how often a draw takes each outcome, on average
	budget int
	many   bool // there are too many states
}

// step is how likely the chain goes to another state.
type step struct {
	to     int
	chance *big.Float
}

func number() *big.Float { return new(big.Float).SetPrec(precision) }

// longRun returns how often a draw takes each outcome in the long run, given the odds of the first.
func (s *Standing) longRun(now *view.Odds) (rates []*big.Rat, why string) {
	tracks, entries := false, 0
	for _, pt := range s.pools {
		tracks = tracks || len(pt.Tracks) > 0
		entries += len(pt.Order)
		for _, num := range pt.Order {
			switch e := &pt.Entries[num]; {
			case len(e.When.Counters) > 0 || e.Luck.Counter != nil:
				return nil, "odds depend on counters, which move and begin again with time"
			case len(e.When.Quests) > 0:
				return nil, "odds depend on the quests that the player has claimed"
			case len(e.When.Holds) > 0 || len(e.When.Lacks) > 0 || len(e.Luck.Steps) > 0 && !e.Luck.Counts:
				return nil, "odds depend on what the player holds"
			}
		}
	}
	if !tracks {
		for i := range now.Outcomes {
			rates = append(rates, now.Outcomes[i].Expected)
		}
		return rates, ""
	}
	most := min(maxChain, maxChainSize/entries)
	c := s.markov(most)
	share := c.stationary()
	switch {
	case c.many:
		return nil, fmt.Sprintf("pity has more than %d states, the most for %d entries", most, entries)
	case c.budget <= 0:
		return nil, fmt.Sprintf("the %d states of pity take more than %d multiplications", len(c.rows), maxChainWork)
	}
	for k := range entries {
		sum := number()
		for state := range share {
			if c.taken[state][k].Sign() > 0 {
				sum.Add(sum, number().Mul(share[state], number().SetRat(c.taken[state][k])))
			}
		}
		rate, _ := sum.Rat(nil)
		rates = append(rates, rate)
	}
	return rates, ""
}

// markov finds all states that can be reached, at most most, and the steps between them.
func (s *Standing) markov(most int) *markov {
	c := &markov{budget: maxChainWork}
	states := joined{known: map[string]int{}}
	states.add(nil, way{chance: new(big.Rat)})
	for i := 0; i < len(states.all) && c.budget > 0; i++ {
		state := states.all[i].facts
		at := *s
		at.facts = maps.Clone(s.facts)
		for _, f := range state {
			at.facts[f.fact] = f.value
		}
		w := newWays(&at, c.budget, always)
		w.keepTracks()
		w.ends = &joined{known: map[string]int{}}
		w.follow(nil)
		w.spread()
		c.budget = w.budget
		c.taken = append(c.taken, slices.Concat(w.taken...))
		var row []step
		for _, end := range w.ends.all {
			next := state
			for _, f := range end.facts {
				if f.fact&factKinds == counterFact { // stock stays as declared
					next = w.set(next, f.fact, f.value)
				}
			}
			next = slices.DeleteFunc(slices.Clone(next), func(f changed) bool { return f.value == s.facts[f.fact] })
			to := states.add(&w.work, way{chance: w.zero, facts: next})
			row = plus(row, to, number().SetRat(end.chance))
		}
		if c.rows = append(c.rows, row); len(states.all) > most {
			c.budget, c.many = 0, true
		}
	}
	return c
}

// keepTracks makes ways keep the counters of all tracks.
func (w *scheme) keepTracks() {
	for i := range w.s.pools {
		w.asks(i, func(f fact, most uint64) {
			if f&factKinds == counterFact {
				w.keeps[f] = max(w.keeps[f], most)
				w.restless[i] = true
			}
		})
	}
	w.findCalm()
}

// settled returns a count from which on all draws have the same odds.
func settled(t *rules.Track, whole uint64) uint64 {
	switch {
	case t.From == 0 || t.Certain != 0:
		return t.Certain
	case t.Table:
		return t.From + uint64(len(t.By))
	case t.By[0] == 0:
		return t.From
	}
	return t.From + whole/t.By[0] + 1
}

func plus(row []step, to int, chance *big.Float) []step {
	i, ok := search(row, to)
	if ok {
		row[i].chance = number().Add(row[i].chance, chance)
		return row
	}
	return slices.Insert(row, i, step{to, chance})
}

func search(row []step, to int) (int, bool) {
	return slices.BinarySearchFunc(row, to, func(s step, to int) int { return cmp.Compare(s.to, to) })
}

// stationary returns the share of draws made in each state in the long run. It takes the states out
// of the chain one by one, the last one first, without a subtraction: Grassmann, Taksar, Heyman,
// "Regenerative Analysis and Steady State Distributions for Markov Chains", Operations Research 33
// (1985). Later states have higher counts, and few steps lead from them: the rows stay short.
func (c *markov) stationary() []*big.Float {
	n := len(c.rows)
	into := make([][]step, n) // by state: the steps to it when it is taken out, over the sum of those from it
	from := make([][]int, n)  // by state: the earlier states with a step to it
	for i, row := range c.rows {
		for _, s := range row {
			if i < s.to && s.to < n {
				from[s.to] = append(from[s.to], i)
			}
		}
	}
	first := n - 1
	for ; first > 0 && c.budget > 0; first-- {
		row := c.rows[first]
		end, _ := search(row, first)
		out := number()
		for _, s := range row[:end] {
			out.Add(out, s.chance)
		}
		if out.Sign() == 0 {
			break // no step leads back to an earlier state
		}
		for _, i := range from[first] {
			at, _ := search(c.rows[i], first)
			part := number().Quo(c.rows[i][at].chance, out)
			into[first] = append(into[first], step{i, part})
			for _, s := range row[:end] {
				if _, known := search(c.rows[i], s.to); !known && i < s.to {
					from[s.to] = append(from[s.to], i)
				}
				c.rows[i] = plus(c.rows[i], s.to, number().Mul(part, s.chance))
			}
			c.budget -= 16 * (end + 1)
		}
	}
	return c.shares(max(first, 0), into)
}

// shares divides the draws among the states from first on.
func (c *markov) shares(first int, into [][]step) []*big.Float {
	share, total := make([]*big.Float, len(c.rows)), number()
	for i := range share {
		share[i] = number()
		if i == first {
			share[i].SetUint64(1)
		}
		for _, s := range into[i] {
			share[i].Add(share[i], number().Mul(share[s.to], s.chance))
		}
		total.Add(total, share[i])
	}
	for i := range share {
		share[i].Quo(share[i], total)
	}
	return share
}
