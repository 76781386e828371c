// Package simulate draws from a pool as many players would, for those who design catalogs.
//
// It uses the real rules and store, without a log. A crowd is a realm: state, rules and randomness.
//
//	limited stock, budgets or codes     one crowd for all players, who share them
//	otherwise                           many crowds, each with some of the players, on all cores
//
// The same [Config] gives the same [Report] on any number of cores: crowds, players and seeds follow
// from it alone, and results are added up in whole numbers.
package simulate

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/odds"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// Bounds of a simulation.
const (
	MaxPlayers = 10_000_000
	MaxDraws   = 10_000_000 // of one player
	MaxRate    = 1e12       // draws an hour
	MaxCodes   = 1 << 24    // of a list
)

// Config says what to simulate.
type Config struct {
	Pool     string
	Players  int
	Draws    int    // the most draws of one player; a multiple of Count
	Count    int    // draws in a request
	Pay      string // the item to pay with; empty: the first price that the player can pay
	Seed     uint64
	Until    string           // a player who gets this item stops; empty: nobody stops
	Rate     float64          // draws of all players together in an hour; 0: no time passes
	Codes    map[string]int64 // how many codes a list has; others have no limit
	Progress []Progress       // that every player makes
	// Independent gives each player stock of their own.
	Independent bool
	Cores       int // at most so many are used; 0: all
	// Memory is about how many bytes it may take; 0: all there are. One that would take more is refused.
	Memory int64
	// Done counts the draws that are done or will not be made, up to Players × Draws. It may be nil.
	Done *atomic.Int64
}

// ConfigError says which field of a Config is wrong, in the words of the command line.
type ConfigError struct{ Field, Message string }

func (e *ConfigError) Error() string { return e.Field + ": " + e.Message }

func wrong(field, format string, args ...any) error {
	return &ConfigError{field, fmt.Sprintf(format, args...)}
}

// plan is what all crowds of a simulation share. It does not change.
type plan struct {
	Config
	c      *catalog.Catalog
	tables *rules.Tables
	pool   *catalog.Pool
	event  []byte // puts the catalog in force
	start  int64  // Unix milliseconds
	shared bool   // one crowd for all
	lines  []line
	// firstLine holds by pool number the pool's first line; noLine: it cannot be reached.
	firstLine []int32
	sampled   []int32 // the first lines with limited stock, at most maxSampled
	untilItem uint32  // number of Until; noItem: none
	supplies
	prices
	goals
}

// prices is what the players pay.
type prices struct {
	offers []offer
	ahead  bool     // buying for later draws makes no difference
	paid   []uint32 // numbers of the items that draws are paid with
}

const (
	noLine     = -1
	noItem     = 1<<32 - 1
	maxSampled = 32
)

// line is an entry that draws from the pool can take, there or in a pool below.
type line struct {
	in     *rules.Pool
	pool   *catalog.Pool
	entry  *catalog.Entry
	number uint32 // of the entry
	once   bool   // one draw takes it at most once
}

func (l *line) limited() bool { return !l.entry.Stock.Unlimited }

type offer struct {
	price []bought
	times uint64 // how many of it a request takes
}

// bought is a part of a price.
type bought struct {
	catalog.Stack          // what players buy of it: of a family, its first item or the one to pay with
	items         []uint32 // what can pay for it
}

// begin is when a pool without a start begins: a Monday, 00:00 UTC, before any pool ends.
const begin = 978_307_200_000 // 2001-01-01

