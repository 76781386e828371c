package catalog

import (
	"fmt"
	"strconv"
	"time"

	"github.com/kuji-dev/kuji/internal/document"
)

// The keys of a catalog, in one table. Parse and Check go by it, the JSON Schema is generated from it, and
// docs/reference/catalog-keys.md is checked against it. check.go has what spans several keys.

// entryShapes are the shapes of entries in the modes of pools.
var entryShapes = map[Mode]*object[Entry]{ModeWeighted: weightedEntryShape, ModeRaffle: raffleEntryShape, ModeEach: eachEntryShape}

// Format is the version of the YAML format, the value of the key kuji.
const Format = 1

// DefaultMaxCount is the max_count of a pool that sets none.
const DefaultMaxCount = 100

// MaxWindow and MaxIdempotencyAge bound the durations of the format.
const (
	MaxWindow         = 366 * 24 * time.Hour
	MaxIdempotencyAge = 3660 * 24 * time.Hour
)

// maxInstant is 9999-12-31T23:59:59.999Z in Unix milliseconds.
const maxInstant = 253402300799999

var rootShape = &object[Catalog]{
	name: "catalog",
	doc:  "The definition of a realm: its items, its pools, and what players start with. See docs/reference/catalog.md.",
	fields: []field[Catalog]{
		key("kuji", integer[uint64](Format, Format), func(*Catalog) *uint64 { v := uint64(Format); return &v },
			"The version of the catalog format: 1.").must(),
		nameKey(func(c *Catalog) *string { return &c.Name }, func(c *Catalog) *Texts { return &c.Names },
			"A name to show, for the catalog as a whole."),
		key("language", languageTag, func(c *Catalog) *string { return &c.Language },
			"The language of texts that name none. Without it, "+DefaultLanguage+"."),
		key("rarities", dict[Rarity]{id("a rarity"), rarityShape, func(r *Rarity) *string { return &r.ID }, MaxRarities},
			func(c *Catalog) *[]Rarity { return &c.Rarities },
			"How rare things are, by id, from the most common to the rarest."),
		keyOr[Catalog, Zone]("zone", zone, func(c *Catalog) *Zone { return &c.Zone }, Zone{},
			"The time zone whose days, weeks and months count, by its name in the IANA database, such as Asia/Tokyo."),
		key("day", dayShape, func(c *Catalog) *Day { return &c.Day },
			"When days, weeks and months begin. Without it, at 00:00, and weeks on Monday."),
		key("seasons", dict[Season]{id("a season"), seasonShape, func(s *Season) *string { return &s.ID }, MaxSeasons},
			func(c *Catalog) *[]Season { return &c.Seasons },
			"Times with a name, over which counters can count, by id. They may overlap."),
		key("items", dict[Item]{id("an item"), itemShape, func(i *Item) *string { return &i.ID }, MaxItems},
			func(c *Catalog) *[]Item { return &c.Items },
			"Everything that can be held and counted, by id.").must().mayBeNone(),
		key("pools", dict[Pool]{id("a pool"), poolShape, func(p *Pool) *string { return &p.ID }, MaxPools},
			func(c *Catalog) *[]Pool { return &c.Pools },
			"What can be drawn from, by id."),
		key("counters", dict[Counter]{id("a counter"), counterShape, func(c *Counter) *string { return &c.ID }, MaxCounters},
			func(c *Catalog) *[]Counter { return &c.Counters },
			"What is counted for each player or for the realm, by id."),
		key("quests", dict[Quest]{id("a quest"), questShape, func(q *Quest) *string { return &q.ID }, MaxQuests},
			func(c *Catalog) *[]Quest { return &c.Quests },
			"What counters must reach, and the rewards for it, by id."),
		key("rounds", dict[Round]{id("a round"), roundShape, func(r *Round) *string { return &r.ID }, MaxRounds},
			func(c *Catalog) *[]Round { return &c.Rounds },
			"What players enter with stakes or tickets, and what winners get, by id."),
		key("start", stacksShape, func(c *Catalog) *[]Stack { return &c.Start },
			"What a player gets with the first draw, grant, redeemed code or register: item ids with quantities."),
		key("idempotency", idempotencyShape, func(c *Catalog) *Idempotency { return &c.Idempotency },
			"How long request ids are remembered, so that a repeated request returns its first result.").writtenIf(func(c *Catalog) bool {
			return c.Idempotency != defaultIdempotency
		}).from(func(c *Catalog) { c.Idempotency = defaultIdempotency }),
		key("guesses", guessesShape, func(c *Catalog) *Guesses { return &c.Guesses },
			"How many codes that do not exist a player can send. Without it, 10 a day.").writtenIf(func(c *Catalog) bool {
			return c.Guesses != Guesses{} && (c.Guesses != DefaultGuesses || !c.redeems())
		}),
	},
	end: func(_ *reader, c *Catalog) {
		if c.Guesses == (Guesses{}) && c.redeems() {
			c.Guesses = DefaultGuesses
		}
		c.inferPeriods()
		if c.Language == DefaultLanguage {
			c.Language = "" // it has one form
		}
	},
}

