package catalog

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Limits of counters.
const (
	MaxCounters = 1024        // the most counters in a catalog
	MaxCounted  = 64          // the most events, pools, entries or items that a counter names of each kind
	MaxMoved    = 64          // the most counters that count the same thing
	MaxDistinct = 256         // the most different keys that a counter can count to
	MaxForgiven = 1000        // the most periods that a streak can miss
	MaxCount    = MaxQuantity // the highest value of a counter: it stops there
	MaxRanked   = 16          // the most counters by which players are ranked
	MaxPrizes   = 64          // the most rewards by rank that a counter has
	MaxRank     = 100_000     // the last rank that can have a reward
)

// Counter is a number that is kept for each player, or for the realm. What it counts moves it.
type Counter struct {
	ID       string  `json:"id"`
	Name     string  `json:"name,omitempty"`
	Display  Display `json:"display,omitzero"`
	For      For     `json:"for"`
	Of       Facts   `json:"of,omitzero"`        // none: the event of its name
	Per      Period  `json:"per"`                // over what time it counts; forever of a streak
	Streak   Streak  `json:"streak,omitzero"`    // it counts periods in a row
	Highest  bool    `json:"highest,omitempty"`  // it keeps the highest number in place of the sum
	Distinct uint32  `json:"distinct,omitempty"` // it counts different keys, up to so many
	Most     Most    `json:"most,omitzero"`
	Ranked   Ranked  `json:"ranked,omitzero"` // players are ranked by it
}

// Ranked says whether players are ranked by a counter, and what they get for their ranks when its period ends. The
// zero value: they are not.
type Ranked struct {
	Is      bool    `json:"is"`
	Rewards []Prize `json:"rewards,omitempty"` // ascending by To
}

// Prize is a reward for a rank: for all up to To that no prize before it is for.
type Prize struct {
	To     uint32 `json:"to"`
	Reward Reward `json:"reward"`
}

// For says whose a counter is.
type For uint8

const (
	ForPlayer For = 1 // each player has one
	ForRealm  For = 2 // there is one
)

// Facts are what a counter counts: all that is named. Each fact counts for the player whom it is about.
type Facts struct {
	Progress []string `json:"progress,omitempty"` // events that a Progress brings, with their numbers
	Draws    []string `json:"draws,omitempty"`    // pools: draws that players ask for
	Entries  []string `json:"entries,omitempty"`  // entries taken, as pool/entry
	Gains    []string `json:"gains,omitempty"`    // items gained in any way but by a transfer, with their quantities
	Spends   []string `json:"spends,omitempty"`   // items paid as a price
	Consumes []string `json:"consumes,omitempty"` // items taken by a Consume
}

// Empty reports whether nothing is named.
func (f *Facts) Empty() bool {
	return len(f.Progress)+len(f.Draws)+len(f.Entries)+len(f.Gains)+len(f.Spends)+len(f.Consumes) == 0
}

// Period is a time that comes again: PerForever, which does not, PerDay, PerWeek, PerMonth or PerSeason.
type Period struct {
	Per    Per    `json:"per"`
	Season string `json:"season,omitempty"` // with PerSeason: which one; empty: the one that runs
}

// Streak is how often something must be done to be done in a row. The zero value: it is no streak.
type Streak struct {
	Per     Per    `json:"per"`               // PerDay, PerWeek or PerMonth
	Forgive uint32 `json:"forgive,omitempty"` // how many periods can be missed, in all
}

// Most bounds by how much a counter moves within a time. The zero value does not.
type Most struct {
	Per   Per    `json:"per"` // PerHour, PerDay, PerWeek or PerMonth
	Count uint64 `json:"count"`
}

// Counted asks that a counter stands at Min or more, and at Max or less.
type Counted struct {
	Counter string `json:"counter"`
	Min     uint64 `json:"min,omitempty"`
	Max     uint64 `json:"max"` // MaxCount: any
}

// Events returns the events that a counter counts.
func (c *Counter) Events() []string {
	if c.Of.Empty() {
		return []string{c.ID}
	}
	return c.Of.Progress
}

var perMonthly = choiceShape[Per]{dayWord, weekWord, monthWord}

