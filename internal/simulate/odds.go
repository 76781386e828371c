package simulate

import (
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/odds"
)

// wanted returns how often a draw takes each line by the catalog's base odds: weights, chances and
// the stock of full boxes. It leaves out everything that changes odds from draw to draw: pity,
// guarantees, conditions, luck, moments, and stock, budgets and codes that run out.
//
// It is the only place that says what odds are wanted. What pity makes of them is in longRun.
func (p *plan) wanted() []float64 {
	draws := make([]float64, len(p.c.Pools)) // of each pool, for one of p.pool
	num := map[string]int{}
	for i := range p.c.Pools {
		num[p.c.Pools[i].ID] = i
	}
	draws[num[p.Pool]] = 1
	odds := make([]float64, len(p.lines))
	for n := 0; n < len(p.lines); { // each pool before those below it
		q := p.lines[n].pool
		rolls := float64(q.Rolls.Min+q.Rolls.Max) / 2
		total := baseTotal(q)
		for i := range q.Entries {
			e := &q.Entries[i]
			if total > 0 {
				odds[n+i] = draws[p.lines[n].num] * rolls * baseWeight(q, e) / total
			}
			for _, in := range e.Reward.Draws {
				draws[num[in.Pool]] += odds[n+i] * float64(in.Min+in.Max) / 2
			}
		}
		n += len(q.Entries)
	}
	return odds
}

func baseWeight(q *catalog.Pool, e *catalog.Entry) float64 {
	if q.Mode == catalog.ModeRaffle {
		return float64(e.Stock.Count)
	}
	if !e.Stock.Unlimited && e.Stock.Count == 0 {
		return 0
	}
	return float64(e.Weight)
}

// baseTotal returns what a pool's base weights add up to, or in mode each what is certain.
func baseTotal(q *catalog.Pool) (total float64) {
	if q.Mode == catalog.ModeEach {
		return 100 * float64(q.WeightScale)
	}
	for i := range q.Entries {
		total += baseWeight(q, &q.Entries[i])
	}
	return total
}

// longRun returns how often a draw takes each line in the long run, by pool and entry, while stock,
// codes and budgets last and between moments; or why that is not known.
func (p *plan) longRun() (rates map[[2]string]float64, why string) {
	all, why := odds.LongRun(p.tables, p.Pool, p.Count)
	rates = map[[2]string]float64{}
	for i := range all {
		rates[[2]string{all[i].Pool, all[i].Entry}], _ = all[i].Expected.Float64()
	}
	return rates, why
}