var defaultIdempotency = Idempotency{Count: DefaultIdempotencyCount, Age: DefaultIdempotencyAge}

var itemShape = mapping("item", "One thing that players hold and count. {} is enough.", displayedAs(
	func(i *Item) *string { return &i.Name }, func(i *Item) *Display { return &i.Display },
	keyOr("kind", append(choiceShape[ItemKind]{
		{"item", KindItem, "Anything that is held and counted."},
		{"currency", KindCurrency, "Shown as money."},
	}, probeKinds...), func(i *Item) *ItemKind { return &i.Kind }, KindItem,
		"What it is shown as. The rules treat both alike."),
	key("lasts", duration[int64](time.Millisecond, MinLasts, MaxLasts), func(i *Item) *int64 { return &i.Lasts },
		"How long each unit lasts after it came, such as 30d; from "+document.FormatDuration(MinLasts)+" to "+document.FormatDuration(MaxLasts)+". The one that goes first is used first. Without it, units stay."),
	key("grows", growsShape, func(i *Item) *Grows { return &i.Grows }, "How it grows by itself. Without it, it does not."),
	keyOr("extend", boolean, func(i *Item) *bool { return &i.Extend }, false,
		"Whether what comes while some is held begins to last only when that goes: for a pass that is bought again.").with("lasts"),
	key("most", integer[uint64](1, MaxQuantity), func(i *Item) *uint64 { return &i.Most },
		"The most that a player can hold. Without it, as many as there can be."),
	keyOr[Item, Beyond]("beyond", beyonds, func(i *Item) *Beyond { return &i.Beyond }, Beyond{},
		"What happens to what would be more: refuse, cut or mail, or for how long mail waits.").with("most"),
	key("family", id("a family"), func(i *Item) *string { return &i.Family },
		"The family that it is of. In a price, a condition, luck and what counters count, the id of a family stands for any of its items."),
)...)

// stacksShape is a mapping from item ids to fixed quantities.
var stacksShape = dict[Stack]{
	key:   id("an item"),
	value: part[Stack, uint64]{integer[uint64](1, MaxQuantity), func(s *Stack) *uint64 { return &s.Quantity }},
	id:    func(s *Stack) *string { return &s.Item },
	max:   MaxBundle,
}

var modeWords = choiceShape[Mode]{
	{"weighted", ModeWeighted, "Odds by weight among the entries still in stock."},
	{"raffle", ModeRaffle, "Odds by remaining stock: drawing tickets from a box."},
	{"each", ModeEach, "Every entry by itself, with its own chance: a drop table."},
}

var perWords = choiceShape[Per]{foreverWord, dayWord, weekWord, monthWord, windowWord}