// newPlan checks a Config. In a first catalog, items, pools and entries have their indexes as numbers.
func newPlan(c *catalog.Catalog, config Config) (*plan, error) {
	p := &plan{Config: config, start: begin}
	prepared, err := rules.Prepare(store.New(), rules.NoTables(), withoutCodes(c), nil, 0)
	if err != nil {
		return nil, err
	}
	p.c, p.tables = prepared.Tables.Catalog, prepared.Tables
	at := slices.IndexFunc(p.c.Pools, func(q catalog.Pool) bool { return q.ID == p.Pool })
	if at < 0 || p.c.Pools[at].Internal {
		return nil, wrong("pool", "%q: expected one that players draw from: %s", p.Pool, drawable(p.c))
	}
	p.pool = &p.c.Pools[at]
	if p.start = firstSeason(p.c, p.pool.EndsAt); p.pool.StartsAt != 0 {
		p.start = p.pool.StartsAt
	}
	if err := p.enter(prepared); err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	p.findLines()
	if err := p.findSupply(); err != nil {
		return nil, err
	}
	if err := p.checkProgress(); err != nil {
		return nil, err
	}
	p.findPrices()
	if p.Pay != "" && len(p.offers) == 0 {
		return nil, wrong("pay", "%q: expected an item of the pool's price", p.Pay)
	}
	p.shared = !p.Independent && (p.scarce() || p.realmWide)
	if err := checkMemory(p); err != nil {
		return nil, err
	}
	if p.Until == "" {
		p.untilItem = noItem
		return p, nil
	}
	var known bool
	if p.untilItem, known = p.tables.ItemNum[p.Until]; !known {
		return nil, wrong("until", "%q: expected an item of the catalog", p.Until)
	}
	if !p.gives(p.Until) {
		return nil, wrong("until", "%q: expected an item that the pool %s, a quest or a rank can give", p.Until, p.Pool)
	}
	return p, nil
}

// firstSeason returns when the first season begins by which something counts, unless the pool has ended by then: the
// first moment for pools without a start.
func firstSeason(c *catalog.Catalog, ends int64) int64 {
	start := int64(begin)
	by := func(p catalog.Period) bool { return p.Per == catalog.PerSeason }
	if len(c.Seasons) == 0 || !slices.ContainsFunc(c.Counters, func(ct catalog.Counter) bool { return by(ct.Per) }) && !slices.ContainsFunc(c.Quests, func(q catalog.Quest) bool { return by(q.Per) }) {
		return start
	}
	first := slices.MinFunc(c.Seasons, func(a, b catalog.Season) int { return cmp.Compare(a.Starts, b.Starts) }).Starts
	if ends == 0 || first < ends {
		return first
	}
	return start
}

// withoutCodes returns a catalog without codes that pay: simulated players have as many as they want.
func withoutCodes(c *catalog.Catalog) *catalog.Catalog {
	free := *c
	free.Pools, free.Guesses = slices.Clone(c.Pools), catalog.Guesses{}
	for i := range free.Pools {
		free.Pools[i].Redeem = nil
	}
	return &free
}

func drawable(c *catalog.Catalog) string {
	names := ""
	for i := range c.Pools {
		if !c.Pools[i].Internal && len(names) <= 200 {
			names += ", " + c.Pools[i].ID
		}
	}
	if len(names) > 200 {
		names += " …"
	}
	return strings.TrimPrefix(names, ", ")
}

func (p *plan) check() error {
	switch {
	case p.Players < 1 || p.Players > MaxPlayers:
		return wrong("players", "%d: expected from 1 to %d", p.Players, MaxPlayers)
	case p.Draws < 1 || p.Draws > MaxDraws:
		return wrong("draws", "%d: expected from 1 to %d", p.Draws, MaxDraws)
	case p.Count < 1 || p.Count > int(p.pool.MaxCount):
		return wrong("count", "%d: expected from 1 to %d, the pool's max_count", p.Count, p.pool.MaxCount)
	case p.Draws%p.Count != 0:
		return wrong("draws", "%d: expected a multiple of %d, the draws in a request", p.Draws, p.Count)
	case !(p.Rate >= 0 && p.Rate <= MaxRate):
		return wrong("rate", "%v: expected from 0 to %v draws an hour", p.Rate, float64(MaxRate))
	case p.Rate > 0 && float64(p.Players)*float64(p.Draws)/p.Rate*hourMillis > float64(rules.MaxTime-p.start):
		return wrong("rate", "%v: expected a rate at which the draws end before the year 4199", p.Rate)
	}
	return nil
}

