package catalog

import (
	"strconv"
	"time"
)

// The keys of a catalog, in one table. Parse reads by it, the JSON Schema is
// generated from it, and the reference in docs/catalog.md is checked against
// it. Constraints over several keys (references, sums, cycles) stand in
// check.go.

// source is a catalog as it is written. It differs from the compiled form only
// where that has lost something: decimal weights are not scaled yet.
type source struct {
	format uint64
	out    Catalog
	pools  []poolSource
}

type poolSource struct {
	out     Pool
	entries []entrySource
}

// entrySource holds a decimal weight until all weights of its pool are known.
type entrySource struct {
	out    Entry
	weight decimal
}

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

var rootShape = &object[source]{
	name: "catalog",
	doc:  "The definition of a realm: its items, its pools, and what players start with. See docs/catalog.md.",
	fields: []field[source]{
		key("kuji", integerShape{Format, Format}, func(s *source) *uint64 { return &s.format },
			"The version of the catalog format: 1.").must(),
		key("name", nameShape{}, func(s *source) *string { return &s.out.Name },
			"A name to show, for the catalog as a whole."),
		key("items", dict[Item]{"an item", itemShape, func(i *Item) *string { return &i.ID }, MaxItems},
			func(s *source) *[]Item { return &s.out.Items },
			"Everything that can be held and counted, by id.").must(),
		key("pools", dict[poolSource]{"a pool", poolShape, func(p *poolSource) *string { return &p.out.ID }, MaxPools},
			func(s *source) *[]poolSource { return &s.pools },
			"What can be drawn from, by id."),
		key("start", stacksShape, func(s *source) *[]Stack { return &s.out.Start },
			"What a player holds when first seen: item ids with quantities."),
		key("idempotency", idempotencyShape, func(s *source) *Idempotency { return &s.out.Idempotency },
			"How long request ids are remembered, so that a repeated request returns its first result."),
	},
	begin: func(s *source) {
		s.out.Idempotency = Idempotency{Count: DefaultIdempotencyCount, Age: DefaultIdempotencyAge}
	},
}

var itemShape = &object[Item]{
	name: "item",
	doc:  "One thing that players hold and count. {} is enough.",
	fields: []field[Item]{
		keyOr("kind", choiceShape[ItemKind]{
			{"item", KindItem, "Anything that is held and counted."},
			{"currency", KindCurrency, "Money, to whoever shows it."},
		}, func(i *Item) *ItemKind { return &i.Kind }, KindItem,
			"What it is shown as. The rules treat both alike."),
		key("name", nameShape{}, func(i *Item) *string { return &i.Name }, "A name to show."),
	},
}

// stacksShape is a mapping from item ids to fixed quantities.
var stacksShape = dict[Stack]{
	what:  "an item",
	value: part[Stack, uint64]{integerShape{1, MaxQuantity}, func(s *Stack) *uint64 { return &s.Quantity }},
	id:    func(s *Stack) *string { return &s.Item },
	max:   MaxBundle,
}

var poolShape = &object[poolSource]{
	name: "pool",
	doc:  "Weighted entries with stock, and the rules for drawing from them.",
	by:   "mode", byDefault: "weighted",
	fields: []field[poolSource]{
		key("name", nameShape{}, func(p *poolSource) *string { return &p.out.Name }, "A name to show."),
		keyOr("mode", choiceShape[Mode]{
			{"weighted", ModeWeighted, "Odds by weight among the entries still in stock."},
			{"raffle", ModeRaffle, "Odds by remaining stock: drawing tickets from a box."},
		}, func(p *poolSource) *Mode { return &p.out.Mode }, ModeWeighted,
			"How an entry is chosen."),
		key("price", stacksShape, func(p *poolSource) *[]Stack { return &p.out.Price },
			"What each single draw costs: ids of items of any kind, with quantities. Without it, drawing is free."),
		key("starts", instantShape{}, func(p *poolSource) *int64 { return &p.out.StartsAt },
			"The first moment at which the pool can be drawn from."),
		key("ends", instantShape{}, func(p *poolSource) *int64 { return &p.out.EndsAt },
			"The first moment at which the pool can no longer be drawn from."),
		keyOr("max_count", narrowShape{integerShape{1, MaxDrawCount}}, func(p *poolSource) *uint32 { return &p.out.MaxCount },
			DefaultMaxCount, "The most draws in one request."),
		key("limits", list[PlayerLimit]{"limits", limitShape, MaxPlayerLimits},
			func(p *poolSource) *[]PlayerLimit { return &p.out.Limits },
			"How often one player can draw. All of the limits apply."),
		key("entries", list[entrySource]{"entries", weightedEntryShape, MaxEntries}, entriesOf,
			"The lines of the pool. Each draw picks one.").must().only("weighted"),
		key("entries", list[entrySource]{"entries", raffleEntryShape, MaxEntries}, entriesOf,
			"The lines of the box. Each draw takes one ticket.").must().only("raffle"),
	},
}

func entriesOf(p *poolSource) *[]entrySource { return &p.entries }