var poolShape = &object[Pool]{
	name: "pool",
	doc:  "Weighted entries with stock, and the rules for drawing from them.",
	by:   "mode", byDefault: "weighted",
	begin: func(k *report, p *Pool) {
		k.thereAre("a track", texts(p.Tracks, func(t *Track) string { return t.Name }))
	},
	end: (*reader).endPool,
	fields: displayedAs(func(p *Pool) *string { return &p.Name }, func(p *Pool) *Display { return &p.Display },
		keyOr("mode", modeWords, func(p *Pool) *Mode { return &p.Mode }, ModeWeighted,
			"How an entry is chosen."),
		keyOr("internal", boolean, func(p *Pool) *bool { return &p.Internal }, false,
			"Whether rewards of other pools are the only way to draw from the pool."),
		keyOr("memoryless", boolean, func(p *Pool) *bool { return &p.Memoryless }, false,
			"Whether to refuse everything that adapts the odds to the player (pity, guarantee, and entries with when, unique or luck), here and in the pools below."),
		key("price", oneOrList[[]Stack]{anyStacksShape, list[[]Stack]{"prices", anyStacksShape, MaxPrices}},
			func(p *Pool) *[][]Stack { return &p.Price },
			"What each single draw costs: ids of items of any kind, or of families, with quantities; or a list of such prices. The caller can choose one; "+
				"otherwise it is the first that the player can pay. Without it, drawing is free."),
		key("bundles", list[Bundle]{"bundles", bundleShape, MaxPrices}, func(p *Pool) *[]Bundle { return &p.Bundles },
			"Prices for several draws in one request, by ascending number of draws."),
		key("price_by", priceByShape, func(p *Pool) *PriceBy { return &p.PriceBy }, "Other prices, by where a counter stands."),
		key("free", freeShape, func(p *Pool) *Free { return &p.Free }, "How many draws cost nothing."),
		key("redeem", oneOrList[Redeem]{redeemShape, list[Redeem]{"lists of codes", redeemShape, MaxRedeem}},
			func(p *Pool) *[]Redeem { return &p.Redeem },
			"A list of codes that pay for draws, in addition to the price; or several. Without a price, only codes do."),
		key("starts", instant, func(p *Pool) *int64 { return &p.StartsAt },
			"The first moment at which the pool can be drawn from."),
		key("ends", instant, func(p *Pool) *int64 { return &p.EndsAt },
			"The first moment at which the pool can no longer be drawn from."),
		keyOr("max_count", integer[uint32](1, MaxDrawCount), func(p *Pool) *uint32 { return &p.MaxCount },
			DefaultMaxCount, "The most draws in one request."),
		key("limits", list[PlayerLimit]{"limits", limitShape, MaxPlayerLimits},
			func(p *Pool) *[]PlayerLimit { return &p.Limits },
			"How often one player can draw. All of the limits apply."),
		key("when", conditionShape, func(p *Pool) *Condition { return &p.When }, "Who can draw. Otherwise the draw ends as not_eligible."),
		keyOr("rolls", rollsShape, func(p *Pool) *Rolls { return &p.Rolls }, Rolls{Min: 1, Max: 1},
			"How many entries one draw takes."),
		key("pity", dict[Track]{id("a track"), trackShape, func(t *Track) *string { return &t.Name }, MaxTracks},
			func(p *Pool) *[]Track { return &p.Tracks },
			"Tracks: counters of a player's draws since the last one that hit a group, and what follows from them. The first track that decides a draw wins."),
		key("guarantee", list[Guarantee]{"guarantees", guaranteeShape, MaxTracks}, func(p *Pool) *[]Guarantee { return &p.Guarantees },
			"What many draws in one request are sure to hit."),
		key("last", rewardShape, func(p *Pool) *Reward { return &p.Last },
			"An extra reward for the player who takes the last ticket of the box.").only("raffle"),
		key("refill", integer[uint32](0, MaxRefill), func(p *Pool) *uint32 { return &p.Refill },
			"How often the box is filled again when it is empty. Without it, never.").only("raffle"),
		key("budget", oneOrList[Budget]{budgetShape, list[Budget]{"budgets", budgetShape, MaxBudgets}},
			func(p *Pool) *[]Budget { return &p.Budgets },
			"How much of some items the pool's entries can give within a time; or a list of such budgets. An entry that could give more than is left is out of stock until then."),
		noKey[Pool]("moments", "moments are those of an entry, in place of its weight; write them there"),
		key("entries", list[Entry]{"entries", weightedEntryShape, MaxEntries}, entriesOf,
			"The lines of the pool. Each draw picks one.").must().only("weighted"),
		key("entries", list[Entry]{"entries", raffleEntryShape, MaxEntries}, entriesOf,
			"The lines of the box. Each draw takes one ticket.").must().only("raffle"),
		key("entries", list[Entry]{"entries", eachEntryShape, MaxEntries}, entriesOf,
			"What can drop. Each entry is drawn or not, by its own chance.").must().only("each"),
	),
}

