package catalog

// MaxPriceSteps is the most steps of a price.
const MaxPriceSteps = 100

// PriceBy replaces a pool's price by that of the last step that a counter has reached. Below the first
// step the pool's own price holds. The zero value replaces nothing.
type PriceBy struct {
	Counter string      `json:"counter"`
	Steps   []PriceStep `json:"prices"` // by ascending From
}

// Empty reports whether the price is always the pool's own.
func (p *PriceBy) Empty() bool { return p.Counter == "" && len(p.Steps) == 0 }

// PriceStep is the price of a single draw from a count on.
type PriceStep struct {
	From  uint64  `json:"from"` // at least 1
	Price []Stack `json:"price"`
}

var priceByShape = mapping("price_by",
	"Prices that depend on where a counter stands. Each single draw costs what it costs where the counter stands before that draw.",
	key("counter", id("a counter"), func(p *PriceBy) *string { return &p.Counter }, "The counter.").must(),
	key("prices", list[PriceStep]{"steps", priceStepShape, MaxPriceSteps}, func(p *PriceBy) *[]PriceStep { return &p.Steps },
		"Steps by ascending from. The last one that is reached holds; below the first, the pool's own price does.").must(),
)

var priceStepShape = mapping("price_step", "A price from a count on.",
	key("from", integer[uint64](1, MaxCount), func(s *PriceStep) *uint64 { return &s.From }, "The least count.").must(),
	key("price", anyStacksShape, func(s *PriceStep) *[]Stack { return &s.Price }, "What each single draw costs, in place of the pool's own price.").must(),
)

// priceBy checks prices by a counter.
func (k *poolCheck) priceBy() {
	p := k.p
	switch {
	case p.PriceBy.Empty(), p.Internal:
		return
	case len(p.Price) != 1:
		k.fault("expected one price of the pool too, which holds below the first step, found %d", len(p.Price))
	case len(p.Bundles) > 0:
		k.fault("expected none with bundles: each bundle has its own price")
	}
	k.enter("prices")
	defer k.leave()
	steps := p.PriceBy.Steps
	for i := range k.each(len(steps)) {
		if i > 0 && steps[i].From <= steps[i-1].From {
			k.faultAt("from", "expected more than %d, as in the step before, found %d", steps[i-1].From, steps[i].From)
		}
	}
}

// anyPriceBy reports whether a pool has a price by a counter.
func (c *Catalog) anyPriceBy() bool {
	for i := range c.Pools {
		if !c.Pools[i].PriceBy.Empty() {
			return true
		}
	}
	return false
}

func (p *PriceBy) code(x *coder) {
	if x.ref(&p.Counter); p.Counter != "" {
		many(x, &p.Steps, MaxPriceSteps, 2, func(s *PriceStep, x *coder) {
			number(x, &s.From)
			stacks(&s.Price, x)
		})
	}
}