var limitShape = &object[PlayerLimit]{
	name: "limit",
	doc:  "A bound on the draws of one player from the pool.",
	by:   "per",
	fields: []field[PlayerLimit]{
		key("per", choiceShape[Per]{
			{"forever", PerForever, "All time."},
			{"day", PerDay, "The UTC calendar day."},
			{"week", PerWeek, "The week, which begins on Monday 00:00 UTC."},
			{"window", PerWindow, "The time just past, as long as window says."},
		}, func(l *PlayerLimit) *Per { return &l.Per }, "Over what time draws are counted.").must(),
		key("window", windowShape{durationShape{time.Millisecond, MaxWindow}}, func(l *PlayerLimit) *int64 { return &l.Window },
			"The length of the rolling window, such as 12h or 7d; at most "+formatDuration(MaxWindow)+".").must().only("window"),
		key("draws", integerShape{1, MaxQuantity}, func(l *PlayerLimit) *uint64 { return &l.Draws },
			"The most draws within that time; at most "+strconv.Itoa(MaxTimedDraws)+", except for ever.").must(),
	},
}

var (
	entryID = key("id", idShape{"an entry"}, func(e *entrySource) *string { return &e.out.ID },
		"Names the entry within its pool. Stock already drawn is kept under it when the catalog changes.").must()
	entryReward = keyOr("reward", rewardShape, func(e *entrySource) *Reward { return &e.out.Reward },
		Reward{Kind: RewardNothing}, "What the entry gives. Without it, nothing.")
)

var weightedEntryShape = &object[entrySource]{
	name: "weighted_entry",
	doc:  "One line of a pool: how likely it is, how often it can be drawn, what it gives.",
	fields: []field[entrySource]{
		entryID,
		key("weight", decimalShape{}, func(e *entrySource) *decimal { return &e.weight },
			"The odds, in proportion to the other weights of the pool. Decimals are exact; percent signs and exponents are not allowed.").must(),
		keyOr("stock", wordOr[Stock]{
			"unlimited", Stock{Unlimited: true}, "It never runs out.",
			part[Stock, uint64]{integerShape{0, MaxQuantity}, func(s *Stock) *uint64 { s.Unlimited = false; return &s.Count }},
		}, func(e *entrySource) *Stock { return &e.out.Stock }, Stock{Unlimited: true},
			"How often the entry can be drawn in all, by all players."),
		entryReward,
	},
}

var raffleEntryShape = &object[entrySource]{
	name: "raffle_entry",
	doc:  "One kind of ticket in a box: how many there are and what each gives.",
	fields: []field[entrySource]{
		entryID,
		noKey[entrySource]("weight", "the odds in a raffle are the remaining stock; leave weight out, or set the pool's mode to weighted"),
		key("stock", integerShape{0, MaxQuantity}, func(e *entrySource) *uint64 { return &e.out.Stock.Count },
			"How many of these tickets are in the box at first.").must(),
		entryReward,
	},
}

var rewardShape = wordOr[Reward]{
	"nothing", Reward{Kind: RewardNothing}, "A blank.",
	&object[Reward]{
		name: "reward",
		doc:  "What an entry gives: a bundle of items, or a draw from another pool.",
		one:  true,
		fields: []field[Reward]{
			key("items", dict[Quantity]{"an item", quantityShape, func(q *Quantity) *string { return &q.Item }, MaxBundle},
				func(w *Reward) *[]Quantity { w.Kind = RewardItems; return &w.Items },
				"The items given together: ids with quantities."),
			key("pool", idShape{"a pool"},
				func(w *Reward) *string { w.Kind = RewardPool; return &w.Pool },
				"The pool to draw once from. Its price, times and limits do not apply."),
		},
	},
}

// quantityShape is a fixed quantity or bounds of one.
var quantityShape = eitherKind[Quantity]{
	other: fixedShape{integerShape{1, MaxQuantity}},
	mapping: &object[Quantity]{
		name: "quantity",
		doc:  "A whole number from min to max, each as likely as any other.",
		fields: []field[Quantity]{
			key("min", integerShape{1, MaxQuantity}, func(q *Quantity) *uint64 { return &q.Min }, "The least that is given.").must(),
			key("max", integerShape{1, MaxQuantity}, func(q *Quantity) *uint64 { return &q.Max }, "The most that is given.").must(),
		},
	},
}

var idempotencyShape = &object[Idempotency]{
	name: "idempotency",
	doc: "A request id is remembered until its batch is older than age, by the time stamps of the log. It stays longer while it is " +
		"among the newest 1048576 of the realm (or the newest count, if that is less).",
	fields: []field[Idempotency]{
		keyOr("count", narrowShape{integerShape{1, MaxIdempotencyCount}}, func(i *Idempotency) *uint32 { return &i.Count },
			DefaultIdempotencyCount, "How many request ids within age there is room for. When the room is used up, new ids are refused until the oldest have "+
				"aged; none is forgotten early. Each takes about 60 bytes of memory."),
		keyOr("age", durationShape{MinIdempotencyAge, MaxIdempotencyAge}, func(i *Idempotency) *time.Duration { return &i.Age },
			DefaultIdempotencyAge, "How long a request id is remembered at least, such as 24h or 30d; from "+formatDuration(MinIdempotencyAge)+" to "+formatDuration(MaxIdempotencyAge)+"."),
	},
}