func entriesOf(p *Pool) *[]Entry { return &p.Entries }

var limitShape = &object[PlayerLimit]{
	name: "limit",
	doc:  "A limit on the draws of one player from the pool.",
	by:   "per",
	fields: []field[PlayerLimit]{
		key("per", perWords, func(l *PlayerLimit) *Per { return &l.Per }, "Over what time draws are counted.").must(),
		key("window", duration[int64](time.Millisecond, time.Millisecond, MaxWindow), func(l *PlayerLimit) *int64 { return &l.Window },
			"The length of the rolling window, such as 12h or 7d; at most "+document.FormatDuration(MaxWindow)+".").must().only("window"),
		key("draws", integer[uint64](1, MaxQuantity), func(l *PlayerLimit) *uint64 { return &l.Draws },
			"The most draws within that time; at most "+strconv.Itoa(MaxTimedDraws)+", except per: forever.").must(),
	},
}

var bundleShape = mapping("bundle", "A price for several draws in one request.",
	key("draws", integer[uint32](2, MaxDrawCount), func(b *Bundle) *uint32 { return &b.Draws },
		"Exactly how many draws the request pays. Free draws do not count.").must(),
	key("price", anyStacksShape, func(b *Bundle) *[]Stack { return &b.Price }, "What all of them cost together.").must(),
)

var freeShape = mapping("free", "Draws that cost nothing: the first ones of each player.",
	key("per", freePerShape{choiceShape[Per]{foreverWord, dayWord, weekWord, monthWord}}, func(f *Free) *Per { return &f.Per }, "Over what time draws are counted.").must(),
	keyOr("draws", integer[uint64](1, MaxTimedDraws), func(f *Free) *uint64 { return &f.Draws }, 1, "How many of them are free."),
)

var budgetPerWords = choiceShape[Per]{hourWord, dayWord, weekWord, monthWord, foreverWord}

var budgetShape = mapping("budget",
	"A limit on what the pool's entries give to all players together, through inner pools too.",
	key("per", budgetPerWords, func(b *Budget) *Per { return &b.Per }, "Within what time. Then the budget is full again.").must(),
	key("of", stacksShape, func(b *Budget) *[]Stack { return &b.Of }, "The items, and how much can be given of each.").must(),
	key("share", id("a budget"), func(b *Budget) *string { return &b.Share },
		"The name of the budget. Budgets with the same name and the same time, in any pool and catalog, are one."),
)

var redeemShape = mapping("redeem", "Codes that pay for draws from the pool. Each player can use each code once.",
	key("code", id("a list of codes"), func(r *Redeem) *string { return &r.List },
		"The list. Other pools cannot name it here. If rewards give its codes, each counts from when it is given.").must(),
	keyOr("times", integer[uint32](1, MaxRedeemTimes), func(r *Redeem) *uint32 { return &r.Times }, 1,
		"How many draws a code pays for, in one request."),
	keyOr("uses", integer[uint64](1, MaxUses), func(r *Redeem) *uint64 { return &r.Uses }, 1,
		"How many players can use each code. More than one makes it a code to share."),
	key("until", instant, func(r *Redeem) *int64 { return &r.Until },
		"The first moment at which the codes are no longer taken."),
)

