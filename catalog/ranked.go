package catalog

import "go.yaml.in/yaml/v4"

// Players can be ranked by a counter. When its period ends, ranks can have rewards.

// rankedShape is whether players are ranked, or a mapping that says what they get for it.
type rankedShape struct{ more *object[Ranked] }

var prizeShape = mapping("prize", "A reward for a rank, or for several.",
	key("to", integer[uint32](1, MaxRank), func(p *Prize) *uint32 { return &p.To },
		"The last rank that gets it. The first one follows the last rank of the reward before it.").must(),
	key("reward", rewardShape, func(p *Prize) *Reward { return &p.Reward }, "What the player gets.").must(),
)

var rankedWords = rankedShape{mapping("ranked", "What players get for their ranks when the time of a counter ends.",
	key("rewards", list[Prize]{"rewards", prizeShape, MaxPrizes}, func(r *Ranked) *[]Prize { return &r.Rewards },
		"The rewards, by rank, the first ranks first.").must(),
)}

func (s rankedShape) expects() string { return boolean.expects() + ", or " + s.more.expects() }

func (s rankedShape) read(r *reader, n *yaml.Node, dst *Ranked) {
	if n.Kind == yaml.MappingNode {
		dst.Is = true
		s.more.read(r, n, dst)
		return
	}
	before := len(r.list)
	boolean.read(r, n, &dst.Is)
	r.widen(before, boolean.expects(), s.expects())
}

func (s rankedShape) check(k *report, v *Ranked) {
	if len(v.Rewards) > 0 {
		s.more.check(k, v)
	}
}

func (s rankedShape) write(scale uint64, v *Ranked) string {
	if len(v.Rewards) > 0 {
		return s.more.write(scale, v)
	}
	return boolean.write(scale, &v.Is)
}

func (s rankedShape) schema(d definitions) *schemaNode {
	return &schemaNode{OneOf: []*schemaNode{boolean.schema(d), s.more.schema(d)}}
}

// ranked checks what a counter says of ranks.
func (k *check) ranked(c *Counter) {
	r := &c.Ranked
	switch {
	case !r.Is && len(r.Rewards) > 0:
		k.faultAt("ranked", "expected no rewards of a counter that is not ranked")
	case !r.Is:
	case c.For == ForRealm:
		k.faultAt("ranked", "expected none: it is a counter of the realm, which no player has")
	case c.Streak.Per != 0:
		k.faultAt("ranked", "expected none with streak: streaks of different players end at different times")
	case len(r.Rewards) > 0 && c.Per.Per == PerForever:
		k.faultAt("ranked", "expected no rewards without per: they are for the ranks when the time of the counter ends")
	}
	k.at("ranked", func() {
		k.at("rewards", func() {
			for i := range k.each(len(r.Rewards)) {
				p := &r.Rewards[i]
				if i > 0 && p.To <= r.Rewards[i-1].To {
					k.faultAt("to", "expected a later rank than %d, to which the reward before it goes, found %d", r.Rewards[i-1].To, p.To)
				}
				if p.Reward.Nothing() {
					k.faultAt("reward", "expected something, found nothing: ranks without a reward need not be there")
				}
			}
		})
	})
}

func (p *Prize) code(x *coder) {
	number(x, &p.To)
	p.Reward.code(x)
}
