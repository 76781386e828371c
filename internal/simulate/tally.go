package simulate

import (
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/kuji-dev/kuji/internal/rules"
)

// tally is what a crowd has found, or all crowds together.
type tally struct {
	requests uint64
	draws    uint64
	refused  map[rules.Status]Refusal
	gained   []uint64 // by item number
	payments []uint64 // by place in plan.paid
	takes    []uint64 // by line
	codes    []uint64 // given, by list

	// Sums over players who share no stock: draws², and by line takes² and takes × draws.
	drawsSquared      sum
	squares, products []sum

	costs []spread // until the item: in draws, then in each item of plan.paid

	quests
	standings
	ebb
}

// ebb is how the things that all players share went down. Only a shared crowd has it.
type ebb struct {
	soldOut *Moment   // when the pool first refused a request for it; nil: never
	empty   []*Moment // by line: when the last one was taken
	left    []uint64  // by line, at the end
	gone    []*Moment // by list: when the last code was given
	used    []BudgetUse
	samples []StockSample
}

// sum is a sum of products, exact up to 2^128, so the order of adding makes no difference.
type sum struct{ hi, lo uint64 }

func (s *sum) add(o sum) {
	lo, carry := bits.Add64(s.lo, o.lo, 0)
	s.lo, s.hi = lo, s.hi+o.hi+carry
}

func (s *sum) addProduct(x, y uint64) {
	hi, lo := bits.Mul64(x, y)
	s.add(sum{hi, lo})
}

func (s sum) float() float64 { return float64(s.hi)*(1<<64) + float64(s.lo) }

// spread is how many players have each value.
type spread map[uint64]uint64

func newTally(p *plan) *tally {
	lines, lists := len(p.lines), len(p.lists)
	t := &tally{
		refused: map[rules.Status]Refusal{}, gained: make([]uint64, len(p.c.Items)), payments: make([]uint64, len(p.paid)),
		takes: make([]uint64, lines), codes: make([]uint64, lists),
		squares: make([]sum, lines), products: make([]sum, lines), costs: make([]spread, 1+len(p.paid)),
		quests: newQuests(p), standings: newStandings(p),
		ebb: ebb{empty: make([]*Moment, lines), gone: make([]*Moment, lists)},
	}
	for i := range t.costs {
		t.costs[i] = spread{}
	}
	return t
}

// add adds what another crowd has found. The order in which crowds are added makes no difference.
func (t *tally) add(o *tally) {
	t.requests += o.requests
	t.draws += o.draws
	t.drawsSquared.add(o.drawsSquared)
	addAll(t.gained, o.gained)
	addAll(t.payments, o.payments)
	addAll(t.takes, o.takes)
	addAll(t.codes, o.codes)
	t.quests.add(&o.quests)
	t.standings.add(&o.standings)
	for i := range t.squares {
		t.squares[i].add(o.squares[i])
		t.products[i].add(o.products[i])
	}
	for st, r := range o.refused {
		t.refused[st] = Refusal{Requests: t.refused[st].Requests + r.Requests, Stopped: t.refused[st].Stopped + r.Stopped}
	}
	for i, s := range o.costs {
		for v, n := range s {
			t.costs[i][v] += n
		}
	}
	t.ebb = o.ebb // a shared crowd is alone
}

func addAll(to, from []uint64) {
	for i, v := range from {
		to[i] += v
	}
}

// values returns the values, ascending.
func (s spread) values() []uint64 { return slices.Sorted(maps.Keys(s)) }

// count returns how many players have a value.
func (s spread) count() (n uint64) {
	for _, c := range s {
		n += c
	}
	return n
}

// z95 is the quantile of the normal distribution for intervals of 95 %.
const z95 = 1.959963984540054

// seen returns how often a draw takes a line, and the interval of that with a confidence of 95 %.
//
// A player's draws depend on each other, for instance by pity. Players do not. With enough players, the
// variance is that of the ratio of takes to draws over players (Cochran, Sampling Techniques, 6.3), and
// the draws count as the number of independent draws with that variance (Kish, Survey Sampling, 8.2). A
// line that a draw takes at most once has Wilson's interval.
func (p *plan) seen(t *tally, n int) (rate, low, high float64) {
	draws, players := float64(t.draws), float64(p.Players)
	if draws == 0 {
		return 0, 0, 1 // nothing is known
	}
	rate = float64(t.takes[n]) / draws
	once := p.lines[n].once
	alone := rate // the variance of one independent draw
	if once {
		alone = rate * (1 - rate)
	}
	counts := draws // how many independent draws they are worth
	const enough = 100
	if alone > 0 && !p.shared && p.Players >= enough {
		squares := t.squares[n].float() - 2*rate*t.products[n].float() + rate*rate*t.drawsSquared.float()
		variance := max(0, squares) / (draws * draws) * players / (players - 1)
		if variance < 1e-9*rate*rate {
			return rate, rate, rate // the same for every player
		}
		counts = alone / variance
	}
	if !once {
		off := z95 * math.Sqrt(alone/counts)
		if alone == 0 {
			off = z95 * z95 / counts
		}
		return rate, max(0, rate-off), rate + off
	}
	z2 := z95 * z95 / counts
	middle := (rate + z2/2) / (1 + z2)
	off := math.Sqrt(z2*(rate*(1-rate)+z2/4)) / (1 + z2)
	return rate, max(0, min(rate, middle-off)), min(1, max(rate, middle+off))
}