var guessesShape = mapping("guesses",
	"A limit on guessing codes. A player who has reached it cannot redeem any code until the time is over.",
	key("per", budgetPerWords, func(g *Guesses) *Per { return &g.Per }, "Within what time they are counted.").must(),
	key("count", integer[uint64](1, MaxTimedDraws), func(g *Guesses) *uint64 { return &g.Count }, "How many wrong codes a player can send.").must(),
)

var rollsShape = newSpan("rolls", "How many entries one draw takes: from min to max, each number equally likely.", "The fewest.", "The most.", MaxPicks,
	func(r *Rolls) (low, high *uint32) { return &r.Min, &r.Max },
	keyOr("distinct", boolean, func(r *Rolls) *bool { return &r.Distinct }, false,
		"Whether one draw takes no entry twice. The pool then needs at least max entries that have no conditions and cannot run out."))

var conditionShape = &object[Condition]{
	name: "condition",
	doc:  "What must be true of a player. All conditions must hold.",
	some: true,
	fields: []field[Condition]{
		key("holds", anyStacksShape, func(c *Condition) *[]Stack { return &c.Holds }, "Items that the player must hold, with the least number of each; of a family, of all its items together."),
		key("lacks", names("an item or family"), func(c *Condition) *[]string { return &c.Lacks }, "Items, or families, of which the player holds none."),
		key("pity", dict[Reached]{
			key:   id("a track"),
			value: part[Reached, uint64]{integer[uint64](1, MaxTrackDraws), func(r *Reached) *uint64 { return &r.Draws }},
			id:    func(r *Reached) *string { return &r.Track },
			max:   MaxTracks,
		}, func(c *Condition) *[]Reached { return &c.Tracks },
			"Tracks of the pool, with the least number of draws that each must have counted."),
		key("counters", countersShape, func(c *Condition) *[]Counted { return &c.Counters },
			"Where counters must stand: at least at a number, or between two."),
		key("quests", questsShape, func(c *Condition) *[]Done { return &c.Quests },
			"Quests, with the least number of tiers that the player must have claimed."),
	},
}

var trackShape = mapping("track",
	"A player's counter of draws without a group of entries. It resets when the group is drawn. Its name is what clients see.",
	key("of", names("an entry or group"), func(t *Track) *[]string { return &t.Of },
		"The group: ids of entries, and groups that entries say they are in. Without it, the entry or group with the track's name.").
		writtenIf(func(t *Track) bool { return len(t.Of) != 1 || t.Of[0] != t.Name }),
	key("certain", integer[uint32](1, MaxTrackDraws), func(t *Track) *uint32 { return &t.Certain },
		"The draw, counted from the last hit, that is certain to hit (hard pity). If the group is out of stock, it waits."),
	key("rising", risingShape, func(t *Track) *Rising { return &t.Rising }, "How the chance rises before that (soft pity)."),
	key("share", id("a track's counter"), func(t *Track) *string { return &t.Share },
		"The name of the counter. Tracks with the same name, in any pool and catalog, share it: it carries over to the next banner."),
)

var risingShape = mapping("rising", "A chance that rises. Entries outside the group share the rest in proportion.",
	key("from", integer[uint32](1, MaxTrackDraws), func(r *Rising) *uint32 { return &r.From },
		"The first draw, counted from the last hit, that has a higher chance.").must(),
	key("by", risingPoints, func(r *Rising) *Rising { return r },
		"Percentage points that each draw from then on adds; or a list of what the draws have in addition, one after the other. "+
			"The last one holds for all that follow.").must(),
)

