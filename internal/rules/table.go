package rules

import (
	"cmp"
	"slices"

	"github.com/kuji-dev/kuji/catalog"
)

// Tables is a catalog compiled to numbers. It never changes, so it can be read without a lock.
type Tables struct {
	Version uint64 // 0: no catalog yet
	Catalog *catalog.Catalog
	Hash    [32]byte

	ItemNum   map[string]uint32 // items of this catalog
	ItemAt    []uint32          // by item number: the item's place in the catalog
	PoolByID  map[string]*Pool
	PoolByNum []*Pool // by pool number; nil for pools of other catalogs
	BottomUp  []*Pool // every pool, each after the pools it leads to
	Zone      Zone
	Watched   NumSet            // the items that entries' conditions ask for
	ListNum   map[string]uint32 // lists of codes of this catalog
	limiting
	entering
	goals
	itemRules
}

// limiting is what is counted of draws.
type limiting struct {
	limits []NamedLimit // and free draws, of all pools, by counter number
	tracks
}

// entering is how players come, and what codes pay for.
type entering struct {
	starting
	redeeming
}

// goals is what players can reach.
type goals struct {
	counts
	questing
	playing
}

// itemRules is what items do by themselves.
type itemRules struct {
	lasting
	growing
	families
	capping
	ruled NumSet // the items of any of these, and those that conditions ask for
}

// counts is the counters of a catalog, and who counts what.
type counts struct {
	Counters    []*Counter // in the order of the catalog
	CounterByID map[string]*Counter
	ranked      []*Counter // those that rank players and have periods
	facts
}

func NoTables() *Tables {
	return &Tables{entering: entering{starting: starting{waiting: noCounter}}, goals: goals{playing: playing{rounds: noCounter}}, itemRules: itemRules{lasting: lasting{due: noCounter}, capping: capping{mail: noCounter}}}
}

// Has reports whether the catalog has an item.
func (t *Tables) Has(item string) bool {
	_, ok := t.ItemNum[item]
	return ok
}

// Stack is a quantity of an item, by the item's number.
type Stack struct {
	Item     uint32
	Quantity uint64
}

// Pool is a pool of one catalog.
type Pool struct {
	Num    uint32
	Config *catalog.Pool
	entrance
	Entries []Entry  // by entry number; those of other catalogs are not present
	Order   []uint32 // entry numbers in catalog order
	Classes []Class
	traits
	Moments []*Moments
	Budgets []*Budget // item by item, in the order of the catalog
	pity
	box
	nesting
}

// entrance is who may draw from a pool, how often, and what it costs.
type entrance struct {
	price   [][]Stack // alternatives; none: free
	bundles []bundleTable
	steps   priceSteps
	Free    *Limit // how many draws cost nothing; nil: none
	Limits  []Limit
	when    Condition
	moves   movers // what counts draws that players ask for
}

// traits say what is simple about a pool.
type traits struct {
	single      bool // each draw takes one entry: not in mode each, nor with several rolls
	raffle      bool
	plain       bool // nothing in the pool depends on the player
	conditional bool // an entry has a condition
	Collect     bool // every entry with odds has a condition
	tier        bool // of a quest
}

type bundleTable struct {
	draws uint64
	price []Stack
}

type Limit struct {
	Counter uint32 // number of its first counter
	Per     catalog.Per
	Window  int64
	Draws   uint64
}

// Entry is an entry of one catalog. What every draw reads comes first: it lies in two lines of memory.
type Entry struct {
	Reward
	Costs       []Cost // what it can take from the pool's budgets
	Class       uint32 // index in Pool.Classes
	Present     bool
	Limited     bool
	Conditional bool // it is weighed at each pick: it has a condition, luck, codes or costs

	slot   uint32 // index in the class's members
	Branch int32  // index in nesting.Branches; NoBranch: the pool does not count on it
	Weight uint64
	Most   uint64 // the highest weight that it can have; more than Weight only by luck
	When   Condition
	Luck   Luck
	moves  movers // what counts that it is taken
	ID     string
	Config *catalog.Entry
}