const hourMillis = 3_600_000

// findLines finds the entries that draws from the pool can take, each pool before those below it.
func (p *plan) findLines() {
	p.firstLine = slices.Repeat([]int32{noLine}, len(p.c.Pools))
	root := p.tables.PoolByID[p.Pool]
	once := map[*rules.Pool]bool{root: true}
	for _, pt := range odds.Reach(p.tables, root) {
		q := pt.Config
		mine := once[pt] && (q.Rolls.Max == 1 || q.Rolls.Distinct)
		p.firstLine[pt.Num] = int32(len(p.lines))
		for _, num := range pt.Order {
			e := &pt.Entries[num]
			if e.Limited && len(p.sampled) < maxSampled {
				p.sampled = append(p.sampled, int32(len(p.lines)))
			}
			p.lines = append(p.lines, line{pt, q, e.Config, num, mine})
			for _, in := range e.Inner {
				below, seen := once[in.Pool]
				once[in.Pool] = mine && q.Mode != catalog.ModeEach && q.Rolls.Max == 1 &&
					len(e.Inner) == 1 && in.Max == 1 && len(pt.Last.Inner) == 0 && (below || !seen)
			}
		}
		for _, in := range pt.Last.Inner {
			once[in.Pool] = false
		}
	}
}

// gives reports whether draws from the pool can give an item.
func (p *plan) gives(item string) bool {
	gives := func(w *catalog.Reward) bool {
		return slices.ContainsFunc(w.Items, func(q catalog.Quantity) bool { return q.Item == item })
	}
	if slices.ContainsFunc(p.c.Quests, func(q catalog.Quest) bool {
		return slices.ContainsFunc(q.Steps(), func(t catalog.Tier) bool { return gives(&t.Reward) || len(t.Reward.Draws) > 0 })
	}) || slices.ContainsFunc(p.c.Counters, func(c catalog.Counter) bool {
		return slices.ContainsFunc(c.Ranked.Rewards, func(r catalog.Prize) bool { return gives(&r.Reward) || len(r.Reward.Draws) > 0 })
	}) {
		return true
	}
	return slices.ContainsFunc(p.lines, func(l line) bool { return gives(&l.entry.Reward) || gives(&l.pool.Last) })
}

// findPrices finds what players buy to pay for a request, in the rules' order of prices.
func (p *plan) findPrices() {
	_, families := p.c.Families()
	add := func(price []catalog.Stack, times int) {
		o, chosen := offer{times: uint64(times)}, p.Pay == ""
		for _, st := range price {
			chosen = chosen || st.Item == p.Pay
			if of := families[st.Item]; of != nil {
				st.Item = of[0]
				if slices.Contains(of, p.Pay) {
					of, st.Item, chosen = []string{p.Pay}, p.Pay, true
				}
				o.price = append(o.price, bought{st, numbers(p, of)})
			} else {
				o.price = append(o.price, bought{st, numbers(p, []string{st.Item})})
			}
		}
		for _, part := range o.price {
			for _, n := range part.items {
				if !slices.Contains(p.paid, n) {
					p.paid = append(p.paid, n)
				}
			}
		}
		if chosen {
			p.offers = append(p.offers, o)
		}
	}
	for _, b := range p.pool.Bundles {
		if int(b.Draws) == p.Count {
			add(b.Price, 1)
		}
	}
	for _, price := range p.pool.Price {
		add(price, p.Count)
	}
	if p.rising {
		p.findSteps()
		return
	}
	p.ahead = len(p.offers) == 1 && !slices.ContainsFunc(p.offers[0].price, p.watched)
}