var counterShape = mapping("counter",
	"A number that is kept for each player, or for the realm. {} counts the event of its own name, which Progress brings.", displayedAs(
		func(c *Counter) *string { return &c.Name }, func(c *Counter) *Display { return &c.Display },
		keyOr("for", choiceShape[For]{
			{"player", ForPlayer, "Each player has one."},
			{"realm", ForRealm, "There is one for the whole realm."},
		}, func(c *Counter) *For { return &c.For }, ForPlayer, "Whose it is."),
		key("of", factsShape, func(c *Counter) *Facts { return &c.Of }, "What it counts. Without it, the event of its own name."),
		keyOr[Counter, Period]("per", periods, func(c *Counter) *Period { return &c.Per }, Period{Per: PerForever},
			"Over what time it counts. Then it begins at 0 again."),
		key[Counter, Streak]("streak", streaks, func(c *Counter) *Streak { return &c.Streak },
			"It counts days, weeks or months in a row in which something was counted."),
		keyOr("highest", boolean, func(c *Counter) *bool { return &c.Highest }, false,
			"Whether it keeps the highest number that came, in place of the sum."),
		key("distinct", integer[uint32](1, MaxDistinct), func(c *Counter) *uint32 { return &c.Distinct },
			"It counts different keys, up to so many: of an event those that Progress brings, otherwise the ids of what it counts."),
		key("most", mostShape, func(c *Counter) *Most { return &c.Most }, "By how much it can move within a time. What is more does not count."),
		key[Counter, Ranked]("ranked", rankedWords, func(c *Counter) *Ranked { return &c.Ranked },
			"Whether players are ranked by it, the highest value first; or the rewards for ranks when its time ends, with rewards."),
	)...)

// oneOrNames is an id, or a list of different ids.
type oneOrNames struct{ oneOrList[string] }

func factNames(what string, one shape[string]) oneOrNames {
	return oneOrNames{oneOrList[string]{one, list[string]{"names of " + what, one, MaxCounted}}}
}

func (s oneOrNames) check(k *report, all *[]string) {
	s.oneOrList.check(k, all)
	for i, id := range *all {
		if slices.Contains((*all)[:i], id) {
			k.fault("duplicate id %s", quote(id))
		}
	}
}

// entryPath is an entry of any pool.
var entryPath = &scalar[string]{
	text: "a pool and one of its entries, such as chest/sword", take: (*reader).text, format: yamlText,
	parse: func(text string) (string, string, bool) { return text, "", true },
	valid: func(v string) bool {
		pool, entry, ok := strings.Cut(v, "/")
		return ok && ValidID(pool) && ValidID(entry)
	},
	node: schemaNode{Type: "string", MinLength: 3, MaxLength: 2*MaxID + 1},
}

var factsShape = &object[Facts]{
	name: "facts",
	doc:  "What a counter counts. If several are named, it counts all of them.",
	some: true,
	fields: []field[Facts]{
		key[Facts, []string]("progress", factNames("events", id("an event")), func(f *Facts) *[]string { return &f.Progress },
			"Events that Progress brings, by name. Each counts with its number."),
		key[Facts, []string]("draws", factNames("pools", id("a pool")), func(f *Facts) *[]string { return &f.Draws },
			"Draws from these pools that players ask for. Draws made by rewards do not count."),
		key[Facts, []string]("entries", factNames("entries", entryPath), func(f *Facts) *[]string { return &f.Entries },
			"Entries that are taken, each as pool/entry, by draws of players and of rewards."),
		key[Facts, []string]("gains", factNames("items", itemOrFamily), func(f *Facts) *[]string { return &f.Gains },
			"Items, or families, that are gained, each with its quantity. What comes by a transfer is not counted."),
		key[Facts, []string]("spends", factNames("items", itemOrFamily), func(f *Facts) *[]string { return &f.Spends },
			"Items, or families, that are paid as a price."),
		key[Facts, []string]("consumes", factNames("items", itemOrFamily), func(f *Facts) *[]string { return &f.Consumes },
			"Items, or families, that Consume takes."),
	},
}

// periodShape is a period: a word, or a season by its name.
type periodShape struct {
	words  choiceShape[Per]
	season *object[Period]
}

var periods = periodShape{
	choiceShape[Per]{foreverWord, dayWord, weekWord, monthWord, seasonWord},
	mapping("season_period", "One season.", key("season", id("a season"), func(p *Period) *string { return &p.Season }, "Which one.").must()),
}

func (s periodShape) expects() string { return s.words.expects() + ", or " + s.season.expects() }

func (s periodShape) read(r *reader, n *yaml.Node, dst *Period) {
	*dst = Period{}
	if n.Kind == yaml.MappingNode {
		dst.Per = PerSeason
		s.season.read(r, n, dst)
		return
	}
	before := len(r.list)
	s.words.read(r, n, &dst.Per)
	r.widen(before, s.words.expects(), s.expects())
}

func (s periodShape) check(k *report, p *Period) {
	if s.words.check(k, &p.Per); p.Season == "" {
		return
	}
	if p.Per != PerSeason {
		k.fault("expected no season with per %v, found %s", p.Per, quote(p.Season))
	}
	s.season.check(k, p)
}

func (s periodShape) write(scale uint64, p *Period) string {
	if p.Season != "" {
		return s.season.write(scale, p)
	}
	return s.words.write(scale, &p.Per)
}

