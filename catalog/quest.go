package catalog

// Limits of quests.
const (
	MaxQuests = 1024 // the most quests in a catalog
	MaxTiers  = 1000 // the most tiers of a quest
	MaxNeeds  = 16   // the most counters that a tier needs
)

// Quest is what counters must reach, and what a player gets for it.
type Quest struct {
	ID      string    `json:"id"`
	Name    string    `json:"name,omitempty"`
	Display Display   `json:"display,omitzero"`
	When    Condition `json:"when,omitzero"` // who can claim
	Per     Period    `json:"per"`           // when it begins again: forever means never
	Claim   Claim     `json:"claim"`
	Tier              // of a quest without Tiers
	Tiers   []Tier    `json:"tiers,omitempty"` // claimed in order; none: the quest has one tier, Tier
}

// Tier is a step of a quest.
type Tier struct {
	Needs  []Counted `json:"needs,omitempty"`
	Reward Reward    `json:"reward,omitzero"`
}

// Claim says who claims a quest.
type Claim uint8

const (
	ClaimPlayer    Claim = 1 // the player does
	ClaimAutomatic Claim = 2 // the event that reaches it does
)

// Done asks that a player has claimed tiers of a quest, in its present period.
type Done struct {
	Quest string `json:"quest"`
	Tiers uint64 `json:"tiers"` // at least so many
}

// Steps returns the tiers of a quest: at least one.
func (q *Quest) Steps() []Tier {
	if len(q.Tiers) == 0 {
		return []Tier{q.Tier}
	}
	return q.Tiers
}

var needsShape = dict[Counted]{id("a counter"), counted, func(c *Counted) *string { return &c.Counter }, MaxNeeds}

func tierFields[T any](tier func(*T) *Tier) []field[T] {
	return []field[T]{
		key("needs", needsShape, func(v *T) *[]Counted { return &tier(v).Needs },
			"Where counters must stand: at least at a number, or between two."),
		keyOr("reward", rewardShape, func(v *T) *Reward { return &tier(v).Reward }, Reward{},
			"What the player gets. Without it, nothing."),
	}
}

var tierShape = mapping("tier", "A step of a quest.", tierFields(func(t *Tier) *Tier { return t })...)

var questShape = &object[Quest]{
	name:  "quest",
	doc:   "What counters must reach, and what a player gets for it.",
	begin: func(k *report, _ *Quest) { k.thereAre("a track", nil) }, // those are of pools
	fields: append(displayedAs(func(q *Quest) *string { return &q.Name }, func(q *Quest) *Display { return &q.Display },
		key("when", conditionShape, func(q *Quest) *Condition { return &q.When }, "Who can claim it."),
		key[Quest, Period]("per", periods, func(q *Quest) *Period { return &q.Per },
			"When it begins again. Without it, when the counters that it needs do.").writtenIf(func(q *Quest) bool {
			return q.Per != Period{Per: PerForever}
		}),
		keyOr("claim", choiceShape[Claim]{
			{"player", ClaimPlayer, "The player claims what is reached."},
			{"automatic", ClaimAutomatic, "The event that reaches a tier gives its reward. If that does not fit, it waits to be claimed."},
		}, func(q *Quest) *Claim { return &q.Claim }, ClaimPlayer, "Who claims it."),
		key("tiers", list[Tier]{"tiers", tierShape, MaxTiers}, func(q *Quest) *[]Tier { return &q.Tiers },
			"Steps that are claimed one after the other, in place of needs and reward."),
	), tierFields(func(q *Quest) *Tier { return &q.Tier })...),
}

// questsShape is how many tiers of quests must be claimed.
var questsShape = dict[Done]{
	key:   id("a quest"),
	value: part[Done, uint64]{integer[uint64](1, MaxTiers), func(d *Done) *uint64 { return &d.Tiers }},
	id:    func(d *Done) *string { return &d.Quest },
	max:   MaxConditions,
}

// inferPeriods sets the period of each quest that has none to that of the counters that it needs.
func (c *Catalog) inferPeriods() {
	of := make(map[string]Period, len(c.Counters))
	for i := range c.Counters {
		of[c.Counters[i].ID] = c.Counters[i].Per
	}
	for i := range c.Quests {
		q := &c.Quests[i]
		if q.Per.Per != 0 {
			continue
		}
		q.Per.Per = PerForever
		for _, t := range q.Steps() {
			for _, n := range t.Needs {
				if p := of[n.Counter]; p.Per != 0 && p.Per != PerForever {
					q.Per = p
				}
			}
		}
	}
}

// quests checks what spans several keys of quests.
func (k *check) checkQuests() {
	per := map[string]Period{}
	for i := range k.c.Counters {
		per[k.c.Counters[i].ID] = k.c.Counters[i].Per
	}
	for i := range k.c.Quests {
		q := &k.c.Quests[i]
		k.enter(q.ID)
		k.runs(&q.Per)
		k.condition(&q.When)
		if len(q.Tiers) > 0 && (len(q.Needs) > 0 || !q.Reward.Nothing()) {
			k.fault("expected needs and reward, or tiers which have them, found both")
		}
		if len(q.Tiers) == 0 {
			k.tier(q, &q.Tier, per)
		}
		k.enter("tiers")
		for j := range k.each(len(q.Tiers)) {
			k.tier(q, &q.Tiers[j], per)
		}
		k.leave()
		k.leave()
	}
}

func (k *check) tier(q *Quest, t *Tier, per map[string]Period) {
	if len(t.Needs) == 0 && q.When.Empty() && q.Claim == ClaimAutomatic {
		k.fault("expected needs: without any, nothing reaches it")
	}
	for _, n := range t.Needs {
		if p, ok := per[n.Counter]; ok && p.Per != PerForever && p != q.Per {
			k.faultAt("needs", "expected counters over the time of the quest, per %s, found %s, which counts per %s; say which with per",
				periods.write(1, &q.Per), quote(n.Counter), periods.write(1, &p))
		}
	}
}

func (q *Quest) code(x *coder) {
	x.ref(&q.ID)
	x.name(&q.Name)
	q.When.code(x)
	q.Per.code(x)
	kind(x, &q.Claim)
	q.Tier.code(x)
	many(x, &q.Tiers, MaxTiers, 4, (*Tier).code)
	if x.version >= 6 {
		q.Display.code(x)
	}
}

func (t *Tier) code(x *coder) {
	many(x, &t.Needs, MaxNeeds, 4, (*Counted).code)
	t.Reward.code(x)
}

func (d *Done) code(x *coder) {
	x.ref(&d.Quest)
	number(x, &d.Tiers)
}
