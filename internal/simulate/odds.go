package simulate

import "github.com/kuji-dev/kuji/catalog"

// wanted returns how often a draw takes each line by weights, chances and the stock of full boxes. It
// leaves out what changes odds from draw to draw: conditions, luck, moments, what runs out, pity and
// guarantees. For these two see [odds.LongRun].
func (p *plan) wanted() []float64 {
	draws := make([]float64, len(p.c.Pools)) // from each pool, for one from p.pool
	draws[p.lines[0].in.Num] = 1
	wanted := make([]float64, len(p.lines))
	total := 0.0
	for n := range p.lines { // each pool before those below it
		l := &p.lines[n]
		if int(p.firstLine[l.in.Num]) == n {
			total = baseTotal(l.pool)
		}
		if total > 0 {
			rolls := float64(l.pool.Rolls.Min+l.pool.Rolls.Max) / 2
			wanted[n] = draws[l.in.Num] * rolls * baseWeight(l.pool, l.entry) / total
		}
		for _, in := range l.in.Entries[l.number].Inner {
			draws[in.Pool.Num] += wanted[n] * float64(in.Min+in.Max) / 2
		}
	}
	return wanted
}

func baseWeight(q *catalog.Pool, e *catalog.Entry) float64 {
	switch {
	case q.Mode == catalog.ModeRaffle:
		return float64(e.Stock.Count)
	case !e.Stock.Unlimited && e.Stock.Count == 0:
		return 0
	}
	return float64(e.Weight)
}

// baseTotal returns the sum of a pool's base weights; in mode each, the weight of what is certain.
func baseTotal(q *catalog.Pool) (total float64) {
	if q.Mode == catalog.ModeEach {
		return 100 * float64(q.WeightScale)
	}
	for i := range q.Entries {
		total += baseWeight(q, &q.Entries[i])
	}
	return total
}