func (s periodShape) schema(d definitions) *schemaNode {
	return &schemaNode{OneOf: []*schemaNode{s.words.schema(d), s.season.schema(d)}}
}

// streakShape is a streak: a word, or a mapping that also says what is forgiven.
type streakShape struct {
	words choiceShape[Per]
	more  *object[Streak]
}

var streaks = streakShape{perMonthly, mapping("streak", "How often something must be done to be done in a row.",
	key("per", perMonthly, func(s *Streak) *Per { return &s.Per }, "How often.").must(),
	key("forgive", integer[uint32](0, MaxForgiven), func(s *Streak) *uint32 { return &s.Forgive },
		"How many periods a streak can miss in all before it ends. Without it, none."),
)}

func (s streakShape) expects() string { return s.words.expects() + ", or " + s.more.expects() }

func (s streakShape) read(r *reader, n *yaml.Node, dst *Streak) {
	if n.Kind == yaml.MappingNode {
		s.more.read(r, n, dst)
		return
	}
	before := len(r.list)
	s.words.read(r, n, &dst.Per)
	r.widen(before, s.words.expects(), s.expects())
}

func (s streakShape) check(k *report, v *Streak) { s.more.check(k, v) }

func (s streakShape) write(scale uint64, v *Streak) string {
	if v.Forgive > 0 {
		return s.more.write(scale, v)
	}
	return s.words.write(scale, &v.Per)
}

func (s streakShape) schema(d definitions) *schemaNode {
	return &schemaNode{OneOf: []*schemaNode{s.words.schema(d), s.more.schema(d)}}
}

var mostShape = mapping("most", "By how much a counter can move within a time.",
	key("per", choiceShape[Per]{hourWord, dayWord, weekWord, monthWord}, func(m *Most) *Per { return &m.Per }, "Within what time.").must(),
	key("count", integer[uint64](1, MaxCount), func(m *Most) *uint64 { return &m.Count }, "By how much, at most.").must(),
)

// countedShape is where a counter must stand: at least at a number, or between two.
type countedShape struct {
	least *scalar[uint64]
	both  *object[Counted]
}

var counted = countedShape{integer[uint64](1, MaxCount), &object[Counted]{
	name: "counted", doc: "Where a counter must stand.", some: true,
	fields: []field[Counted]{
		key("min", integer[uint64](0, MaxCount), func(c *Counted) *uint64 { return &c.Min }, "At this or more. Without it, 0."),
		keyOr("max", integer[uint64](0, MaxCount), func(c *Counted) *uint64 { return &c.Max }, MaxCount, "At this or less. Without it, any."),
	},
}}

func (s countedShape) expects() string { return s.least.expects() + ", or " + s.both.expects() }

func (s countedShape) read(r *reader, n *yaml.Node, dst *Counted) {
	dst.Max = MaxCount
	if n.Kind == yaml.MappingNode {
		s.both.read(r, n, dst)
		return
	}
	before := len(r.list)
	s.least.read(r, n, &dst.Min)
	r.widen(before, s.least.expects(), s.expects())
}

func (s countedShape) check(k *report, c *Counted) {
	if c.Min > c.Max || c.Max > MaxCount || c.Min == 0 && c.Max == MaxCount {
		k.fault("expected min not above max, each at most %d, and one of them, found %d and %d", uint64(MaxCount), c.Min, c.Max)
	}
}

func (s countedShape) write(scale uint64, c *Counted) string {
	if c.Max != MaxCount || c.Min == 0 {
		return s.both.write(scale, c)
	}
	return s.least.write(scale, &c.Min)
}

func (s countedShape) schema(d definitions) *schemaNode {
	return &schemaNode{OneOf: []*schemaNode{s.least.schema(d), s.both.schema(d)}}
}

// countersShape is where counters must stand.
var countersShape = dict[Counted]{id("a counter"), shape[Counted](counted), func(c *Counted) *string { return &c.Counter }, MaxConditions}

// counters checks what spans several keys of counters.
func (k *check) checkCounters() {
	moved, ranked := map[string]int{}, 0 // by what is counted: how many count it
	for i := range k.c.Counters {
		c := &k.c.Counters[i]
		k.enter(c.ID)
		k.counter(c)
		k.ranked(c)
		if c.Ranked.Is {
			if ranked++; ranked == MaxRanked+1 {
				k.faultAt("ranked", "expected at most %d counters that are ranked, found more", MaxRanked)
			}
		}
		k.facts(c, func(at []step, fact string) {
			if moved[fact]++; moved[fact] == MaxMoved+1 {
				k.faultUnder(at, "expected at most %d counters that count the same thing, found more", MaxMoved)
			}
		})
		k.leave()
	}
}