// findSteps finds what else players pay where the price rises with a counter. They buy what a request lacks.
func (p *plan) findSteps() {
	for _, s := range p.pool.PriceBy.Steps {
		for _, st := range s.Price {
			if n := p.tables.ItemNum[st.Item]; !slices.Contains(p.paid, n) {
				p.paid = append(p.paid, n)
			}
		}
	}
	if p.Pay != "" && len(p.offers) == 0 {
		named := func(s catalog.PriceStep) bool {
			return slices.ContainsFunc(s.Price, func(st catalog.Stack) bool { return st.Item == p.Pay })
		}
		if slices.ContainsFunc(p.pool.PriceBy.Steps, named) {
			p.offers = append(p.offers, offer{times: 1})
		}
	}
}

func numbers(p *plan, items []string) (all []uint32) {
	for _, id := range items {
		all = append(all, p.tables.ItemNum[id])
	}
	return all
}

// watched reports whether anything can depend on how many of an item a player holds.
func (p *plan) watched(st bought) bool {
	w := &p.pool.When
	for _, item := range st.items {
		if p.tables.GrowthOf(item) != nil || p.tables.CapOf(item) != nil {
			return true
		}
	}
	return len(p.tables.Families) > 0 || p.tables.Watched.Has(p.tables.ItemNum[st.Item]) || len(p.tables.Gains(p.tables.ItemNum[st.Item])) > 0 || slices.Contains(w.Lacks, st.Item) ||
		slices.ContainsFunc(w.Holds, func(h catalog.Stack) bool { return h.Item == st.Item })
}

// Sizes of a crowd that shares nothing with others.
const (
	crowdDraws    = 1 << 14 // about how many draws it makes
	drawsForEntry = 16      // how many more for each entry: a large catalog takes time to put in force
	crowdPlayers  = 1 << 12 // the most players
	crowdCells    = 1 << 20 // the most numbers kept of them
)

// crowdSize returns how many players share a crowd.
func (p *plan) crowdSize() int {
	switch {
	case p.shared:
		return p.Players
	case p.Independent && (p.scarce() || p.realmWide):
		return 1
	}
	draws := crowdDraws
	for i := range p.c.Pools {
		draws += drawsForEntry * len(p.c.Pools[i].Entries)
	}
	return max(1, min(p.Players, crowdPlayers, draws/p.Draws, crowdCells/max(1, len(p.lines)+len(p.c.Quests))))
}

// Run simulates. It returns a *[ConfigError], an error of the rules about the catalog, or the context's.
func Run(ctx context.Context, c *catalog.Catalog, config Config) (*Report, error) {
	if config.Done == nil {
		config.Done = new(atomic.Int64)
	}
	p, err := newPlan(c, config)
	if err != nil {
		return nil, err
	}
	size := p.crowdSize()
	crowds := (p.Players + size - 1) / size
	all := newTally(p)
	var (
		mu      sync.Mutex
		next    int // the next crowd to begin
		failed  error
		running sync.WaitGroup
	)
	work := func() {
		mu.Lock()
		defer mu.Unlock()
		for failed == nil && next < crowds {
			n := next
			next++
			mu.Unlock()
			c, err := newCrowd(p, n, n*size, min(size, p.Players-n*size))
			if err == nil {
				err = c.run(ctx)
			}
			mu.Lock()
			if err == nil {
				all.add(&c.tally)
			} else if failed == nil {
				failed = err
			}
		}
	}
	cores := runtime.GOMAXPROCS(0)
	if p.Cores > 0 {
		cores = min(cores, p.Cores)
	}
	for range min(crowds, cores) {
		running.Go(work)
	}
	running.Wait()
	if failed != nil {
		return nil, failed
	}
	return p.report(all), nil
}

// enter keeps the event that puts the catalog in force when the pool begins, and what it says of items that grow.
func (p *plan) enter(prepared *rules.Prepared) error {
	var w store.Writer
	if err := prepared.Enter(store.New(), p.start, &w); err != nil {
		return err
	}
	p.event = w.Buf
	s, ev := store.New(), store.Event{}
	if _, err := store.Decode(p.event, &ev); err != nil {
		return err
	}
	if err := s.Apply(&ev, store.At{Position: 1, Time: p.start}, nil); err != nil {
		return err
	}
	p.tables.Grown(s)
	return nil
}