var guaranteeShape = mapping("guarantee",
	"In each full set of draws of one request, at least so many hit a group. The last draws make up for missing hits.",
	key("draws", integer[uint32](1, MaxDrawCount), func(g *Guarantee) *uint32 { return &g.Draws }, "How many draws make a set.").must(),
	keyOr("at_least", integer[uint32](1, MaxDrawCount), func(g *Guarantee) *uint32 { return &g.AtLeast }, 1,
		"How many of them are sure to hit."),
	key("of", names("an entry or group"), func(g *Guarantee) *[]string { return &g.Of },
		"The group: ids of entries, and groups that entries say they are in.").must(),
)

var (
	entryID = key("id", id("an entry"), func(e *Entry) *string { return &e.ID },
		"Names the entry within its pool. When the catalog changes, Kuji keeps the drawn stock under this id.").must()
	entryGroup = key("group", id("a group"), func(e *Entry) *string { return &e.Group },
		"A group that the entry is in, for pity and guarantee.")
	entryWhen = key("when", conditionShape, func(e *Entry) *Condition { return &e.When },
		"Who can get the entry. For others it weighs nothing.")
	entryUnique = keyOr("unique", boolean, func(e *Entry) *bool { return &e.Unique }, false,
		"Whether the entry is only for players who hold none of the items that it gives (no duplicates).")
	entryReward = keyOr("reward", rewardShape, func(e *Entry) *Reward { return &e.Reward },
		Reward{}, "What the entry gives. Without it, nothing.")
	entryStock = keyOr("stock", wordOr[Stock]{
		part[Stock, uint64]{integer[uint64](0, MaxQuantity), func(s *Stock) *uint64 { return &s.Count }},
		"unlimited", Stock{Unlimited: true}, "It never runs out.",
	}, func(e *Entry) *Stock { return &e.Stock }, Stock{Unlimited: true},
		"How often the entry can be drawn in all, by all players.").
		writtenIf(func(e *Entry) bool { return !e.Stock.Unlimited && e.Moments.Count == 0 }) // moments are its stock
)

var weightedEntryShape = mapping("weighted_entry",
	"One line of a pool: how likely it is, how often it can be drawn, what it gives.",
	entryID,
	key("weight", weight, func(e *Entry) *uint64 { return &e.Weight },
		"The odds, in proportion to the other weights of the pool. Decimals are exact; percent signs and exponents are not allowed.").must().unless("moments").
		writtenIf(func(e *Entry) bool { return e.Moments.Count == 0 }),
	noKey[Entry]("chance", "the odds of an entry follow from its weight and the others'; write weight, or set the pool's mode to each"),
	entryStock, entryGroup, entryWhen, entryUnique,
	key("luck", luckShape, func(e *Entry) *Luck { return &e.Luck }, "Other weights, by what the player holds or has drawn."),
	key("moments", momentsShape, func(e *Entry) *Moments { return &e.Moments },
		"Moments between the pool's starts and ends: the first draw after one takes the entry, whatever the odds. It has no weight, and its stock is their number."),
	entryReward,
)

var spreadWords = choiceShape[Spread]{
	{"even", SpreadEven, "At even steps, which everybody can work out."},
	{"slots", SpreadSlots, "One at random in each of as many slots."},
	{"random", SpreadRandom, "Each at random in the whole time."},
}