// Reward is what is given at once.
type Reward struct {
	Items []Quantity
	Codes []uint32 // numbers of lists
	Inner []Inner  // draws from other pools
}

// Inner is a number of draws from another pool.
type Inner struct {
	Pool     *Pool
	Min, Max uint64
}

// Quantity is a fixed or uniformly random quantity of an item, by the item's number.
type Quantity struct {
	Item     uint32
	Min, Max uint64
}

// compile fills in what follows from the catalog and its numbers.
func (t *Tables) compile() {
	c := t.Catalog
	t.Start = t.stacks(c.Start)
	for i := range c.Pools {
		p := &c.Pools[i]
		pt := t.PoolByID[p.ID]
		for _, one := range p.Price {
			pt.price = append(pt.price, t.stacks(one))
		}
		for j := range p.Bundles {
			pt.bundles = append(pt.bundles, bundleTable{uint64(p.Bundles[j].Draws), t.stacks(p.Bundles[j].Price)})
		}
		pt.steps = t.priceSteps(&p.PriceBy)
		for j := range pt.Limits {
			t.limits = append(t.limits, NamedLimit{&pt.Limits[j], p.ID, false})
		}
		if pt.Free != nil {
			t.limits = append(t.limits, NamedLimit{pt.Free, p.ID, true})
		}
		pt.single = p.Mode != catalog.ModeEach && p.Rolls.Max == 1
		pt.raffle = p.Mode == catalog.ModeRaffle
		pt.Last = t.reward(&p.Last)
		pt.when = t.condition(pt, &p.When)
		for j := range p.Entries {
			pt.Entries[pt.Order[j]] = t.entry(pt, &p.Entries[j])
			pt.boxful += p.Entries[j].Stock.Count
		}
	}
	t.compileQuests()
	t.compilePrizes()
	compileRounds(t)
	t.watchQuests()
	for _, set := range [...]NumSet{t.Lasting, t.Growing, t.Capped, t.Watched} {
		t.ruled.addAll(set, &NumSet{})
	}
	t.setFacts()
	slices.SortFunc(t.limits, func(a, b NamedLimit) int { return cmp.Compare(a.Counter, b.Counter) })
	t.nest()
	for _, pt := range slices.Concat(t.BottomUp, t.tierPools) {
		pt.lasting, pt.capped = t.lastingOf(pt.Gains), t.cappedOf(pt.Gains)
	}
	t.setRedeem()
}

func (t *Tables) stacks(in []catalog.Stack) []Stack {
	out := make([]Stack, len(in))
	for i, st := range in {
		num, _ := named(t, st.Item)
		out[i] = Stack{Item: num, Quantity: st.Quantity}
	}
	return out
}

func (t *Tables) entry(pt *Pool, e *catalog.Entry) Entry {
	et := Entry{ID: e.ID, Config: e, Present: true, Limited: !e.Stock.Unlimited, Weight: e.Weight, When: t.condition(pt, &e.When)}
	if pt.raffle {
		et.Weight = 1
	}
	et.Reward = t.reward(&e.Reward)
	if e.Unique {
		for _, q := range et.Items {
			et.When.Lacks = append(et.When.Lacks, q.Item)
		}
	}
	et.Most, et.Luck = et.Weight, t.luck(pt, &e.Luck)
	if e.Moments.Count > 0 {
		et.Most = 1
	}
	for _, s := range et.Luck.Steps {
		et.Most = max(et.Most, s.Weight)
	}
	et.Conditional = !et.When.empty() || len(et.Luck.Steps) > 0 || len(et.Codes) > 0
	t.watch(&et)
	return et
}

func (t *Tables) reward(w *catalog.Reward) (out Reward) {
	out.Items = make([]Quantity, 0, len(w.Items))
	for _, q := range w.Items {
		out.Items = append(out.Items, Quantity{Item: t.ItemNum[q.Item], Min: q.Min, Max: q.Max})
	}
	for _, list := range w.Codes {
		out.Codes = append(out.Codes, t.ListNum[list])
	}
	for _, in := range w.Draws {
		out.Inner = append(out.Inner, Inner{t.PoolByID[in.Pool], uint64(in.Min), uint64(in.Max)})
	}
	return out
}