func (k *check) counter(c *Counter) {
	kinds := 0
	for _, is := range []bool{c.Streak.Per != 0, c.Highest, c.Distinct > 0} {
		if is {
			kinds++
		}
	}
	switch {
	case kinds > 1:
		k.fault("expected one of streak, highest and distinct, found several")
	case c.Streak.Per != 0 && c.Per != Period{Per: PerForever}:
		k.faultAt("per", "expected none with streak: the streak sets the period")
	case kinds > 0 && c.Most.Per != 0:
		k.faultAt("most", "expected none with streak, highest or distinct: only sums have a cap")
	}
	k.runs(&c.Per)
}

// runs checks that a period of any season says when it is.
func (k *check) runs(p *Period) {
	if p.Per == PerSeason && p.Season == "" {
		k.at("per", k.seasonsApart)
	}
}

// facts checks what a counter counts, and calls each for it.
func (k *check) facts(c *Counter, each func(at []step, fact string)) {
	for _, e := range c.Events() {
		each([]step{{key: "of"}, {key: "progress"}}, "progress "+e)
	}
	of := &c.Of
	for _, kind := range []struct {
		key string
		all []string
	}{{"draws", of.Draws}, {"entries", of.Entries}, {"gains", of.Gains}, {"spends", of.Spends}, {"consumes", of.Consumes}} {
		at := []step{{key: "of"}, {key: kind.key}}
		for i, id := range kind.all {
			if kin := k.kinOf(id); kin[0] != id {
				k.relatives(kind.all, i, kin, at)
				for _, item := range kin {
					each(at, kind.key+" "+item)
				}
			} else {
				each(at, kind.key+" "+id)
			}
			if kind.key == "entries" && !k.hasEntry(id) {
				k.faultUnder(at, "there is no entry %s", quote(id))
			}
			if p, ok := k.pools[id]; ok && kind.key == "draws" && k.c.Pools[p].Internal {
				k.faultUnder(at, "expected a pool that players draw from, found %s, which is internal; count its entries", quote(id))
			}
		}
	}
}

// relatives refuses an item next to its family: what is counted would be counted twice.
func (k *check) relatives(all []string, family int, kin []string, at []step) {
	for _, id := range all {
		if slices.Contains(kin, id) {
			k.faultUnder(at, "expected either a family or its items, found family %s and item %s", quote(all[family]), quote(id))
		}
	}
}

// hasEntry reports whether there is an entry, as pool/entry. It builds an index once.
func (k *check) hasEntry(path string) bool {
	if k.entryPaths == nil {
		k.entryPaths = map[string]bool{}
		for i := range k.c.Pools {
			p := &k.c.Pools[i]
			for j := range p.Entries {
				k.entryPaths[p.ID+"/"+p.Entries[j].ID] = true
			}
		}
	}
	return k.entryPaths[path] || !k.poolsKnown
}

// Shape names a period.
func (p Period) Shape() string {
	if p.Season != "" {
		return p.Per.String() + ":" + p.Season
	}
	return p.Per.String()
}

// Shape names over what time a counter counts, and how. It is part of the name of its numbers: with another
// shape it begins at 0.
func (c *Counter) Shape() string {
	name := c.Per.Shape()
	switch {
	case c.Streak.Per != 0:
		return c.Streak.Per.String() + "/streak"
	case c.Highest:
		return name + "/highest"
	case c.Distinct > 0:
		return name + "/distinct"
	}
	return name
}

func (c *Counter) code(x *coder) {
	x.ref(&c.ID)
	x.name(&c.Name)
	kind(x, &c.For)
	for _, all := range []*[]string{&c.Of.Progress, &c.Of.Draws, &c.Of.Gains, &c.Of.Spends, &c.Of.Consumes} {
		x.refs(all, MaxCounted)
	}
	many(x, &c.Of.Entries, MaxCounted, 4, func(s *string, x *coder) { x.text(s, 2*MaxID+1) })
	c.Per.code(x)
	kind(x, &c.Streak.Per)
	number(x, &c.Streak.Forgive)
	x.flags(&c.Highest, &c.Ranked.Is)
	number(x, &c.Distinct)
	if kind(x, &c.Most.Per); c.Most.Per != 0 {
		number(x, &c.Most.Count)
	}
	if c.Ranked.Is {
		many(x, &c.Ranked.Rewards, MaxPrizes, 4, (*Prize).code)
	}
	if x.version >= 6 {
		c.Display.code(x)
	}
}

func (p *Period) code(x *coder) {
	if kind(x, &p.Per); p.Per == PerSeason {
		x.ref(&p.Season)
	}
}

func (c *Counted) code(x *coder) {
	x.ref(&c.Counter)
	number(x, &c.Min)
	less := MaxCount - min(c.Max, MaxCount)
	if number(x, &less); x.reading {
		c.Max = MaxCount - min(less, MaxCount)
	}
}