var momentsShape = mapping("moments", "Winning moments.",
	key("count", integer[uint32](1, MaxMoments), func(m *Moments) *uint32 { return &m.Count },
		"How many there are; of spread random at most "+strconv.Itoa(MaxRandomMoments)+".").must(),
	key("spread", spreadWords, func(m *Moments) *Spread { return &m.Spread }, "How they lie in the time of the pool.").must(),
	key("weights", dict[TimeWeight]{
		key:   id("some hours or days"),
		value: part[TimeWeight, uint64]{integer[uint64](0, MaxMomentWeight), func(w *TimeWeight) *uint64 { return &w.Weight }},
		id:    func(w *TimeWeight) *string { return &w.When },
		max:   MaxMomentTimes,
	}, func(m *Moments) *[]TimeWeight { return &m.Weights },
		"How many times as many moments lie in an hour, in the catalog's zone: by the hour of the day, such as 19-23, which ends at 23:00, and by the day of the week, such as sat or mon-fri, multiplied. Others weigh 1."),
	keyOr("missed", choiceShape[bool]{
		{"wait", false, "It waits for a draw, and so do those that follow."},
		{"pass", true, "It passes when the next one comes."},
	}, func(m *Moments) *bool { return &m.Pass }, false, "What happens to a moment after which nobody draws."),
)

var luckShape = mapping("luck",
	"Weights that depend on a count: how many of an item the player holds, or where a track or a counter stands. One of item, pity and counter must be there.",
	key("item", itemOrFamily, func(l *Luck) *string { return &l.Item }, "The item whose number counts, or the family."),
	key("pity", id("a track"), func(l *Luck) *string { return &l.Track }, "The track of the pool whose draws count."),
	key("counter", id("a counter"), func(l *Luck) *string { return &l.Counter }, "The counter that counts."),
	key("weights", list[LuckStep]{"steps", luckStepShape, MaxLuckSteps}, func(l *Luck) *[]LuckStep { return &l.Steps },
		"Steps by ascending from. The last one that is reached holds; below the first, the entry has its own weight.").must(),
)

var luckStepShape = mapping("luck_step", "A weight from a count on.",
	key("from", integer[uint64](1, MaxQuantity), func(s *LuckStep) *uint64 { return &s.From },
		"The least count; of a track at most "+strconv.Itoa(MaxTrackDraws)+".").must(),
	key("weight", weight, func(s *LuckStep) *uint64 { return &s.Weight }, "The weight in place of the entry's own.").must(),
)

var raffleEntryShape = mapping("raffle_entry", "One kind of ticket in a box: how many there are and what each gives.",
	entryID,
	noKey[Entry]("weight", "the odds in a raffle are the remaining stock; leave weight out, or set the pool's mode to weighted"),
	key("stock", integer[uint64](0, MaxQuantity), func(e *Entry) *uint64 { return &e.Stock.Count },
		"How many of these tickets are in the box at first.").must(),
	entryGroup,
	noKey[Entry]("when", "a ticket is for everybody"),
	noKey[Entry]("unique", "a ticket is for everybody"),
	entryReward,
)

var eachEntryShape = mapping("each_entry",
	"One line of a drop table: how likely it is, how often it can drop, what it gives.",
	entryID,
	noKey[Entry]("weight", "an entry of mode each has a chance, whatever the others have; write chance, in percent"),
	key("chance", chance, func(e *Entry) *uint64 { return &e.Weight },
		"The chance in percent, at most 100, whatever the other entries do. Decimals are exact.").must(),
	entryStock, entryWhen, entryUnique, entryReward,
)

// rewardShape is nothing, one part of a reward, or a list of them.
var rewardShape = wordOr[Reward]{rewardParts{oneOrList[rewardPart]{
	partShape, list[rewardPart]{"rewards", partShape, MaxInner},
}}, "nothing", Reward{}, "A blank."}

// rewardPart is a part of a reward as it is written.
type rewardPart struct {
	items []Quantity
	code  string
	inner Inner
}

var (
	givenItems = dict[Quantity]{id("an item"), quantityShape, func(q *Quantity) *string { return &q.Item }, MaxBundle}
	rewardCode = id("a list of codes")
	rewardPool = id("a pool")
)

var partShape = &object[rewardPart]{
	name: "reward",
	doc:  "What an entry gives: items, a code, draws from another pool, or all of it. A list of such rewards gives all of them.",
	some: true,
	fields: []field[rewardPart]{
		key("items", givenItems, func(w *rewardPart) *[]Quantity { return &w.items },
			"The items given together: ids with quantities."),
		key("code", rewardCode, func(w *rewardPart) *string { return &w.code },
			"A list of codes: the player gets the next one. Once the list is used up, the entry is out of stock."),
		key("pool", rewardPool, func(w *rewardPart) *string { return &w.inner.Pool },
			"The pool to draw from. Its price, times, limits and conditions do not apply."),
		keyOr("times", timesShape, func(w *rewardPart) *Inner { return &w.inner }, Inner{Min: 1, Max: 1},
			"How often to draw from it.").with("pool").writtenIf(func(w *rewardPart) bool { return w.inner.Max > 0 && w.inner != Inner{w.inner.Pool, 1, 1} }),
	},
}

var timesShape = newSpan("times", "A number of draws from min to max, each as likely as any other.", "The fewest.", "The most.", MaxPicks,
	func(i *Inner) (low, high *uint32) { return &i.Min, &i.Max })

var quantityShape = newSpan("quantity", "A whole number from min to max, each as likely as any other.", "The least that is given.", "The most that is given.", MaxQuantity,
	func(q *Quantity) (low, high *uint64) { return &q.Min, &q.Max })

var idFormWords = choiceShape[IDForm]{
	{"any", IDsAny, "Any text of up to 64 bytes."},
	{"time-ordered", IDsTimeOrdered, "UUIDv7 or ULID: they begin with the time at which the client made them."},
}

// purchasePrefix is how some request ids begin.
var purchasePrefix = &scalar[string]{
	text: fmt.Sprintf("a text of 1 to %d bytes on one line", MaxPurchases), take: (*reader).text,
	parse:  func(text string) (string, string, bool) { return text, textProblem(text), true },
	valid:  func(v string) bool { return v != "" && len(v) <= MaxPurchases && textProblem(v) == "" },
	format: yamlText,
	node:   schemaNode{Type: "string", MinLength: 1, MaxLength: MaxPurchases, Pattern: displayName.node.Pattern},
}

var idempotencyShape = &object[Idempotency]{
	name: "idempotency",
	doc: "A request id is remembered until its batch is older than age, by the time stamps of the log. It stays longer while it is " +
		"among the newest 1048576 of the realm (or the newest count, if that is less).",
	by: "ids", byDefault: "any",
	fields: []field[Idempotency]{
		keyOr("count", integer[uint32](1, MaxIdempotencyCount), func(i *Idempotency) *uint32 { return &i.Count },
			DefaultIdempotencyCount, "How many request ids within age there is room for. When the room is used up, new ids are refused until the oldest have "+
				"aged; none is forgotten early. Each takes about 60 bytes of memory."),
		keyOr("age", duration[time.Duration](1, MinIdempotencyAge, MaxIdempotencyAge), func(i *Idempotency) *time.Duration { return &i.Age },
			DefaultIdempotencyAge, "How long a request id is remembered at least, such as 24h or 30d; from "+document.FormatDuration(MinIdempotencyAge)+" to "+document.FormatDuration(MaxIdempotencyAge)+"."),
		keyOr("ids", idFormWords, func(i *Idempotency) *IDForm { return &i.IDs }, IDsAny,
			"What request ids are like. Ids that carry their time are refused once they may have been forgotten, so that a late repeat is never carried out again."),
		keyOr("ahead", duration[time.Duration](1, MinAhead, MaxAhead), func(i *Idempotency) *time.Duration { return &i.Ahead }, DefaultAhead,
			"How far the time that an id carries may be ahead of the server's clock; from "+document.FormatDuration(MinAhead)+" to "+document.FormatDuration(MaxAhead)+", and at most half of age. Without it, "+document.FormatDuration(DefaultAhead)+".").only("time-ordered"),
		key("purchases", purchasePrefix, func(i *Idempotency) *string { return &i.Purchases },
			"Request ids that begin so are never forgotten: of each, 16 bytes stay for good."),
	},
}
